"""The store goes away, or is slow, or forgets its scripts: running work goes on, people are told,
and everything resumes by itself."""

import os
import re
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from cluster import Cluster, Load, Refused, Unanswered  # noqa: E402
from glianode import wait_for  # noqa: E402
from proxy import Proxy  # noqa: E402
from servers import PostgresServer, RedisServer, make_server, stores  # noqa: E402

GOLDEN = golden.of(__file__)
POSTPONED_S = 2.2  # as long as Redis keeps what it has answered from its file; it rounds


def wait_unready(node):
    """What /readyz says when the store is away."""
    def unready():
        try:
            answer = node.call("GET", "/readyz")
        except Unanswered:
            return None
        return answer if answer.status == 503 else None
    return wait_for("the node to notice", unready)


def kill_in_the_middle(cluster, server):
    """When it was killed."""
    times = []
    with Load(cluster) as load:
        for _ in range(3):
            load.wait_more(10)
            fault = cluster.fault("away")
            server.kill()
            times.append(time.monotonic())
            server.start()
            fault["until"] = time.monotonic() + 1
    return times


@pytest.mark.parametrize("store", stores("redis-always", "postgres"))
def test_the_server_is_killed_in_the_middle_of_commits(store):
    with make_server(store) as server, Cluster(server.url, 2, server=server) as cluster:
        kill_in_the_middle(cluster, server)
        cluster.wait_ends()
        cluster.judge()


def test_a_killed_server_takes_at_most_what_everysec_says():
    """Redis puts its writing off while a sync of its file is under way, two seconds at most, and
    answers nevertheless. What is older has been written, and outlives its process."""
    with make_server("redis") as server, Cluster(server.url, 2, server=server) as cluster:
        for killed in kill_in_the_middle(cluster, server):
            cluster.fault("loss", "", killed - POSTPONED_S, killed)
        for node in cluster.nodes:
            node.wait_ready()
        cluster.wait_ends(jobs=[j for j in cluster.jobs if not cluster.is_absent(j)])
        cluster.judge()


@pytest.mark.parametrize("store", stores("redis", soak=["postgres"]))
def test_while_the_store_is_away_running_steps_go_on(store):
    """For less than session and grace together."""
    with make_server(store) as server, \
            Cluster(server.url, 2, grace_s=60, server=server) as cluster:
        node = cluster.nodes[0]
        job = cluster.submit(node, {"long": ("", 8000, (), {}),
                                    "after": ("", 50, (), {"needs": "long"})})
        cluster.wait_start(job, step="long")
        fault = cluster.fault("away")
        server.kill()
        killed = time.monotonic()
        said = wait_unready(node)
        assert said.json["error"]["reason"] in ("store_silent", "store_read_only"), said.body
        assert node.call("GET", "/healthz").status == 200
        done = node.glia("job", "status", job, code=5)
        assert "store" in done.stderr, done.stderr
        with pytest.raises((Refused, Unanswered)):
            cluster.submit(node, seconds=1)
        wait_for("the outage to have lasted", lambda: time.monotonic() > killed + 5)
        server.start()
        fault["until"] = time.monotonic() + 1
        for each in cluster.nodes:
            each.wait_ready()
        cluster.wait_ends()
        assert [e["attempt"] for e in cluster.starts(job, "long")] == [1]
        cluster.judge()


@pytest.mark.parametrize("store", stores("redis", "postgres"))
def test_a_server_that_stands_still_kills_nobody(store):
    """Longer than the sessions live: an outage says nothing about nodes."""
    with make_server(store) as server, \
            Cluster(server.url, 3, grace_s=60, server=server) as cluster:
        jobs = [cluster.submit(n, mark=m, ms=9000) for n in cluster.nodes
                for m in ("idempotent", "", "unsafe")]
        for job in jobs:
            cluster.wait_start(job)
        fault = cluster.fault("away")
        server.pause()
        time.sleep(4)
        server.resume()
        fault["until"] = time.monotonic() + 1
        cluster.wait_ends()
        assert all(len(cluster.starts(job)) == 1 for job in jobs)
        cluster.judge()


@pytest.mark.parametrize("store", stores("redis", soak=["postgres"]))
def test_a_long_outage_starts_unmarked_steps_again_and_no_others(store):
    """A node cannot tell it from being cut off alone. One try has ended before the next begins."""
    one = {"concurrency": {"key": "one", "max": 1}}
    with make_server(store) as server, Cluster(server.url, 2, server=server) as cluster:
        node = cluster.nodes[0]
        plain, safe, unsafe = [cluster.submit(node, mark=m, ms=25000)
                               for m in ("", "idempotent", "unsafe")]
        seated = cluster.submit(node, mark="idempotent", ms=25000, fields=one)
        for job in (plain, safe, unsafe, seated):
            cluster.wait_start(job)
        fault = cluster.fault("away")
        server.pause()
        for job in (plain, seated):
            wait_for("its end", lambda j=job: cluster.lines("stopped", job=j))
        server.resume()
        fault["until"] = time.monotonic() + 1
        for job in (plain, seated):
            cluster.wait_start(job, 2)
        cluster.wait_ends(120)
        assert [len(cluster.starts(job)) for job in (plain, seated, safe, unsafe)] == [2, 2, 1, 1]
        cluster.judge()


