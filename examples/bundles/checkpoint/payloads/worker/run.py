"""Runs once for each message. agent_state is the next_state it returned the last time. The state is
committed together with the end of the message, so a crash neither loses nor repeats a message."""
import json
import os

import runstore

with open(os.environ["MN_CONTEXT_FILE"], encoding="utf-8") as file:
    context = json.load(file)
with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    value = json.load(file)["value"]
seen = context["agent_state"].get("seen", []) + [value]
runstore.note("attempts.jsonl", {"value": value, "attempt": context["workflow"]["attempt"]})
said = {"next_state": {"seen": seen},
        "events": [{"type": "checkpoint_saved", "payload": {"count": len(seen)}}]}
if len(seen) == 7:
    result = {"seen": seen, "sum": sum(seen)}
    runstore.finish(result, f"the sum is {sum(seen)}")
    said["complete_step"] = result
    said["emit_messages"] = [{"type": "final_result", "body": result}]
print(json.dumps(said))
