"""Bundles in tests: writing small ones, running them, and looking at what became of them."""

import functools
import json
import os
import shutil
import subprocess
import uuid

import pytest

from glianode import GLIA, ROOT, wait_for
from teststore import STORE

EXAMPLES = os.path.join(ROOT, "examples", "bundles")
FORMS = os.path.join(ROOT, "test", "bundles", "forms")
ENDED = ("completed", "failed", "cancelled")
# Then something hangs. Servers have to share the machine with what they serve, and in a soak with
# everything else.
RUN_SECONDS_MAX = 120 if STORE == "sqlite" and not os.environ.get("GLIA_SOAK") else 240
MANY_EVENTS = 20000  # take their time, and few tests want them

# What workers of small bundles begin with: their input, and a way to leave something in the run's
# folder.
WORKER = """
import json, os, sys, time
def load(name):
    with open(os.environ[name]) as file:
        return json.load(file)
body = load("MN_INPUT_FILE")
context = load("MN_CONTEXT_FILE")
state = context["agent_state"]
folder = os.path.join(os.environ["MN_RUNS_ROOT"], os.environ["MN_RUN_ID"])
def note(name, value):
    with open(os.path.join(folder, name), "a") as file:
        file.write(json.dumps(value) + "\\n")
def say(**said):
    print(json.dumps(said))
def event(kind, **payload):
    say(events=[{"type": kind, "payload": payload}])
def emit(*messages):
    say(emit_messages=[{"type": kind, "body": body} for kind, body in messages])
def wait_file(name, seconds=60):
    until = time.monotonic() + seconds
    while not os.path.exists(os.path.join(folder, name)):
        if time.monotonic() > until:
            sys.exit(f"no {name}")
        time.sleep(0.01)
"""


def item(*ids):
    """The items of test/bundles/contract.txt that a test shows."""
    return pytest.mark.item(*ids)


class Bundle:
    """A small bundle in the submitted form."""

    def __init__(self, name="small", **more):
        self.manifest = {"manifest_version": "1.0", "graph_id": name, "job_name": name,
                         "entrypoints": [],
                         "initial_inputs": {}, "flow": {"nodes": [], "edges": [], "steps": [],
                                                        "graph": {"edges": []}}, **more}
        self.flow = self.manifest["flow"]
        self.files = {}

    def worker(self, name, code="say(x=1)", needs=(), *, step=True, rule=None, control=None,
               **config):
        """An executor that runs this Python, and a step of the same name."""
        self.files[f"payloads/{name}.py"] = WORKER + code + "\n"
        self.flow["nodes"].append({"node_id": name, "agent_type": "executor", "config": {
            "runner_module": "MirrorNeuron.Runner.HostLocal", "command": ["python3", f"{name}.py"],
            "upload_path": f"{name}.py", **config}})
        if step:
            self.step(name, needs, rule=rule, control=control)
        return self

    def step(self, name, needs=(), *, rule=None, control=None, **more):
        one = {"id": name, **more}
        if rule is not None:
            one["trigger_rule"] = rule
        if control is not None:
            one["control"] = control
        self.flow["steps"].append(one)
        for parent in needs:
            self.flow["graph"]["edges"].append({"id": f"{parent}__{name}", "from": parent,
                                                "to": name})
        return self

    def agent(self, name, kind, **config):
        self.flow["nodes"].append({"node_id": name, "agent_type": kind, "config": config})
        return self

    def sink(self, name="sink", **config):
        return self.agent(name, "aggregator", **{"terminal_sink": True, "complete_run": True,
                                                 "complete_on_message": True, **config})

    def ends(self, *names):
        """What these agents send as `done` goes to a sink; the job ends with the first."""
        self.sink()
        for name in names:
            self.edge(name, "sink", "done")
        return self

    def edge(self, source, target, kind="executor_result", **more):
        number = len(self.flow["edges"])
        self.flow["edges"].append({"edge_id": f"m{number}", "from_node": source, "to_node": target,
                                   "message_type": kind, **more})
        return self

    def chain(self, *names, kind="executor_result"):
        for source, target in zip(names, names[1:]):
            self.edge(source, target, kind)
        return self

    def seed(self, name, *bodies):
        self.manifest["entrypoints"].append(name)
        if bodies:
            self.manifest["initial_inputs"][name] = list(bodies)
        return self

    def write(self, folder):
        folder = str(folder)
        os.makedirs(os.path.join(folder, "payloads"), exist_ok=True)
        for name, text in {"manifest.json": json.dumps(self.manifest, indent=1),
                           **self.files}.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return folder


