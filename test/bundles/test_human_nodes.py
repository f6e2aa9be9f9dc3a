"""Questions of workers where several nodes share a store: what lies in the folder of a node that
has not got the job is not its question, unless the nodes share the disk, too."""

import os
import re
import signal

import pytest
from bundlework import Bundle, Runner, item
from cluster import Cluster
from glianode import wait_for
from servers import RedisServer

ASKS = """
path = os.path.join(folder, "human.jsonl")
note("human.jsonl", {"type": "human_input_requested", "payload": {
    "request_id": "q", "prompt": "launch?"}})
note("asked", 1)
while "human_input_received" not in open(path).read():
    time.sleep(0.02)
say(complete_step={"ok": True})
"""


@pytest.fixture(name="nodes")
def make_nodes(request):
    """Two, with folders of their own for the runs, or one for both."""
    with RedisServer() as server:
        cluster = Cluster(server.url, count=2, ttl_s=3.0, grace_s=1.0)
        runners = [Runner(node) for node in cluster.nodes]
        if getattr(request, "param", "") == "one disk":
            runners[1].env["MN_RUNS_ROOT"] = runners[0].env["MN_RUNS_ROOT"]
        with cluster:
            yield runners


def begin(nodes, tmp_path):
    """Asked; who has it, the other one, and the job's id."""
    b = Bundle("ask").worker("ask", ASKS, idempotent=True, output_message_type="done").ends("ask")
    nodes[0].box.glia("run", b.seed("ask", {}).write(tmp_path / "ask"), "--run-id", "r", "--detach")
    wait_for("the question", lambda: any(os.path.exists(os.path.join(r.folder_of("r"), "asked"))
                                         for r in nodes))
    item_, = nodes[0].box.json("job", "list")["jobs"]
    own = next(r for r in nodes if item_["node"].startswith(f"{r.box.name}."))
    return own, nodes[1 - nodes.index(own)], item_["job_id"]


def answer(runner, job, code=None):
    return runner.box.glia("human", "respond", job, "q", "--decision", "approve", code=code)


def refused(runner, job, owner):
    error = runner.box.error("human", "respond", job, "q", "--decision", "approve", code=2)
    assert error["reason"] == "job_asks_elsewhere" and f" {owner.box.name}." in error["message"]


def wait_told(runner):
    wait_for("that it is told", lambda: "launch?" in runner.box.glia("why", "r").stdout)


def wait_end(runner):
    wait_for("its end", lambda: runner.box.json("job", "status", "r")["status"] == "completed")


@item("B-12-8")
def test_what_lies_at_another_node_is_not_answered(nodes, tmp_path):
    """Before the job is taken over, and when the first node is back."""
    first, second, job = begin(nodes, tmp_path)
    wait_told(first)
    refused(second, job, first)
    done = second.box.glia("human", "list")
    assert "launch?" not in done.stdout and f" ({first.box.name}." in done.stderr
    pids = first.box.keeper_pids()
    first.box.kill()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    second.wait_file("r", "asked")
    first.box.restart()
    wait_told(second)
    refused(first, job, second)
    done = first.box.glia("human", "list")
    assert "launch?" not in done.stdout
    assert re.search(rf"run r .* {second.box.name}\.", done.stderr), done.stderr
    assert "launch?" not in first.box.glia("why", "r").stdout
    assert first.box.ask("GET", "/v1/contexts/default/human").json["requests"] == []
    answer(second, job, code=0)
    wait_end(second)


@item("B-12-8")
@pytest.mark.parametrize("nodes", ["one disk"], indirect=True)
def test_on_one_disk_any_node_tells_and_answers(nodes, tmp_path):
    first, second, job = begin(nodes, tmp_path)
    wait_told(first)
    wait_told(second)
    assert "launch?" in second.box.glia("human", "list").stdout
    answer(second, job, code=0)
    wait_end(first)
