"""The run's folder, which all workers of a job share."""
import json
import os

FOLDER = os.path.join(os.environ["MN_RUNS_ROOT"], os.environ["MN_RUN_ID"])


def path(name):
    os.makedirs(FOLDER, exist_ok=True)
    return os.path.join(FOLDER, name)


def note(name, entry):
    """Append a line in one write, so that lines of parallel workers do not mix."""
    with open(path(name), "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def save(name, document):
    with open(path(name), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)


def finish(result, summary):
    """Write the files of the finished run; called by its last step."""
    config = json.loads(os.environ["MN_BLUEPRINT_CONFIG_JSON"])
    with open(os.environ["MN_INPUT_FILE"], encoding="utf-8") as file:
        inputs = json.load(file)
    save("run.json", {"run_id": os.environ["MN_RUN_ID"], "job_id": os.environ["MN_JOB_ID"],
                      "status": "completed"})
    save("config.json", config)
    save("inputs.json", inputs)
    save("events.jsonl", {"type": "finished", "summary": summary})
    save("errors.jsonl", [])
    save("timeline.jsonl", {"step": os.environ.get("MN_WORKFLOW_STEP_ID"), "status": "completed"})
    save("observability_summary.json", {"summary": summary})
    save("result.json", result)
    save("final_artifact.json", {"title": summary, "result": result})
