"""The judge of the crash tests: compares the steps' own ledger with what Glia says happened."""

import re
from collections import defaultdict
from datetime import datetime

from crashflow import EXACT_RULES

TERMINAL_JOB = ("completed", "failed", "cancelled")
TERMINAL_STEP = ("completed", "failed", "skipped", "partial")
STEP_ENDS = ("workflow_step_completed", "workflow_step_failed", "workflow_step_skipped")
LOST = "the attempt was lost with its executor"
LOST_AT_END = "the attempt was lost; whether it did its work is unknown"  # unsafe; its job ends
PAUSED = "stopped by a pause"
NEVER = "it was never started"  # and there was no slot for it
STOPPED = "stopped: "  # because its job ends
CUT_OFF = (r"the step is unsafe and its attempt was cut off "
           r"\((killed by signal \d+|timed out)\), so it may or may not have done its work")
BLOCKED = "workflow_step_blocked"
RETRY = "workflow_step_attempt_retry_scheduled"
STARTED = "workflow_step_attempt_started"

# Between the death of a keeper and its node's noticing; the events' times have milliseconds.
SLACK_S = 0.5


def signal_of(reason):
    """The number of the signal by which the attempt ended; None: by something else."""
    found = re.fullmatch(r"killed by\D+(\d+)", reason)
    return int(found[1]) if found else None


def wall_s(event):
    return datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00")).timestamp()


class Line:
    """One line of the ledger."""

    def __init__(self, text):
        self.what, self.job, self.step, attempt, self.attempt_id, pid, when, code = text.split()
        self.attempt, self.pid, self.ns, self.code = int(attempt), int(pid), int(when), int(code)


def read_ledger(path):
    try:
        with open(path, encoding="utf-8") as file:
            return [Line(text) for text in file]
    except FileNotFoundError:
        return []


class Findings(AssertionError):
    """Everything that is wrong."""


