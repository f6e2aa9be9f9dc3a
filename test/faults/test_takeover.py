"""A node is killed with kill -9: others take over what it had, each kind of work by its own rule."""

import os
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from cluster import GRACE_S, TTL_S, Cluster  # noqa: E402
from glianode import wait_for  # noqa: E402
from servers import RedisServer  # noqa: E402


@pytest.fixture(name="cluster")
def make_cluster():
    with RedisServer() as server, Cluster(server.url, server=server) as cluster:
        yield cluster


def test_each_kind_of_work_of_a_dead_node_goes_its_way(cluster):
    dead, second, third = cluster.nodes
    marks = ("idempotent", "", "unsafe")
    safe, plain, unsafe = [cluster.submit(dead, mark=m, ms=30000) for m in marks]
    healthy = cluster.submit(third, mark="unsafe", ms=12000)
    for job in (safe, plain, unsafe, healthy):
        cluster.wait_start(job)
    killed = dead.kill()
    again = cluster.wait_start(safe, 2)
    print(f"takeover after {again['t'] - killed:.2f} s")
    assert again["t"] - killed < TTL_S + 1.0
    assert again["node"] != "n1"
    # Its keeper ends what nobody asks for any more.
    wait_for("the end of the orphans", lambda: len(cluster.lines("stopped", node="n1")) == 3)
    last = max(e["t"] for e in cluster.lines(node="n1"))
    assert last - killed < GRACE_S + 1.0
    again = cluster.wait_start(plain, 2)
    assert last < again["t"] < killed + TTL_S + GRACE_S + 2.0
    wait_for("the review", lambda: cluster.step(unsafe).get("blocked_on") == "review")
    wait_for("the job to be paused", lambda: cluster.status(unsafe) == "paused")
    cluster.command(second, unsafe, "respond", {"decision": "done"}, step="work")
    cluster.command(second, safe, "cancel")
    cluster.command(third, plain, "cancel")
    cluster.wait_ends()
    assert len(cluster.starts(unsafe)) == len(cluster.starts(healthy)) == 1
    cluster.judge()
