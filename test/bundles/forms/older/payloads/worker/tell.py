import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    body = json.load(file)
words = len(body["text"].split())
print(json.dumps({"emit_messages": [{"type": "counted", "body": {"words": words}}]}))
