"""The primary of a Redis with Sentinel dies under load: how long is the pause, and what is lost?

    wait=needed    (the default) renewals and starts of unsafe work wait for a replica
    wait=all       every commit does: nothing that was acknowledged is lost
"""

import os
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from cluster import JOBS, TTL_S, Cluster, Refused, Unanswered  # noqa: E402
from glianode import wait_for  # noqa: E402
from history import TERMINAL  # noqa: E402
from servers import SOAK, RedisServer, SentinelSet  # noqa: E402

DEMOTED_S = 8.0  # so late the sentinels tell one that was given up
AFTERWARDS_S = 2.0  # work must go on so long after the sentinels have detected the failure
RATE = 1000 if SOAK else 200
BATCH = 20
FLOW = {"name": "rush", "steps": {"a": {"noop": True}}}


class Rush:
    """Clients of several nodes that submit short jobs at a steady rate, and write down which were
    acknowledged, and when."""

    def __init__(self, cluster, rate=RATE):
        self.cluster, self.rate = cluster, rate
        self.acknowledged = {}  # job -> when
        self.times = []         # of answers with success
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(n, i), daemon=True)
                        for i, n in enumerate(cluster.nodes * 2)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.wait_more(100)
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join(40)

    def run(self, node, number):
        pause, turn = BATCH * len(self.threads) / self.rate, 0
        while not self.is_over.wait(pause):
            names = [{"run_id": f"rush-{number}-{turn}-{i}"} for i in range(BATCH)]
            turn += 1
            while not self.send(node, names) and not self.is_over.is_set():
                time.sleep(0.05)

    def send(self, node, names):
        """True when each of them has been acknowledged: else they are all sent again."""
        try:
            answer = node.call("POST", JOBS + ":batch", {"flow": FLOW, "jobs": names})
        except Unanswered:
            return False
        if answer.status != 200:
            return False
        now, jobs = time.monotonic(), answer.json["jobs"]
        with self.lock:
            for name, job in zip(names, jobs):
                if "job_id" in job and job["job_id"] not in self.acknowledged:
                    self.acknowledged[job["job_id"]] = now
                    self.cluster.history.add(now, "submitted", job=job["job_id"], node=node.name,
                                             run_id=name["run_id"], marks={})
            if all("job_id" in j for j in jobs):
                self.times.append(now)
        return all("job_id" in j for j in jobs)

    def wait_more(self, count, seconds=60):
        before = len(self.acknowledged)
        wait_for("more jobs", lambda: len(self.acknowledged) >= before + count, seconds)

    def rate_before(self, when):
        """Jobs per second that were acknowledged before that time."""
        times = [t for t in self.acknowledged.values() if t < when]
        return len(times) / (when - min(times))

    def pause_s(self):
        """The longest time without an answer with success."""
        times = sorted(self.times)
        return max(b - a for a, b in zip(times, times[1:]))


def all_jobs(node):
    """id -> status, of all there are."""
    found, after = {}, ""
    while True:
        page = node.get(f"{JOBS}?limit=200{after}")
        found |= {j["job_id"]: j["status"] for j in page["jobs"]}
        if not page.get("next"):
            return found
        after = f"&after={page['next']}"


def settle(cluster, rush):
    """Wait until all jobs have ended; those that were acknowledged and are not there."""
    def ended():
        try:
            jobs = all_jobs(cluster.living()[0])
        except (Unanswered, Refused):
            return None
        return jobs if all(s in TERMINAL for s in jobs.values()) else None

    jobs = wait_for("all jobs to end", ended, 60)
    for job in rush.acknowledged:
        if job in jobs:
            cluster.note("final", job=job, status=jobs[job], steps={}, events=[])
        else:
            cluster.note("absent", job=job)
    return set(rush.acknowledged) - set(jobs)


def further_failovers(world, cluster, first):
    """On a busy machine the sentinels may give up another primary, too, although it lives. What it
    took until nobody wrote to it any more, and no replica had, is lost as well."""
    seen = world.failovers()
    assert first.port in [port for port, _, _ in seen], world.story()
    further = [one for one in seen if one[0] != first.port]
    for port, missed, over in further:
        print(f"a further failover: {port} was missed for {over - missed:.2f} s")
        cluster.fault("away", "", missed, over)
        cluster.fault("loss", "", missed - 1.0, over + 0.1)
    return further


@pytest.mark.parametrize("wait", ["all"] if not SOAK else ["all", "needed"])
def test_a_failover_under_load(wait):
    with SentinelSet() as world, Cluster(f"{world.url}?wait={wait}", 2) as cluster:
        long = cluster.submit(cluster.nodes[0], mark="unsafe", ms=8000)
        cluster.wait_start(long)
        with Rush(cluster) as rush:
            rush.wait_more(RATE)
            old = world.current()
            fault = cluster.fault("away")
            old.kill()
            detected, named = world.time_failover(old, fault["t"])
            rush.wait_more(RATE)
            fault["until"] = time.monotonic()
        lost = settle(cluster, rush)
        cluster.wait_ends()
        print(f"failover, wait={wait}: {rush.rate_before(fault['t']):.0f} jobs/s of {RATE} wanted, "
              f"detected after {detected:.2f} s, new primary after {named:.2f} s, pause "
              f"{rush.pause_s():.2f} s, lost {len(lost)}")
        more = further_failovers(world, cluster, old)
        if lost:
            assert wait == "needed", lost
            times = [rush.acknowledged[j] for j in lost]
            cluster.fault("loss", "", fault["t"] - 1.0, fault["t"] + 0.1)
            print(f"lost: acknowledged from {min(times) - fault['t']:.3f} s to "
                  f"{max(times) - fault['t']:.3f} s after the kill")
        try:
            cluster.judge()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{world.story()}") from error
        assert len(cluster.starts(long)) == 1
        assert more or rush.pause_s() < detected + AFTERWARDS_S + cluster.slack(fault["t"])


