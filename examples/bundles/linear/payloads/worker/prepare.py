"""The input is the message that started the job: {"numbers": [...]}."""
import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    body = json.load(file)
print(json.dumps({"numbers": sorted(body["numbers"])}))
