"""The bundles of examples/bundles and test/bundles/forms, and how each ends, whatever happens to
the node in between."""

import os

from bundlework import EXAMPLES, FORMS

RUN_FILES = ["run.json", "config.json", "inputs.json", "events.jsonl", "errors.jsonl",
             "timeline.jsonl",
             "observability_summary.json", "result.json", "final_artifact.json"]


class Pattern:
    """A bundle, and the end of its job."""

    def __init__(self, name, statuses, result, *args, folder=EXAMPLES, files=True, answers=None,
                 works=None):
        self.name = name
        self.path = os.path.join(folder, name.split("/")[0])
        self.statuses = statuses  # of the steps
        self.result = result      # what result.json has, or of the job's result where there is none
        self.args = args
        self.files = files        # does it leave the files of a run?
        self.answers = answers    # (request, decision) of a person
        self.works = works or {}  # agent -> how often it works for a step, if not once

    def check(self, ran):
        assert ran.status["status"] == "completed", ran
        assert ran.statuses == self.statuses, ran
        if self.files:
            assert all(ran.has(name) for name in RUN_FILES), os.listdir(ran.folder)
            found = ran.file("result.json")
            assert {k: found[k] for k in self.result} == self.result, ran
        assert ran.result["agent_id"] in ("sink", "collector", "end"), ran
        assert ran.result["output"]["count"] >= 1, ran


def done(*names):
    return {name: "completed" for name in names}


SENSORS = ("sensor_a", "sensor_b", "sensor_c")
WORKERS = ("worker_1", "worker_2", "worker_3", "worker_4")

PATTERNS = {p.name: p for p in [
    Pattern("linear", done("prepare", "transform", "publish"), {"numbers": [2, 4, 6], "sum": 12}),
    Pattern("fork-join", done("split", "left", "right", "join"), {"letters": 18}),
    Pattern("scatter-gather", {**done("plan", "collect"), "measure": "skipped",
                               **{f"measure[{n}]": "completed" for n in range(5)}},
            {"highest": "La Paz", "towns": ["Bern", "Delft", "La Paz", "Oslo", "Quito"]},
            works={"collect": 5}),
    Pattern("branch", {**done("decide", "express", "deliver"), "standard": "skipped"},
            {"order": 17, "by": "express"}),
    Pattern("branch/heavy", {**done("decide", "standard", "deliver"), "express": "skipped"},
            {"order": 17, "by": "standard"}, "--set", "inputs.payload.weight=20"),
    Pattern("fallback", {"primary": "partial", **done("fallback", "report")},
            {"answer": 42, "instead_of": "primary", "rule": "one_failed", "outcome": "failed"}),
    Pattern("quorum", {**done("start", "sensor_a", "sensor_b", "decide"), "sensor_c": "partial"},
            {"sensors": 2, "celsius": 21.5}),
    Pattern("dynamic", done("inspect_context", "write_report", "followup_research_1",
                            "followup_research_2"),
            {"parents": ["followup_research_1", "followup_research_2"], "found": 2}),
    Pattern("dynamic/fixed", done("inspect_context", "write_report"),
            {"parents": ["inspect_context"], "found": 0}, "--set",
            "inputs.payload.evidence_gap=false"),
    Pattern("approval", done("draft", "review", "publish"),
            {"title": "All about otters", "approved_by": "ann"},
            answers=("publish-draft", "approve")),
    Pattern("retry", done("fetch", "report"), {"status": 200}, works={"fetch": 2}),
    Pattern("checkpoint", done("run"), {"seen": [1, 2, 3, 4, 5, 6, 7], "sum": 28},
            works={"run": 7}),
    Pattern("stream", done("produce", "consume"), {"seen": list(range(10)), "in_order": True},
            works={"consume": 10}),
    Pattern("pool", done("start", *WORKERS, "report"),
            {"workers": 4, "pool": "default", "slots": 25}),
    Pattern("trace", done("receive", "enrich", "trace"),
            {"hops": 3, "correlation_ids": ["request-r-1"], "chain_is_whole": True}),
    Pattern("older", {}, None, folder=FORMS, files=False, works={"counter": 2}),
    Pattern("bindings", done("count", "show"), None, folder=FORMS, files=False),
    Pattern("submitted", done("count", "show"), None, folder=FORMS, files=False),
    Pattern("service", done("count"), None, folder=FORMS, files=False),
    Pattern("v1", done("count"), None, folder=FORMS, files=False),
]}


def run(runner, name, **options):
    """Run it to its end, with the answers of a person, and check how it ended."""
    pattern = PATTERNS[name]
    process = runner.start(pattern.path, *pattern.args, **options)
    if pattern.answers:
        answer(runner, process.run_id, *pattern.answers)
    ran = runner.finish(process)
    pattern.check(ran)
    return ran


def answer(runner, run_id, request, decision):
    runner.wait_file(run_id, "human.jsonl")
    runner.box.glia("human", "respond", run_id, request, "--decision", decision, "--reviewer",
                    "ann")
