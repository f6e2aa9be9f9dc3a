"""Flows with everything that waits: items, signals, approvals, sleeps, retries, limits. All of them
complete, whatever dies, with an output that only one history has: every step's part in it once."""

import json
import random
import time
from collections import defaultdict

from crashoracle import LOST, RETRY, STARTED, STEP_ENDS, Findings, read_ledger, wall_s
from crashworld import LEDGER_STEP, World, kill
from glianode import wait_for

SIGNALS = ("g1", "g2", "g3")
KEY = "one-at-a-time"
SLEEP_SLACK_S = 0.002  # the events' times have milliseconds
END_SECONDS = 90
RETRIES = {"attempts": 20, "backoff": "30ms", "factor": 1}  # more than anybody kills


class GateFlow:
    """One flow, and what is to come of it."""

    def __init__(self, rng, name):
        self.name = name
        self.unsafe = {"pay"}
        self.nap_ms = rng.choice((50, 300, 900))
        self.weights = [1 << (12 + i) for i in range(rng.randint(3, 9))]
        self.items = [{"weight": w, "ms": rng.choice((0, 20, 80, 200)),
                       "plan": rng.choice(("0", "0", "0", "3,0", "4,5,0"))} for w in self.weights]
        self.mark = rng.choice(({}, {"idempotent": True}, {"unsafe": True}))
        if "unsafe" in self.mark:
            self.unsafe |= {f"each[{i}]" for i in range(len(self.items))}
        self.max_parallel = rng.choice((1, 2, 5))
        self.keyed = [f"lim{i}" for i in range(3)]
        self.ms = rng.choice((10, 60, 150))

    def steps(self, ledger):
        def run(weight, needs, **more):
            words = [LEDGER_STEP, ledger, str(weight), str(self.ms), "0"]
            return {"run": words, "needs": needs, "retry": RETRIES, **more}

        limit = {"concurrency": {"key": KEY, "max": 1}}
        steps = {
            "root": run(1, []),
            "nap": {"sleep": f"{self.nap_ms}ms", "needs": "root"},
            "ask": {"approval": "pay ${steps.root.output.v}?", "needs": "root"},
            "pay": run(2, ["ask"], unsafe=True),
            "each": {"needs": "root", "foreach": "${inputs.items}", **self.mark,
                     "max_parallel": self.max_parallel,
                     "retry": RETRIES,
                     "run": [LEDGER_STEP, ledger, "${job.item.weight}", "${job.item.ms}",
                             "${job.item.plan}"]},
            "end": run(4, ["pay", "each", SIGNALS[-1], *self.keyed], trigger_rule="all_success"),
        }
        for i, step in enumerate(self.keyed):
            steps[step] = run(32 << i, ["nap"], **limit)
        for before, step in zip(("root", *SIGNALS), SIGNALS):
            steps[step] = {"signal": "go", "needs": before}
        return steps

    def write(self, folder, _tool, ledger):
        path = f"{folder}/{self.name}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"name": self.name, "inputs": {"items": {"default": self.items}},
                       "steps": self.steps(ledger)}, file, indent=1)
        return path

    def output_of_end(self, last_signal):
        """Items see root's output, and so does everything else that needs it directly."""
        pay = 2  # what the approval hands on has no "v"
        each = sum(w + 1 for w in self.weights)
        keyed = sum(32 << i for i in range(len(self.keyed)))
        return 4 + pay + each + last_signal + keyed