class Ran:
    """A job of a bundle, as its operator sees it."""

    def __init__(self, box, run_id, done=None):
        self.box, self.run_id, self.done = box, run_id, done
        self.status = box.json("job", "status", run_id)
        self.job_id = self.status["job_id"]
        self.folder = os.path.join(box.env["MN_RUNS_ROOT"], run_id)
        if self.status["last_seq"] < MANY_EVENTS:
            self.events  # pylint: disable=pointless-statement  # as they are now

    @functools.cached_property
    def events(self):
        """Read now if they are not very many, else when somebody wants them."""
        lines = self.box.glia("job", "events", self.run_id, "--json").stdout.splitlines()
        return [json.loads(line) for line in lines]

    def __repr__(self):
        rows = [f"job {self.job_id}: {self.status['status']}, {self.status.get('reason')}"]
        rows += [f"  {name}: {step['status']} {step.get('terminal_outcome', '')} "
                 f"{step.get('terminal_reason', '')} {step.get('last_error', '')}"
                 for name, step in self.steps.items()]
        if self.status["last_seq"] < MANY_EVENTS:
            rows += ["  " + json.dumps(event)[:300] for event in self.events]
        return "\n".join(rows)

    @property
    def steps(self):
        return self.status.get("workflow_state", {}).get("steps", {})

    @property
    def statuses(self):
        return {name: step["status"] for name, step in self.steps.items()}

    @property
    def result(self):
        return self.status.get("result")

    def of(self, kind, **fields):
        """Events of a type; fields are looked for in the event and in its payload."""
        return [e for e in self.events if e["type"] == kind
                and all(get(e, k) == v for k, v in fields.items())]

    def one(self, kind, **fields):
        found = self.of(kind, **fields)
        assert len(found) == 1, (kind, fields, found, self)
        return found[0]

    def has(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def file(self, name):
        return json.loads(self.read(name))

    def lines(self, name):
        return [json.loads(line) for line in self.read(name).splitlines()] if self.has(name) else []

    def order(self, *kinds):
        """The types, among these, in the order in which they happened."""
        return [e["type"] for e in self.events if e["type"] in kinds]


def get(event, field):
    """A field of an event: of itself, of its payload, or by another name of the same."""
    for place in (event, event.get("payload") or {}, event.get("data") or {}):
        if isinstance(place, dict) and field in place:
            return place[field]
    if field == "step_id":
        return event.get("step")
    return None


class Runner:
    """Runs bundles in a box, alone (the command is the node) or on a node that is there."""

    def __init__(self, box):
        self.box = box
        self.box.env["MN_RUNS_ROOT"] = os.path.join(box.folder, "runs")
        self.env = box.env

    def start(self, path, *args, run_id=None):
        run_id = run_id or f"r-{uuid.uuid4().hex[:12]}"
        process = self.box.start("run", str(path), "--run-id", run_id, *args)
        process.run_id = run_id
        return process

    def finish(self, process, code=0):
        returned = process.wait(RUN_SECONDS_MAX)
        if code is not None and returned != code:
            raise AssertionError(f"{returned}, not {code}: {self.box.read(process.err)}\n"
                                 f"{self.maybe(process.run_id)}")
        return Ran(self.box, process.run_id, self.box.read(process.err))

    def maybe(self, run_id):
        try:
            return repr(Ran(self.box, run_id))
        except (AssertionError, ValueError, KeyError) as error:
            return f"no job: {error}"

    def run(self, path, *args, code=0, run_id=None):
        """To its end; insists on the exit code."""
        return self.finish(self.start(path, *args, run_id=run_id), code)

    def folder_of(self, run_id):
        return os.path.join(self.env["MN_RUNS_ROOT"], run_id)

    def wait_file(self, run_id, name, seconds=60):
        """Until a worker has written a line into it."""
        path = os.path.join(self.folder_of(run_id), name)
        return wait_for(f"{name} of {run_id}", lambda: os.path.exists(path)
                        and os.path.getsize(path) > 0 and path, seconds)

    def touch(self, run_id, name):
        os.makedirs(self.folder_of(run_id), exist_ok=True)
        with open(os.path.join(self.folder_of(run_id), name), "w", encoding="ascii"):
            pass


def copy_of(folder, target):
    """A bundle that a test may spoil."""
    shutil.copytree(folder, target)
    return str(target)


def validate(box, path):
    """(is it good, its errors as [(path, message)])"""
    done = subprocess.run([GLIA, "validate", str(path), "--json"], cwd=box.folder, env=box.env,
                          text=True,
                          capture_output=True, timeout=RUN_SECONDS_MAX, check=False)
    assert done.returncode in (0, 2), (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    said = json.loads(done.stdout)
    assert said["valid"] == (done.returncode == 0), said
    return said["valid"], [(e.get("path", ""), e["message"]) for e in said.get("errors", [])]
