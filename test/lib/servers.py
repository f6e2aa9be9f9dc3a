"""Private servers for the fault tests: Redis, its replicas and sentinels, PostgreSQL. Each listens
on a loopback port of its own, keeps its data in a folder of its own, and dies with the test that
made
it. Nothing here touches a server that was there before."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from glianode import wait_for
from ports import give_back, take_port
from smalldisk import SmallDisk

SOAK = bool(os.environ.get("GLIA_SOAK"))

TRIES = 20
SHORT_S = 0.02


def bound(words, who=()):
    """Words of a command that ends when we do, whatever we die of."""
    return ["setpriv", *who, "--pdeathsig", "KILL", "--", *words]


class RedisError(Exception):
    """The server has answered with an error."""


class Redis:
    """A connection to a Redis server, for tests that look at it or disturb it."""

    def __init__(self, port, timeout=60):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.file = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def ask(self, *words):
        parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        text = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)
        self.sock.sendall(text)
        return self.answer()

    def answer(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        size = int(rest)
        if kind == b"$":
            return None if size < 0 else self.file.read(size + 2)[:-2]
        assert kind == b"*", line
        return None if size < 0 else [self.answer() for _ in range(size)]


class Server:
    """A server of a test: a process, a port, a folder. `start` waits until it answers."""

    name = "server"

    def __init__(self, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix=f"glia-{self.name}-")
        self.port = 0
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    def command(self):
        raise NotImplementedError

    def is_up(self):
        raise NotImplementedError

    def prepare(self):
        """Before each start: what must be in the folder."""

    def launch(self):
        self.prepare()
        with open(f"{self.folder}/{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(self.command(), cwd=self.folder, stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL)

    def start(self):
        """Start it: the first time on a port that is free, later on the same one."""
        fresh = self.port == 0
        for _ in range(TRIES):
            self.port = self.port or take_port()
            self.launch()
            if self.answers():
                return self
            if fresh:
                give_back(self.port)
                self.port = 0  # somebody was quicker
        raise AssertionError(f"{self.name} does not start:\n{self.log()[-2000:]}")

    def answers(self, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            if self.is_up():
                return True
            time.sleep(SHORT_S)
        self.kill()
        return False

    def log(self):
        with open(f"{self.folder}/{self.name}.log", encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        """kill -9"""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def wipe(self):
        """Forget all data; it is down."""
        raise NotImplementedError

    def restart(self, empty=False):
        self.kill()
        if empty:
            self.wipe()
        return self.start()

    def close(self):
        self.kill()
        give_back(self.port)
        shutil.rmtree(self.folder, ignore_errors=True)


class RedisServer(Server):
    """redis-server with an append-only file; `fsync`: always, everysec."""

    name = "redis"

    def __init__(self, fsync="everysec", replica_of=None, **settings):
        super().__init__()
        self.settings = {"appendonly": "yes", "appendfsync": fsync, "save": "", **settings}
        self.replica_of = replica_of

    @property
    def url(self):
        return self.url_at(self.port)

    def url_at(self, port):
        """By way of another port, as of a proxy."""
        return f"redis://127.0.0.1:{port}/0"

    def command(self):
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                 "--dir", self.folder, "--daemonize", "no", "--repl-diskless-sync-delay", "0",
                 "--enable-debug-command", "local"]
        for name, value in self.settings.items():
            words += ["--" + name.replace("_", "-"), str(value)]
        if self.replica_of is not None:
            words += ["--replicaof", "127.0.0.1", str(self.replica_of.port)]
        # A file that may not grow any more is an error to it, as a full disk is, not its death.
        return bound(["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh", *words])

    def connect(self):
        return Redis(self.port)

    def ask(self, *words):
        with self.connect() as redis:
            return redis.ask(*words)

    def is_up(self):
        try:
            with Redis(self.port, timeout=5) as redis:
                said = redis.ask("INFO").decode()
            # Another test's server may have taken the port meanwhile: is it ours?
            return f"process_id:{self.pid}\r\n" in said and "\r\nloading:1" not in said
        except (OSError, RedisError):
            return False

    def info(self, section):
        text = self.ask("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def records(self, jobs):
        """(job, owner, token) as they stand in its memory."""
        with self.connect() as redis:
            found = [(job, redis.ask("HMGET", f"glia:job:{job}", "o", "t")) for job in jobs]
        return [(job, o.decode(), int(t)) for job, (o, t) in found if t is not None]

    def cut_clients(self):
        """End the connections of all clients, from the server's side; it forgets its scripts."""
        self.ask("SCRIPT", "FLUSH")
        self.ask("CLIENT", "KILL", "TYPE", "pubsub")
        self.ask("CLIENT", "KILL", "TYPE", "normal")

    def is_empty(self):
        return self.ask("DBSIZE") == 0

    def flush(self):
        self.ask("FLUSHALL")

    def wipe(self):
        shutil.rmtree(f"{self.folder}/appendonlydir", ignore_errors=True)

    # ---- its disk ----

    def aof_path(self):
        """The file it appends to."""
        folder = f"{self.folder}/appendonlydir"
        names = [n for n in os.listdir(folder) if n.endswith(".incr.aof")]
        return os.path.join(folder, max(names, key=lambda n: int(n.split(".")[-3])))

    def aof_bytes(self):
        return os.path.getsize(self.aof_path())

    def written_bytes(self):
        """Of the file, once everything it has answered is in there: while its disk is slow it
        answers first."""
        wait_for("what it has to write",
                 lambda: self.info("persistence")["aof_buffer_length"] == "0")
        return self.aof_bytes()

    def fill_disk(self):
        """From now on no file of it can grow."""
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))

    def free_disk(self):
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def fill_memory(self):
        """From now on it has more than it may have."""
        self.ask("CONFIG", "SET", "maxmemory", "1")

    def free_memory(self):
        self.ask("CONFIG", "SET", "maxmemory", "0")

    def lose_power(self, at_bytes):
        """It dies, and what it appended behind `at_bytes` was never on the disk."""
        self.kill()
        os.truncate(self.aof_path(), at_bytes)
        self.start()


