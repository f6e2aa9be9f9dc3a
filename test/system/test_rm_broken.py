"""A large job is removed in many transactions. Whatever breaks off in between: the next node that
starts finishes it, and so does who removes the job once more."""

import http.client
import os
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from bundlework import Bundle, Runner  # noqa: E402
from crashworld import GLIA as GLIA_THAT_DIES  # noqa: E402
from glianode import Box, wait_for  # noqa: E402
from httpnode import JOBS, serve  # noqa: E402
from records import open_records  # noqa: E402

pytestmark = pytest.mark.sqlite_only("dies at failpoints of SQLite")

KINDS = ("job", "step", "letter", "message", "deadletter", "inputs")
MESSAGES = 700
FOREVER = ("--keep-for", "0", "--keep-jobs", "0", "--keep-workspaces-for", "0")
SENDS = f"""
say(complete_step=True, emit_messages=[{{"to": "nobody", "type": "x", "body": {{"n": n}}}}
                                       for n in range({MESSAGES})])
"""


def left(box, job):
    """What the store has of it, by kind."""
    with open_records(box) as records:
        found = {kind: [i for i in records.ids(kind) if i.startswith(job)] for kind in KINDS}
        found["log"] = [i for i in records.logs() if i == job]
        found["index"] = [i for i in records.index("ended") if i == job]
    return {kind: len(ids) for kind, ids in found.items() if ids}


@pytest.fixture(name="made", scope="module")
def make_large(tmp_path_factory):
    """A data folder in which a large job has ended, and its id."""
    folder = tmp_path_factory.mktemp("large")
    box = Box(folder)
    b = Bundle("large").worker("a", SENDS, output_message_type="done").ends("a").seed("a", {})
    Runner(box).run(b.write(folder / "bundle"), run_id="large")
    job = box.json("job", "status", "large")["job_id"]
    box.close()
    assert left(box, job)["deadletter"] == MESSAGES
    return box, job


def die_at(box, job, number):
    """A node that dies at its nth commit removes the job; true if it broke off midway."""
    process = subprocess.Popen(
        [GLIA_THAT_DIES, "serve"], cwd=box.folder, stderr=subprocess.DEVNULL,
        env={**box.env, "GLIA_FAILPOINT": f"sqlite.after_commit:{number}"})
    box.started.append(process)

    def asked():
        try:
            return process.poll() is not None or box.ask("DELETE", f"{JOBS}/{job}").status != 503
        except (OSError, http.client.HTTPException):
            return process.poll() is not None
    wait_for("the removal", asked)
    process.kill()
    process.wait()
    return "job" not in left(box, job) and "deadletter" in left(box, job)


@pytest.mark.parametrize("again", [False, True])
def test_a_removal_that_breaks_off_is_finished(made, tmp_path, again):
    large, job = made
    broken = []
    for number in range(1, 9):
        box = Box(tmp_path / str(number))
        shutil.copytree(large.data, box.data, ignore=shutil.ignore_patterns("keeper", "*.sock"))
        try:
            if not die_at(box, job, number):
                continue
            broken.append(number)
            serve(box, *([] if again else FOREVER))
            if again:
                box.glia("job", "rm", job)
                assert not left(box, job)
                assert box.reason("job", "rm", job, code=3) == "no_such_job"
            wait_for(f"the end of the removal, {number}", lambda: not left(box, job))
        finally:
            box.close()
        if len(broken) == 3:
            break
    assert len(broken) == 3, broken


def test_a_job_that_never_was_is_not_removed(made):
    large, job = made
    other = job[:-1] + ("0" if job[-1] != "0" else "1")
    assert large.reason("job", "rm", other, code=3) == "no_such_job"
    assert left(large, job)["deadletter"] == MESSAGES
