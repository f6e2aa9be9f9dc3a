"""If evidence is missing, adds two steps between this one and the report."""
import json
import os

with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
    body = json.load(file)
with open(os.environ["MN_CONTEXT_FILE"], encoding="utf-8") as file:
    revision = json.load(file)["workflow"].get("graph_revision", 0)
said = {"complete_step": {"topic": body["topic"], "evidence_gap": body["evidence_gap"]}}
if body["evidence_gap"]:
    operations = [{"op": "remove_edge", "id": "inspect_context__write_report"}]
    for number in (1, 2):
        name = f"followup_research_{number}"
        operations += [
            {"op": "add_step", "id": name, "template": "followup_research",
             "label": f"Look closer ({number})", "with": {"topic": body["topic"], "part": number}},
            {"op": "add_edge", "id": f"in_{number}", "from": "inspect_context", "to": name},
            {"op": "add_edge", "id": f"out_{number}", "from": name, "to": "write_report"},
        ]
    said["events"] = [{"type": "workflow_graph_patch",
                       "payload": {"patch_id": "gap-1", "base_revision": revision,
                                   "region_id": "evidence", "operations": operations}}]
print(json.dumps(said))
