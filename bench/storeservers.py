"""The servers of bench/stores: counters of their work, and their maximum throughput.

The ceiling is the throughput of the server's own benchmark with the same work: the commands (or
rows) and bytes of one of our commits in the previous run, without guards, and without waiting for
the outcome of a commit."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "lib"))

from glianode import wait_for  # noqa: E402
from servers import PostgresServer, Redis, RedisServer, SentinelSet  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 120


def cpu_s(pid, with_children=False):
    """CPU time of a process, and of its children that have ended and been waited for."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, fields[11:15 if with_children else 13])) / TICKS


def written_bytes(pid):
    """What a process has written to its disk."""
    with open(f"/proc/{pid}/io", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("write_bytes")).split()[1])


def output_of(words, **env):
    done = subprocess.run(words, capture_output=True, text=True, check=False,
                          env={**os.environ, **env})
    if done.returncode != 0:
        raise SystemExit(f"{words[0]} failed: {done.stderr or done.stdout}")
    return done.stdout


# ---- Redis ----

class RedisStore:
    """One server with an append-only file. Rewrites of the file, in a separate process, are not
    counted: their frequency depends on the file's earlier size."""

    commands = ("hincrby", "hmget", "hget", "exists", "hset", "zadd", "zrem", "xadd")

    def __init__(self, fsync="everysec"):
        self.owner = self.start(fsync)

    def start(self, fsync):
        return RedisServer(fsync).start()

    @property
    def server(self):
        return self.owner

    @property
    def url(self):
        return self.owner.url

    def close(self):
        self.owner.close()

    def flush(self):
        """Flushing a large database takes time, and so does a rewrite that has begun."""
        with Redis(self.server.port, timeout=PATIENCE_S) as redis:
            redis.ask("FLUSHALL", "ASYNC")
        wait_for("the end of a rewrite", lambda: self.server.info("persistence")
                 ["aof_rewrite_in_progress"] == "0", PATIENCE_S)

    def counters(self):
        stats = self.server.info("commandstats")
        calls = {name: int(stats.get(f"cmdstat_{name}", "calls=0").split(",")[0][6:])
                 for name in ("evalsha", *self.commands)}
        return {"cpu_s": cpu_s(self.server.pid), "disk_bytes": written_bytes(self.server.pid),
                "requests": calls["evalsha"], **calls}

    def script(self, per_commit):
        """The commands without guards: K is a new key, the other arguments are values."""
        lines = {
            "hincrby": "c('HINCRBY', 'b:s', 'x', 1)",
            "hmget": "c('HMGET', 'b:1:' .. K, 'o', 't', 'r')",
            "hget": "c('HGET', 'b:1:' .. K, 'r')",
            "exists": "c('EXISTS', 'b:2:' .. K)",
            "hset": "c('HSET', 'b:%d:' .. K, 'r', '1', 'o', 'bench#1', 't', '1', 'l', '1', "
                    "'c', '1', 'v', ARGV[%d])",
            "zadd": "c('ZADD', 'b:z%d', '0', K)",
            "zrem": "c('ZREM', 'b:z%d', K)",
            "xadd": "c('XADD', 'b:l%d:' .. K, '1-1', 'e', ARGV[%d])",
        }
        text, value = ["local c, K = redis.call, ARGV[1]"], 1
        for name in self.commands:
            for i in range(1, per_commit[name] + 1):
                line = lines[name]
                if line.count("%d") == 2:
                    value += 1
                    line = line % (i, value)
                elif "%d" in line:
                    line = line % i
                text.append(line)
        return "\n".join(text) + "\nreturn 0", value - 1

    def ceiling(self, delta, out_bytes, n):
        """Commits per second, the server's CPU time for each, and a description of the work."""
        per_commit = {c: round(delta[c] / delta["requests"]) for c in self.commands}
        text, values = self.script(per_commit)
        self.flush()
        sha = self.server.ask("SCRIPT", "LOAD", text).decode()
        size = max(1, int(out_bytes - 120) // max(values, 1) - 10)
        before = cpu_s(self.server.pid)
        said = output_of(["redis-benchmark", "-h", "127.0.0.1", "-p", str(self.server.port),
                          "-n", str(n), "-c", "2", "-P", "64", "-r", "1000000000", "--csv",
                          "EVALSHA", sha, "0", "__rand_int____rand_int__", *["v" * size] * values])
        rate = float(said.splitlines()[-1].rsplit('","', 7)[-7].strip('"'))
        words = ", ".join(f"{k} {c.upper()}" for c, k in per_commit.items() if k)
        return {"rate": rate, "cpu_us": (cpu_s(self.server.pid) - before) / n * 1e6,
                "what": f"EVALSHA of {words}, {values} values of {size} bytes"}


class SentinelStore(RedisStore):
    """A primary, two replicas and three sentinels. The counters are the primary's."""

    def start(self, fsync):
        return SentinelSet(fsync).start()

    @property
    def server(self):
        return self.owner.current()


# ---- PostgreSQL ----

class PostgresStore:
    """One server that syncs every commit."""

    tables = ("record", "entry", "log")
    lanes = 3
    # Plans made while the tables are empty would scan whole tables from then on.
    by_key = "-c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"

    def __init__(self):
        self.server = PostgresServer(shared_buffers="128MB", track_functions="pl").start()
        self.url = self.server.url

    def close(self):
        self.server.close()

    def flush(self):
        self.server.sql("SET client_min_messages = warning; DROP SCHEMA IF EXISTS glia CASCADE;"
                        " DROP SCHEMA IF EXISTS glia_default CASCADE")

    def cpu_s(self):
        """The first process includes children it has waited for, so it is read last."""
        return sum(cpu_s(pid, True) for pid in reversed(self.server.pids()))

    def has_no_clients(self):
        return self.server.sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type ="
                               " 'client backend' AND pid <> pg_backend_pid()") == "0"

    def counters(self):
        """A server process reports its counters when it ends."""
        wait_for("the end of the server's processes", self.has_no_clients)
        rows = self.server.sql(
            "SELECT 'requests', coalesce(sum(calls), 0) FROM pg_stat_user_functions"
            " WHERE funcname = 'commit_1' UNION ALL"
            " SELECT 'groups', xact_commit FROM pg_stat_database WHERE datname = 'glia' UNION ALL"
            " SELECT 'disk_bytes', wal_bytes FROM pg_stat_wal UNION ALL"
            " SELECT relname || '_' || what, n FROM pg_stat_user_tables, LATERAL"
            " (VALUES ('ins', n_tup_ins), ('upd', n_tup_upd), ('del', n_tup_del)) AS v(what, n)"
            " WHERE schemaname = 'glia_default'")
        found = dict(line.split("|") for line in rows.splitlines())
        return {"cpu_s": self.cpu_s(), **{name: float(value) for name, value in found.items()}}

    def ceiling(self, delta, out_bytes, n):
        """`delta` is the work of `commits` of our commits; a group is a transaction."""
        group = max(1, round(delta["commits"] / max(delta["groups"], 1)))
        rows = {f"{t}_{w}": round(delta.get(f"{t}_{w}", 0) / delta["commits"] * group)
                for t in self.tables for w in ("ins", "upd", "del")}
        written = rows["record_ins"] + rows["record_upd"] + rows["log_ins"]
        size = max(1, int(out_bytes * group / max(written, 1)) - 60)
        self.make_tables()
        script = f"{self.server.folder}/ceiling.sql"
        with open(script, "w", encoding="ascii") as file:
            file.write(self.script(rows, size))
        before, turns = self.cpu_s(), max(10, n // group // self.lanes)
        said = output_of(["pgbench", "-h", "127.0.0.1", "-p", str(self.server.port), "-U", "glia",
                          "-n", "-M", "prepared", "-c", str(self.lanes), "-t", str(turns),
                          "-D", "n=0", "-f", script, "glia"], PGOPTIONS=self.by_key)
        rate = next(float(line.split()[2]) for line in said.splitlines()
                    if line.startswith("tps"))
        cpu = self.cpu_s() - before
        words = ", ".join(f"{k} {name}" for name, k in rows.items() if k)
        return {"rate": rate * group, "cpu_us": cpu / (turns * self.lanes * group) * 1e6,
                "what": f"a transaction for {group} commits: {words}, values of {size} bytes"}

    def make_tables(self):
        self.server.sql("""
DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench;
CREATE TABLE bench.record(kind text COLLATE "C", id bytea, rev bigint, owner text, token bigint,
    live boolean, sum bigint, value bytea, PRIMARY KEY(kind, id)) WITH (fillfactor = 80);
CREATE TABLE bench.entry(name text COLLATE "C", score bigint, id bytea,
    PRIMARY KEY(name, score, id));
CREATE TABLE bench.log(kind text COLLATE "C", id bytea, seq bigint, value bytea,
    PRIMARY KEY(kind, id, seq));""")

    @staticmethod
    def script(rows, size):
        """Each round of a client updates and deletes what its previous round inserted."""
        def number(turn, i="i"):
            return f":client_id * 100000000000 + ({turn}) * 100000 + {i}"

        def key(turn, i="i"):
            return f"decode(lpad(to_hex({number(turn, i)}), 52, '0'), 'hex')"

        def some(n):
            return f"generate_series(1, {n}) AS i"

        def last(what, n):
            return f"BETWEEN {what(':n - 1', 1)} AND {what(':n - 1', n)}"

        value = f"convert_to(repeat('v', {size}), 'UTF8')"
        lines = [r"\set n :n + 1", "BEGIN;"]
        if rows["record_upd"]:
            lines.append(f"UPDATE bench.record SET rev = rev + 1, value = {value}"
                         f" WHERE kind = 'job' AND id {last(key, rows['record_upd'])};")
        if rows["record_ins"]:
            lines.append(f"INSERT INTO bench.record SELECT 'job', {key(':n')}, 1, 'bench#1', 1,"
                         f" true, 1, {value} FROM {some(rows['record_ins'])};")
        if rows["entry_del"]:
            lines.append("DELETE FROM bench.entry WHERE name = 'wake'"
                         f" AND score {last(number, rows['entry_del'])};")
        if rows["entry_ins"]:
            lines.append(f"INSERT INTO bench.entry SELECT 'wake', {number(':n')}, {key(':n')}"
                         f" FROM {some(rows['entry_ins'])};")
        if rows["log_ins"]:
            lines.append(f"INSERT INTO bench.log SELECT 'events', {key(':n')}, 1, {value}"
                         f" FROM {some(rows['log_ins'])};")
        return "\n".join([*lines, "COMMIT;", ""])


STORES = {
    "redis": RedisStore,
    "redis-always": lambda: RedisStore("always"),
    "sentinel": SentinelStore,
    "postgres": PostgresStore,
}
