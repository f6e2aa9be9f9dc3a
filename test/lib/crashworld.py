"""A data folder, several real `glia` in it, and the hand that kills them."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

from crashflow import random_flow
from crashoracle import TERMINAL_JOB, Oracle, read_ledger
from glianode import ROOT, Box, keepers, wait_for
from stalls import Stalls

# A build with failpoints; the crash tests need one.
BUILD = os.environ.get("GLIA_BUILD_CLANG", os.path.join(ROOT, "build"))
GLIA = os.path.join(BUILD, "glia")
LEDGER_STEP = os.path.join(BUILD, "test", "ledger_step")
END_SECONDS_MAX = 60
STORY_LINES = 80


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return [b""]


def pids_about(path):
    """Every process with this path, or something below it, among its arguments."""
    path = path.encode()
    return [int(name) for name in os.listdir("/proc") if name.isdigit()
            and any(path in word for word in words_of(name)) and int(name) != os.getpid()]


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class World(Box):
    """One folder under attack. All it starts lies in `folder`, and is gone after close()."""

    def __init__(self, data=None, **env):
        super().__init__(tempfile.mkdtemp(prefix="glia-crash-"), data, **env)
        self.ledger_path = os.path.join(self.folder, "ledger")
        self.jobs_of = {}    # job -> Flow
        self.ended = {}      # jobs that were seen to have ended, and how
        self.losses = []     # when keepers died
        self.killed = set()  # steps
        self.log = []        # what was done, for a failed test
        self.stalls = Stalls(is_light=True)

    def __enter__(self):
        self.stalls.__enter__()
        return self

    def __exit__(self, *_):
        self.stalls.__exit__()
        self.close()
        shutil.rmtree(self.folder)

    def note(self, text):
        self.log.append(f"{time.time():.3f} {text}")

    # ---- processes ----

    def glia(self, *args, code=0, **options):
        done = subprocess.run([GLIA, *args], cwd=self.folder, env=self.env, text=True,
                              capture_output=True, timeout=END_SECONDS_MAX, check=False, **options)
        if code is not None:
            assert done.returncode == code, f"{args}: {done.returncode}\n{done.stderr}"
        return done

    def start(self, *args, **env):
        number = len(self.started)
        with open(f"{self.folder}/out{number}", "wb") as out, \
                open(f"{self.folder}/err{number}", "wb") as err:
            process = subprocess.Popen([GLIA, *args], cwd=self.folder, env={**self.env, **env},
                                       stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        process.out, process.err, process.args_given = f"out{number}", f"err{number}", args
        process.flow = None
        self.started.append(process)
        self.note(f"start {' '.join(args)} {env or ''} = {process.pid}")
        return process

    def submit(self, flow, **env):
        path = flow.write(self.folder, LEDGER_STEP, self.ledger_path)
        process = self.start("run", path, **env)
        process.flow = flow
        return process

    def living(self):
        return [p for p in self.started if p.poll() is None]

    def node_pid(self):
        """The process that is the node now, if any: the last one that said so, if it lives."""
        try:
            ready = re.findall(r"ready, pid (\d+)", self.read("data/node.log"))
        except OSError:
            return None
        pid = int(ready[-1]) if ready else None
        return pid if pid in [p.pid for p in self.living()] else None

    def keeper_pids(self):
        return list(keepers(self.data))

    def step_pids(self):
        """The processes of steps: of the ledger's tool, and the shells around it."""
        mine = [p.pid for p in self.living()] + self.keeper_pids()
        return [p for p in pids_about(self.ledger_path) if p not in mine]

    # ---- killing ----

    def kill_process(self, process):
        process.kill()
        process.wait()

    def kill_node(self):
        pid = self.node_pid()
        for process in self.living():
            if process.pid == pid:
                self.note(f"kill node {pid}")
                self.kill_process(process)
                return True
        return False

    def kill_client(self, rng):
        clients = [p for p in self.living() if p.pid != self.node_pid()]
        if clients:
            process = rng.choice(clients)
            self.note(f"kill client {process.pid}")
            self.kill_process(process)
        return bool(clients)

    def kill_keeper(self):
        pids = self.keeper_pids()
        for pid in pids:
            self.note(f"kill keeper {pid}")
            self.losses.append(time.time())
            send(pid, signal.SIGKILL)
        return bool(pids)

    def kill_step(self, rng):
        pids = [p for p in self.step_pids() if words_of(p)[0] == LEDGER_STEP.encode()]
        if pids:
            pid = rng.choice(pids)
            self.note(f"kill step {pid}")
            if send(pid, signal.SIGKILL):
                self.killed.add(pid)
        return bool(pids)

    def kill_machine(self):
        """Everything at once: first all stand still, so that nobody sees the others die."""
        nodes = self.living()
        others = self.keeper_pids() + self.step_pids()
        self.note(f"kill machine {[p.pid for p in nodes]} {others}")
        for pid in [p.pid for p in nodes] + others:
            send(pid, signal.SIGSTOP)
        others = sorted({*others, *self.keeper_pids(), *self.step_pids()})
        self.losses.append(time.time())
        for pid in others:
            send(pid, signal.SIGKILL)
        for process in nodes:
            self.kill_process(process)
        wait_for("the end of the keeper", self.no_keeper_is_left)
        return True

    def no_keeper_is_left(self):
        """One that was just being started could not be seen when all stood still."""
        left = self.keeper_pids()
        for pid in left:
            send(pid, signal.SIGKILL)
        return not left

    def pause_job(self, rng):
        """Not a death, but what a death may come between. Who is alive at the end resumes it."""
        left = sorted(self.accepted() - set(self.ended))
        if left:
            self.start("job", "pause", rng.choice(left))
        return bool(left)

    # ---- what clients were told ----

    def accepted(self):
        """Job ids that were printed."""
        for process in self.started:
            match = re.search(r"^glia: job (\w{26})$", self.read(process.err), re.M)
            if match and process.flow is not None:
                self.jobs_of.setdefault(match[1], process.flow)
        return set(self.jobs_of)

    def ask_node(self, path):
        """JSON from the node; None if there is none now."""
        try:
            answer = self.ask("GET", f"/v1/contexts/default/{path}")
        except OSError:
            return None
        except Exception as error:  # pylint: disable=broad-except
            if type(error).__module__ == "http.client":  # it died while it spoke
                return None
            raise
        return answer.json if answer.status == 200 else None

    def known_jobs(self):
        page = self.ask_node("jobs?limit=200")
        if page is None:
            return None
        by_name = {f.name: f for f in self.all_flows()}
        for job in page["jobs"]:
            if job["name"] in by_name:
                self.jobs_of.setdefault(job["job_id"], by_name[job["name"]])
            if job["status"] in TERMINAL_JOB:
                self.ended[job["job_id"]] = job["status"]
        return {j["job_id"]: j["status"] for j in page["jobs"]}

    def all_flows(self):
        return [p.flow for p in self.started if p.flow is not None]

    # ---- the end ----

    def decide(self, rng):
        """Be the person that blocked steps and paused jobs wait for."""
        requests = (self.ask_node("human") or {"requests": []})["requests"]
        for job, status in (self.known_jobs() or {}).items():
            if status == "paused" and job not in [r["job_id"] for r in requests]:
                self.start("job", "resume", job)
        for request in requests:
            decision = rng.choice(("rerun", "rerun", "done", "failed"))
            done = self.glia("human", "respond", request["job_id"], request["step_id"],
                             "--decision", decision, code=None)
            assert "usage:" not in done.stderr, done.stderr
            self.note(f"decide {request['job_id']} {request['step_id']} {decision}: "
                      f"{done.returncode} {done.stderr.strip()}")

    def keep_one_alive(self, rng, **env):
        """Someone must be the node: if nobody is left, a person goes on with a job."""
        left = sorted(self.accepted() - set(self.ended))
        if left and not self.living():
            self.start("job", "resume", rng.choice(left), **env)

    def start_host(self, **env):
        """A command that is the node, or becomes it, until it is told to end. On a shared store
        `run` takes no work but its own."""
        if self.lent is not None:
            return self.start("serve", **env)
        return self.start("run", "--", "sh", "-c",
                          f"until [ -e {self.folder}/over ]; do sleep 0.05; done", **env)

    def finish(self, rng, seconds=END_SECONDS_MAX):
        """No more crashes: everything must end."""
        until = time.monotonic() + seconds
        serving = [p for p in self.living() if p.args_given[0] == "serve"]
        host = serving[0] if serving else self.start_host()
        while True:
            jobs = self.known_jobs()
            if jobs is not None:
                left = [j for j in self.jobs_of if j not in self.ended]
                if not left and not any(p.flow for p in self.living()):
                    break
                self.decide(rng)
            assert time.monotonic() < until, f"these have not ended: {jobs}"
            assert host.poll() is None, f"the host ended: {self.read(host.err)}"
            time.sleep(0.03)
        wait_for("the end of all steps", lambda: not self.step_pids())
        self.write("over", "")
        if host.args_given[0] == "serve":
            host.terminate()
        assert host.wait(END_SECONDS_MAX) == 0, self.read(host.err)

    def judge(self, **options):
        """Ask about every job, and compare with the ledger."""
        accepted = self.accepted()
        documents, events = {}, {}
        listed = {j["job_id"] for j in self.json("job", "list")["jobs"]}
        for job in sorted(listed & set(self.jobs_of)):
            documents[job] = self.json("job", "status", job)
            out = self.glia("job", "events", job, "--json").stdout
            events[job] = [json.loads(line) for line in out.splitlines()]
        options = {"losses": self.losses, "killed": self.killed, "late_s": self.stalls.slack(),
                   **options}
        Oracle(self.jobs_of, accepted, read_ledger(self.ledger_path), **options).judge(
            documents, events)
        self.judge_clients(documents)
        self.judge_names(documents)
        return documents

    def judge_clients(self, documents):
        """What a command has said at its end is what is so."""
        for process in self.started:
            match = re.match(r"(\w{26})\t\S+\t(\w+)$", self.read(process.out), re.M)
            if match and match[1] in documents and match[2] in TERMINAL_JOB:
                assert documents[match[1]]["status"] == match[2], self.read(process.out)
        for job, status in self.ended.items():
            if job in documents:
                assert documents[job]["status"] == status, f"{job} was {status}"

    def judge_names(self, documents):
        """One submission is one job, however often its command had to ask."""
        submitted = [f.name for f in self.all_flows()]
        made = [d["name"] for d in documents.values()]
        for name in set(made):
            assert made.count(name) <= submitted.count(name), f"{name} was submitted twice"

    def close(self):
        super().close()
        for pid in pids_about(self.folder):
            send(pid, signal.SIGKILL)
        wait_for("nobody to be left", lambda: not pids_about(self.folder))

    def story(self):
        """Everything a person needs to understand a failure."""
        parts = ["what was done:", *self.log, "", "node.log:"]
        for name in ("data/node.log", "data/keeper/log", "ledger"):
            if self.has(name):
                parts += ["", name + ":", *self.read(name).splitlines()[-STORY_LINES:]]
        for process in self.started:
            parts += [f"{process.args_given} {process.poll()}: {self.read(process.err)[-600:]}"]
        return "\n".join(parts)


