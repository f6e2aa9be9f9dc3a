"""A bit of the write-ahead log is flipped: the node does not start without what it has lost."""

import os
import re
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import Box, wait_for  # noqa: E402

GOLDEN = golden.of(__file__)
pytestmark = pytest.mark.sqlite_only("other stores have no log in the data folder")

JOBS = 60
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


def serve(box):
    process = box.start("serve")
    wait_for("the node", lambda: "ready: process" in box.read(process.err)
             or process.poll() is not None)
    return process


def work(box):
    """Jobs with a step that must not run twice; then the node dies. How many there were."""
    process = serve(box)
    flow = box.write("f.yaml", f"name: f\nsteps:\n"
                     f"  pay: {{sh: 'echo $GLIA_JOB_ID >> {box.folder}/paid', unsafe: true}}\n")
    jobs = 0
    log = f"{box.data}/{CONTEXT}/state.db-wal"
    while jobs < JOBS or os.path.getsize(log) <= 8192:  # an idle node empties it
        process.send_signal(signal.SIGCONT)
        box.glia("run", "--run-id", f"r{jobs}", flow)
        process.send_signal(signal.SIGSTOP)
        jobs += 1
    process.kill()
    process.wait()
    assert box.read("paid").count("\n") == jobs
    return jobs


def flip(box, where):
    """A bit of the log, at a part of its length. Frames of an earlier log, with other salts, may
    follow its end; they do not count."""
    path = f"{box.data}/{CONTEXT}/state.db-wal"
    with open(path, "r+b") as f:
        log = f.read()
        frame = 24 + int.from_bytes(log[8:12], "big")
        end = 32
        while log[end + 8:end + 16] == log[16:24]:
            end += frame
        at = int(end * where)
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 4]))


def state(box):
    files = {}
    for name in sorted(os.listdir(f"{box.data}/{CONTEXT}")):
        path = f"{box.data}/{CONTEXT}/{name}"
        if os.path.isfile(path) and not name.endswith("-shm"):
            with open(path, "rb") as f:
                files[name] = f.read()
    return files


def fails(box, *args):
    done = box.glia(*args, code=None)
    assert done.returncode != 0, args
    return done.stdout + done.stderr


def test_a_flipped_bit_in_the_log_stops_the_node(box):
    jobs = work(box)
    flip(box, 0.1)
    before = state(box)
    process = serve(box)
    assert process.poll() not in (None, 0)
    said = box.read(process.err)
    GOLDEN.says("damaged", golden.line_of(said, "state.db-wal"), [box.data, re.compile(r"\d+")])
    for command in (["run", "--", "/bin/true"], ["doctor"], ["store", "check"], ["backup", "saved"],
                    ["job", "list"]):
        assert "state.db-wal is damaged" in fails(box, *command), command
    assert state(box) == before
    assert box.read("paid").count("\n") == jobs


def test_what_precedes_the_damage_can_be_saved(box):
    jobs = work(box)
    flip(box, 0.6)
    said = fails(box, "backup", "refused")
    assert "--salvage" in said
    made = box.json("backup", "saved", "--salvage")
    assert 0 <= made["jobs"] <= jobs
    other = box.second("restored")
    assert other.json("restore", "saved")["jobs"] == made["jobs"]
    other.glia("run", "--", "/bin/true")
    assert "fail" not in other.glia("store", "check").stdout


def test_a_node_that_was_killed_starts_again(box):
    jobs = work(box)
    process = serve(box)
    assert process.poll() is None, box.read(process.err)
    assert box.json("job", "status", "r0")["status"] == "completed"
    assert box.json("job", "status", f"r{jobs - 1}")["status"] == "completed"
