"""Reports how many workers ran at the same time."""
import json
import os

import runstore

with open(runstore.path("spans.jsonl"), encoding="utf-8") as file:
    spans = sorted((json.loads(line) for line in file), key=lambda one: (one["at"], one["change"]))
at_once = most = 0
for span in spans:
    at_once += span["change"]
    most = max(most, at_once)
with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    lease = json.load(file)["sandbox"]["lease"]
result = {"workers": len({span["worker"] for span in spans}), "at_once": most,
          "pool": lease["pool"], "slots": lease["slots"]}
runstore.finish(result, f"{most} at a time")
print(json.dumps(result))
