import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    words = json.load(file)["words"]
half = len(words) // 2
print(json.dumps({"left": words[:half], "right": words[half:]}))
