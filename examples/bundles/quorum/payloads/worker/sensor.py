"""Three instances of this run; the third one fails."""
import json
import os

import runstore

name = os.environ["MN_WORKFLOW_STEP_ID"]
if name == "sensor_c":
    print(json.dumps({"events": [{"type": "workflow_step_failed",
                                  "payload": {"reason": "the wire is broken"}}]}))
else:
    reading = {"sensor": name, "celsius": 21 if name == "sensor_a" else 22}
    runstore.save(f"{name}.json", reading)
    print(json.dumps(reading))
