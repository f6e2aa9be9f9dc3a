"""A data folder of the release before: its jobs are there, and go on."""

import os
import sqlite3
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box, wait_for  # noqa: E402

pytestmark = pytest.mark.sqlite_only("the dump of an earlier release is SQLite's")

DUMP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                    "contract", "sqlite_v1.sql")
ENDED = "01M7G4T1YMWPH7915YMHFMP90V"
WAITING = "01M7G4T20YE8GEKYJ894VT9VHN"


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path)
    folder = os.path.join(box.data, "contexts", "default")
    os.makedirs(folder, mode=0o700)
    with open(DUMP, encoding="utf-8") as file:
        db = sqlite3.connect(os.path.join(folder, "state.db"))
        db.executescript(file.read())
        db.close()
    yield box
    box.close()


def test_a_job_of_the_release_before_goes_on(box):
    node = box.start("serve")
    wait_for("the node", lambda: "ready: process" in box.read(node.err) or node.poll() is not None)
    assert node.poll() is None, box.read(node.err)
    assert box.json("job", "status", ENDED)["status"] == "completed"
    assert box.json("job", "result", ENDED) == {"a": {"n": 7}}
    status = box.json("job", "status", "waits-1")
    assert status["status"] == "running"
    assert status["workflow_state"]["steps"]["go"]["status"] == "blocked"
    box.glia("job", "signal", WAITING, "go")
    wait_for("its end",
             lambda: box.json("job", "status", WAITING)["status"] not in ("running", "pausing"))
    assert box.json("job", "status", WAITING)["status"] == "completed"


def test_without_a_node_it_is_said_what_to_do(box):
    done = box.glia("job", "list", code=5)
    assert "older release" in done.stderr
    assert box.glia("run", "--", "true").returncode == 0
    assert "waits-1" in box.glia("job", "list").stdout
