"""A job's steps run on several nodes, and its owner, or a node that runs some of them, dies or
stands still: what had completed stays, what was lost goes the way of its mark, and what runs on
nodes that are well is left alone."""

import os
import signal
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from cluster import TTL_S, Cluster, Refused, Unanswered  # noqa: E402
from elsewhere import (gate, on_stores, open_gate, starts_of, steps_of, submit,  # noqa: E402
                       tally, wait_forgotten, work)
from glianode import wait_for  # noqa: E402
from servers import make_server  # noqa: E402

SLOTS = 8
MARKS = ("idempotent", "", "unsafe")
DECISIONS = ("done", "rerun")


def kill_keeper(node):
    for pid in node.keeper_pids():
        os.kill(pid, signal.SIGKILL)


def kill_with_keeper(node):
    node.kill()
    kill_keeper(node)


def kill_with_keeper_and_restart(node):
    kill_with_keeper(node)
    node.begin()


# case: (whom it strikes, what happens to each)
CASES = {
    "the owner is killed": ("n1", lambda n: n.kill()),
    "an executor is killed": ("n2", lambda n: n.kill()),
    "the owner and an executor are killed": ("n1 n2", lambda n: n.kill()),
    "an executor and its keeper are killed": ("n2", kill_with_keeper),
    "both die and come back at once": ("n2", kill_with_keeper_and_restart),
    "the keeper of an executor is killed": ("n2", kill_keeper),
    "the owner stands still": ("n1", lambda n: n.pause()),
    "an executor stands still": ("n2", lambda n: n.pause()),
    "an executor is stopped": ("n2", lambda n: n.stop()),
}