class GateWorld(World):
    """The person and the sender of signals, who repeat themselves when they heard nothing."""

    def __init__(self, **env):
        super().__init__(**env)
        self.sent = defaultdict(list)  # job -> [value, heard that it was taken]
        self.serial = 1 << 30

    def send_signal(self, job):
        self.serial += 1
        value = self.serial
        self.sent[job].append([value, False])
        done = self.glia("job", "signal", job, "go", "--data", json.dumps({"v": value}), code=None)
        self.sent[job][-1][1] = done.returncode == 0
        self.note(f"signal {job} {value}: {done.returncode} {done.stderr.strip()}")
        assert done.returncode in (0, 2, 5), done.stderr

    def answer(self, job, step, decision, *more):
        done = self.glia("human", "respond", job, step, "--decision", decision, *more, code=None)
        self.note(f"respond {job} {step} {decision}: {done.returncode} {done.stderr.strip()}")
        assert done.returncode in (0, 2, 5), done.stderr

    def decide(self, rng):
        """Everything a flow waits for, now and then; what is lost is done again."""
        requests = (self.ask_node("human") or {"requests": []})["requests"]
        for job, status in (self.known_jobs() or {}).items():
            if status == "paused" and job not in [r["job_id"] for r in requests]:
                self.start("job", "resume", job)
        for request in requests:
            approval = request["kind"] == "approval"
            if rng.random() < 0.7:
                self.answer(request["job_id"], request["step_id"],
                            "approve" if approval else "rerun")
        for job in sorted(self.accepted() - set(self.ended)):
            if len([x for x in self.sent[job] if x[1]]) < len(SIGNALS):
                self.send_signal(job)

    def judge(self, **_):
        self.accepted()
        documents = {job: self.json("job", "status", job) for job in self.jobs_of}
        judge = GateJudge(self, read_ledger(self.ledger_path))
        for job, document in documents.items():
            out = self.glia("job", "events", job, "--json").stdout
            judge.job(self.jobs_of[job], document, [json.loads(x) for x in out.splitlines()])
        judge.limits()
        if judge.findings:
            raise Findings("\n".join(judge.findings))
        self.judge_clients(documents)
        self.judge_names(documents)
        return documents


class GateJudge:
    """Compares the ledger, the events and the end with what must be."""

    def __init__(self, world, ledger):
        self.world, self.ledger, self.findings = world, ledger, []
        self.lines = defaultdict(list)
        for line in ledger:
            self.lines[line.job, line.step, line.attempt].append(line)

    def wrong(self, *words):
        self.findings.append(" ".join(map(str, words)))

    def job(self, flow, document, events):
        job, steps = document["job_id"], document["workflow_state"]["steps"]
        if document["status"] != "completed":
            self.wrong(job, document["status"], document.get("reason"))
            return
        if [e["seq"] for e in events] != list(range(1, document["last_seq"] + 1)):
            self.wrong(job, "events are missing or doubled")
        by_step = defaultdict(list)
        for event in events:
            by_step[event.get("step_id")].append(event)
        expected = {*flow.steps(""), *(f"each[{i}]" for i in range(len(flow.items)))}
        if set(steps) != expected:
            self.wrong(job, "has the steps", sorted(steps))
        for step, record in steps.items():
            ends = [e["type"] for e in by_step[step] if e["type"] in STEP_ENDS]
            if ends != ["workflow_step_completed"] or record["status"] != "completed":
                self.wrong(job, step, record["status"], "ended as", ends)
            self.attempts(job, step, by_step[step], step in flow.unsafe,
                          step.startswith("each[") and "idempotent" in flow.mark)
        self.gates(job, flow, steps, by_step)
        last = self.signals(job, steps)
        value = (steps["end"].get("output") or {}).get("v")
        if value != flow.output_of_end(last):
            self.wrong(job, "ends with", value, "instead of", flow.output_of_end(last))

    def attempts(self, job, step, events, unsafe, may_overlap):
        """The ledger against the events: nothing ran twice that must not."""
        started = [e["attempt"] for e in events if e["type"] == STARTED]
        if started != list(range(1, len(started) + 1)):
            self.wrong(job, step, "attempts", started)
        before, permits, ran = None, 1, 0
        for event in events:
            permits += event["type"] == RETRY and event.get("counted", True)
            permits += event.get("decision") == "rerun"
            if event.get("reason") == LOST and unsafe:
                self.wrong(job, step, "is unsafe, and was started again after a loss")
        for attempt in sorted(a for j, s, a in list(self.lines) if (j, s) == (job, step)):
            lines = self.lines[job, step, attempt]
            starts = [x.ns for x in lines if x.what == "start"]
            ran += len(starts)
            if len(starts) != 1 or len(lines) > 2 or attempt not in started:
                self.wrong(job, step, "attempt", attempt, "has", [x.what for x in lines])
            if before and starts and starts[0] < before and not may_overlap:
                self.wrong(job, step, "attempt", attempt, "began before the last one ended")
            before = max([x.ns for x in lines if x.what == "end"], default=before)
        if unsafe and ran > permits:
            self.wrong(job, step, "is unsafe and ran", ran, "times of", permits)

    def gates(self, job, flow, steps, by_step):
        answers = [e for e in by_step["ask"] if e["type"] == "human_input_received"]
        if len(answers) != 1 or steps["ask"]["output"]["decision"] != "approve":
            self.wrong(job, "was approved by", answers)
        begin, end = (wall_s({"timestamp": steps["nap"][x]}) for x in ("started_at", "ended_at"))
        if end - begin < flow.nap_ms / 1000 - SLEEP_SLACK_S:
            self.wrong(job, "slept", end - begin, "instead of", flow.nap_ms, "ms")
        values = [(x or {}).get("v") for x in steps["each"]["output"] or []]
        if values != [w + 1 for w in flow.weights]:
            self.wrong(job, "items have", values)

    def signals(self, job, steps):
        """Taken in the order they were sent, each once; what was confirmed is not lost."""
        taken = [(steps[s].get("output") or {}).get("v") for s in SIGNALS]
        sent = self.world.sent[job]
        order = [value for value, _ in sent]
        if sorted(set(taken) & set(order)) != taken:
            self.wrong(job, "took the signals", taken, "of", sent)
        missed = [value for value, heard in sent if heard and value not in taken
                  and value < (taken[-1] or 0)]
        if missed:
            self.wrong(job, "lost the signals", missed, "and took", taken)
        return taken[-1] or 0

    def limits(self):
        """Steps with one key, of all jobs, one at a time."""
        spans = []
        for (job, step, attempt), lines in self.lines.items():
            if step.startswith("lim"):
                times = [x.ns for x in lines]
                spans.append((min(times), max(times), f"{job} {step} {attempt}"))
        spans.sort()
        for one, two in zip(spans, spans[1:]):
            if two[0] < one[1]:
                self.wrong("these share a key and ran at the same time:", one, two)


