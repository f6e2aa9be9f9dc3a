"""What clients of a cluster were told and what its steps did, and whether that can be true.

A history is a list of entries, each a dict with `t` (seconds of the machine's monotonic clock) and
`what`; it can be written to JSON and read again:

    submitted  job, node; marks: step -> "", "idempotent" or "unsafe"; run_id if it had one. It was
               answered with success. A submission without an answer promises nothing: no entry.
    command    job, verb (cancel, pause, resume, signal, respond), step, decision: answered with
               success
    seen       job, status: what a client read; asked: when it began to ask, if that is known. What
               it was told was so at some time between the two
    record     job, owner, token: what stood in the store at some time
    start, beat, end, stopped
               job, step, attempt, node, pid: lines of the steps' own ledger
    fault      kind, node ("" : the store), until: what the test did, from `t` to `until`.
               kind "cut": the node could not reach the store; "down": it did not run;
               "loss": the store has forgotten, as it is allowed to, what was committed meanwhile
    final      job, status, steps: step -> status, events: what is known at the end
    absent     job: at the end there is no such job
    explained  job, why: the test knows why it has not ended

`check(history)` gives back a list of (rule, sentence); an empty one is a history that can be true.
"""

import json
from collections import defaultdict

TERMINAL = ("completed", "failed", "cancelled")
STARTED = "workflow_step_attempt_started"
COMPLETED = "workflow_step_completed"
RETRY = "workflow_step_attempt_retry_scheduled"
REVIEW = "human_input_received"
STEP_ENDS = (COMPLETED, "workflow_step_failed", "workflow_step_skipped")

# An answered command has left one of these in the job's events, if there was something to do.
TRACES = {
    "cancel": ("job_cancelling", "job_cancelled"),
    "pause": ("job_pausing", "job_paused"),
    "resume": ("job_resumed",),
    "signal": ("signal_received",),
    "respond": (REVIEW,),
}

# Two looks at a clock, and a beat that was under way.
SLACK_S = 0.15
# From the commit that decides a start until the program has begun, on a busy machine.
ACT_S = 2


class History:
    """Gathers entries while a test runs."""

    def __init__(self, entries=()):
        self.entries = list(entries)

    def add(self, when, what, **fields):
        self.entries.append({"t": when, "what": what, **fields})
        return self.entries[-1]

    def read_ledger(self, path, node_of):
        """Take the lines of the steps over; node_of(path of an output) names the node."""
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            what, job, step, attempt, _, pid, when, where = line.split(" ", 7)
            self.add(int(when) / 1e9, what, job=job, step=step, attempt=int(attempt),
                     node=node_of(where), pid=int(pid))

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.entries, file, indent=0)

    def check(self):
        return check(self.entries)

    def assert_possible(self):
        findings = self.check()
        assert not findings, "\n".join(f"{rule}: {text}" for rule, text in findings)


def check(entries):
    return Checker(entries).run()


class Run:
    """One process of a step: an attempt as the ledger saw it."""

    def __init__(self, entry):
        self.attempt, self.node, self.pid = entry["attempt"], entry["node"], entry["pid"]
        self.start = self.last = entry["t"]
        self.end = None      # it said that its work is done
        self.stopped = None  # it said that it was told to stop

    def add(self, entry):
        self.last = max(self.last, entry["t"])
        if entry["what"] in ("end", "stopped"):
            setattr(self, entry["what"], entry["t"])


