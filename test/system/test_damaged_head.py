"""The record of a job itself or of its flow is damaged: the job can only be mended or removed. And
values that are damaged are not used."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import wait_for  # noqa: E402
from httpnode import serve  # noqa: E402
from records import open_records  # noqa: E402

GOLDEN = golden.of(__file__)


def damage(box, kind, name, change):
    """Its checksum does not fit any more."""
    with open_records(box) as store:
        store.write(kind, name, change(store.read(kind, name)), keep_sum=True)


def flow_of(box, job):
    with open_records(box) as store:
        return json.loads(store.read("job", job))["flow"]


def spaced(text):
    return text.replace(":", ": ")


def leave(box, name):
    """A job whose unsafe step runs, and whose node is dead: its id, and the step's process."""
    flow = box.write(f"{name}.yaml", f"""
name: {name}
steps:
  one: {{unsafe: true, sh: 'echo $$ > {box.folder}/{name}.pid; exec sleep 1000'}}
  two: {{needs: one, sh: 'true'}}
""")
    run = box.start("run", flow, "--run-id", name)
    wait_for("its step", lambda: box.has(f"{name}.pid") and box.read(f"{name}.pid").strip())
    run.kill()
    run.wait()
    job, = [j["job_id"] for j in box.jobs() if j.get("run_id") == name]
    return job, int(box.read(f"{name}.pid"))


def test_it_can_be_removed_and_what_runs_of_it_is_stopped(box):
    left = [leave(box, name) for name in ("changed", "gone", "flow")]
    damage(box, "flow", flow_of(box, left[2][0]), lambda text: text.replace("sleep", "SLEEP"))
    damage(box, "job", left[0][0], spaced)
    damage(box, "job", left[1][0], lambda text: "?")
    serve(box)
    for job, pid in left:
        for verb in ("cancel", "pause", "resume"):
            assert GOLDEN.tells("advice", box.glia("job", verb, job, code=5).stderr)
        assert os.path.exists(f"/proc/{pid}")
    GOLDEN.says("nobody", box.glia("human", "list").stderr)
    for job, _ in left:
        box.glia("job", "rm", job)
    assert box.jobs() == []
    for _, pid in left:
        wait_for("the end of its process", lambda p=pid: not os.path.exists(f"/proc/{p}"))
    for name in ("changed", "flow"):
        box.glia("run", "--run-id", name, "--", "true")  # what could be read of it is free again


def test_what_cannot_be_told_of_it_names_the_flow(box):
    job, _ = leave(box, "left")
    damage(box, "flow", flow_of(box, job), lambda text: "")
    for words in (("why", job), ("job", "status", job)):
        error = box.error(*words, code=5)
        assert error["reason"] == "job_damaged" and GOLDEN.tells("advice", error["message"])
    serve(box)
    error = box.error("why", job, code=5)
    assert error["reason"] == "job_damaged" and GOLDEN.tells("advice", error["message"])


def test_a_job_that_is_fine_is_not_removed_while_it_lives(box):
    job, _ = leave(box, "fine")
    assert box.reason("job", "rm", job, code=2) == "job_not_ended"
    box.glia("job", "cancel", job)


def test_who_waits_for_it_is_told(box):
    job, _ = leave(box, "left")
    damage(box, "job", job, spaced)
    serve(box)
    told = box.glia("job", "events", "--follow", job, code=5)
    assert "running" in told.stdout
    assert GOLDEN.tells("advice", told.stderr)


def test_a_damaged_output_is_not_used(box):
    flow = box.write("f.yaml", f"""
steps:
  one: {{sh: 'echo "{{\\"n\\": 17}}" > "$GLIA_OUTPUT"'}}
  two: {{needs: one, approval: "go on?"}}
  three: {{needs: two, run: [touch, "{box.folder}/${{steps.one.output.n}}"]}}
""")
    run = box.start("run", flow, "--run-id", "left")
    wait_for("the question", lambda: "two" in box.glia("human", "list").stdout)
    job = box.json("job", "status", "left")["job_id"]
    damage(box, "step", f"{job}/one", lambda text: text.replace("17", "18"))
    box.glia("human", "respond", "left", "two", "--decision", "approve")
    box.finish(run, 1)
    three = box.json("job", "status", "left")["workflow_state"]["steps"]["three"]
    assert three["status"] == "failed" and "/one is damaged" in box.read(run.err)
    assert not box.has("17") and not box.has("18")
