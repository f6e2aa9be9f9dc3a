"""A node is killed with kill -9, or stands still: others take over what it had, each kind of work
by its own rule, and nothing that is well is touched."""

import os
import signal
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from cluster import GRACE_S, TTL_S, Cluster, Refused, Unanswered  # noqa: E402
from glianode import wait_for  # noqa: E402
from servers import RedisServer  # noqa: E402

SOAK = bool(os.environ.get("GLIA_SOAK"))
TAKEOVER_S = TTL_S + 1.0
HEALTHY_S = 300 if SOAK else 12


@pytest.fixture(name="cluster")
def make_cluster():
    with RedisServer() as server, Cluster(server.url, server=server) as cluster:
        yield cluster


def leader_of(cluster):
    """The node that leads now; None while nobody does."""
    try:
        rows = cluster.living()[0].get("/v1/nodes")["nodes"]
    except (Unanswered, Refused):
        return None
    names = [r["name"].split(".")[0] for r in rows if r.get("leader")]
    return cluster.node(names[0]) if names and cluster.node(names[0]).is_up() else None


def test_each_kind_of_work_of_a_dead_node_goes_its_way(cluster):
    dead, second, third = cluster.nodes
    safe, plain, unsafe, deaf = [cluster.submit(dead, mark=m, ms=30000, words=w) for m, w in (
        ("idempotent", ()), ("", ()), ("unsafe", ()), ("", ("deaf",)))]
    healthy = cluster.submit(third, mark="unsafe", ms=HEALTHY_S * 1000)
    for job in (safe, plain, unsafe, deaf, healthy):
        cluster.wait_start(job)
    killed = dead.kill()
    again = cluster.wait_start(safe, 2)
    assert again["t"] - killed < TAKEOVER_S + cluster.slack(killed)
    assert again["node"] != dead.name
    # Its keeper ends what nobody asks for any more; one that does not listen is killed.
    wait_for("the end of the orphans", lambda: len(cluster.lines("stopped", node="n1")) == 3)
    again = cluster.wait_start(plain, 2)
    last = max(e["t"] for e in cluster.lines(node="n1"))
    slack = cluster.slack(killed)
    assert last - killed < GRACE_S + 1.0 + slack
    assert last < again["t"] < killed + TTL_S + GRACE_S + 2.0 + slack
    cluster.wait_start(deaf, 2)
    wait_for("the review", lambda: cluster.step(unsafe).get("blocked_on") == "review")
    wait_for("the job to be paused", lambda: cluster.status(unsafe) == "paused")
    cluster.command(second, unsafe, "respond", {"decision": "done"}, step="work")
    for job in (safe, plain, deaf):
        cluster.command(third, job, "cancel")
    cluster.wait_ends(HEALTHY_S + 40)
    assert len(cluster.starts(unsafe)) == len(cluster.starts(healthy)) == 1
    cluster.judge()


def wait_taken(cluster, job, mark):
    """When the job's step was dealt with by somebody else: started again, or shown to a person."""
    if mark != "unsafe":
        return cluster.wait_start(job, 2)["t"]
    wait_for("the review", lambda: cluster.step(job).get("blocked_on") == "review")
    return time.monotonic()


@pytest.mark.parametrize("mark", ["idempotent"] if not SOAK else ["idempotent", "unsafe", ""])
def test_how_long_a_takeover_takes(cluster, mark):
    """From the kill to what follows, at whatever moment of the session's life it comes."""
    times, late, most = [], [], TAKEOVER_S if mark else TAKEOVER_S + GRACE_S + 1.0
    for number in range(50 if SOAK else 5):
        node, other = cluster.nodes[number % 3], cluster.nodes[(number + 1) % 3]
        node.wait_ready()
        job = cluster.submit(node, mark=mark, ms=60000)
        cluster.wait_start(job)
        time.sleep(number % 5 * 0.2)
        killed = node.kill()
        times.append(wait_taken(cluster, job, mark) - killed)
        late.append(times[-1] - cluster.slack(killed))
        node.begin()
        if mark == "unsafe":
            cluster.command(other, job, "respond", {"decision": "done"}, step="work")
        else:
            cluster.command(other, job, "cancel")
    times.sort()
    print(f"takeover, {mark or 'unmarked'}, {len(times)} runs: least {times[0]:.2f}, median "
          f"{times[len(times) // 2]:.2f}, most {times[-1]:.2f} s at a TTL of {TTL_S:.0f} s")
    assert max(late) < most, (times, late)
    cluster.wait_ends()
    cluster.judge()


def test_a_node_that_stands_still_is_given_up_and_stops_what_it_lost(cluster):
    sleeper = cluster.nodes[0]
    safe = cluster.submit(sleeper, mark="idempotent", ms=60000)
    plain = cluster.submit(sleeper, ms=60000)
    unsafe = cluster.submit(sleeper, mark="unsafe", ms=60000)
    for job in (safe, plain, unsafe):
        cluster.wait_start(job)
    paused = sleeper.pause()
    for job in (safe, plain):
        assert cluster.wait_start(job, 2)["node"] != sleeper.name
    wait_for("the review", lambda: cluster.step(unsafe).get("blocked_on") == "review")
    wait_for("three times its TTL", lambda: time.monotonic() > paused + 3 * TTL_S)
    sleeper.resume()
    sleeper.wait_ready()
    back = time.monotonic()
    assert max(e["t"] for e in cluster.lines(node=sleeper.name)) \
        < paused + GRACE_S + 1.0 + cluster.slack(paused)
    for job in (safe, plain):
        cluster.command(sleeper, job, "cancel")
    cluster.command(sleeper, unsafe, "respond", {"decision": "failed"}, step="work")
    fresh = cluster.submit(sleeper, ms=50)
    cluster.wait_ends()
    assert not [e for e in cluster.lines("start", node=sleeper.name)
                if e["t"] > back and e["job"] != fresh]
    cluster.judge()


