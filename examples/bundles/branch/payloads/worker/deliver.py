import json
import os

import runstore

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    shipped = json.loads(json.load(file)["sandbox"]["stdout"])
runstore.finish(shipped, f"order {shipped['order']} by {shipped['by']}")
print(json.dumps(shipped))
