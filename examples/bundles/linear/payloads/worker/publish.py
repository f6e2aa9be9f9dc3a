import json
import os

import runstore

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    body = json.load(file)
numbers = json.loads(body["sandbox"]["stdout"])["numbers"]
result = {"numbers": numbers, "sum": sum(numbers)}
runstore.finish(result, f"the sum is {sum(numbers)}")
print(json.dumps(result))
