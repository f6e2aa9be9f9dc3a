"""Fails the first time, with an error that looks transient."""
import json
import os
import sys

import runstore

marker = runstore.path(f"tried-{os.environ['MN_JOB_ID']}")
if not os.path.exists(marker):
    with open(marker, "w", encoding="ascii"):
        pass
    print("simulated transport error", file=sys.stderr)
    sys.exit(23)
print(json.dumps({"status": 200}))
