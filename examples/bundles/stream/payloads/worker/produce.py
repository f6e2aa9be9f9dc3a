import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    count = json.load(file)["count"]
print(json.dumps({"emit_messages": [
    {"type": "stream_item", "body": {"sequence": n, "of": count},
     "stream": {"id": "items", "sequence": n, "last": n == count - 1}} for n in range(count)]}))
