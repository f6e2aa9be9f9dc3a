"""The agent of the template: it runs once for each step that the patch added, whose id is in
MN_WORKFLOW_STEP_ID and whose `with` is the step's input."""
import json
import os

import runstore

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    given = json.load(file)["step_input"]
step = os.environ["MN_WORKFLOW_STEP_ID"]
runstore.save(f"{step}.json", {"topic": given["topic"], "part": given["part"],
                               "revision": os.environ["MN_WORKFLOW_GRAPH_REVISION"]})
print(json.dumps({"complete_step": {"part": given["part"]}}))
