"""One instance of the step `measure` for each town."""
import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    towns = json.load(file)["towns"]
print(json.dumps({"events": [{"type": "workflow_step_scatter",
                              "payload": {"targets": ["measure"], "items": towns}}]}))
