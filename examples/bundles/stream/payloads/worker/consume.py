import json
import os

import runstore

with open(os.environ["MN_CONTEXT_FILE"], encoding="utf-8") as file:
    seen = json.load(file)["agent_state"].get("seen", [])
with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    item = json.load(file)
seen.append(item["sequence"])
said = {"next_state": {"seen": seen}}
if len(seen) == item["of"]:
    result = {"seen": seen, "in_order": seen == sorted(seen)}
    runstore.finish(result, f"{len(seen)} items")
    said["complete_step"] = result
    said["emit_messages"] = [{"type": "final_result", "body": result}]
print(json.dumps(said))