def test_a_keeper_that_stood_still_ends_nothing_of_a_node_that_lives(cluster):
    """What the node has said meanwhile is heard before anything counts as an orphan."""
    node = cluster.nodes[0]
    jobs = [cluster.submit(node, mark=mark, ms=60000) for mark in ("", "idempotent", "unsafe")]
    for job in jobs:
        cluster.wait_start(job)
    begin = time.monotonic()
    for pid in node.keeper_pids():
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_for("three graces", lambda: time.monotonic() > begin + 3 * GRACE_S)
    finally:
        for pid in node.keeper_pids():
            os.kill(pid, signal.SIGCONT)
    cluster.wait_ends(jobs=[cluster.submit(node, ms=50)])  # all words have been heard
    for job in jobs:
        assert len(cluster.lines("start", job=job)) == 1 and not cluster.lines("stopped", job=job)
        cluster.command(node, job, "cancel")
    cluster.wait_ends()
    cluster.judge()


def test_a_hundred_orphans_are_recovered_once_each_and_again():
    """The same node dies twice; what it lost the second time is recovered a second time."""
    with RedisServer() as server, Cluster(server.url, args=("--pools", "default=120"),
                                          server=server) as cluster:
        victim = cluster.nodes[0]
        for count in (100, 4):
            gate = os.path.join(cluster.folder, f"gate-{count}")
            jobs = {cluster.submit(victim, {
                "work": ("idempotent", 0, (f"gate={gate}",), {}),
                "after": ("", 10, (), {"needs": "work"})}) for _ in range(count)}

            def of_work(what, mine=jobs, **match):
                return [e["job"] for e in cluster.lines(what, step="work", **match)
                        if e["job"] in mine]

            wait_for("all to run", lambda: len(of_work("start", node=victim.name)) == count)
            victim.kill()
            # Nobody's work ends before all of it is with others, and nobody works for the dead.
            wait_for("all to run again", lambda: len(of_work("start")) == 2 * count)
            wait_for("the end of the orphans", lambda: len(of_work("stopped")) == count)
            with open(gate, "w", encoding="ascii"):
                pass
            cluster.wait_ends(60)
            assert {cluster.ended[j] for j in jobs} == {"completed"}
            for step, starts in (("work", 2), ("after", 1)):
                lines = [e for e in cluster.lines(step=step) if e["job"] in jobs]
                begun = [e["job"] for e in lines if e["what"] == "start"]
                ended = [e["job"] for e in lines if e["what"] == "end"]
                assert sorted(begun) == sorted([*jobs] * starts)
                assert sorted(ended) == sorted(jobs)
            if count == 100:
                victim.restart()
        cluster.judge()


@pytest.mark.parametrize("gap_s, leads", [(0, "first"), (2.5, "second")] if not SOAK else
                         [(g / 4, leads) for g in range(0, 20, 2) for leads in ("first", "second")])
def test_the_leader_and_another_node_die(cluster, gap_s, leads):
    leader = wait_for("a leader", lambda: leader_of(cluster))
    others = [n for n in cluster.nodes if n is not leader]
    dying = [leader, others[0]] if leads == "first" else [others[0], leader]
    jobs = [cluster.submit(n, mark="idempotent", ms=2000) for n in cluster.nodes for _ in range(2)]
    unsafe = [cluster.submit(n, mark="unsafe", ms=30000) for n in dying]
    for job in unsafe:
        cluster.wait_start(job)
    dying[0].kill()
    time.sleep(gap_s)
    dying[1].kill()
    cluster.wait_ends(jobs=jobs)
    wait_for("a new leader", lambda: leader_of(cluster) is others[1])
    for job in unsafe:
        wait_for("the review", lambda j=job: cluster.step(j).get("blocked_on") == "review")
        cluster.command(others[1], job, "respond", {"decision": "done"}, step="work")
    cluster.wait_ends()
    cluster.judge()


def test_a_stack_recovers_nothing_of_another():
    with RedisServer() as server, \
            Cluster(server.url, 1, args=("--stack", "a")) as one, \
            Cluster(server.url, 1, args=("--stack", "b")) as other:
        job = one.submit(one.nodes[0], mark="idempotent", ms=3000)
        mine = other.submit(other.nodes[0], mark="idempotent", ms=3000)
        one.wait_start(job)
        killed = one.nodes[0].kill()
        other.wait_ends()
        # Longer than any takeover: nobody of stack b may have touched it.
        wait_for("time to pass", lambda: time.monotonic() > killed + TAKEOVER_S + 2.0)
        assert len(one.starts(job)) == 1 and not other.starts(job)
        assert {e["job"] for e in other.lines()} == {mine}
        one.nodes[0].restart()
        one.wait_ends()
        one.judge()
        other.judge()
