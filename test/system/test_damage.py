"""What lies in the data folder is damaged: the node says which job and what of it, goes on with all
others, and does nothing twice."""

import glob
import json
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import keepers, wait_for  # noqa: E402
from httpnode import JOBS, assert_error, serve, submit, wait_end  # noqa: E402
from records import open_records  # noqa: E402

GOLDEN = golden.of(__file__)


def flow(box, name):
    """One step that must not run twice, one that waits, one that follows."""
    return {"name": name, "steps": {
        "pay": {"sh": f"echo x >> {box.folder}/{name}.pay", "unsafe": True},
        "wait": {"signal": "go"},
        "end": {"needs": ["pay", "wait"], "sh": f"echo x >> {box.folder}/{name}.end"}}}


def start(box, name):
    job = submit(box, flow(box, name))
    wait_for("the first step", lambda: box.step(job, "pay")["status"] == "completed")
    return job


def kill_node(box):
    box.started[-1].kill()
    box.started[-1].wait()


DAMAGE = {
    "a record that is cut off": lambda s, job: s.write("job", job, s.read("job", job)[:-9]),
    "an empty record": lambda s, job: s.write("job", job, ""),
    "a record without fields": lambda s, job: s.write("job", job, "{}"),
    "an unknown status": lambda s, job: s.change("job", job, status="odd"),
    "a number of steps that is not the flow's":
        lambda s, job: s.change("job", job, steps_n=2147483647),
    "no document": lambda s, job: s.write("step", f"{job}/wait", "\xff"),
    "what only the checksum tells":
        lambda s, job: s.change("job", job, keep_sum=True, name="other"),
    "a flow that is no flow": lambda s, job: s.write(
        "flow", json.loads(s.read("job", job))["flow"], '{"format":2,"steps":[{"id":"a"}]}'),
    "no flow": lambda s, job: s.remove("flow", json.loads(s.read("job", job))["flow"]),
}


def test_a_damaged_job_is_told_by_its_id_and_no_other_suffers(box):
    serve(box)
    good = start(box, "good")
    jobs = {what: start(box, f"bad{i}") for i, what in enumerate(DAMAGE)}
    kill_node(box)
    with open_records(box) as store:
        for what, job in jobs.items():
            DAMAGE[what](store, job)
    serve(box)
    for what, job in jobs.items():
        # One whose own record is sound is held, and can be cancelled.
        held = what == "no document"
        for verb in ("signals/go", "pause") if held else ("signals/go", "pause", "cancel"):
            error = assert_error(box.ask("POST", f"{JOBS}/{job}/{verb}", {}), 500, "damaged")
            assert job in error["message"], what
        if held:
            assert box.ask("GET", f"{JOBS}/{job}").json["status"] == "paused"
            assert box.ask("POST", f"{JOBS}/{job}/cancel", {}).status == 200
            assert wait_end(box, job)["status"] == "cancelled"
    listed = box.glia("job", "list").stdout
    assert listed.count("\tdamaged\t") == 5 and all(job in listed for job in jobs.values())
    assert box.ask("POST", f"{JOBS}/{good}/signals/go", {}).status == 200
    assert wait_end(box, good)["status"] == "completed"
    for name in ("good", *(f"bad{i}" for i in range(len(jobs)))):
        assert box.read(f"{name}.pay") == "x\n"
        assert box.has(f"{name}.end") == (name == "good")


def test_a_waiting_command_may_ask_about_an_ended_job_that_is_damaged(box):
    serve(box)
    job = wait_end(box, submit(box, {"name": "short", "steps": {"a": {"sh": "true"}}}))["job_id"]
    with open_records(box) as store:
        DAMAGE["what only the checksum tells"](store, job)
    told = box.ask("GET", f"{JOBS}/{job}?brief=true")
    assert told.status == 200 and told.json == {"job_id": job, "damaged": True}
    assert box.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("value", ['{"step_id": "other"}', "{}", "\xff", None])
def test_an_unsafe_step_whose_record_is_spoiled_does_not_run_again(box, value):
    serve(box)
    job = start(box, "one")
    kill_node(box)
    with open_records(box) as store:
        if value is None:
            store.remove("step", f"{job}/pay")
        else:
            store.write("step", f"{job}/pay", value)
    serve(box)
    box.ask("POST", f"{JOBS}/{job}/signals/go", {})
    other = start(box, "two")
    box.ask("POST", f"{JOBS}/{other}/signals/go", {})
    assert wait_end(box, other)["status"] == "completed"
    assert box.read("one.pay") == "x\n"


