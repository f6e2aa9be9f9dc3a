"""Claims on a store that several nodes share: one holder, whichever node is asked, whoever dies."""

import json
import multiprocessing
import os
import signal
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from cluster import Cluster  # noqa: E402
from glianode import Connection, wait_for  # noqa: E402
from servers import PostgresServer, RedisServer  # noqa: E402

CLAIMS = "/v1/contexts/default/claims"
LOST = 76


BOTH = pytest.mark.parametrize("cluster", [RedisServer, PostgresServer], indirect=True)
ONE = BOTH if os.environ.get("GLIA_SOAK") else pytest.mark.parametrize(
    "cluster", [RedisServer], indirect=True)


@pytest.fixture(name="cluster")
def make_cluster(request):
    with request.param() as server, Cluster(server.url, count=2) as cluster:
        cluster.its_server = server
        yield cluster


def race(args):
    """One of several processes, each with a node: wants every key, and tells what it got."""
    path, name, keys, lease = args
    connection = Connection(path)
    got = []
    for key in keys:
        connection.request("POST", f"{CLAIMS}/acquire",
                           json.dumps({"key": key, "owner": name, "lease": lease}))
        answer = connection.getresponse()
        doc = json.loads(answer.read())
        assert answer.status == 200 or doc["error"]["code"] == "busy", doc
        if answer.status == 200:
            got.append((key, doc["fence"]))
    connection.close()
    return got


@BOTH
def test_of_eight_processes_on_two_nodes_one_gets_each_key(cluster):
    keys = [f"race/{n}" for n in range(80)]
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        def all_race(lease):
            work = [(cluster.nodes[n % 2].socket, f"p{n}", keys, lease) for n in range(8)]
            return sorted(sum(pool.map(race, work, chunksize=1), []))

        assert all_race("1h") == sorted((key, 1) for key in keys)
        for key in keys:  # and once more when they are over: ended by other leases
            owner = cluster.nodes[0].get(f"{CLAIMS}/{key.replace('/', '%2F')}")["owner"]
            answer = cluster.nodes[1].call("POST", f"{CLAIMS}/renew", {
                "key": key, "owner": owner, "fence": 1, "lease": "1s"})
            assert answer.status == 200, answer.body
        wait_for("the end of all leases", lambda: cluster.nodes[0].call(
            "POST", f"{CLAIMS}/acquire", {"key": keys[-1], "owner": "x", "lease": "1h"}
        ).status == 200)
        assert all_race("1h") == sorted((key, 2) for key in keys[:-1])


def holder(node, *options):
    """`glia claim run` beside this node, whose command says again and again that it lives."""
    process = node.start("claim", "run", "k", *options, "--", "sh", "-c",
                         "while :; do date +%s.%N >> ticks; sleep 0.05; done")
    wait_for("the command", lambda: node.has("ticks") or process.poll() is not None)
    assert process.poll() is None, node.read(process.err)
    return process


@ONE
def test_a_holder_outlives_its_node_and_is_followed_by_another_nodes(cluster):
    first, second = cluster.nodes
    process = holder(first, "--lease", "9s", "--owner", "first")
    before = second.get(f"{CLAIMS}/k")
    first.kill()  # the command is the node for a moment, to renew its claim
    wait_for("a renewal", lambda: second.get(f"{CLAIMS}/k")["last_heartbeat_at"]
             > before["last_heartbeat_at"])
    assert second.get(f"{CLAIMS}/k")["fence"] == 1 and process.poll() is None
    process.kill()
    process.wait()
    second.glia("claim", "run", "k", "--wait", "50s", "--", "sh", "-c", "date +%s.%N > taken")
    claim = second.get(f"{CLAIMS}/k")
    assert (claim["state"], claim["fence"], claim["attempt"]) == ("done", 2, 2)
    ticks = [float(line) for line in first.read("ticks").split()]
    assert max(ticks) < float(second.read("taken")), "two at a time"


@ONE
def test_a_store_that_is_away_for_a_moment_costs_nothing_and_for_long_the_claim(cluster):
    first, second = cluster.nodes
    server = cluster.its_server
    process = holder(first, "--lease", "12s", "--owner", "first")
    server.pause()
    until = time.monotonic() + 4.5  # a renewal is due meanwhile
    wait_for("more than a third of the lease", lambda: time.monotonic() > until)
    server.resume()
    before = wait_for("the store", lambda: second.call("GET", f"{CLAIMS}/k").json.get(
        "last_heartbeat_at"))
    wait_for("a renewal", lambda: second.get(f"{CLAIMS}/k")["last_heartbeat_at"] > before)
    assert process.poll() is None and second.get(f"{CLAIMS}/k")["fence"] == 1
    server.pause()
    assert process.wait(60) == LOST, first.read(process.err)
    server.resume()
    ticks = len(first.read("ticks"))
    wait_for("its turn", lambda: second.call("POST", f"{CLAIMS}/acquire", {
        "key": "k", "owner": "second", "lease": "1h"}).status == 200)
    assert second.get(f"{CLAIMS}/k")["fence"] == 2
    assert len(first.read("ticks")) == ticks


@ONE
def test_all_nodes_know_who_holds_it(cluster):
    first, second = cluster.nodes
    process = holder(first, "--lease", "60s", "--owner", "first")
    for node in (first, second):
        answer = node.call("POST", f"{CLAIMS}/acquire", {"key": "k", "owner": "first"})
        assert answer.status == 409 and answer.json["error"]["claim"]["owner"] == "first"
        assert [c["key"] for c in node.get(f"{CLAIMS}?state=claimed")["claims"]] == ["k"]
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert second.get(f"{CLAIMS}/k")["state"] == "failed"
