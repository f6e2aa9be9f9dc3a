"""Runs as an instance (measure[0], measure[1], ...); its input has `item` and `map_index`."""
import json
import os

HEIGHTS = {"Bern": 542, "Quito": 2850, "Oslo": 23, "La Paz": 3640, "Delft": 0}

with open(os.environ["MN_CONTEXT_FILE"], encoding="utf-8") as file:
    context = json.load(file)
with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    body = json.load(file)
instance = context["workflow"]["step_id"]
assert instance == f"measure[{body['map_index']}]", instance
print(json.dumps({"town": body["item"], "height": HEIGHTS[body["item"]], "instance": instance}))