class Scene:
    """One job: quick steps that have completed, and steps of every mark that run on all nodes until
    one of two gates opens."""

    def __init__(self, cluster):
        self.cluster = cluster
        count = SLOTS * len(cluster.nodes)
        self.gates = [gate(cluster, i) for i in range(2)]
        self.marks = {f"w{i}": MARKS[i % 3] for i in range(count)}
        self.quick = {f"q{i}" for i in range(6)}
        steps = {q: work(cluster) for q in sorted(self.quick)}
        for i, (step, mark) in enumerate(self.marks.items()):
            steps[step] = work(cluster, gate=self.gates[i // 3 % 2], needs=f"q{i % 6}",
                               **({mark: True} if mark else {}))
        self.job = submit(cluster, cluster.nodes[0], steps)
        wait_for("all steps to run",
                 lambda: len(starts_of(cluster, self.job, self.marks)) == count)
        self.first = {e["step"]: e for e in starts_of(cluster, self.job, self.marks)}
        nodes = {n.name for n in cluster.nodes}
        assert {e["node"] for e in self.first.values()} == nodes, self.first

    def lost(self, names, *marks):
        """The steps that ran on these nodes."""
        return {s for s, e in self.first.items()
                if e["node"] in names and (not marks or self.marks[s] in marks)}

    def again(self, steps):
        return {e["step"] for e in starts_of(self.cluster, self.job, steps)
                if e["pid"] != self.first[e["step"]]["pid"]}

    def steps(self):
        """What a node says; {} while none can."""
        try:
            return steps_of(self.cluster, self.job)
        except (Unanswered, Refused, IndexError):
            return {}

    def wait_reviews(self, unsafe):
        """The job is as far as it gets without a person."""
        def done():
            steps = self.steps()
            return steps and all(
                d.get("blocked_on") == "review" if s in unsafe else d["status"] == "completed"
                for s, d in steps.items())
        try:
            wait_for("all other steps to complete, and the reviews", done)
        except AssertionError as error:
            left = {s: d for s, d in self.steps().items() if d["status"] != "completed"}
            raise AssertionError(f"{error} of {sorted(unsafe)}: {left}") from None

    def decide(self, unsafe):
        """-> step -> how often it is started in all"""
        starts = {}
        for i, step in enumerate(sorted(unsafe)):
            decision = DECISIONS[i % 2]
            self.cluster.command(self.cluster.living()[-1], self.job, "respond",
                                 {"decision": decision}, step=step)
            starts[step] = 1 + (decision == "rerun")
        return starts


@pytest.mark.parametrize("case, store", on_stores(CASES))
def test_what_is_lost_goes_the_way_of_its_mark(case, store):
    names, strike = CASES[case]
    names = names.split()
    with make_server(store) as server, \
            Cluster(server.url, 3, args=("--pools", f"default={SLOTS}"), server=server) as cluster:
        scene = Scene(cluster)
        struck = [cluster.node(n) for n in names]
        when = time.monotonic()
        for node in struck:
            fault = cluster.fault("down", node.name, when)  # also if only its keeper dies
            strike(node)
            fault["until"] = time.monotonic() + TTL_S
        open_gate(scene.gates[0])
        again = scene.lost(names, "idempotent")
        wait_for("one of them to run again", lambda: scene.again(again) or not again)
        if any(n.is_paused for n in struck):
            wait_for("its session to be over", lambda: time.monotonic() > when + 2 * TTL_S)
            for node in struck:
                node.resume()
                node.wait_ready()
        open_gate(scene.gates[1])
        unsafe = scene.lost(names, "unsafe")
        scene.wait_reviews(unsafe)
        assert not scene.again(unsafe)
        starts = scene.decide(unsafe)
        cluster.wait_ends()
        assert cluster.ended[scene.job] == "completed", cluster.tell([scene.job])
        for node in struck:
            if node.process.poll() is not None:
                node.restart()
        expected = {s: 1 for s in [*scene.quick, *scene.marks]}
        expected |= {s: 2 for s in scene.lost(names)} | starts
        found = tally(cluster, scene.job)
        assert found == expected, {s: (found.get(s), n) for s, n in expected.items()
                                   if found.get(s) != n}
        wait_forgotten(server)
        cluster.judge()


def wait_pool(cluster, pool):
    """The first node has heard that another one offers the pool: before that it refuses a flow."""
    def is_accepted():
        try:
            return submit(cluster, cluster.nodes[0], {"s": work(cluster, pool=pool)})
        except Refused:
            return None
    cluster.wait_ends(jobs=[wait_for("the pool", is_accepted)])


@pytest.mark.parametrize("case, store", on_stores(("killed", "keeper too")))
def test_jobs_wait_for_the_only_node_that_has_a_pool(case, store):
    """It dies under load and returns: no job fails, and none stays."""
    with make_server(store) as server:
        cluster = Cluster(server.url, 3, args=("--pools", "default=2"), server=server)
        rare = cluster.nodes[1]
        rare.args = ("--pools", "default=2,rare=3")
        with cluster:
            opens = gate(cluster, "rare")
            wait_pool(cluster, "rare")
            jobs = [submit(cluster, cluster.nodes[0], {
                "before": work(cluster, 20),
                "rare": work(cluster, gate=opens, pool="rare", needs="before",
                             **({"idempotent": True} if i % 2 else {})),
                "after": work(cluster, 20, needs="rare")}) for i in range(8)]

            def run():
                return [e for e in cluster.lines("start", step="rare") if e["job"] in jobs]

            wait_for("what comes before", lambda: all(
                cluster.step(j, "before")["status"] == "completed" for j in jobs))
            wait_for("its slots to be used", lambda: len(run()) == 3)
            rare.kill()
            if case == "keeper too":
                kill_keeper(rare)
            cluster.wait_ends(jobs=[submit(cluster, cluster.nodes[0], {  # the others go on
                f"s{i}": work(cluster, 20) for i in range(6)})])
            died = time.monotonic()
            wait_for("its end to be known", lambda: all(
                n["status"] == "dead" for n in cluster.nodes[0].get("/v1/nodes")["nodes"]
                if n["name"].startswith(rare.name)))
            wait_for("the end of what it ran",
                     lambda: time.monotonic() > died + 2 * TTL_S + cluster.slack(died))
            assert {cluster.status(j) for j in jobs} == {"running"} and len(run()) == 3
            rare.restart()
            wait_for("them to run again", lambda: len(run()) == 6)
            open_gate(opens)
            cluster.wait_ends()
            assert {cluster.ended[j] for j in jobs} == {"completed"}
            assert {e["node"] for e in run()} == {rare.name}
            assert {tally(cluster, j)[s] for j in jobs for s in ("before", "after")} == {1}
            wait_forgotten(server)
            cluster.judge()
