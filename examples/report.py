"""Makes the report of examples/nightly.yaml from the outputs of the steps before it."""

import json
import os

with open(os.environ["GLIA_INPUT_FILE"], encoding="utf-8") as file:
    steps = json.load(file)["steps"]

orders = steps["orders"]["output"]["orders"]
weather = steps["weather"]["output"] or "unknown"  # null: it has no output
text = f"{orders} orders, weather {weather}"
print(text)

with open(os.environ["GLIA_OUTPUT"], "w", encoding="utf-8") as file:
    json.dump({"report": text}, file)