@pytest.mark.parametrize("store", stores("redis", soak=["postgres"]))
def test_what_a_node_that_is_cut_off_runs_ends_before_others_run_it(store):
    """Its keeper lives, and so does the node: nobody tells them. A seat stays taken as long."""
    one = {"concurrency": {"key": "one", "max": 1}}
    with make_server(store) as server, Proxy(server.port) as proxy, \
            Cluster([server.url_at(proxy.port), server.url], 2, server=server) as cluster:
        cut, other = cluster.nodes
        plain, unsafe = [cluster.submit(cut, mark=m, ms=40000) for m in ("", "unsafe")]
        seated = cluster.submit(cut, mark="idempotent", ms=40000, fields=one)
        for job in (plain, unsafe, seated):
            cluster.wait_start(job)
        waits = cluster.submit(other, mark="idempotent", ms=100, fields=one)
        fault = cluster.fault("cut", cut.name)
        proxy.close_door()
        proxy.cut()
        again = cluster.wait_start(plain, 2)
        ended = [e["t"] for e in cluster.lines("stopped", job=plain)]
        assert ended and max(ended) <= again["t"] and again["node"] == other.name
        wait_for("the review", lambda: cluster.step(unsafe, node=other).get("blocked_on") ==
                 "review")
        assert not cluster.lines("stopped", job=unsafe), "unsafe work was ended"
        first = min(e["t"] for j in (seated, waits) for e in cluster.starts(j)
                    if e["node"] == other.name) if cluster.wait_start(waits) else 0
        assert max(e["t"] for e in cluster.lines("stopped", job=seated)) <= first
        cluster.command(other, unsafe, "respond", {"decision": "done"}, step="work")
        proxy.open_door()
        fault["until"] = time.monotonic() + 5
        for job in (plain, seated):
            cluster.command(other, job, "cancel")
        cluster.wait_ends(120)


@pytest.mark.parametrize("store", stores("redis", "postgres"))
def test_connections_that_the_server_ends_scripts_it_forgets(store):
    with make_server(store) as server, Cluster(server.url, 2, server=server) as cluster:
        long = cluster.submit(cluster.nodes[0], mark="unsafe", ms=2000)
        with Load(cluster) as load:
            for _ in range(6):
                load.wait_more(4)
                fault = cluster.fault("away")
                server.cut_clients()
                fault["until"] = time.monotonic() + 1
        cluster.wait_ends()
        assert len(cluster.starts(long)) == 1
        cluster.judge()


@pytest.mark.parametrize("store", stores("redis", soak=["postgres"]))
def test_a_slow_way_to_the_server_is_only_slow(store):
    with make_server(store) as server, Proxy(server.port) as proxy:
        proxy.delay_s = 0.05
        with Cluster(server.url_at(proxy.port), 2, server=server) as cluster:
            with Load(cluster) as load:
                load.wait_more(20)
            cluster.wait_ends()
            proxy.delay_s = 0  # the judge asks much
            assert all(len(cluster.starts(job)) == 1 for job in cluster.jobs)
            cluster.judge()


@pytest.mark.parametrize("store", stores("redis", soak=["postgres"]))
@pytest.mark.parametrize("how", ["cut", "half_open", "stall"])
def test_a_way_that_breaks_while_commits_are_on_it(store, how):
    with make_server(store) as server, Proxy(server.port) as proxy, \
            Cluster(server.url_at(proxy.port), 2, server=server) as cluster:
        with Load(cluster) as load:
            for _ in range(2):
                load.wait_more(5)
                fault = cluster.fault("away")
                if how == "stall":
                    proxy.stall("down")  # what is sent arrives, and nobody hears of it
                    time.sleep(1)
                    proxy.cut()
                    proxy.flow()
                else:
                    getattr(proxy, how)()
                load.wait_more(1)
                fault["until"] = time.monotonic() + 1
        cluster.wait_ends()
        cluster.judge()


# ---- there is no room ----

class Narrow:
    """A server that can run out of room, and what its nodes say then."""

    def __init__(self, what):
        self.server = PostgresServer(disk_mib=24) if what == "postgres" else RedisServer()
        part = "memory" if what == "redis memory" else "disk"
        self.fill = getattr(self.server, f"fill_{part}")
        self.free = getattr(self.server, f"free_{part}")
        self.word = {"postgres": "disk is full", "redis": "MISCONF"}.get(what, "memory is full")


