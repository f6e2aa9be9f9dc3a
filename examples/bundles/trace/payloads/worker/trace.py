"""Checks that every message has the correlation id of the first and names its cause."""
import json
import os

import runstore

with open(os.environ["MN_MESSAGE_FILE"], encoding="utf-8") as file:
    runstore.note("trace.jsonl", json.load(file)["envelope"])
with open(runstore.path("trace.jsonl"), encoding="utf-8") as file:
    chain = {}
    for line in file:  # a worker that ran twice wrote the same envelope twice
        envelope = json.loads(line)
        chain[envelope["message_id"]] = envelope
hops = list(chain.values())
pairs = zip(hops, hops[1:])
whole = all(later["causation_id"] == earlier["message_id"] for earlier, later in pairs)
result = {"hops": len(hops), "correlation_ids": sorted({one["correlation_id"] for one in hops}),
          "chain_is_whole": whole}
runstore.finish(result, f"{len(hops)} hops")
print(json.dumps(result))
