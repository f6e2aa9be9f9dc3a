import json
import os

import runstore

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    answer = json.loads(json.load(file)["sandbox"]["stdout"])
runstore.finish(answer, f"{answer['answer']}, instead of {answer['instead_of']}")
print(json.dumps(answer))
