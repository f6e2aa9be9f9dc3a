"""Selects a branch, for the ledger by an event, and for the edges between the agents by
outputs.selected_branch of the message, which their conditions read."""
import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    order = json.load(file)
branch = "express" if order["weight"] < 5 else "standard"
print(json.dumps({
    "outputs": {"selected_branch": branch, "order": order["order"]},
    "artifacts": [], "metrics": {}, "status": "completed",
    "events": [{"type": "workflow_step_branch", "payload": {"branch": branch}}],
}))