NARROW = ["redis", "redis memory"] + (["postgres"] if os.geteuid() == 0 else [])  # it must mount


def refusal_of_a_job(node):
    """What a submission is told. PostgreSQL may find room for a few more in pages it has."""
    told = []

    def is_refused():
        done = node.glia("run", "--detach", "--", "true", code=None)
        told.append(done.stderr)
        return done.returncode == 5

    wait_for("a refusal", is_refused)
    return told[-1]


@pytest.mark.parametrize("what", NARROW)
def test_a_store_without_room_says_so_and_nothing_else_stops(what):
    """Small changes may still fit, as renewals do: jobs must not stand still in silence."""
    narrow = Narrow(what)
    with narrow.server as server, Cluster(server.url, 2, server=server) as cluster:
        node = cluster.nodes[0]
        job = cluster.submit(node, {"long": ("", 2000, (), {}),
                                    "after": ("", 50, (), {"needs": "long"})})
        cluster.wait_start(job, step="long")
        with Load(cluster) as load:
            fault = cluster.fault("away")
            narrow.fill()
            error = wait_unready(node).json["error"]
            assert error["reason"] == "store_read_only" and narrow.word in error["message"], error
            assert node.call("GET", "/healthz").status == 200
            assert node.document(job)["status"] == "running"
            told = node.glia("why", job).stdout
            assert re.search(r" since 20\d\d-", told), told
            assert GOLDEN.tells("no commits", told), told
            assert narrow.word in refusal_of_a_job(node)
            told = node.glia("status").stdout
            assert "not ready" in told and narrow.word in told, told
            for path in (node.process.err, "data/node.log"):
                wait_for("a line", lambda p=path: GOLDEN.tells("a line", node.read(p)))
            told = node.glia("doctor", code=None).stdout
            assert GOLDEN.tells("not ready", told), told
            wait_for("its end", lambda: cluster.lines("end", job=job, step="long"))
            narrow.free()
            load.wait_more(1)
            fault["until"] = time.monotonic() + 1
        cluster.wait_ends()
        assert [e["attempt"] for e in cluster.starts(job, "long")] == [1]
        for each in cluster.nodes:
            each.wait_ready()
        for path in (node.process.err, "data/node.log"):
            wait_for("its end", lambda p=path: GOLDEN.tells("its end", node.read(p)))
        cluster.judge()


@pytest.mark.parametrize("what", NARROW)
def test_that_there_is_room_again_is_noticed_without_anybody_asking(what):
    """Nor that there is none, by a node that has nothing to commit."""
    narrow = Narrow(what)
    with narrow.server as server, Cluster(server.url, 2) as cluster:
        node, other = cluster.nodes
        narrow.fill()

        def refused():
            try:
                cluster.submit(node)
            except Refused as error:
                return error.status == 503
            return False

        wait_for("a refusal", refused)
        wait_unready(other)
        until = time.monotonic() + 2  # longer than it takes to ask the store again
        while time.monotonic() < until:
            assert not node.is_ready() and not other.is_ready(), cluster.story()
        narrow.free()
        node.wait_ready()
        other.wait_ready()
        cluster.submit(node)
        cluster.wait_ends()


def what_it_says(node):
    """Of a store that is not its own: by /readyz, or as its last word."""
    try:
        answer = node.call("GET", "/readyz")
        return answer.body.decode() if answer.status == 503 else ""
    except Unanswered:
        return node.read(node.process.err) if node.process.poll() is not None else ""


def is_missed(text):
    """Somebody says that the store is not there where it was."""
    return GOLDEN.tells("empty redis", text) or GOLDEN.tells("empty postgres", text)


@pytest.mark.parametrize("how", ["emptied", "restarted empty"])
@pytest.mark.parametrize("store", stores("redis", "postgres"))
def test_an_empty_server_is_noticed_and_not_adopted(store, how):
    with make_server(store) as server, Cluster(server.url, 2) as cluster:
        job = cluster.submit(cluster.nodes[0], mark="unsafe", ms=60000)
        cluster.wait_start(job)
        if how == "emptied":
            server.flush()
        else:
            server.restart(empty=True)
        for node in cluster.nodes:
            wait_for("the node to say it", lambda n=node: is_missed(what_it_says(n)))
            with pytest.raises((Refused, Unanswered)):
                cluster.submit(node)
        assert server.is_empty(), "it was filled again"
        # A node of the same folder that starts now says so, too.
        cluster.nodes[0].kill()
        done = cluster.nodes[0].glia("serve", code=None)
        assert done.returncode != 0 and is_missed(done.stderr), done.stderr
        assert server.is_empty()
