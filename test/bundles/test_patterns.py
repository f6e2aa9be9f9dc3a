"""Every pattern that bundles are made of runs for real, by a command that is the node itself and
by a node that is there."""

import json
import os
import shutil

import pytest

import golden
from bundlework import EXAMPLES, copy_of, get, item, validate
from patterns import PATTERNS, SENSORS, WORKERS, run

GOLDEN = golden.of(__file__)


@pytest.fixture(name="runner", params=["alone", "served"])
def make_runner(request):
    return request.getfixturevalue(request.param)


def completed_in_order(ran, *steps):
    found = [get(e, "step_id") for e in ran.of("workflow_step_completed")]
    assert [s for s in found if s in steps] == list(steps), ran


@item("B-1.1-1", "B-1.1-2", "B-1.1-5", "B-1.1-6", "B-16-1", "B-4-1")
def test_linear(runner):
    before = snapshot(PATTERNS["linear"].path)
    ran = run(runner, "linear")
    completed_in_order(ran, "prepare", "transform", "publish")
    assert snapshot(PATTERNS["linear"].path) == before
    assert ran.file("config.json")["factor"] == 2


def snapshot(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[path] = (os.stat(path).st_mtime_ns, file.read())
    return found


@item("B-8.2-1", "B-8.3-2", "B-8.3-3", "B-8.3-5", "B-15-2", "B-1.1-3")
def test_fork_join(runner):
    ran = run(runner, "fork-join")
    assert len(ran.lines("joins.jsonl")) == 1, ran
    assert len(ran.of("workflow_step_attempt_started", step_id="join")) == 1, ran
    ends = [get(e, "step_id") for e in ran.of("workflow_step_completed")]
    assert ends[-1] == "join" and set(ends[1:3]) == {"left", "right"}, ran


@item("B-8.6-3", "B-8.6-4", "B-8.1-2", "B-8.3-4", "B-8.3-5", "B-2.2-12", "B-7.4-3")
def test_scatter_gather(runner):
    ran = run(runner, "scatter-gather")
    assert ran.steps["measure"]["terminal_outcome"] == "mapped"
    scattered = ran.one("workflow_step_scattered")
    assert get(scattered, "count") == 5
    assert len(ran.of("workflow_step_attempt_started", step_id="collect")) == 1, ran
    first = next(i for i, e in enumerate(ran.events) if e["type"] == "workflow_step_attempt_started"
                 and str(get(e, "step_id")).startswith("measure["))
    plan = next(i for i, e in enumerate(ran.events) if e["type"] == "workflow_step_completed"
                and get(e, "step_id") == "plan")
    assert plan < first, ran


@item("B-8.6-1", "B-5.3-2", "B-2.3-2", "B-2.3-3", "B-7.4-13", "B-8.2-6")
@pytest.mark.parametrize("name, taken, left", [("branch", "express", "standard"),
                                               ("branch/heavy", "standard", "express")])
def test_branch(runner, name, taken, left):
    ran = run(runner, name)
    selected = ran.one("workflow_branch_selected")
    assert get(selected, "selected") == [taken] and get(selected, "skipped") == [left], ran
    assert ran.statuses[left] == "skipped", ran
    GOLDEN.says(f"{name} left", ran.steps[left]["terminal_reason"])
    assert not ran.of("workflow_step_attempt_started", step_id=left), ran


@item("B-8.2-5", "B-8.3-6", "B-8.3-7", "B-8.4-2", "B-8.4-6", "B-8.1-1", "B-2.4-3", "B-15-4")
def test_fallback(runner):
    ran = run(runner, "fallback")
    assert ran.steps["primary"]["terminal_outcome"] == "failed"
    assert get(ran.one("workflow_step_failed", step_id="primary"), "handled") is True
    ran.one("workflow_step_triggered", step_id="fallback")


@item("B-8.2-7", "B-2.4-2", "B-2.4-3")
def test_quorum(runner):
    ran = run(runner, "quorum")
    assert {ran.steps[s].get("terminal_outcome") for s in SENSORS} == {"success", "failed"}
    assert len(ran.of("workflow_step_attempt_started", step_id="decide")) == 1, ran


@item("B-8.7-1", "B-8.7-2", "B-1.1-4", "B-13-4", "B-7.2-5")
def test_dynamic_patch(runner):
    ran = run(runner, "dynamic")
    applied = ran.one("workflow_graph_patch_applied")
    assert get(applied, "patch_id") == "gap-1" and get(applied, "graph_revision") == 1
    assert get(applied, "region_id") == "evidence" and get(applied, "strategy") == "replace_path"
    assert '"with"' not in json.dumps(applied)
    told = ran.one("workflow_graph_patch")
    assert get(told, "patch_id") == "gap-1" and "operations" not in json.dumps(told)
    for number in (1, 2):
        found = ran.file(f"followup_research_{number}.json")
        assert found == {"topic": "rivers", "part": number, "revision": "1"}


@item("B-4-8", "B-8.3-6")
def test_dynamic_patch_that_is_not_needed(runner):
    ran = run(runner, "dynamic/fixed")
    assert not ran.of("workflow_graph_patch_applied"), ran


@item("B-12-3", "B-12-4", "B-16-2")
def test_human_approval(runner):
    pattern = PATTERNS["approval"]
    process = runner.start(pattern.path)
    runner.wait_file(process.run_id, "human.jsonl")
    requests = runner.box.json("human", "list")["requests"]
    mine = [r for r in requests if r.get("run_id") == process.run_id]
    assert [r.get("request_id") for r in mine] == ["publish-draft"], requests
    said = runner.box.glia("human", "respond", process.run_id, "publish-draft", "--decision",
                           "maybe",
                           code=2).stderr
    assert "approve" in said, said
    runner.box.glia("human", "respond", process.run_id, "publish-draft", "--decision", "approve",
                    "--reviewer", "ann", "--runs-root", runner.env["MN_RUNS_ROOT"])
    ran = runner.finish(process)
    pattern.check(ran)
    line, = [x for x in ran.lines("human.jsonl") if x["type"] == "human_input_received"]
    assert line["payload"]["request_id"] == "publish-draft" and line["payload"]["approved"] is True
    assert line["payload"]["decision"] == "approve" and line["payload"]["reviewer"] == "ann"


@item("B-12-3", "B-12-4")
def test_human_refusal(runner):
    process = runner.start(PATTERNS["approval"].path)
    runner.wait_file(process.run_id, "human.jsonl")
    runner.box.glia("human", "respond", process.run_id, "publish-draft", "--decision", "reject",
                    "--reviewer", "bob")
    ran = runner.finish(process, code=1)
    assert ran.status["status"] == "failed" and ran.statuses["review"] == "failed", ran


@item("B-7.5-3", "B-2.2-14", "B-7.3-8")
def test_retry_recovery(runner):
    ran = run(runner, "retry")
    assert ran.file("result.json")["tries"] == 2, ran
    assert ran.steps["fetch"]["attempt_count"] == 1, ran


@item("B-8.3-4", "B-7.4-3", "B-7.4-5", "B-7.2-6", "B-2.2-12", "B-4-5")
def test_checkpointed_state(runner):
    ran = run(runner, "checkpoint")
    assert {line["attempt"] for line in ran.lines("attempts.jsonl")} == {1}
    assert [get(e, "count") for e in ran.of("checkpoint_saved")] == list(range(1, 8)), ran
    assert len(ran.of("workflow_step_attempt_started", step_id="run")) == 1, ran


@item("B-5.4-1", "B-5.4-2", "B-5.3-6", "B-7.4-7")
def test_bounded_stream(runner):
    ran = run(runner, "stream")
    states = [get(e, "state") for e in ran.of("backpressure_state")]
    assert len(states) >= 2, ran


@item("B-10-1", "B-10-3", "B-10-4", "B-2.2-15")
def test_executor_pool(runner):
    ran = run(runner, "pool")
    for name in WORKERS:
        lease = ran.one("executor_lease_acquired", agent_id=name)
        assert get(lease, "pool") == "default" and get(lease, "slots") == 25, lease
        assert get(ran.one("executor_lease_released", agent_id=name), "lease_id") == get(lease,
                                                                                         "lease_id")
    # By the leases two are at work at a time; their processes are not seen together by chance.
    held = most = 0
    for kind in ran.order("executor_lease_acquired", "executor_lease_released"):
        held += 1 if kind == "executor_lease_acquired" else -1
        most = max(most, held)
    assert most == 2 and 1 <= ran.file("result.json")["at_once"] <= 2, ran
    waits = [get(ran.one("executor_lease_acquired", agent_id=n), "queue_wait_ms") for n in WORKERS]
    assert sum(wait >= 200 for wait in waits) == 2, waits


@item("B-5.1-2", "B-5.1-3", "B-4-7", "B-13-3")
def test_observability_trace(runner):
    ran = run(runner, "trace")
    assert len(ran.of("hop_traced")) == 2, ran


@item("B-1.4-1", "B-1.4-2", "B-8-2", "B-6-3", "B-6-5", "B-6-6")
def test_older_form(runner):
    ran = run(runner, "older")
    assert ran.result["agent_id"] == "collector" and ran.result["output"]["count"] == 2, ran
    bodies = [m["body"] if "body" in m else m for m in ran.result["output"]["messages"]]
    assert sorted(b["words"] for b in bodies) == [2, 3], ran.result


@item("B-1.3-1", "B-1.3-2", "B-1.3-3", "B-1.3-4", "B-1.2-3")
def test_bindings_only_form(runner):
    ran = run(runner, "bindings")
    assert ran.result["agent_id"] == "end", ran


@item("B-1.2-1", "B-2.1-1", "B-2.1-2", "B-2.1-3", "B-2.3-1")
def test_submitted_form(runner):
    ran = run(runner, "submitted")
    assert ran.result["agent_id"] == "end", ran


@item("B-9-4")
def test_service_with_a_sink(runner):
    run(runner, "service")


@item("B-1.1-2")
def test_first_version_of_the_catalog_form(runner):
    run(runner, "v1")


@item("B-12-1", "B-12-2", "B-12-5")
def test_what_a_run_leaves_behind(alone):
    ran = run(alone, "linear")
    names = {a["path"]: a for a in alone.box.json("job", "artifacts", ran.run_id)["artifacts"]}
    assert {"result.json", "events.jsonl", "final_artifact.json"} <= set(names), names
    assert names["result.json"]["bytes"] == os.path.getsize(os.path.join(ran.folder, "result.json"))
    assert len(names["result.json"]["sha256"]) == 64
    # The worker has overwritten events.jsonl; what the runtime tells is elsewhere.
    assert "workflow_step_completed" not in ran.read("events.jsonl")
    assert ran.of("workflow_step_completed")


@item("B-4-1")
def test_overwrite_and_set_go_over_the_defaults(alone, tmp_path):
    folder = copy_of(PATTERNS["linear"].path, tmp_path / "linear")
    with open(f"{folder}/config/overwrite.json", "w", encoding="utf-8") as file:
        json.dump({"factor": 3, "extra": {"a": 1}}, file)
    ran = alone.run(folder)
    assert ran.file("result.json")["sum"] == 18
    ran = alone.run(folder, "--set", "factor=5", "--set", "extra.b=2")
    assert ran.file("result.json")["sum"] == 30
    assert ran.file("config.json")["extra"] == {"a": 1, "b": 2}


@item("B-4-9")
def test_later_edits_do_not_reach_a_job(alone, tmp_path):
    folder = copy_of(PATTERNS["approval"].path, tmp_path / "approval")
    process = alone.start(folder)
    alone.wait_file(process.run_id, "human.jsonl")
    shutil.rmtree(folder)
    alone.box.glia("human", "respond", process.run_id, "publish-draft", "--decision", "approve",
                   "--reviewer", "ann")
    PATTERNS["approval"].check(alone.finish(process))


def test_examples_are_good(box):
    names = [name for name in os.listdir(EXAMPLES) if os.path.isdir(os.path.join(EXAMPLES, name))]
    assert set(names) == {p.name
                          for p in PATTERNS.values() if p.path == os.path.join(EXAMPLES, p.name)}
    for name in names:
        assert validate(box, os.path.join(EXAMPLES, name)) == (True, []), name
