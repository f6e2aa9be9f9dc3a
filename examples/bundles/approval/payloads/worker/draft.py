import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    print(json.dumps({"title": json.load(file)["title"]}))
