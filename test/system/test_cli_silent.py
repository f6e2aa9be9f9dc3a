"""A node that is there and says nothing: no command hangs on it."""

import os
import re
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import wait_for  # noqa: E402
from httpnode import serve  # noqa: E402

GOLDEN = golden.of(__file__)
HOLD = "until [ -e go ]; do sleep 0.05; done"


@pytest.fixture(name="stopped")
def make_stopped(box):
    """A node with a running job, a command that follows it, and then the node is stopped."""
    serve(box)
    node = box.started[-1]
    flow = box.write("hold.yaml",
                     f"name: hold\nsteps:\n  hold: {{sh: 'cd {box.folder}; {HOLD}'}}\n")
    box.job = box.json("run", flow, "--detach")["job_id"]
    box.follower = box.start("job", "events", box.job, "--follow")
    box.waiter = box.start("run", flow)
    wait_for("both to run", lambda: box.ask("GET", "/v1/node").json["attempts_running"] == 2)
    wait_for("its events", lambda: box.read(box.follower.out))
    # Not only the job: who waits for it has been told, too, and follows it.
    wait_for("its word", lambda: "running" in box.read(box.waiter.err))
    node.send_signal(signal.SIGSTOP)
    box.node = node
    yield box
    node.send_signal(signal.SIGCONT)


def test_commands_give_up_and_followers_stay(stopped):
    box = stopped
    quick = [box.start(*words) for words in (("status",), ("doctor",))]
    usual = [box.start(*words) for words in (("job", "list"), ("human", "list"),
                                             ("why", box.job), ("job", "status", box.job))]
    commands = [box.start("job", "pause", box.job), box.start("serve")]
    found = golden.line_of(box.finish(quick[1], code=1), str(box.node.pid))
    GOLDEN.says("doctor", found.replace("\t", ", "), [box.node.pid])
    box.finish(quick[0], code=5)
    assert " for 5 s;" in box.read(quick[0].err)
    for run in [quick[0], *usual, commands[0]]:
        box.finish(run, code=5)
        GOLDEN.says("silent", golden.line_of(box.read(run.err), "kill -CONT"),
                    [box.data, box.node.pid, re.compile(r"(?<= )\d+ s;")])
    box.finish(commands[1], code=5)
    for run in (box.follower, box.waiter):
        wait_for("a word of it", lambda run=run: "; waiting" in box.read(run.err))
    assert box.follower.poll() is None and box.waiter.poll() is None
    box.node.send_signal(signal.SIGCONT)
    box.write("go", "")
    for run in (box.follower, box.waiter):
        box.finish(run)
        assert GOLDEN.tells("again", box.read(run.err))
