import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    outputs = json.load(file)["outputs"]
print(json.dumps({"order": outputs["order"], "by": os.environ["MN_WORKFLOW_STEP_ID"]}))
