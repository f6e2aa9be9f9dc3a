"""The input has the output of the worker before this one in sandbox.stdout."""
import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    body = json.load(file)
numbers = json.loads(body["sandbox"]["stdout"])["numbers"]
factor = json.loads(os.environ["MN_BLUEPRINT_CONFIG_JSON"])["factor"]
print(json.dumps({"numbers": [number * factor for number in numbers]}))