class Sentinel(Server):
    """redis-sentinel, watching one primary."""

    name = "sentinel"

    def __init__(self, primary, quorum=2, down_ms=1000):
        super().__init__()
        self.primary, self.quorum, self.down_ms = primary, quorum, down_ms

    def prepare(self):
        path = f"{self.folder}/sentinel.conf"
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"""port {self.port}
bind 127.0.0.1
dir {self.folder}
daemonize no
sentinel monitor main 127.0.0.1 {self.primary.port} {self.quorum}
sentinel down-after-milliseconds main {self.down_ms}
sentinel failover-timeout main 5000
sentinel parallel-syncs main 1
""")

    def start(self):
        if self.port == 0 and os.path.exists(f"{self.folder}/sentinel.conf"):
            os.remove(f"{self.folder}/sentinel.conf")
        return super().start()

    def command(self):
        return bound(["redis-sentinel", f"{self.folder}/sentinel.conf"])

    def ask(self, *words):
        with Redis(self.port) as redis:
            return redis.ask(*words)

    is_up = RedisServer.is_up

    def facts(self):
        flat = [x.decode() for x in self.ask("SENTINEL", "MASTER", "main")]
        return dict(zip(flat[::2], flat[1::2]))

    def master_port(self):
        return int(self.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")[1])


def sentinel_lines(log):
    """(time on the monotonic clock, event, its words) of each line that tells of one."""
    offset = time.monotonic() - time.time()
    for line in log.splitlines():
        parts = line.split()
        if len(parts) > 7 and parts[6][:1] in "+-":
            second, _, rest = " ".join(parts[1:5]).partition(".")
            when = time.mktime(time.strptime(second, "%d %b %Y %H:%M:%S"))
            yield when + float("0." + rest) + offset, parts[6], parts[7:]


class SentinelSet:
    """A primary, replicas, and sentinels that agree about them."""

    def __init__(self, fsync="everysec", replicas=2, sentinels=3, down_ms=1000, **settings):
        self.primary = RedisServer(fsync, **settings)
        self.replicas = [RedisServer(fsync, self.primary, **settings) for _ in range(replicas)]
        self.sentinels = [Sentinel(self.primary, down_ms=down_ms) for _ in range(sentinels)]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    @property
    def servers(self):
        return [self.primary, *self.replicas]

    @property
    def url(self):
        hosts = ",".join(f"127.0.0.1:{s.port}" for s in self.sentinels)
        return f"redis+sentinel://{hosts}/main"

    def start(self):
        try:
            for server in [*self.servers, *self.sentinels]:
                server.start()
            wait_for("the replicas", self.has_replicas)
            wait_for("the sentinels to agree", self.is_settled)
        except BaseException:
            self.close()
            raise
        return self

    def has_replicas(self):
        return int(self.current().info("replication")["connected_slaves"]) == len(self.replicas)

    def is_settled(self):
        """Everybody knows everybody, as failing over needs."""
        return all(f["num-slaves"] == str(len(self.replicas)) and f["flags"] == "master" and
                   f["num-other-sentinels"] == str(len(self.sentinels) - 1)
                   for f in (s.facts() for s in self.sentinels))

    def current(self):
        """The server that is the primary now, as the sentinels say."""
        port = self.sentinels[0].master_port()
        return next(s for s in self.servers if s.port == port)

    def wait_failover(self, old, seconds=60):
        """Until another server than `old` is the primary, and says so itself."""
        def done():
            new = self.current()
            return new if new is not old and new.info("replication")["role"] == "master" else None
        return wait_for("another primary", done, seconds)

    def time_failover(self, old, killed, seconds=60):
        """(seconds from `killed` until a sentinel counts the primary as down by agreement, and
        until they name another one that says so itself): their own time, whoever their clients
        are."""
        found = {}

        def done():
            try:
                if "down" not in found and any("o_down" in s.facts()["flags"] or
                                               s.master_port() != old.port for s in self.sentinels):
                    found["down"] = time.monotonic() - killed
                if self.current() is not old and \
                        self.current().info("replication")["role"] == "master":
                    found["named"] = time.monotonic() - killed
            except (OSError, RedisError):
                pass
            return "named" in found

        wait_for("another primary", done, seconds)
        return found["down"], found["named"]

    def failovers(self):
        """[(port, since when it was missed, until when it may have been written to)], one for each
        primary that the sentinels have given up, by their logs; on the monotonic clock."""
        said = sorted(line for s in self.sentinels for line in sentinel_lines(s.log()))
        found = []
        for when, event, words in said:
            port = int(words[2]) if event == "+switch-master" else 0
            if port == 0 or (found and found[-1][0] == port):
                continue  # the next sentinel has heard of it
            missed = [t for t, e, w in said if e == "+sdown" and t <= when and
                      w[0] == "master" and w[3] == str(port)]
            demoted = [t for t, e, w in said if e == "+convert-to-slave" and t >= when and
                       w[1].endswith(f":{port}")]
            lives = next(s for s in self.servers if s.port == port).process.poll() is None
            until = when if not lives else min(demoted, default=time.monotonic())
            found.append((port, max(missed, default=when), until))
        return found

    def story(self):
        """Who is what, and what the first sentinel has seen: to understand a failure."""
        parts = []
        for server in self.servers:
            try:
                parts.append(f"{server.port}: {server.info('replication')}")
            except (OSError, RedisError) as error:
                parts.append(f"{server.port}: {error!r}")
        lines = [x for x in self.sentinels[0].log().splitlines() if " +" in x or " -" in x]
        return "\n".join([*parts, *lines[-40:]])

    def close(self):
        for server in [*self.sentinels, *self.replicas, self.primary]:
            server.close()


def postgres_program(name):
    """Debian keeps them out of the path."""
    found = shutil.which(name)
    root = "/usr/lib/postgresql"
    versions = sorted(os.listdir(root), key=float) if os.path.isdir(root) else []
    for version in reversed(versions):
        path = f"{root}/{version}/bin/{name}"
        if os.access(path, os.X_OK):
            return path
    assert found, f"{name} is not installed"
    return found


class PostgresServer(Server):
    """postgres with a database `glia`; root lends it to an ordinary user, as it demands. With
    `disk_mib` the database has a disk of its own, as large as that; its log has another one, since
    a server that cannot write its log dies."""

    name = "postgres"

    def __init__(self, disk_mib=0, **settings):
        super().__init__()
        self.disk_mib, self.disk = disk_mib, None
        self.settings = {"shared_buffers": "32MB", "max_connections": "60", **settings}
        self.user = "nobody" if os.geteuid() == 0 else None
        self.group = "nogroup" if self.user else None
        self.data = f"{self.folder}/data"

    @property
    def url(self):
        return self.url_at(self.port)

    def url_at(self, port):
        return f"postgres://glia@127.0.0.1:{port}/glia"

    def words(self, *words):
        who = ["--reuid", self.user, "--regid", self.group, "--clear-groups"] if self.user else []
        return bound(words, who)

    def prepare(self):
        if os.path.exists(self.data):
            return
        if self.user:
            shutil.chown(self.folder, self.user, self.group)
        done = subprocess.run(self.words(postgres_program("initdb"), "-D", self.data, "-U", "glia",
                                         "--auth=trust", "--no-sync", "-E", "UTF8",
                                         "--locale=C"),
                              cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def command(self):
        words = [postgres_program("postgres"), "-D", self.data, "-p", str(self.port),
                 "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        for name, value in self.settings.items():
            words += ["-c", f"{name}={value}"]
        return self.words(*words)

    def sql(self, text, database="glia", connect_s=30):
        done = subprocess.run(["psql", "-XAtq", "-h", "127.0.0.1", "-p", str(self.port), "-U",
                               "glia", "-d", database, "-v", "ON_ERROR_STOP=1", "-f", "-"],
                              input=text, capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, "PGCONNECT_TIMEOUT": str(connect_s)})
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def records(self, _):
        """(job, owner, token) of all jobs."""
        rows = self.sql("SELECT convert_from(id, 'UTF8'), owner, token FROM glia_default.record"
                        " WHERE kind = 'job'").splitlines()
        return [(job, owner, int(token)) for job, owner, token in (r.split("|") for r in rows)]

    def cut_clients(self):
        """End the connections of all clients, from the server's side."""
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                 " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", "postgres")

    def is_empty(self):
        return self.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'glia%'") == "0"

    def is_up(self):
        try:
            return self.sql("SHOW data_directory", "postgres", 2) == self.data
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    def start(self):
        super().start()
        if not self.sql("SELECT 1 FROM pg_database WHERE datname = 'glia'", "postgres"):
            self.sql(f"CREATE DATABASE glia {self.place()}", "postgres")
        return self

    def place(self):
        """Where its database is to be."""
        if not self.disk_mib:
            return ""
        self.disk = SmallDisk(self.folder, self.disk_mib, self.user, self.group)
        self.sql(f"CREATE TABLESPACE small LOCATION '{self.disk.path}'", "postgres")
        return "TABLESPACE small"

    def fill_disk(self):
        self.disk.fill()

    def free_disk(self):
        self.disk.free()

    def close(self):
        self.kill()
        if self.disk is not None:
            self.disk.close()
        super().close()

    def pids(self):
        """The server and all processes it has made."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as file:
            return [self.pid, *map(int, file.read().split())]

    def signal_all(self, number):
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self):
        """All of it at once: the others would end in good order when they miss the first."""
        if self.process is not None and self.process.poll() is None:
            pids = self.pids()
            self.signal_all(signal.SIGKILL)
            self.process.wait()
            wait_for("the end of postgres", lambda: not any(is_alive(p) for p in pids[1:]))
        lock = f"{self.data}/postmaster.pid"
        if os.path.exists(lock):
            os.remove(lock)

    def pause(self):
        self.signal_all(signal.SIGSTOP)

    def resume(self):
        self.signal_all(signal.SIGCONT)

    def flush(self):
        self.sql("DROP SCHEMA glia CASCADE; DROP SCHEMA glia_default CASCADE")

    def wipe(self):
        shutil.rmtree(self.data, ignore_errors=True)


def is_alive(pid):
    """Not gone, and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def stores(*names, soak=()):
    """Names of stores to test with: these, and if there is time those of `soak`."""
    return [*names, *(soak if SOAK else ())]


def make_server(name):
    """redis, redis-always or postgres."""
    if name == "postgres":
        return PostgresServer()
    return RedisServer("always" if name == "redis-always" else "everysec")
