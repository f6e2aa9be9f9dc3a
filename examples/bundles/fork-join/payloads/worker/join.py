"""Runs once, when both branches are complete. Its input is the message of the one that came first;
what both have found lies in the folder of the run."""
import json

import runstore

letters = 0
for side in ("left", "right"):
    with open(runstore.path(f"{side}.json"), encoding="utf-8") as file:
        letters += json.load(file)["letters"]
runstore.note("joins.jsonl", {"letters": letters})
runstore.finish({"letters": letters}, f"{letters} letters")
print(json.dumps({"letters": letters}))
