"""Sessions that have been dead for long are forgotten; what they owned can still be taken over."""

import glob
import os
import sqlite3
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box, wait_for  # noqa: E402
from teststore import STORE  # noqa: E402

KEPT = 100  # GL_SESSIONS_KEPT

pytestmark = pytest.mark.every_store


class Sqlite:
    def __init__(self, box):
        self.path, = glob.glob(f"{box.data}/contexts/default/state.db")

    def ask(self, text, *args):
        with sqlite3.connect(self.path, timeout=30) as db:
            return db.execute(text, args).fetchall()

    def count(self):
        return self.ask("SELECT count(*) FROM session")[0][0]

    def fill(self, n):
        node, = self.ask("SELECT node FROM session LIMIT 1")[0]
        with sqlite3.connect(self.path, timeout=30) as db:
            db.executemany("INSERT INTO session(id, node, incarnation, dead, since)"
                           " VALUES(?, ?, ?, 1, 0)",
                           [(f"{node}#{i}.old", node, i) for i in range(1000, 1000 + n)])

    def forget_all(self):
        self.ask("DELETE FROM session")


class Redis:
    def __init__(self, box):
        self.server = Box.lender.of.server
        self.database = box.env["GLIA_STORE"].rsplit("/", 1)[1]

    def ask(self, *words):
        with self.server.connect() as redis:
            redis.ask("SELECT", self.database)
            return redis.ask(*words)

    def count(self):
        return len(self.ask("KEYS", "glia:.session:*"))

    def fill(self, n):
        for i in range(n):
            self.ask("HSET", f"glia:.session:old{i}", "node", "old", "incarnation", i, "dead", 1)
            self.ask("ZADD", "glia:.dead", 1000 + i, f"old{i}")

    def forget_all(self):
        for key in self.ask("KEYS", "glia:.session:*"):
            self.ask("DEL", key)
        self.ask("DEL", "glia:.alive", "glia:.dead")


class Postgres:
    def __init__(self, box):
        self.database = box.env["GLIA_STORE"].rsplit("/", 1)[1]

    def ask(self, text):
        return Box.lender.of.server.sql(text, self.database)

    def count(self):
        return int(self.ask("SELECT count(*) FROM glia.session"))

    def fill(self, n):
        self.ask("INSERT INTO glia.session(id, node, incarnation, deadline, about, dead, ended)"
                 " SELECT 'old#' || i, 'old', i, 0, '', true, 1000 + i"
                 f" FROM generate_series(1, {n}) AS i")

    def forget_all(self):
        self.ask("DELETE FROM glia.session")


def store_of(box):
    return {"sqlite": Sqlite, "redis": Redis, "postgres": Postgres}[STORE](box)


def test_each_opening_forgets_some_that_have_long_been_dead(box):
    box.glia("run", "--", "true")
    store = store_of(box)
    few = store.count()
    store.fill(3 * KEPT // 2)
    full = store.count()
    assert full == few + 3 * KEPT // 2
    for _ in range(2):
        box.glia("run", "--", "true")
    if STORE == "sqlite":
        assert store.count() == KEPT
    else:  # of another node the last one may stay
        assert few <= store.count() <= few + 3


def test_incarnations_go_on(box):
    box.glia("run", "--", "true")
    store_of(box).fill(10)
    told = []
    for _ in range(2):
        wait = f"until [ -e {box.folder}/go ]; do sleep 0.02; done"
        run = box.start("run", "--", "sh", "-c", wait)
        box.wait_node()
        told.append(box.json("node", "status")["incarnation"])
        box.write("go", "")
        box.finish(run)
        os.unlink(f"{box.folder}/go")
    assert told[1] == told[0] + 1


def test_a_job_of_a_session_nobody_knows_goes_on(box):
    flow = box.write("f.yaml", f"""
steps:
  one: {{idempotent: true, sh: 'echo x > {box.folder}/one; sleep 0.5'}}
  two: {{needs: one, sh: 'echo x > {box.folder}/two'}}
""")
    run = box.start("run", flow, "--run-id", "left")
    wait_for("its step", lambda: box.has("one"))
    run.kill()
    run.wait()
    store_of(box).forget_all()
    box.glia("job", "resume", "left")
    assert box.json("job", "status", "left")["status"] == "completed"
