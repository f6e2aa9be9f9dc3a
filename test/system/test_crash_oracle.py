"""The oracle of the crash tests sees what it is there to see: here it is lied to."""

import copy
import json
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from crashflow import small  # noqa: E402
from crashoracle import RETRY, STARTED, Findings, Oracle, read_ledger  # noqa: E402
from crashworld import World  # noqa: E402

pytestmark = pytest.mark.sqlite_only("tests the oracle, not the node")


class Truth:
    """A job that really ran, undisturbed."""

    def __init__(self):
        with World() as world:
            assert world.submit(small("truth")).wait(60) == 0
            self.job = sorted(world.accepted())[0]
            self.flows = dict(world.jobs_of)
            self.jobs = {self.job: world.json("job", "status", self.job)}
            out = world.glia("job", "events", self.job, "--json").stdout
            self.events = {self.job: [json.loads(line) for line in out.splitlines()]}
            self.ledger = read_ledger(world.ledger_path)
            self.losses, self.killed = [], []

    def judge(self):
        oracle = Oracle(self.flows, {self.job}, self.ledger, self.losses, self.killed)
        oracle.judge(self.jobs, self.events)

    # ---- lies ----

    def steps(self):
        return self.jobs[self.job]["workflow_state"]["steps"]

    def add(self, what, step, attempt, **changes):
        """One more line in the ledger, like one that is there."""
        like = next(x for x in self.ledger if (x.what, x.step) == (what, step))
        line = copy.copy(like)
        line.attempt, line.attempt_id = attempt, f"{step}:attempt:{attempt}"
        for name, value in changes.items():
            setattr(line, name, value)
        self.ledger.append(line)

    def tell(self, step, **event):
        """One more event of a step, before the last one of the job."""
        events = self.events[self.job]
        like = next(e for e in events if e.get("step_id") == step and e["type"] == STARTED)
        events.insert(len(events) - 1, {**like, **event})
        for number, one in enumerate(events):
            one["seq"] = number + 1
        self.jobs[self.job]["last_seq"] = len(events)


def lose_the_job(t):
    t.jobs, t.events = {}, {}


def leave_it_running(t):
    t.jobs[t.job]["status"] = "running"


def leave_a_step_running(t):
    t.steps()["s4"]["status"] = "running"


def complete_a_step_twice(t):
    t.tell("s3", type="workflow_step_completed")


def start_an_attempt_twice(t):
    t.add("start", "s2", 1)


def run_an_attempt_nobody_decided(t):
    t.add("start", "s0", 2)


def start_unsafe_work_again(t):
    t.tell("s2", type=RETRY, counted=False, reason="the attempt was lost with its executor")
    t.tell("s2", attempt=2)
    t.add("start", "s2", 2)


def try_unsafe_work_again_that_was_killed(t):
    event = next(e for e in t.events[t.job]
                 if e.get("step_id") == "s2" and e["type"] == "workflow_step_completed")
    event.update(type=RETRY, counted=True, reason="killed by signal 9")
    t.killed = [next(x.pid for x in t.ledger if x.step == "s2")]
    t.ledger = [x for x in t.ledger if (x.what, x.step) != ("end", "s2")]
    t.tell("s2", attempt=2)
    t.tell("s2", attempt=2, type="workflow_step_completed")
    t.steps()["s2"].update(attempt_count=2, counted=2)
    for flow in t.flows.values():
        flow.steps["s2"].attempts = 2
    t.add("start", "s2", 2, ns=1 << 62)
    t.ledger.append(copy.copy(t.ledger[-1]))
    t.ledger[-1].what = "end"


def lose_an_attempt_of_a_living_keeper(t):
    at = next(i for i, e in enumerate(t.events[t.job])
              if e.get("step_id") == "s3" and e["type"] == "workflow_step_completed")
    t.events[t.job][at].update(type=RETRY, counted=False,
                               reason="the attempt was lost with its executor")
    t.tell("s3", attempt=2)
    t.tell("s3", attempt=2, type="workflow_step_completed")
    t.steps()["s3"]["attempt_count"] = 2
    t.add("start", "s3", 2, ns=1 << 62)
    t.add("end", "s3", 2, ns=1 << 62)


def forget_a_counted_retry(t):
    t.steps()["s1"]["counted"] = 1


def give_up_too_early(t):
    event = next(e for e in t.events[t.job] if e["type"] == RETRY)
    event["reason"] = "exit code 4"


def mix_up_an_output(t):
    t.steps()["s0"]["output"] = {"v": 7}


def drop_an_output(t):
    del t.steps()["s4"]["output"]


def lose_an_event(t):
    del t.events[t.job][3]


def complete_without_having_run(t):
    t.ledger = [x for x in t.ledger if x.step != "s3"]


def run_two_attempts_at_once(t):
    end = next(x for x in t.ledger if (x.what, x.step, x.attempt) == ("end", "s1", 1))
    end.ns = 1 << 62


def skip_what_could_run(t):
    t.steps()["s4"].update(status="skipped", attempt_count=0)


LIES = [lose_the_job, leave_it_running, leave_a_step_running, complete_a_step_twice,
        start_an_attempt_twice, run_an_attempt_nobody_decided, start_unsafe_work_again,
        try_unsafe_work_again_that_was_killed,
        lose_an_attempt_of_a_living_keeper, forget_a_counted_retry, give_up_too_early,
        mix_up_an_output, drop_an_output, lose_an_event, complete_without_having_run,
        run_two_attempts_at_once, skip_what_could_run]


@pytest.fixture(name="truth", scope="module")
def make_truth():
    return Truth()


def test_the_truth_is_believed(truth):
    truth.judge()
    assert len(truth.ledger) == 12  # five steps, one of them twice; a start and an end each


@pytest.mark.parametrize("lie", LIES, ids=lambda f: f.__name__)
def test_the_oracle_notices(truth, lie):
    told = copy.deepcopy(truth)
    lie(told)
    with pytest.raises(Findings):
        told.judge()