class Checker:
    """All rules over one history."""

    def __init__(self, entries):
        entries = sorted(entries, key=lambda e: e["t"])
        self.by = defaultdict(list)
        for entry in entries:
            self.by[entry["what"]].append(entry)
        self.final = {e["job"]: e for e in self.by["final"]}
        self.marks = {e["job"]: e.get("marks", {}) for e in self.by["submitted"]}
        self.runs = self.gather_runs()
        self.findings = []

    def gather_runs(self):
        runs, open_runs = defaultdict(list), {}
        for what in ("start", "beat", "end", "stopped"):
            for e in self.by[what]:
                key = (e["job"], e["step"], e["attempt"], e["node"], e["pid"])
                if what == "start":
                    open_runs[key] = Run(e)
                    runs[e["job"], e["step"]].append(open_runs[key])
                elif key in open_runs:
                    open_runs[key].add(e)
        return runs

    def run(self):
        for rule in (self.no_lost_submission, self.one_job_per_run_id, self.no_lost_command,
                     self.no_act_without_commit, self.events_are_whole, self.completed_once,
                     self.completed_by_a_run, self.attempt_started_once, self.unsafe_once,
                     self.no_overlap, self.tokens_rise, self.one_owner_per_token,
                     self.ends_are_final, self.everything_ends, self.healthy_work_is_left_alone):
            rule()
        return self.findings

    def wrong(self, rule, text):
        self.findings.append((rule, text))

    # ---- faults ----

    def was(self, kind, begin, end, node=None):
        """Was there such a fault at some time between the two?"""
        return any(f["kind"] == kind and (node is None or f["node"] == node) and
                   f["t"] <= end + SLACK_S and f["until"] >= begin - SLACK_S
                   for f in self.by["fault"])

    def is_forgiven(self, when):
        """Committed at a time of which the store was allowed to forget the end."""
        return self.was("loss", when, when)

    def events(self, job, step=None):
        found = self.final.get(job, {}).get("events", [])
        return [e for e in found if step is None or e.get("step_id") == step]

    # ---- what was acknowledged stays ----

    def no_lost_submission(self):
        for e in self.by["submitted"]:
            if e["job"] not in self.final and not self.is_forgiven(e["t"]):
                self.wrong("lost submission", f"{e['job']} was acknowledged by {e['node']} at "
                           f"{e['t']:.3f} and is not there at the end")

    def one_job_per_run_id(self):
        jobs = defaultdict(set)
        for e in self.by["submitted"]:
            if e.get("run_id"):
                jobs[e["run_id"]].add(e["job"])
        for run_id, ids in jobs.items():
            there = [j for j in ids if j in self.final]
            if len(there) > 1:
                self.wrong("two jobs", f"run id {run_id} has the jobs {', '.join(sorted(there))}")

    def no_lost_command(self):
        for e in self.by["command"]:
            if e["job"] not in self.final or self.is_forgiven(e["t"]):
                continue
            types = TRACES[e["verb"]]
            if e["verb"] == "resume" and not any(
                    c["verb"] == "pause" and c["job"] == e["job"] and c["t"] < e["t"]
                    for c in self.by["command"]):
                continue  # what is not paused may be resumed, and nothing happens
            asked = [c for c in self.by["command"] if c["job"] == e["job"] and
                     c["verb"] == e["verb"] and c.get("step") == e.get("step")]
            there = [x for x in self.events(e["job"], e.get("step")) if x["type"] in types]
            if not there or (e["verb"] in ("signal", "respond") and len(there) < len(asked)):
                self.wrong("lost command", f"{e['verb']} of {e['job']} was acknowledged at "
                           f"{e['t']:.3f} and has left no trace")

    def no_act_without_commit(self):
        known = {e["job"] for e in self.by["submitted"]} | set(self.final)
        absent = {e["job"] for e in self.by["absent"]} | {
            e["job"] for e in self.by["submitted"] if e["job"] not in self.final}
        for (job, step), runs in self.runs.items():
            for run in runs:
                if self.was("loss", run.start - ACT_S, run.start):
                    continue  # what it was decided by may be gone
                if job not in known or job in absent:
                    self.wrong("uncommitted act",
                               f"{job} {step} ran on {run.node}, and there is no such job")
                elif job in self.final and run.attempt not in [
                        e["attempt"] for e in self.events(job, step) if e["type"] == STARTED]:
                    self.wrong("uncommitted act", f"{job} {step} attempt {run.attempt} ran "
                               f"on {run.node} and is in no event")

    # ---- the story of a job ----

    def events_are_whole(self):
        for job in self.final:
            numbers = [e["seq"] for e in self.events(job)]
            if numbers != list(range(1, len(numbers) + 1)):
                self.wrong("events", f"{job}: they are missing or doubled: {numbers}")

    def completed_once(self):
        for job in self.final:
            ends = [e["step_id"] for e in self.events(job) if e["type"] in STEP_ENDS]
            for step in sorted(set(ends)):
                if ends.count(step) > 1:
                    self.wrong("completed twice", f"{job} {step} ended {ends.count(step)} times")

    def completed_by_a_run(self):
        for job, final in self.final.items():
            for step in self.marks.get(job, {}):
                if final["steps"].get(step) != "completed":
                    continue
                if any(e["type"] == REVIEW for e in self.events(job, step)):
                    continue  # by a person's word, perhaps
                attempts = [e["attempt"] for e in self.events(job, step) if e["type"] == STARTED]
                if not any(r.end is not None and r.attempt == max(attempts, default=0)
                           for r in self.runs[job, step]):
                    self.wrong("completed without a run",
                               f"{job} {step} is completed, and its last attempt never ended")

    # ---- attempts ----

    def attempt_started_once(self):
        for (job, step), runs in self.runs.items():
            for number in sorted({r.attempt for r in runs}):
                same = [r for r in runs if r.attempt == number]
                if len(same) > 1 and not self.is_forgiven(same[0].start):
                    self.wrong("attempt started twice", f"{job} {step} attempt {number}: on " +
                               ", ".join(r.node for r in same))

    def unsafe_once(self):
        """Between two starts stands a failure that is known, or a person's word."""
        for (job, step), runs in self.runs.items():
            if self.marks.get(job, {}).get(step) != "unsafe":
                continue
            asked = len([e for e in self.by["command"] if e["verb"] == "respond" and
                         (e["job"], e.get("step"), e.get("decision")) == (job, step, "rerun")])
            failed = len([e for e in self.events(job, step)
                          if e["type"] == RETRY and e.get("counted", True)])
            forgiven = len([r for r in runs if self.is_forgiven(r.start)])
            if len(runs) > 1 + asked + failed + forgiven:
                self.wrong("unsafe twice", f"{job} {step} was started {len(runs)} times: on " +
                           ", ".join(f"{r.node} at {r.start:.3f}" for r in runs))

    def no_overlap(self):
        """Attempts of a step that is not idempotent follow one another, also if their node is cut
        off from the store and lives. What is unsafe such a node leaves alone: there a person has
        decided."""
        for (job, step), runs in self.runs.items():
            mark = self.marks.get(job, {}).get(step)
            if mark == "idempotent":
                continue
            for older, newer in zip(runs, runs[1:]):
                if older.last > newer.start + SLACK_S and not (mark == "unsafe" and self.was(
                        "cut", older.start, newer.start, older.node)):
                    self.wrong("overlap", f"{job} {step} attempt {newer.attempt} began on "
                               f"{newer.node} at {newer.start:.3f}, and attempt {older.attempt} "
                               f"ran on {older.node} until {older.last:.3f}")

    def healthy_work_is_left_alone(self):
        """Whose node and store are well is not taken anything from."""
        for (job, step), runs in self.runs.items():
            for older, newer in zip(runs, runs[1:]):
                failures = [e for e in self.events(job, step)
                            if e["type"] == RETRY and e.get("counted", True)]
                asked = [e for e in self.by["command"]
                         if e["job"] == job and e["verb"] in ("respond", "pause", "resume")]
                ill = any(f["t"] <= newer.start and f["until"] >= older.start - SLACK_S and
                          f["node"] in ("", older.node) for f in self.by["fault"])
                decided = older.attempt < newer.attempt and newer.attempt in [
                    e["attempt"] for e in self.events(job, step) if e["type"] == STARTED]
                if decided and not ill and not failures and not asked:
                    self.wrong("healthy work was touched", f"{job} {step}: attempt {older.attempt} "
                               f"on {older.node} was well, and attempt {newer.attempt} began on "
                               f"{newer.node}")

    # ---- rights ----

    def tokens_rise(self):
        last = {}
        for e in self.by["record"]:
            before = last.get(e["job"])
            if before is not None and e["token"] < before["token"] and not self.was(
                    "loss", before["t"], e["t"]):
                self.wrong("token went back", f"{e['job']}: {before['token']} of "
                           f"{before['owner']}, then {e['token']} of {e['owner']}")
            last[e["job"]] = e

    def one_owner_per_token(self):
        owners = defaultdict(set)
        for e in self.by["record"]:
            if e["owner"] and not self.is_forgiven(e["t"]):
                owners[e["job"], e["token"]].add(e["owner"])
        for (job, token), names in owners.items():
            if len(names) > 1:
                self.wrong("two owners", f"{job} token {token}: {', '.join(sorted(names))}")

    # ---- ends ----

    def ends_are_final(self):
        ended = {}
        looks = self.by["seen"] + [{**e, "t": float("inf")} for e in self.by["final"]]
        for e in looks:
            before = ended.get(e["job"])
            if before is None:
                if e["status"] in TERMINAL:
                    ended[e["job"]] = e
            elif e.get("asked", e["t"]) < before["t"]:
                pass  # two clients asked at the same time, and this one was told later
            elif e["status"] != before["status"] and not self.is_forgiven(before["t"]):
                self.wrong("an end was left", f"{e['job']} was seen {before['status']} at "
                           f"{before['t']:.3f}, and later {e['status']}")

    def everything_ends(self):
        explained = {e["job"] for e in self.by["explained"]}
        for job, final in self.final.items():
            if final["status"] not in TERMINAL and job not in explained:
                self.wrong("not ended", f"{job} is {final['status']}: {final['steps']}")