class Oracle:
    """Judges one data folder after its last crash.

    flows     job id -> Flow
    accepted  ids that a client was told
    ledger    lines of the steps
    losses    when a keeper or the machine died (seconds since 1970); None: at some time
    killed    pids of steps that the test killed itself
    late_s    how late the machine was at most: a node may notice a death so much later
    """

    def __init__(self, flows, accepted, ledger, losses=(), killed=(), late_s=0.0):
        self.flows = flows
        self.slack_s = SLACK_S + late_s
        self.accepted = set(accepted)
        self.losses = losses
        self.killed = set(killed)
        self.lines = defaultdict(list)  # (job, step, attempt) -> lines
        self.ledger = ledger
        for line in ledger:
            self.lines[line.job, line.step, line.attempt].append(line)
        self.nameless = self.killed - {line.pid for line in ledger}
        self.paused = set()  # jobs of which an attempt was stopped by a pause
        self.stopped = []  # (job, where) of attempts that did not end by themselves
        self.findings = []

    def wrong(self, where, text):
        self.findings.append(f"{where}: {text}")

    def judge(self, jobs, events):
        """jobs: id -> status document; events: id -> list of events."""
        for job in sorted(self.accepted - set(jobs)):
            self.wrong(job, "was accepted and is lost")
        for job in sorted({line.job for line in self.ledger} - set(jobs)):
            self.wrong(job, "has run steps and is not known: it acted before its commit")
        for job, document in jobs.items():
            self.judge_job(job, document, events[job])
        for job in self.paused:
            if not any(e["type"] == "job_pausing" for e in events[job]):
                self.wrong(job, "an attempt was stopped by a pause that never was")
        for job, where in self.stopped:
            if jobs[job]["status"] == "completed":
                self.wrong(where, "was stopped, and the job went on")
        if self.findings:
            raise Findings("\n".join(self.findings))

    # ---- a job ----

    def judge_job(self, job, document, events):
        if document["status"] not in TERMINAL_JOB:
            self.wrong(job, f"has not ended: {document['status']}")
            return
        numbers = [e["seq"] for e in events]
        if numbers != list(range(1, document["last_seq"] + 1)):
            self.wrong(job, f"events are missing or doubled: {numbers}")
        ends = [e["type"] for e in events if e["type"] in [f"job_{s}" for s in TERMINAL_JOB]]
        if ends != [f"job_{document['status']}"] or events[-1]["type"] != ends[0]:
            self.wrong(job, f"ended as {ends}, and is {document['status']}")
        if job not in self.flows:
            return
        steps = document["workflow_state"]["steps"]
        by_step = defaultdict(list)
        for event in events:
            by_step[event.get("step_id")].append(event)
        failed = [s for s, r in steps.items() if r["status"] == "failed"]
        if (document["status"] == "failed") != bool(failed):
            self.wrong(job, f"is {document['status']} with failed steps {failed}")
        for step in self.flows[job].steps.values():
            # A job that fails gives its other steps no further tries.
            cut_short = document["status"] != "completed" and document.get("failed_step") != step.id
            self.judge_step(job, step, steps, by_step[step.id], document["status"], cut_short)

    # ---- a step ----

    def judge_step(self, job, step, steps, events, job_status, cut_short):
        record, where = steps[step.id], f"{job} {step.id}"
        if record["status"] not in TERMINAL_STEP:
            self.wrong(where, f"has not ended: {record['status']}")
            return
        ends = sum(e["type"] in STEP_ENDS for e in events)
        # What a failed job never reached is skipped without a word.
        silent = job_status != "completed" and not events and record["status"] == "skipped"
        if ends != 1 and not silent:
            self.wrong(where, "did not end exactly once: " + ", ".join(
                e["type"] for e in events if e["type"] in STEP_ENDS))
        started = [e["attempt"] for e in events if e["type"] == STARTED]
        if started != list(range(1, record.get("attempt_count", 0) + 1)):
            self.wrong(where, f"attempts {started}, counted {record.get('attempt_count')}")
        if not step.noop and self.losses == [] and not self.killed and job_status == "completed":
            self.judge_untouched(where, step, record, events)
        if not step.noop:
            self.judge_counts(where, step, record, events, cut_short)
            self.judge_attempts(job, where, step, events)
            self.judge_starts(job, where, step, started)
        if step.mark == "unsafe":
            self.judge_unsafe(job, where, step, events)
        self.judge_rule(where, step, steps, job_status)
        self.judge_output(where, step, steps, events)

    def judge_counts(self, where, step, record, events, cut_short):
        """A retry counts what failed by itself, and nothing else."""
        failures = sum(e["type"] == RETRY and e.get("counted", True) for e in events)
        last = [e for e in events if e["type"] in STEP_ENDS][-1:]
        total = failures + sum(e["type"] != "workflow_step_skipped" for e in last)
        if record.get("counted", 0) not in (total, total + (record["status"] == "skipped")):
            self.wrong(where, f"counted {record.get('counted', 0)}, the events say {total}")
        if total > step.attempts:
            self.wrong(where, f"tried {total} times of {step.attempts}")
        if last and last[0]["type"] == "workflow_step_failed":
            by_person = any(e["type"] == "human_input_received" and e["decision"] == "failed"
                            for e in events)
            if not by_person and not cut_short and total < step.attempts:
                self.wrong(where, f"gave up after {total} of {step.attempts}: {last[0]['reason']}")
            expected = {"fail": "failed", "continue": "partial", "skip": "skipped"}[step.on_failure]
            if record["status"] != expected:
                self.wrong(where, f"is {record['status']} after a failure, not {expected}")

    def judge_untouched(self, where, step, record, events):
        """Only nodes have died: every step has run exactly as planned."""
        succeeds = 0 in step.plan and not step.timeout_ms
        planned = step.plan.index(0) + 1 if succeeds else step.attempts
        stopped = sum(e.get("reason") in (PAUSED, NEVER) for e in events)
        # A later attempt may be the one that succeeds by its plan.
        if record.get("attempt_count", 0) not in (0, *range(planned, planned + stopped + 1)):
            self.wrong(where, f"was tried {record['attempt_count']} times, planned {planned}")

    def judge_attempts(self, job, where, step, events):
        """Each attempt as Glia tells it, against the ledger."""
        for at, event in enumerate(events):
            if event["type"] == STARTED:
                self.judge_attempt(job, where, step, event, events[at + 1:])

    def judge_attempt(self, job, where, step, started, later):
        attempt = started["attempt"]
        where = f"{where} attempt {attempt}"
        lines = self.lines[job, step.id, attempt]
        starts = [x for x in lines if x.what == "start"]
        ends = [x for x in lines if x.what == "end"]
        news = [e for e in later if e["type"] not in (STARTED, "workflow_step_attempt_timed_out")]
        outcome = news[0] if news else None
        if outcome is None:
            self.wrong(where, "nothing became of it")
            return
        reason = self.judge_cut_off(where, step, outcome)
        if signal_of(reason) == 9 or reason == "exit code 137":
            if starts and starts[0].pid in self.killed:
                return
            if not starts and self.nameless:  # killed before its first line
                self.nameless.pop()
                return
        if outcome["type"] == "workflow_step_completed":
            if not ends or ends[0].code != 0:
                self.wrong(where, "completed, and the ledger knows nothing of it")
        elif reason.startswith("exit code "):
            if int(reason.split()[2]) != step.code(attempt) or not ends:
                self.wrong(where, f"{reason}, planned was {step.code(attempt)}")
        elif signal_of(reason):
            self.wrong(where, f"{reason}, and nobody killed it")
        elif reason == "timed out":
            if not step.timeout_ms:
                self.wrong(where, "timed out without a timeout")
        elif reason == PAUSED and step.mark != "unsafe":
            self.paused.add(job)
        elif reason == LOST_AT_END:
            self.stopped.append((job, where))
            self.judge_loss(where, step, started, outcome)
        elif reason == LOST or outcome["type"] == BLOCKED:
            self.judge_loss(where, step, started, outcome)
        elif outcome["type"] == "workflow_step_skipped" or reason.startswith(STOPPED):
            self.stopped.append((job, where))
        elif reason != NEVER or starts:
            self.wrong(where, f"ended strangely: {outcome['type']} {reason}")

    def judge_cut_off(self, where, step, outcome):
        """Of unsafe work that was ended in the middle a person decides. Gives back the reason."""
        reason = outcome.get("reason", "")
        asked = re.fullmatch(CUT_OFF, reason)
        if asked and (step.mark != "unsafe" or outcome["type"] != BLOCKED):
            self.wrong(where, f"{outcome['type']} {reason}, though marked '{step.mark}'")
        if outcome["type"] == RETRY and step.mark == "unsafe" and \
                (signal_of(reason) or reason == "timed out"):
            self.wrong(where, f"unsafe, and tried again: {reason}")
        return asked.group(1) if asked else reason

    def judge_loss(self, where, step, started, outcome):
        """An attempt is lost with its keeper, and with nothing else."""
        in_doubt = outcome["type"] == BLOCKED or outcome["reason"] == LOST_AT_END
        if in_doubt != (step.mark == "unsafe"):
            self.wrong(where, f"lost and {outcome['type']}, though marked '{step.mark}'")
        if self.losses is None:
            return
        begin, end = wall_s(started) - self.slack_s, wall_s(outcome) + self.slack_s
        if not any(begin <= when <= end for when in self.losses):
            self.wrong(where, "was lost, although no keeper died while it ran")

    def judge_starts(self, job, where, step, started):
        """The ledger's own testimony, whatever Glia says."""
        before = None
        for attempt in sorted(a for j, s, a in list(self.lines) if (j, s) == (job, step.id)):
            starts = [x for x in self.lines[job, step.id, attempt] if x.what == "start"]
            ends = [x for x in self.lines[job, step.id, attempt] if x.what == "end"]
            if attempt not in started:
                self.wrong(where, f"attempt {attempt} ran and was never decided")
            if len(starts) > 1:
                self.wrong(where, f"attempt {attempt} was started {len(starts)} times")
            if len(ends) > len(starts):
                self.wrong(where, f"attempt {attempt} ended {len(ends)} times")
            overlaps = before is not None and starts and before > starts[0].ns
            if overlaps and step.mark != "idempotent":
                self.wrong(where, f"attempt {attempt} began while the one before it still ran")
            before = max([x.ns for x in ends], default=before)

    def judge_unsafe(self, job, where, step, events):
        """Between two starts of an unsafe step stands a known failure or a person's word, if the
        first was one: an attempt that found no slot with its next owner has never run."""
        before = []
        for event in events:
            if event["type"] == STARTED and before:
                last = before[-1]
                known = last["type"] == RETRY and last.get("counted", True)
                decided = len(before) > 1 and before[-2].get("decision") == "rerun"
                ran = self.lines[job, step.id, event["attempt"] - 1]
                if ran and not known and not decided:
                    self.wrong(where, f"unsafe, and started again after {last['type']}: "
                                      f"{last.get('reason')}")
            before.append(event)

    def judge_rule(self, where, step, steps, job_status):
        """What ran was allowed to, and what was skipped had to be."""
        if not step.needs:
            return
        parents = [steps[p] for p in step.needs]
        success = [p["status"] == "completed" for p in parents]
        accepted = [p["status"] in ("completed", "partial") for p in parents]
        failed = [p.get("terminal_outcome") == "failed" for p in parents]
        allowed = {"all_success": all(accepted), "all_done": True, "one_success": any(success),
                   "none_failed_min_one_success": not any(failed) and any(success)}[step.rule]
        ran = steps[step.id].get("attempt_count", 0) > 0
        if ran and not allowed:
            self.wrong(where, f"ran against its rule {step.rule}")
        if not ran and allowed and job_status == "completed":
            self.wrong(where, f"did not run, although {step.rule} held")

    def judge_output(self, where, step, steps, events):
        if steps[step.id]["status"] != "completed" or step.noop:
            return
        if any(e["type"] == "human_input_received" and e["decision"] == "done" for e in events):
            return  # a person's word, without a value
        value = (steps[step.id].get("output") or {}).get("v")
        inputs = [(steps[p].get("output") or {}).get("v", 0) for p in step.needs]
        if step.rule in EXACT_RULES and value != step.weight + sum(inputs):
            self.wrong(where, f"output {value}, expected {step.weight} + {inputs}")
        if value is None or not step.weight <= value <= step.weight + sum(inputs):
            self.wrong(where, f"output {value} from {step.weight} and {inputs}")
