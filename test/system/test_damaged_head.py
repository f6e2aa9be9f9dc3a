"""The record of a job itself is damaged: the job can only be mended or removed."""

import os
import sqlite3
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import wait_for  # noqa: E402
from httpnode import serve  # noqa: E402

pytestmark = pytest.mark.sqlite_only("damages state.db")

ADVICE = "mend it (a backup may have it), or remove the job, which stops what runs of it"


def damage(box, change):
    with sqlite3.connect(f"{box.data}/contexts/default/state.db", timeout=30) as db:
        assert db.execute(f"UPDATE record SET value = {change} WHERE kind = 'job'").rowcount == 1


def leave_one(box):
    """A job whose unsafe step runs, and whose node is dead: the number of the step's process."""
    flow = box.write("f.yaml", f"""
steps:
  one: {{unsafe: true, sh: 'echo $$ > {box.folder}/pid; exec sleep 1000'}}
  two: {{needs: one, sh: 'true'}}
""")
    run = box.start("run", flow, "--run-id", "left")
    wait_for("its step", lambda: box.has("pid") and box.read("pid").strip())
    run.kill()
    run.wait()
    return int(box.read("pid"))


@pytest.mark.parametrize("change", ["replace(value, ':', ': ')", "'?'"])
def test_it_can_be_removed_and_what_runs_of_it_is_stopped(box, change):
    pid = leave_one(box)
    damage(box, change)
    serve(box)
    job, = [j["job_id"] for j in box.jobs()]
    for verb in ("cancel", "pause", "resume"):
        assert ADVICE in box.glia("job", verb, job, code=5).stderr
    assert os.path.exists(f"/proc/{pid}")
    assert box.glia("human", "list").stderr == "glia: nothing waits for a person\n"
    box.glia("job", "rm", job)
    assert box.jobs() == []
    wait_for("the end of its process", lambda: not os.path.exists(f"/proc/{pid}"))
    box.glia("run", "--run-id", "next", "--", "true")


def test_its_run_id_can_be_used_again(box):
    leave_one(box)
    damage(box, "replace(value, ':', ': ')")
    serve(box)
    box.glia("job", "rm", "left")
    box.glia("run", "--run-id", "left", "--", "true")


def test_who_waits_for_it_is_told(box):
    leave_one(box)
    damage(box, "replace(value, ':', ': ')")
    serve(box)
    told = box.glia("job", "events", "--follow", "left", code=5)
    assert "step_started" in told.stdout or "running" in told.stdout
    assert ADVICE in told.stderr
