"""Several real nodes on one store, clients that talk to them, and a history of all of it."""

import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from glianode import BUILD, Answer, Box, Connection, keepers, wait_for
from history import TERMINAL, History
from servers import RedisError
from stalls import Stalls

FAULT_STEP = os.path.join(BUILD, "test", "fault_step")
JOBS = "/v1/contexts/default/jobs"
TTL_S = 3.0
GRACE_S = 3.0
FOREVER = 1e12
CHAIN = 4  # what is done for somebody who is dead: so many things, one after the other


class Unanswered(Exception):
    """Nobody knows what became of a request: the node did not answer, or could not say."""


class Refused(Exception):
    """The node has answered, and not with success."""

    def __init__(self, answer):
        super().__init__(f"{answer.status} {answer.body[:500].decode(errors='replace')}")
        self.status = answer.status


class Node(Box):
    """One `glia serve` with a data folder of its own."""

    def __init__(self, cluster, name, url, *args):
        super().__init__(os.path.join(cluster.folder, name))
        os.makedirs(self.folder)
        self.cluster, self.name, self.url, self.args = cluster, name, url, args
        self.process = None
        self.is_paused = False
        self.down = None  # the entry of the history, while it does not run
        self.env["GLIA_STORE"] = url

    # ---- its life ----

    def begin(self, *more):
        c = self.cluster
        self.process = super().start(
            "serve", "--session-ttl", f"{c.ttl_s * 1000:.0f}ms", "--orphan-grace",
            f"{c.grace_s * 1000:.0f}ms", "--node-name", self.name, *self.args, *more)
        if self.down is not None:
            self.down["until"] = time.monotonic()
            self.down = None
        return self

    def wait_ready(self, seconds=60):
        def ready():
            assert self.process.poll() is None, self.story()
            return self.is_ready()
        wait_for(f"{self.name} to be ready\n{self.story()}", ready, seconds)
        return self

    def is_ready(self):
        try:
            return self.call("GET", "/readyz", seconds=2).status == 200
        except Unanswered:
            return False

    def kill(self):
        """kill -9; its keeper lives."""
        when = time.monotonic()
        self.process.kill()
        self.process.wait()
        self.is_paused = False
        self.down = self.cluster.fault("down", self.name, when)
        return when

    def pause(self):
        when = time.monotonic()
        self.process.send_signal(signal.SIGSTOP)
        self.is_paused = True
        self.down = self.cluster.fault("down", self.name, when)
        return when

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_paused = False
        # It finds out what it has lost a little later.
        self.down["until"] = time.monotonic() + 1
        self.down = None

    def stop(self, seconds=30):
        self.down = self.cluster.fault("down", self.name, time.monotonic())
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(seconds)

    def restart(self):
        return self.begin().wait_ready()

    def is_up(self):
        return self.process is not None and self.process.poll() is None and not self.is_paused

    def keeper_pids(self):
        return list(keepers(self.data))

    # ---- its clients ----

    def call(self, method, path, body=None, seconds=10.0):
        connection = Connection(self.socket, timeout=seconds)
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body))
            return Answer(connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{self.name}: {error!r}") from error
        finally:
            connection.close()

    def get(self, path, seconds=10.0):
        """JSON, or Refused, or Unanswered."""
        answer = self.call("GET", path, seconds=seconds)
        if answer.status != 200:
            raise Refused(answer)
        return answer.json

    def document(self, job, seconds=10.0):
        return self.get(f"{JOBS}/{job}", seconds)

    def events(self, job):
        found, seq = [], 1
        while True:
            page = self.get(f"{JOBS}/{job}/events?from={seq}&limit=200")["events"]
            found += page
            if len(page) < 200:
                return found
            seq = page[-1]["seq"] + 1

    def story(self):
        parts = [f"== {self.name} {self.process.poll() if self.process else None}"]
        err = self.process.err if self.process else None
        for path in (err, "data/node.log", "data/keeper/log"):
            if path and self.has(path):
                parts += [path + ":", *self.read(path).splitlines()[-30:]]
        return "\n".join(parts)

    def close(self):
        if self.is_paused:
            self.process.send_signal(signal.SIGCONT)
        super().close()
        wait_for("the end of the keeper", lambda: not self.keeper_pids())


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
        self.wait_more(1)
        return self

    def __exit__(self, kind, *_):
        self.is_over.set()
        self.thread.join(60)
        if kind is None:
            assert self.error is None, self.error
            assert not self.thread.is_alive(), "a submission never ended"

    def wait_more(self, count, seconds=60):
        before = self.count
        wait_for("more jobs", lambda: self.count >= before + count or self.error, seconds)
        assert self.error is None, self.error

    def run(self):
        while not self.is_over.wait(self.pause_s):
            try:
                self.cluster.submit_surely(self.cluster.living(), f"load-{self.count}", **self.job)
                self.count += 1
            except Exception as error:  # pylint: disable=broad-except
                self.error = error
                return


def flow_of(ledger, steps, name="fault"):
    """steps: id -> (mark, milliseconds, words of fault_step, fields of the step)."""
    made = {}
    for step, (mark, ms, words, fields) in steps.items():
        made[step] = {"run": [FAULT_STEP, ledger, str(ms), *words], **fields}
        if mark:
            made[step][mark] = True
    return {"name": name, "steps": made}


class Cluster:
    """Nodes n1, n2, ... on the store at `url` (a text, or one for each node)."""

    def __init__(self, url, count=3, ttl_s=TTL_S, grace_s=GRACE_S, args=(), server=None):
        self.folder = tempfile.mkdtemp(prefix="glia-cluster-")
        self.ledger = os.path.join(self.folder, "ledger")
        self.ttl_s, self.grace_s = ttl_s, grace_s
        self.server = server  # whose records are looked at now and then
        self.history = History()
        urls = [url] * count if isinstance(url, str) else url
        self.nodes = [Node(self, f"n{i + 1}", u, *args) for i, u in enumerate(urls)]
        self.jobs = {}  # acknowledged -> steps
        self.ended = {}
        self.lock = threading.Lock()
        self.rng = random.Random(1)
        self.is_over = threading.Event()
        self.watcher = None
        self.stalls = Stalls()

    def __enter__(self):
        self.stalls.__enter__()
        try:
            for node in self.nodes:
                node.begin()
            for node in self.nodes:
                node.wait_ready()
            self.watcher = threading.Thread(target=self.watch, daemon=True)
            self.watcher.start()
            return self
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind, error, trace):
        try:
            if error is not None and not isinstance(error, KeyboardInterrupt):
                error.add_note(self.story())
        except AttributeError:
            pass  # an older Python
        finally:
            self.close()

    def close(self):
        self.is_over.set()
        self.stalls.__exit__()
        if self.watcher is not None:
            self.watcher.join(20)
        for node in self.nodes:
            node.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def story(self):
        return "\n".join(node.story() for node in self.nodes)

    def node(self, name):
        return next(n for n in self.nodes if n.name == name)

    def living(self):
        return [n for n in self.nodes if n.is_up()]

    def fault(self, kind, node="", when=None, until=FOREVER):
        when = time.monotonic() if when is None else when
        with self.lock:
            return self.history.add(when, "fault", kind=kind, node=node, until=until)

    def note(self, what, **fields):
        with self.lock:
            self.history.add(time.monotonic(), what, **fields)

    def slack(self, since):
        """What the bound of a takeover must allow on this machine: next to nothing if it is
        idle."""
        return CHAIN * self.stalls.slack(since)

    def note_stalls(self):
        """A machine that stood still for a good part of a session's life may have ended it."""
        for when, late in self.stalls.seen:
            if late > self.ttl_s / 3:
                print(f"this machine stood still for {late:.2f} s")
                self.fault("away", "", when - late, when + self.ttl_s)

    # ---- what clients do ----

    def submit(self, node, steps=None, mark="", ms=100, words=(), fields=None, run_id=None,
               seconds=10.0):
        """Submit a job of ledger steps, by default one, `work`; its id once it is acknowledged."""
        steps = steps or {"work": (mark, ms, words, fields or {})}
        body = {"flow": flow_of(self.ledger, steps), **({"run_id": run_id} if run_id else {})}
        answer = node.call("POST", JOBS, body, seconds)
        if answer.status not in (200, 201):
            raise Refused(answer)
        job = answer.json["job_id"]
        self.jobs[job] = steps
        self.note("submitted", job=job, node=node.name, run_id=run_id,
                  marks={s: spec[0] for s, spec in steps.items()})
        return job

    def submit_surely(self, nodes, run_id, seconds=60, **more):
        """As a careful client does: with a run id, again and again until a node says yes."""
        until = time.monotonic() + seconds
        while True:
            try:
                return self.submit(self.rng.choice(nodes), run_id=run_id, **more)
            except (Unanswered, Refused) as error:
                if time.monotonic() > until or getattr(error, "status", 503) not in (500, 503, 504):
                    raise
                time.sleep(0.05)

    def command(self, node, job, verb, body=None, step=None, seconds=15.0):
        path = f"{JOBS}/{job}/{verb}" if step is None else f"{JOBS}/{job}/steps/{step}/{verb}"
        if verb == "signal":
            path, step = f"{JOBS}/{job}/signals/{step}", None
        answer = node.call("POST", path, body or {}, seconds)
        if answer.status not in (200, 202):
            raise Refused(answer)
        self.note("command", job=job, verb=verb, **({"step": step} if step else {}),
                  **({"decision": body["decision"]} if body and "decision" in body else {}))

    def status(self, job, node=None):
        asked = time.monotonic()
        document = (node or self.living()[0]).document(job)
        self.note("seen", job=job, status=document["status"], asked=asked)
        return document["status"]

    def step(self, job, step="work", node=None):
        return (node or self.living()[0]).document(job)["workflow_state"]["steps"].get(step, {})

    # ---- what steps did ----

    def node_of(self, path):
        return os.path.relpath(path, self.folder).split(os.sep)[0]

    def lines(self, what=None, **match):
        """Of the ledger, as entries of a history."""
        story = History()
        story.read_ledger(self.ledger, self.node_of)
        return [e for e in story.entries if what in (None, e["what"]) and
                all(e[k] == v for k, v in match.items())]

    def starts(self, job, step="work"):
        return self.lines("start", job=job, step=step)

    def wait_start(self, job, attempt=1, step="work", seconds=60):
        return wait_for(f"attempt {attempt} of {step}", lambda: [
            e for e in self.starts(job, step) if e["attempt"] == attempt], seconds)[0]

    # ---- looking, all the time ----

    def watch(self):
        while not self.is_over.wait(0.25):
            self.look()

    def look(self):
        """One status of some job, and what the store has about owners."""
        try:
            nodes, jobs = self.living(), list(self.jobs)
            if nodes and jobs:
                self.status(self.rng.choice(jobs), self.rng.choice(nodes))
        except (Unanswered, Refused):
            pass
        if self.server is not None:
            try:
                when = time.monotonic()
                found = self.server.records(list(self.jobs)[-200:])
            except (OSError, RuntimeError, RedisError, subprocess.TimeoutExpired):
                return  # it is away, or just comes back
            with self.lock:
                for job, owner, token in found:
                    self.history.add(when, "record", job=job, owner=owner, token=token)

    # ---- the end ----

    def wait_ends(self, seconds=60, jobs=None):
        """Every job has ended; the living nodes say so."""
        left = set(jobs if jobs is not None else self.jobs) - set(self.ended)

        def done():
            for job in sorted(left):
                try:
                    status = self.status(job)
                except Unanswered:
                    return False
                except Refused as error:
                    if error.status == 503:
                        return False
                    raise
                if status not in TERMINAL:
                    return False
                self.ended[job] = status
                left.discard(job)
            return True

        try:
            wait_for("all jobs to end", done, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; {len(left)} have not: {self.tell(sorted(left)[:5])}"
                                 ) from None

    def is_over_or_absent(self, job):
        try:
            return self.status(job) in TERMINAL
        except Unanswered:
            return False
        except Refused as error:
            return error.status == 404

    def is_absent(self, job):
        try:
            self.status(job)
            return False
        except Refused as error:
            if error.status != 404:
                raise
            return True

    def tell(self, jobs):
        texts = []
        for job in jobs:
            try:
                texts.append(json.dumps(self.living()[0].document(job)))
            except (Unanswered, Refused) as error:
                texts.append(f"{job}: {error}")
        return "\n" + "\n".join(texts)

    def untold(self):
        """Jobs that have run and that no client has heard of: its request was not answered."""
        return {e["job"] for e in self.lines("start")} - set(self.jobs)

    def judge(self):
        """What the cluster says at the end, and whether the whole history can be true."""
        node, untold = self.living()[0], self.untold()
        assert self.watcher.is_alive(), "nobody has looked at the records any more"
        try:
            wait_for("the end of what no client was told of",
                     lambda: all(self.is_over_or_absent(job) for job in untold))
        except AssertionError as error:
            left = [job for job in sorted(untold) if not self.is_over_or_absent(job)]
            raise AssertionError(f"{error}: {self.tell(left)}") from None
        self.history.read_ledger(self.ledger, self.node_of)
        self.note_stalls()
        for job in sorted({*self.jobs, *untold}):
            try:
                document = node.document(job)
                events = node.events(job)
            except Refused as error:
                assert error.status == 404, error
                self.note("absent", job=job)
                continue
            steps = {s: d["status"] for s, d in document["workflow_state"]["steps"].items()}
            keep = ("seq", "type", "step_id", "attempt", "counted", "decision", "reason")
            self.note("final", job=job, status=document["status"], steps=steps,
                      events=[{k: e[k] for k in keep if k in e} for e in events])
        kept = os.environ.get("GLIA_FAULTS_KEEP")
        if kept:
            self.history.save(os.path.join(kept, f"history-{os.getpid()}-{time.time():.0f}.json"))
        self.history.assert_possible()
