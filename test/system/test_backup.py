"""glia backup and restore: a copy made while a node works, and what becomes of jobs in it."""

import json
import os
import signal
import sqlite3
import sys
import threading

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box, wait_for  # noqa: E402

pytestmark = pytest.mark.sqlite_only("a backup holds the store of SQLite; servers have their own")

CONTEXT = "contexts/default"


@pytest.fixture(name="box")
def make_box(tmp_path):
    boxes = [Box(tmp_path)]

    def second(name):
        boxes.append(Box(tmp_path, data=os.path.join(str(tmp_path), name)))
        return boxes[-1]

    boxes[0].second = second
    yield boxes[0]
    for box in boxes:
        box.close()


def serve(box, *args):
    process = box.start("serve", *args)
    wait_for("the node", lambda: "ready: process" in box.read(process.err)
             or process.poll() is not None)
    assert process.poll() is None, box.read(process.err)
    return process


def stop(box, process):
    process.send_signal(signal.SIGTERM)
    box.finish(process)


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(path, name), folder)
                  for path, _, names in os.walk(folder) for name in names)


def test_ended_jobs_come_back_as_they_were(box):
    script = box.write("s.sh", "echo hello; echo '{\"n\": 42}' > $GLIA_OUTPUT\n")
    flow = box.write("f.yaml", f"name: f\nsteps:\n  a: {{script: {script}}}\n")
    box.glia("run", "--run-id", "mine", flow)
    before = box.json("job", "status", "mine")
    events = box.glia("job", "events", "mine", "--json").stdout
    made = box.json("backup", "saved", "--logs")
    assert made["jobs"] == 1 and made["unfinished_jobs"] == 0
    other = box.second("restored")
    got = other.json("restore", "saved")
    assert got["jobs"] == 1 and got["data_dir"] == other.data
    assert other.json("job", "status", "mine") == before
    assert other.glia("job", "events", "mine", "--json").stdout == events
    assert "hello" in other.glia("job", "logs", "mine").stdout
    # The flow's files are there: it can be done again.
    assert other.json("job", "retry", "mine", "--from", "a")["status"] == "completed"


def test_the_life_of_the_node_is_left_out(box):
    box.glia("run", "--", "/bin/true")
    box.glia("backup", "saved")
    assert files_below(f"{box.folder}/saved") == ["MANIFEST", f"{CONTEXT}/state.db"]
    assert os.stat(f"{box.folder}/saved").st_mode & 0o077 == 0
    other = box.second("restored")
    other.glia("restore", "saved")
    other.glia("run", "--", "/bin/true")
    for name in ("node", "token"):
        assert box.read(f"data/{name}") != box.read(f"restored/{name}"), name


@pytest.mark.parametrize("resume", [False, True])
def test_unsafe_steps_that_ran_wait_for_review(box, resume):
    node = serve(box)
    hold = f"until [ -e {box.folder}/go ]; do sleep 0.02; done"
    flow = box.write("f.yaml", f"""
name: f
steps:
  danger: {{unsafe: true, sh: 'echo x >> {box.folder}/danger; {hold}'}}
  again: {{idempotent: true, sh: 'echo x >> {box.folder}/again; {hold}'}}
  plain: {{sh: 'echo x >> {box.folder}/plain; {hold}'}}
  later: {{needs: [again], sh: 'echo x >> {box.folder}/later'}}
""")
    job = box.glia("run", "--detach", flow).stdout.strip()
    for name in ("danger", "again", "plain"):
        wait_for(name, lambda name=name: os.path.exists(f"{box.folder}/{name}"))
    made = box.json("backup", "saved")
    assert made["unfinished_jobs"] == 1
    box.write("go", "")
    wait_for("the end", lambda: box.jobs()[0]["status"] == "completed")
    stop(box, node)
    assert box.read("danger") == "x\n"

    other = box.second("restored")
    done = other.glia("restore", "saved", *(["--resume"] if resume else []))
    assert ("paused" in done.stderr) != resume
    second = serve(other)
    if not resume:
        wait_for("the pause", lambda: other.jobs()[0]["status"] == "paused")
        status = other.json("job", "status", job)
        assert status["why_code"] == "paused" and made["made_at"] in status["reason"], status
        assert box.read("later") == "x\n"
        assert other.step(job, "danger")["status"] == "blocked"
        assert other.ask("POST", f"/v1/contexts/default/jobs/{job}/resume", {}).status == 200
    wait_for("later", lambda: other.step(job, "later")["status"] == "completed")
    wait_for("plain", lambda: other.step(job, "plain")["status"] == "completed")
    danger = other.step(job, "danger")
    assert danger["status"] == "blocked" and danger["attempt_count"] == 1
    assert other.step(job, "again")["attempt_count"] == 2
    assert box.read("danger") == "x\n"
    assert box.read("again") == "x\nx\n"
    other.glia("human", "respond", job, "danger", "--decision", "done", code=None)
    wait_for("the end", lambda: other.jobs()[0]["status"] == "completed")
    assert box.read("danger") == "x\n"
    stop(other, second)