def test_a_primary_that_was_given_up_and_lives_is_left():
    """It stood still, another was chosen, and it goes on without knowing. The sentinels tell it
    only ten seconds later; the nodes find out when no replica confirms their renewals."""
    with SentinelSet() as world, Cluster(f"{world.url}?wait=needed", 2) as cluster:
        with Rush(cluster, 100) as rush:
            rush.wait_more(50)
            old, fault = world.current(), cluster.fault("away")
            old.pause()
            new = world.wait_failover(old)
            old.resume()
            back = time.monotonic()

            def has_arrived():
                newest = max(rush.acknowledged, key=rush.acknowledged.get)
                return rush.acknowledged[newest] > back and new.ask("EXISTS", f"glia:job:{newest}")

            wait_for("a node to leave it", has_arrived)
            left, fault["until"] = time.monotonic() - back, back + TTL_S
            assert old.info("replication")["role"] == "master" or \
                time.monotonic() - back > DEMOTED_S, "the test has shown nothing"
            wait_for("all to leave it", lambda: time.monotonic() > fault["until"])
            rush.wait_more(50)
        lost = settle(cluster, rush)
        print(f"given up, and alive: left after {left:.2f} s, lost {len(lost)}")
        cluster.fault("loss", "", fault["t"] - 1.0, fault["until"])
        cluster.judge()
        assert left < TTL_S + cluster.slack(back)


@pytest.mark.parametrize("wait", ["all", "needed"])
def test_replicas_that_lag_when_the_primary_dies(wait):
    """The worst case, made certain: for a second nothing reaches a replica, then the primary
    dies."""
    with SentinelSet() as world, Cluster(f"{world.url}?wait={wait}&wait_ms=300", 2) as cluster:
        safe = cluster.submit(cluster.nodes[0], ms=100, run_id="before")
        cluster.wait_ends()
        unsafe = None
        for replica in world.replicas:
            replica.pause()
        world.current().ask("CLIENT", "KILL", "TYPE", "replica")  # with what is on its way
        lag = time.monotonic()
        told, untold = [], 0
        patience = 0.8 if wait == "all" else 10.0  # nobody will answer; everybody will
        for number in range(4):
            try:
                told.append(cluster.submit(cluster.nodes[number % 2], ms=50, seconds=patience))
            except (Unanswered, Refused):
                untold += 1
        try:
            unsafe = cluster.submit(cluster.nodes[0], mark="unsafe", ms=100, seconds=1.0)
        except (Unanswered, Refused):
            pass
        ran = [e for e in cluster.lines("start", job=unsafe)] if unsafe else []
        assert not ran, "unsafe work began although no replica knew of it"
        fault, old = cluster.fault("away"), world.current()
        old.kill()
        for replica in world.replicas:
            replica.resume()
        world.wait_failover(old)
        if wait == "needed":
            cluster.fault("loss", "", lag, fault["t"] + 0.2)
        for node in cluster.nodes:
            node.wait_ready()
        fault["until"] = time.monotonic() + 1
        there = all_jobs(cluster.nodes[0])
        lost = [job for job in told if job not in there]
        print(f"lagging, wait={wait}: {len(told)} told, {untold} not, {len(lost)} lost")
        assert safe in there
        assert not lost if wait == "all" else lost, "the test has shown nothing"
        after = cluster.submit_surely(cluster.nodes, "after")
        jobs = [j for j in cluster.jobs if j in there or j == after]
        cluster.wait_ends(jobs=jobs)
        cluster.judge()


def test_a_power_cut_takes_at_most_what_everysec_says():
    """A single server with appendfsync everysec: what it wrote in its last second may be gone, and
    no more; the nodes go on with what is left."""
    with RedisServer() as server, Cluster(server.url, 2) as cluster:
        kept = [cluster.submit(n, mark=m, ms=200) for n in cluster.nodes for m in ("", "unsafe")]
        cluster.wait_ends()
        begin, size = time.monotonic(), server.written_bytes()
        young = [cluster.submit(n, mark="idempotent", ms=50) for n in cluster.nodes * 2]
        fault = cluster.fault("away")
        server.lose_power(size)
        cluster.fault("loss", "", begin, fault["t"])
        for node in cluster.nodes:
            node.wait_ready()
        fault["until"] = time.monotonic() + 1
        there = all_jobs(cluster.nodes[0])
        assert set(kept) <= set(there)
        assert not set(young) & set(there), "the test has shown nothing"
        after = cluster.submit_surely(cluster.nodes, "after")
        cluster.wait_ends(jobs=[after])
        cluster.judge()
