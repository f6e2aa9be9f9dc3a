"""Worlds in which bundles run while something dies; who looks at what their workers did, and the
person who is asked when nobody knows what became of one."""

import json
import os
import signal

from bundlework import ENDED, Ran, Runner, copy_of
from glianode import Box, keepers, wait_for
from httpnode import serve

END_SECONDS_MAX = 90
TTL = "2s"
GRACE = "1s"

# Python looks for a module of this name before it runs a worker: so no worker needs to be changed
# to be counted. One write, as a worker may be killed at any time.
COUNTER = """
import json, os
if "STARTS_FILE" in os.environ and "MN_MESSAGE_FILE" in os.environ:
    with open(os.environ["STARTS_FILE"], "ab", buffering=0) as file:
        file.write((json.dumps({"agent": os.environ["MN_AGENT_ID"], "pid": os.getpid(),
                                "step": os.environ.get("MN_WORKFLOW_STEP_ID")}) + "\\n").encode())
"""


class Starts:
    """Every process that began to work for an agent, whatever became of it."""

    def __init__(self, folder):
        os.makedirs(f"{folder}/counter")
        with open(f"{folder}/counter/sitecustomize.py", "w", encoding="ascii") as file:
            file.write(COUNTER)
        self.path = f"{folder}/starts"
        self.env = {"STARTS_FILE": self.path, "PYTHONPATH": f"{folder}/counter"}

    def total(self):
        return sum(self.counts().values())

    def counts(self):
        """(agent, step) -> how many"""
        found = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="ascii") as file:
                for one in map(json.loads, file.read().splitlines()):
                    key = (one["agent"], one["step"])
                    found[key] = found.get(key, 0) + 1
        return found


class World:
    """A node, or several on one store, that share the folder of runs."""

    def __init__(self, folder, url=None, names=("a",)):
        os.makedirs(folder)
        self.folder = str(folder)
        self.starts = Starts(self.folder)
        self.boxes = {}
        for name in names:
            os.makedirs(f"{folder}/{name}")
            env = {"GLIA_STORE": url, "GLIA_NODE_NAME": name, "GLIA_SESSION_TTL": TTL,
                   "GLIA_ORPHAN_GRACE": GRACE} if url else {}
            box = self.boxes[name] = Box(f"{folder}/{name}", **env)
            Runner(box)
            box.env.update(self.starts.env, MN_RUNS_ROOT=f"{folder}/runs")
            serve(box)
        self.front = self.boxes[names[-1]]  # whom clients talk to, once something dies

    def close(self):
        for box in self.boxes.values():
            box.close()

    # ---- deaths ----

    @staticmethod
    def kill_node(box):
        node = box.started[-1]
        node.kill()
        node.wait()

    @staticmethod
    def kill_keeper(box):
        for pid in list(keepers(box.data)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has just gone by itself


class Person:
    """Decides that what may have run shall run again, and answers what a worker asks."""

    def __init__(self, world, run_id, answers):
        self.box, self.run_id, self.answers = world.front, run_id, answers
        self.reruns = {}  # step -> how often
        self.questions = os.path.join(world.folder, "runs", run_id, "human.jsonl")

    def see_through(self):
        """To the end of the job."""
        def ended():
            status = self.box.json("job", "status", self.run_id)
            if status["status"] in ENDED:
                return True
            if status["status"] == "paused":
                self.review(status)
            self.answer()
            return None
        try:
            wait_for("the end of the job", ended, END_SECONDS_MAX)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{Ran(self.box, self.run_id)!r}") from error
        return Ran(self.box, self.run_id)

    def words_for(self, agent, step):
        """How often they have said that this may be done again."""
        return sum(self.reruns.get(name, 0) for name in {agent, f"@{agent}", step})

    def review(self, status):
        assert status.get("recovery_requires_review") is True, status
        for request in self.box.json("human", "list")["requests"]:
            step = request.get("step_id")
            if step is None:
                continue  # a worker's own question
            self.box.glia("human", "respond", self.run_id, step, "--decision", "rerun")
            self.reruns[step] = self.reruns.get(step, 0) + 1

    def answer(self):
        if self.answers and os.path.exists(self.questions) and os.path.getsize(self.questions) > 0:
            request, decision = self.answers
            self.box.glia("human", "respond", self.run_id, request, "--decision", decision,
                          "--reviewer", "ann")
            self.answers = None


def mark(place):
    """Wherever an executor is described."""
    if isinstance(place, dict):
        if "command" in place:
            place["safe_to_retry"] = True
        place = list(place.values())
    if isinstance(place, list):
        for one in place:
            mark(one)


def marked(path, folder):
    """A copy of the bundle whose workers may all run again."""
    path = copy_of(path, folder)
    name = os.path.join(path, "manifest.json")
    with open(name, encoding="utf-8") as file:
        manifest = json.load(file)
    mark(manifest)
    with open(name, "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    return path
