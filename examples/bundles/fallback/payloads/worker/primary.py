"""Exits with 0, but reports by an event that the step has failed: the event decides."""
import json

print(json.dumps({"events": [{"type": "workflow_step_failed",
                              "payload": {"reason": "the service is away"}}]}))
