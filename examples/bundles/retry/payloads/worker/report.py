import json
import os

import runstore

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    sandbox = json.load(file)["sandbox"]
result = {"status": json.loads(sandbox["stdout"])["status"], "tries": sandbox["attempts"]}
runstore.finish(result, f"status {result['status']}")
print(json.dumps(result))
