import json
import os

import runstore

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    said = json.loads(json.load(file)["sandbox"]["stdout"])
runstore.finish(said, f"approved by {said['approved_by']}")
print(json.dumps(said))