def test_a_step_that_waited_for_a_slot_goes_on_after_a_pause(box):
    node = serve(box, "--pools", "default=1")
    hold = f"until [ -e {box.folder}/go ]; do sleep 0.02; done"
    job = box.glia("run", "--detach", box.write("f.yaml", f"""
name: f
steps:
  first: {{sh: '{hold}'}}
  second: {{sh: '{hold}'}}
""")).stdout.strip()
    wait_for("the queue", lambda: {s["status"] for s in box.json("job", "status", job)[
        "workflow_state"]["steps"].values()} == {"running", "queued"})
    box.glia("backup", "saved")
    box.write("go", "")
    stop(box, node)
    other = box.second("restored")
    other.glia("restore", "saved")
    assert other.glia("job", "resume", job, code=0).returncode == 0
    assert other.jobs()[0]["status"] == "completed"


def test_a_job_without_running_steps_comes_back_paused_at_once(box):
    node = serve(box)
    job = box.glia("run", "--detach", box.write("f.yaml", """
steps:
  ask: {approval: 'Go on?', timeout: 1h}
  nap: {sleep: 1h}
  after: {needs: ask, sh: 'true'}
""")).stdout.strip()
    wait_for("the question", lambda: box.glia("human", "list").stdout)
    box.glia("backup", "saved")
    stop(box, node)
    other = box.second("restored")
    other.glia("restore", "saved")
    assert [j["job_id"] for j in other.json("job", "list", "--status", "paused")["jobs"]] == [job]
    assert "job resume" in other.glia("why", job).stdout
    second = serve(other)
    assert other.ask("POST", f"/v1/contexts/default/jobs/{job}/resume", {}).status == 200
    other.glia("human", "respond", job, "ask", "--decision", "approve")
    wait_for("the step after it", lambda: other.step(job, "after")["status"] == "completed")
    assert other.step(job, "nap")["status"] == "blocked"
    stop(other, second)


def test_a_backup_under_load_is_whole(box):
    node = serve(box)
    running = True

    def load():
        flow = {"name": "load", "steps": {"a": {"noop": True}, "b": {"noop": True, "needs": ["a"]}}}
        while running:
            box.ask("POST", "/v1/contexts/default/jobs:batch", {"jobs": [{"flow": flow}] * 50})

    thread = threading.Thread(target=load)
    thread.start()
    try:
        wait_for("some jobs", lambda: len(box.jobs()) >= 100)
        counts = [box.json("backup", f"saved{i}")["jobs"] for i in range(3)]
    finally:
        running = False
        thread.join()
    assert counts == sorted(counts) and counts[0] >= 100
    for i, count in enumerate(counts):
        path = f"file:{box.folder}/saved{i}/{CONTEXT}/state.db?mode=ro"
        with sqlite3.connect(path, uri=True) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert db.execute("SELECT count(*) FROM record WHERE kind='job'").fetchone()[0] == count
            for (value,) in db.execute("SELECT value FROM record WHERE kind = 'job'"):
                flow = json.loads(value)["flow"]
                assert db.execute("SELECT 1 FROM record WHERE kind = 'flow' AND id = ?",
                                  (flow,)).fetchone()
    stop(box, node)
    other = box.second("restored")
    other.glia("restore", "saved2", "--resume")
    second = serve(other)
    wait_for("the end of all",
             lambda: not other.json("job", "list", "--status", "running")["jobs"])
    stop(other, second)


def test_nothing_is_overwritten(box):
    box.glia("run", "--", "/bin/true")
    box.write("full/file", "x")
    assert box.reason("backup", "full", code=2) == "folder_not_empty"
    box.glia("backup", "saved")
    assert box.reason("backup", "saved", code=2) == "folder_not_empty"
    assert box.reason("restore", "saved", code=2) == "folder_not_empty"
    assert len(box.jobs()) == 1
    empty = box.second("empty")
    os.makedirs(empty.data)
    empty.glia("restore", "saved")
    assert len(empty.jobs()) == 1


def test_damage_is_noticed_and_nothing_is_left_behind(box):
    box.glia("run", "--", "/bin/true")
    box.glia("backup", "saved")
    path = f"{box.folder}/saved/{CONTEXT}/state.db"
    with open(path, "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    other = box.second("restored")
    error = other.error("restore", "saved", code=5)
    assert error["reason"] == "backup_damaged" and "state.db" in error["message"]
    assert not os.path.exists(f"{other.data}/contexts")
    assert files_below(other.data) == []
    os.remove(f"{box.folder}/saved/MANIFEST")
    assert other.reason("restore", "saved", code=3) == "backup_invalid"
    assert other.reason("backup", "again", code=3) == "nothing_has_run"


def test_a_restore_that_was_cut_short_is_begun_anew(box):
    box.glia("run", "--", "/bin/true")
    box.glia("backup", "saved")
    other = box.second("restored")
    os.makedirs(f"{other.data}/restoring/{CONTEXT}")
    box.write("restored/restoring/rest", "x")
    assert other.jobs() == []
    other.glia("restore", "saved")
    assert len(other.jobs()) == 1
    assert not os.path.exists(f"{other.data}/restoring")