def is_told(box, job, text):
    """What may be done about a damaged step, and nothing that is refused."""
    assert f"record step/{job}/pay is damaged" in text, text
    assert f"glia job cancel {job}" in text and f"glia job resume {job}" in text
    assert "human" not in text
    assert box.json("human", "list")["requests"] == []


def all_told(box, job):
    status = box.glia("job", "status", job)
    return box.glia("why", job).stdout + status.stdout + status.stderr


def killed_run(box, name):
    """A `glia run` of which the running step's record is spoiled when it has been killed."""
    mark = os.path.join(box.folder, name)
    path = box.write(f"{name}.yaml", f"steps:\n  pay: {{unsafe: true, sh: 'echo x >> {mark}.pay; "
                                     f"until [ -e {mark}.go ]; do sleep 0.02; done'}}\n"
                                     "  ask: {approval: {message: Well?, decisions: [go]}}\n")
    run = box.start("run", path, "--run-id", name)
    wait_for("the step", lambda: box.has(f"{name}.pay") and
             box.step(name, "ask")["status"] == "blocked")
    run.kill()
    run.wait()
    job = box.json("job", "status", name)["job_id"]
    with open_records(box) as store:
        good = store.read("step", f"{job}/pay")
        store.write("step", f"{job}/pay", "{}")
    return path, job, good


def test_what_is_offered_for_a_damaged_step_is_not_refused(box):
    path, job, good = killed_run(box, "one")
    told = all_told(box, job)  # no node knows of it yet
    assert f"glia job cancel {job}" in told and "human respond" not in told
    said = box.glia("run", path, "--run-id", "one", code=6).stderr
    is_told(box, job, said)
    is_told(box, job, all_told(box, job))
    assert box.json("job", "status", job)["damaged"]
    for words in (("job", "resume", job), ("human", "respond", job, "ask", "--decision", "go")):
        error = box.error(*words, code=5)
        assert error["reason"] == "job_damaged" and f"step/{job}/pay" in error["message"]
    with open_records(box) as store:
        store.write("step", f"{job}/pay", good)
    box.write("one.go", "")
    resumed = box.start("job", "resume", job)
    wait_for("the end of the step", lambda: box.step(job, "pay")["status"] == "completed")
    box.glia("human", "respond", job, "ask", "--decision", "go")
    assert resumed.wait() == 0 and box.read("one.pay") == "x\n"


def test_a_damaged_step_of_a_cancelled_job_leaves_nothing_to_do(box):
    _, job, _ = killed_run(box, "two")
    box.glia("job", "cancel", job)
    told = all_told(box, job)
    assert f"its record step/{job}/pay is damaged" in told and "glia " not in told
    assert "damaged" not in box.json("job", "status", job)


@pytest.mark.sqlite_only("a shared store has a copy of the file (test_shared_files.py)")
def test_a_program_whose_file_is_gone_fails_with_its_name(box):
    serve(box)
    job = submit(box, {"steps": {"wait": {"signal": "go"},
                                 "a": {"needs": "wait", "python": "print(1)"}}})
    for path in glob.glob(f"{box.data}/contexts/default/blobs/*/*"):
        os.remove(path)
    box.ask("POST", f"{JOBS}/{job}/signals/go", {})
    document = wait_end(box, job)
    assert document["status"] == "failed"
    assert "blobs/" in document["reason"] and "No such" in document["reason"]


@pytest.mark.parametrize("name, content", [
    ("crash.json", "{"), ("crash.mark", "garbage" * 100), ("claim", "zz"),
    ("lock", "99999999999999999999 x\n"), ("keeper/epoch", "junk"),
    ("keeper/journal", "junk" * 999)])
def test_garbage_beside_the_store_keeps_no_node_from_starting(box, name, content):
    box.glia("run", "--", "true")
    for pid in list(keepers(box.data)):
        os.kill(pid, signal.SIGKILL)
    with open(os.path.join(box.data, name), "w", encoding="utf-8") as file:
        file.write(content)
    box.glia("run", "--", "true")


@pytest.mark.parametrize("name", ["node", "token", "node.sock"])
def test_what_a_node_cannot_do_without_is_named(box, name):
    box.glia("run", "--", "true")
    with open(os.path.join(box.data, name), "w", encoding="utf-8") as file:
        file.write("x")
    told = golden.line_of(box.glia("serve", code=None).stderr, f"{box.data}/{name}")
    GOLDEN.says(f"damaged {name}", told, [box.data])