WEIGHTS = {"node": 5, "client": 1, "step": 2, "keeper": 2, "machine": 1, "pause": 1, "serve": 2,
           "decide": 6}


def attack_gates(seed, kills, jobs=None):
    """One round: flows in a folder of their own, and `kills` deaths while they wait and run."""
    rng = random.Random(seed)
    with GateWorld(GLIA_POOLS=f"default={rng.choice((2, 4, 9))}") as world:
        try:
            flows = [GateFlow(rng, f"gates{i}") for i in range(jobs or rng.randint(1, 3))]
            run_gates(world, rng, flows, kills)
            return world.judge()
        except Exception as error:
            raise AssertionError(f"GLIA_CRASH_SEED={seed}: {error}\n{world.story()}") from error


def run_gates(world, rng, flows, kills):
    attack_flows(world, rng, flows, kills)
    if not world.accepted():  # every command died before it was told its job: once more, with one
        world.submit(GateFlow(rng, "gates_late"))
        wait_for("a job", world.accepted, END_SECONDS)
        attack_flows(world, rng, [], kills)
    end_all_nodes(world)
    world.finish(rng, END_SECONDS)


def attack_flows(world, rng, flows, kills):
    big = 0
    while kills > 0 or flows:
        time.sleep(rng.choice((0.005, 0.03, 0.1, 0.2)))
        if flows and (rng.random() < 0.6 or not world.living()):
            world.submit(flows.pop())
            continue
        world.known_jobs()
        world.keep_one_alive(rng)
        kind = rng.choices(list(WEIGHTS), WEIGHTS.values())[0]
        if kind in ("keeper", "machine") and big == 3:  # one more, and a step may fail of it
            kind = "node"
        if kind == "decide":
            world.decide(rng)
        elif kind == "serve":
            world.start("serve")
        elif kill(world, rng, kind):
            big += kind in ("keeper", "machine")
            kills -= 1
        elif not world.accepted() - set(world.ended) and not flows:
            kills -= 1  # too late: all is done


def end_all_nodes(world):
    """A `serve` would stay for ever."""
    for process in world.living():
        if process.args_given[0] == "serve":
            process.terminate()
            process.wait(END_SECONDS)
