"""Keepers and nodes die at random; an outside ledger says what really ran.

Every step first writes its name into the ledger. Whatever happens: no attempt runs twice, none that
"never" started has run, a result that was told once is told again unchanged until it is
acknowledged, and nothing is left running.
"""

import collections
import os
import random
import signal
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))

from keeperlink import Keeper, Link, alive, wait_for  # noqa: E402

pytestmark = pytest.mark.sqlite_only("the keeper alone, without a node")

BINARY = os.path.join(os.environ.get("GLIA_BUILD_RELEASE", os.path.join(ROOT, "build")),
                      "glia-keeper")
SECONDS = 6
BODIES = ["", "exit 3", "sleep 0.05", "(setsid sleep 300 & echo $! >> {pids}); sleep 0.02",
          "trap '' TERM; sleep 0.3 & wait", "head -c 300000 /dev/zero; echo; echo '{{\"a\":1}}'"]


class HungUp(Exception):
    """The keeper is gone, or has sent us away."""


class World:
    def __init__(self, path, seed):
        self.path = str(path)
        self.ledger = os.path.join(self.path, "ledger")
        self.pids = os.path.join(self.path, "pids")
        for name in (self.ledger, self.pids):
            with open(name, "w"):
                pass
        self.random = random.Random(seed)
        self.incarnation = 0
        self.link = None
        self.epochs = {}    # attempt not acknowledged: the epoch in which its start was decided
        self.told = {}      # attempt: its result
        self.counts = collections.Counter()

    def ran(self, name):
        with open(self.ledger) as f:
            return f.read().split().count(name)

    def keeper_pid(self):
        with open(os.path.join(self.path, "keeper", "lock")) as f:
            return int(f.read())

    def connect(self):
        """As a new incarnation of the node, with a new keeper if there is none."""
        while True:
            self.incarnation += 1
            try:
                self.link = Link(self.path, incarnation=self.incarnation, hello=False)
                self.link.send("HELLO", version_min=1, version_max=1, incarnation=self.incarnation)
                welcome = self.link.receive()
                if welcome is not None and welcome["type"] == "WELCOME":
                    self.link.epoch = welcome["epoch"]
                    return
                assert welcome is None or welcome["status"] == "unavailable"
            except OSError:
                said = Keeper(BINARY, self.path, idle_ms=self.random.choice([200, 1000])).said
                assert said == "ok" or "another keeper" in said

    def ask(self, call, *args, **kw):
        try:
            return call(*args, token=self.incarnation, **kw)
        except OSError as e:
            raise HungUp from e
        except AssertionError as e:
            assert "hung up" in str(e)
            raise HungUp from e

    def see(self, name, m):
        result = (m["end"], m["exit_code"], m["signal"], m["output"])
        assert self.told.setdefault(name, result) == result
        self.counts["told"] += 1

    def see_events(self):
        for m in self.link.events:
            if m["type"] == "ENDED":
                self.see(m["job"], m)
        self.link.events = []

    def look(self, name):
        """Ask what became of an attempt; forget it if that is settled."""
        epoch = self.epochs[name]
        r = self.ask(self.link.attach, job=name, epoch=epoch)
        self.counts[r["state"]] += 1
        if r["state"] == "ended":
            self.see(name, r)
        elif r["state"] == "never":
            assert self.ran(name) == 0
            del self.epochs[name]
        elif r["state"] == "lost":
            assert name not in self.told
            assert epoch != self.link.epoch or self.counts["term"] > 0
            del self.epochs[name]
        return r["state"]

    def start(self):
        self.counts["start"] += 1
        name = f"A{self.counts['start']}"
        self.epochs[name] = self.link.epoch
        body = self.random.choice(BODIES).format(pids=self.pids)
        r = self.ask(self.link.start, ["sh", "-c", f"echo {name} >> {self.ledger}; {body}"],
                     job=name, grace_ms=self.random.choice([0, 50, 200]),
                     timeout_ms=self.random.choice([0, 0, 100]))
        assert r["status"] in (0, "unavailable")

    def acknowledge(self):
        for name in [n for n in self.epochs if n in self.told][:self.random.randint(0, 5)]:
            try:
                self.link.ack(job=name, token=self.incarnation)
            except OSError as e:
                raise HungUp from e
            del self.epochs[name]
            self.counts["ack"] += 1

    def act(self):
        x = self.random.random()
        if x < 0.45:
            self.start()
        elif x < 0.6 and self.epochs:
            self.ask(self.link.stop, job=self.random.choice(list(self.epochs)))
        elif x < 0.9:
            self.acknowledge()
        elif x < 0.93:
            os.kill(self.keeper_pid(), signal.SIGKILL)
            self.counts["kill"] += 1
        elif x < 0.94:
            self.counts["term"] += 1
            os.kill(self.keeper_pid(), signal.SIGTERM)
        elif x < 0.96:
            self.link.close()
            time.sleep(self.random.choice([0, 0.3]))
            raise HungUp
        else:
            time.sleep(0.03)
        self.see_events()

    def run(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if self.link is None:
                    self.connect()
                    for name in list(self.epochs):
                        self.look(name)
                self.act()
            except (HungUp, ProcessLookupError):
                self.see_events()
                self.link = None

    def settle(self):
        """No more faults: everything comes to its end."""
        def settled():
            try:
                if self.link is None:
                    self.connect()
                return all(self.look(name) != "running" for name in list(self.epochs))
            except HungUp:
                self.link = None
                return False
        wait_for(settled, seconds=30)


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_dies_nothing_runs_twice_and_no_told_result_is_lost(tmp_path, seed):
    w = World(tmp_path, seed)
    w.run(SECONDS)
    w.settle()
    with open(w.ledger) as f:
        ran = collections.Counter(f.read().split())
    assert max(ran.values()) == 1
    # One that was stopped may have been stopped before its first line.
    assert {n for n, r in w.told.items() if r[0] == "exited"} <= set(ran)
    pid = w.keeper_pid()
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not alive(pid))
    with open(w.pids) as f:
        assert not any(alive(int(p)) for p in f.read().split())
    assert w.counts["kill"] > 3 and w.counts["told"] > 20 and w.counts["lost"] > 3, w.counts