def attack(seed, weights, kills, power=None):
    """One round: random flows in a folder of their own, and `kills` deaths, each of a kind that is
    drawn by its weight: node, client, step, keeper, machine, and pause, which is none. Then
    everything must end right.

    power   every node stands on a disk that forgets what was not synced; "tear": and some of them
            lose their power in the middle of a sync"""
    rng = random.Random(seed)
    world = World(GLIA_POOLS=f"default={rng.choice((3, 5, 9))}",
                  **({"GLIA_TEST_VFS": "cut"} if power else {}))
    with world:
        try:
            run_attack(world, rng, weights, kills, power == "tear")
            return world.judge(losses=world.losses)
        except Exception as error:
            raise AssertionError(f"GLIA_CRASH_SEED={seed}: {error}\n{world.story()}") from error


def run_attack(world, rng, weights, kills, tears):
    flows = [random_flow(rng, f"flow{i}") for i in range(rng.randint(2, 4))]
    big = 0
    while kills > 0 or flows:
        time.sleep(rng.choice((0.005, 0.03, 0.1, 0.2, 0.4)))
        env = {}
        if tears and rng.random() < 0.5:
            env = {"GLIA_TEST_VFS": f"cut:tear={rng.randint(1, 40)}:{rng.randint(1, 1 << 32)}"}
        if flows and (rng.random() < 0.6 or not world.living()):
            world.submit(flows.pop(), **env)
            continue
        world.known_jobs()
        world.keep_one_alive(rng, **env)
        if kills > 0:
            kind = rng.choices(list(weights), weights.values())[0]
            # Four losses in ten minutes are one too many for a step.
            if kind in ("keeper", "machine") and big == 3:
                kind = "node"
            if kill(world, rng, kind):
                big += kind in ("keeper", "machine")
                kills -= 1
            elif not world.accepted() - set(world.ended) and not flows:
                kills -= 1  # too late: all is done
    world.finish(rng)


def kill(world, rng, kind):
    if kind == "node":
        return world.kill_node()
    if kind == "client":
        return world.kill_client(rng)
    if kind == "step":
        return world.kill_step(rng)
    if kind == "pause":
        return world.pause_job(rng)
    return world.kill_keeper() if kind == "keeper" else world.kill_machine()
