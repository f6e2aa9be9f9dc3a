"""The store goes away, or is slow, or forgets its scripts: running work goes on, people are told, and
everything resumes by itself."""

import os
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from cluster import Cluster, Refused, Unanswered  # noqa: E402
from glianode import wait_for  # noqa: E402
from proxy import Proxy  # noqa: E402
from servers import RedisServer  # noqa: E402


class Load:
    """A client that submits short jobs all the time, each until it has been acknowledged."""

    def __init__(self, cluster, pause_s=0.02, **job):
        self.cluster, self.pause_s, self.job = cluster, pause_s, {"ms": 20, **job}
        self.is_over = threading.Event()
        self.error = None
        self.count = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        wait_for("the first job", lambda: self.count > 0 or self.error)
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join(60)
        assert self.error is None, self.error
        assert not self.thread.is_alive(), "a submission never ended"

    def run(self):
        while not self.is_over.wait(self.pause_s):
            try:
                self.cluster.submit_surely(self.cluster.living(), f"load-{self.count}", **self.job)
                self.count += 1
            except Exception as error:  # pylint: disable=broad-except
                self.error = error
                return


def wait_unready(node):
    """What /readyz says when the store is away."""
    def unready():
        answer = node.call("GET", "/readyz")
        return answer if answer.status == 503 else None
    return wait_for("the node to notice", unready)


@pytest.mark.parametrize("fsync", ["everysec", "always"])
def test_the_server_is_killed_in_the_middle_of_commits(fsync):
    with RedisServer(fsync) as server, Cluster(server.url, 2, server=server) as cluster:
        with Load(cluster) as load:
            for _ in range(3):
                before = load.count
                wait_for("more jobs", lambda: load.count > before + 10)
                fault = cluster.fault("away")
                server.kill()
                time.sleep(0.3)
                server.start()
                fault["until"] = time.monotonic() + 1
        cluster.wait_ends()
        cluster.judge()


def test_while_the_store_is_away_running_steps_go_on():
    with RedisServer() as server, Cluster(server.url, 2, server=server) as cluster:
        node = cluster.nodes[0]
        job = cluster.submit(node, {"long": ("", 8000, (), {}),
                                    "after": ("", 50, (), {"needs": "long"})})
        cluster.wait_start(job, step="long")
        fault = cluster.fault("away")
        server.kill()
        killed = time.monotonic()
        said = wait_unready(node)
        assert b"store" in said.body, said.body
        assert node.call("GET", "/healthz").status == 200
        done = node.glia("job", "status", job, code=None)
        assert done.returncode not in (0, 1) and "store" in done.stderr, done.stderr
        with pytest.raises((Refused, Unanswered)):
            cluster.submit(node)
        wait_for("the outage to have lasted", lambda: time.monotonic() > killed + 5)
        server.start()
        fault["until"] = time.monotonic() + 1
        for each in cluster.nodes:
            each.wait_ready()
        cluster.wait_ends()
        assert [e["attempt"] for e in cluster.starts(job, "long")] == [1]
        cluster.judge()


def test_a_server_that_stands_still_kills_nobody():
    """Longer than the sessions live: an outage says nothing about nodes."""
    with RedisServer() as server, Cluster(server.url, 3, server=server) as cluster:
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


def test_connections_that_are_cut_scripts_that_are_flushed():
    with RedisServer() as server, Cluster(server.url, 2, server=server) as cluster:
        long = cluster.submit(cluster.nodes[0], mark="unsafe", ms=4000)
        with Load(cluster) as load:
            for number in range(12):
                before = load.count
                wait_for("more jobs", lambda: load.count > before + 3)
                fault = cluster.fault("away")
                if number % 3 == 0:
                    server.ask("SCRIPT", "FLUSH")
                if number % 3 != 1:
                    server.ask("CLIENT", "KILL", "TYPE", "normal")
                else:
                    server.ask("CLIENT", "KILL", "TYPE", "pubsub")
                fault["until"] = time.monotonic() + 1
        cluster.wait_ends()
        assert len(cluster.starts(long)) == 1
        cluster.judge()


def test_a_slow_way_to_the_server_is_only_slow():
    with RedisServer() as server, Proxy(server.port) as proxy:
        proxy.delay_s = 0.05
        with Cluster(f"redis://127.0.0.1:{proxy.port}/0", 2, server=server) as cluster:
            with Load(cluster) as load:
                wait_for("jobs", lambda: load.count > 20)
            cluster.wait_ends()
            proxy.delay_s = 0  # the judge asks much
            assert all(len(cluster.starts(job)) == 1 for job in cluster.jobs)
            cluster.judge()


@pytest.mark.parametrize("how", ["cut", "half_open", "stall"])
def test_a_way_that_breaks_while_commits_are_on_it(how):
    with RedisServer() as server, Proxy(server.port) as proxy, \
            Cluster(f"redis://127.0.0.1:{proxy.port}/0", 2, server=server) as cluster:
        with Load(cluster) as load:
            for _ in range(2):
                before = load.count
                wait_for("more jobs", lambda: load.count > before + 5)
                fault = cluster.fault("away")
                if how == "stall":
                    proxy.stall("down")  # what is sent arrives, and nobody hears of it
                    time.sleep(1)
                    proxy.cut()
                    proxy.flow()
                else:
                    getattr(proxy, how)()
                wait_for("jobs", lambda b=load.count: load.count > b, 30)
                fault["until"] = time.monotonic() + 1
        cluster.wait_ends()
        cluster.judge()


def test_a_full_disk_stops_writing_and_nothing_else():
    with RedisServer() as server, Cluster(server.url, 2, server=server) as cluster:
        job = cluster.submit(cluster.nodes[0], ms=3000)
        cluster.wait_start(job)
        with Load(cluster) as load:
            fault = cluster.fault("away")
            server.fill_disk()
            wait_unready(cluster.nodes[0])
            assert cluster.nodes[0].document(job)["status"] == "running"
            server.free_disk()
            before = load.count
            wait_for("jobs", lambda: load.count > before, 30)
            fault["until"] = time.monotonic() + 1
        cluster.wait_ends()
        assert len(cluster.starts(job)) == 1
        cluster.judge()


def what_it_says(node):
    """Of a store that is not its own: by /readyz, or as its last word."""
    try:
        answer = node.call("GET", "/readyz")
        return answer.body.decode() if answer.status == 503 else ""
    except Unanswered:
        return node.read(node.process.err) if node.process.poll() is not None else ""


@pytest.mark.parametrize("how", ["FLUSHALL", "restarted empty"])
def test_an_empty_server_is_noticed_and_not_adopted(how):
    with RedisServer() as server, Cluster(server.url, 2) as cluster:
        job = cluster.submit(cluster.nodes[0], mark="unsafe", ms=60000)
        cluster.wait_start(job)
        if how == "FLUSHALL":
            server.ask("FLUSHALL")
        else:
            server.restart(empty=True)
        for node in cluster.nodes:
            wait_for("the node to say it", lambda n=node: "is empty" in what_it_says(n))
            with pytest.raises((Refused, Unanswered)):
                cluster.submit(node)
        assert server.ask("KEYS", "*") == [], "it was filled again"
        # A node of the same folder that starts now says so, too.
        cluster.nodes[0].kill()
        done = cluster.nodes[0].glia("serve", code=None)
        assert done.returncode != 0 and "is empty" in done.stderr, done.stderr
        assert server.ask("KEYS", "*") == []
