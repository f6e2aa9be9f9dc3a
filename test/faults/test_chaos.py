"""Everything at once: nodes die, stand still and are cut off, the store dies, stands still and is
slow, while jobs of all kinds run and people decide. Then the history must be one that can be.

    GLIA_FAULTS_SEED=n     replay one round (what is drawn is the same, the moments are not)
    GLIA_SOAK=1            more rounds, longer ones, and ever new seeds
"""

import os
import random
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from cluster import TTL_S, Cluster, Refused, Unanswered  # noqa: E402
from elsewhere import wait_forgotten  # noqa: E402
from history import TERMINAL  # noqa: E402
from proxy import Proxy  # noqa: E402
from servers import SOAK, make_server  # noqa: E402

NODES = 3
SLOTS = (1, 6, 12)  # of the nodes: many steps run on another node than the owner of their job
FAULTS = 25 if SOAK else 5
HUMAN = "/v1/contexts/default/human"


def draw_seed(number):
    if os.environ.get("GLIA_FAULTS_SEED"):
        return int(os.environ["GLIA_FAULTS_SEED"])
    return random.SystemRandom().randrange(1 << 32) if SOAK else number


class Chaos:
    """One round."""

    def __init__(self, rng, server, proxies, cluster):
        self.rng, self.server, self.proxies, self.cluster = rng, server, proxies, cluster
        self.is_over = threading.Event()
        self.error = None
        self.threads = []
        self.did = []

    # ---- clients ----

    def draw_job(self, rng):
        steps, before = {}, None
        for number in range(rng.randint(1, 3)):
            name = f"s{number}"
            steps[name] = (rng.choice(("", "", "idempotent", "unsafe")),
                           rng.choice((20, 300, 1500, 5000)),
                           ("deaf",) if rng.random() < 0.1 else (),
                           {"needs": before} if before else {})
            before = rng.choice((None, name))
        return steps

    def submit_jobs(self):
        rng, number = random.Random(self.rng.random()), 0
        while not self.is_over.wait(0.15):
            nodes = self.cluster.living()
            if nodes:
                self.try_to(self.cluster.submit, rng.choice(nodes), self.draw_job(rng),
                            run_id=f"chaos-{number}", seconds=3)
                number += 1

    def give_commands(self):
        rng = random.Random(self.rng.random())
        while not self.is_over.wait(0.3):
            nodes, jobs = self.cluster.living(), list(self.cluster.jobs)
            if nodes and jobs:
                verb = rng.choice(("cancel", "pause", "resume", "resume"))
                self.try_to(self.cluster.command, rng.choice(nodes), rng.choice(jobs), verb,
                            seconds=8)

    def try_to(self, what, *args, **more):
        """No answer, and no as an answer, are fine."""
        try:
            return what(*args, **more)
        except (Unanswered, Refused):
            return None
        except Exception as error:  # pylint: disable=broad-except
            self.error = self.error or error
            raise

    # ---- faults ----

    def kill_node(self):
        node = self.rng.choice(self.cluster.living())
        node.kill()
        time.sleep(self.rng.choice((0, 0.5, 4)))
        node.begin()

    def pause_node(self):
        node = self.rng.choice(self.cluster.living())
        node.pause()
        time.sleep(self.rng.choice((0.5, TTL_S, 3 * TTL_S)))
        node.resume()

    def cut_node(self):
        number = self.rng.randrange(NODES)
        fault = self.cluster.fault("cut", self.cluster.nodes[number].name)
        proxy = self.proxies[number]
        proxy.stall()
        time.sleep(self.rng.choice((0.5, TTL_S, 2 * TTL_S)))
        proxy.cut()
        proxy.flow()
        # Until it has heard what became of it.
        fault["until"] = time.monotonic() + TTL_S

    def disturb_store(self):
        fault = self.cluster.fault("away")
        how = self.rng.choice(("kill", "pause", "drop", "slow"))
        if how == "kill":
            self.server.kill()
            time.sleep(self.rng.choice((0, 1, 5)))
            self.server.start()
        elif how == "pause":
            self.server.pause()
            time.sleep(self.rng.choice((0.5, 4)))
            self.server.resume()
        elif how == "drop":
            self.server.cut_clients()
        else:
            for proxy in self.proxies:
                proxy.delay_s = 0.05
            time.sleep(2)
            for proxy in self.proxies:
                proxy.delay_s = 0
        fault["until"] = time.monotonic() + TTL_S
        return how

    # ---- the round ----

    def run(self):
        for what in (self.submit_jobs, self.give_commands):
            self.threads.append(threading.Thread(target=what, daemon=True))
            self.threads[-1].start()
        for _ in range(FAULTS):
            time.sleep(self.rng.uniform(0.3, 1.5))
            what = self.rng.choice((self.kill_node, self.pause_node, self.cut_node,
                                    self.disturb_store))
            self.did.append((what.__name__, what()))
        self.is_over.set()
        for thread in self.threads:
            thread.join(20)
        assert self.error is None, self.error
        for node in self.cluster.nodes:
            node.wait_ready()
        self.finish()

    def finish(self):
        """Be the person that blocked steps and paused jobs wait for, until all has ended; also
        those that no client has heard of."""
        until, over = time.monotonic() + 120, set()
        while True:
            untold = self.cluster.untold()
            left = {*self.cluster.jobs, *untold} - over
            if not left:
                return
            assert time.monotonic() < until, f"these have not ended: {self.cluster.tell(left)}"
            for job in sorted(left):
                status = self.try_to(self.cluster.status, job)
                if status in TERMINAL or job in untold and self.cluster.is_over_or_absent(job):
                    over.add(job)
                elif status == "paused":
                    self.decide(job)
            time.sleep(0.1)

    def decide(self, job):
        node = self.rng.choice(self.cluster.living())
        document = self.try_to(node.document, job) or {}
        blocked = [s for s, d in document.get("workflow_state", {}).get("steps", {}).items()
                   if d.get("blocked_on") == "review"]
        for step in blocked:
            decision = self.rng.choice(("rerun", "done", "failed"))
            self.try_to(self.cluster.command, node, job, "respond", {"decision": decision},
                        step=step)
        if not blocked:
            self.try_to(self.cluster.command, node, job, "resume")


# Stores that lose nothing when they are killed.
@pytest.mark.parametrize("store", ["redis-always", "postgres"])
@pytest.mark.parametrize("number", range(6 if SOAK else 1))
def test_whatever_happens_the_history_can_be(store, number):
    seed = draw_seed(number)
    with make_server(store) as server:
        proxies = [Proxy(server.port) for _ in range(NODES)]
        try:
            urls = [server.url_at(p.port) for p in proxies]
            made = Cluster(urls, server=server)
            for node, slots in zip(made.nodes, SLOTS):
                node.args = ("--pools", f"default={slots}")
            with made as cluster:
                chaos = Chaos(random.Random(seed), server, proxies, cluster)
                try:
                    chaos.run()
                    print(f"chaos on {store}: {len(cluster.jobs)} jobs, {chaos.did}")
                    cluster.judge()
                    wait_forgotten(server)
                except Exception as error:
                    raise AssertionError(f"GLIA_FAULTS_SEED={seed} {chaos.did}\n{error}") from error
        finally:
            for proxy in proxies:
                proxy.close()
