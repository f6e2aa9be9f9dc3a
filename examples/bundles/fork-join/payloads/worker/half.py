"""Both branches run this; MN_WORKFLOW_STEP_ID names the branch."""
import json
import os
import time

import runstore

side = os.environ["MN_WORKFLOW_STEP_ID"]
with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    words = json.loads(json.load(file)["sandbox"]["stdout"])[side]
time.sleep(0.2)
runstore.save(f"{side}.json", {"letters": sum(len(word) for word in words)})
print(json.dumps({"side": side}))
