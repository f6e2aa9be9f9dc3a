"""Every pattern once more, while its node is killed at random moments and started again: the job
ends as it does without. Workers belong to the keeper, which outlives the node, so also those that
nobody marked as safe to run twice go on.

A round prints its seed; GLIA_CRASH_SEED=n replays one (what is drawn is the same, the moments are
not). GLIA_SOAK=1 takes new seeds, and GLIA_CRASH_ROUNDS (10) rounds of each."""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import golden
from bundlework import ENDED, Bundle, Ran, Runner, item
from crashseeds import rounds, seeds
from glianode import Box, keepers, wait_for
from httpnode import serve
from onstore import share_of
from patterns import PATTERNS, answer
from records import open_records

GOLDEN = golden.of(__file__)
ROUNDS = rounds(usual=1, soak=10)
KILLS = 4
AT_ONCE = 4
END_SECONDS_MAX = 60


class Victim:
    """A node that is killed and started again."""

    def __init__(self, folder):
        os.makedirs(folder)
        self.box = Box(folder)
        self.runner = Runner(self.box)
        serve(self.box)

    def kill(self):
        node = self.box.started[-1]
        node.kill()
        node.wait()

    def restart(self):
        serve(self.box)

    def submit(self, path, *args, run_id):
        self.box.glia("run", path, "--run-id", run_id, "--detach", *args)

    def wait_end(self, run_id):
        def ended():
            status = self.box.json("job", "status", run_id)["status"]
            return status if status in (*ENDED, "paused") else None
        try:
            wait_for("the end of the job", ended, END_SECONDS_MAX)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{Ran(self.box, run_id)!r}") from error
        return Ran(self.box, run_id)


def round_of(name, seed, folder):
    """Submit, kill the node a few times, and look at the end."""
    pattern, rng = PATTERNS[name], random.Random(seed)
    victim = Victim(folder)
    print(f"{name}: GLIA_CRASH_SEED={seed}")
    try:
        victim.submit(pattern.path, *pattern.args, run_id="k-1")
        for _ in range(KILLS):
            time.sleep(rng.choice([0.02, 0.1, 0.3]) * rng.random())
            victim.kill()
            time.sleep(rng.random() * 0.1)
            victim.restart()
        if pattern.answers:
            answer(victim.runner, "k-1", *pattern.answers)
        pattern.check(victim.wait_end("k-1"))
    finally:
        victim.box.close()


@item("B-15-1")
def test_every_pattern_ends_as_it_would_without(tmp_path):
    drawn = [(name, seed) for name in share_of(PATTERNS) for seed in seeds(name, ROUNDS)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [(name, seed, pool.submit(round_of, name, seed, str(tmp_path / f"{number}")))
                   for number, (name, seed) in enumerate(drawn)]
    bad = [f"{name}, GLIA_CRASH_SEED={seed}: {f.exception()!r}" for name, seed,
           f in futures if f.exception()]
    assert not bad, "\n\n".join(bad)


SLOW = """
note("ran", os.getpid())
with open(os.path.join(folder, "ran")) as file:
    if len(file.readlines()) == 1:
        time.sleep(600)
say(x=1)
"""


def die(victim, bundle, folder):
    """The machine's processes die under a worker: nobody knows its outcome."""
    victim.submit(bundle.seed("a", {}).write(folder / "bundle"), run_id="l-1")
    victim.runner.wait_file("l-1", "ran")
    victim.kill()
    for pid in list(keepers(victim.box.data)):
        os.kill(pid, signal.SIGKILL)
    victim.restart()


def lose(victim, tmp_path, **marks):
    die(victim, Bundle("lose").worker("a", SLOW, output_message_type="done", **marks).ends("a"),
        tmp_path)
    return victim.wait_end("l-1")


@item("B-9-7")
def test_an_unmarked_worker_whose_outcome_is_unknown_waits_for_a_person(tmp_path):
    victim = Victim(str(tmp_path / "box"))
    try:
        ran = lose(victim, tmp_path)
        assert ran.status["status"] == "paused", ran
        assert len(ran.lines("ran")) == 1, "it did not run again"
        assert ran.status.get("recovery_requires_review") is True, ran.status
        request, = victim.box.json("human", "list")["requests"]
        victim.box.glia("human", "respond", "l-1", request.get("step_id") or request["request_id"],
                        "--decision", "rerun")
        victim.box.glia("job", "resume", "l-1")
        wait_for("the end",
                 lambda: victim.box.json("job", "status", "l-1")["status"] == "completed")
    finally:
        victim.box.close()


@item("B-9-7")
def test_a_marked_worker_runs_again(tmp_path):
    for mark in ({"safe_to_retry": True}, {"idempotency_key": "k"}):
        folder = tmp_path / list(mark)[0]
        victim = Victim(str(folder / "box"))
        try:
            ran = lose(victim, folder, **mark)
            assert ran.status["status"] == "completed" and len(ran.lines("ran")) == 2, ran
        finally:
            victim.box.close()


def decide_late(tmp_path, bundle, meanwhile):
    """A person says that the lost worker was done, when its step's time is long over."""
    victim = Victim(str(tmp_path / "box"))
    try:
        die(victim, bundle, tmp_path)
        wait_for("the question", lambda: victim.box.json("human", "list")["requests"])
        over = time.monotonic() + DEADLINE_SECONDS + 1
        wait_for("the deadline", lambda: time.monotonic() > over)
        meanwhile(victim)
        victim.box.glia("human", "respond", "l-1", "a", "--decision", "done")
        ran = victim.wait_end("l-1")
        assert ran.status["status"] == "completed", ran
        assert len(ran.lines("ran")) == 1, "what a person calls done is not done again"
        assert not ran.of("workflow_step_attempt_timed_out"), ran
    finally:
        victim.box.close()


DEADLINE_SECONDS = 3
SHORT = {"timeout_seconds": DEADLINE_SECONDS, "retry": {"max_attempts": 3, "backoff_seconds": 0.1}}


@item("B-9-7")
def test_time_does_not_count_while_a_person_is_asked(tmp_path):
    bundle = Bundle("late").worker("a", SLOW, control=SHORT, output_message_type="done").ends("a")

    decide_late(tmp_path, bundle, lambda victim: None)


@item("B-9-7")
def test_time_does_not_count_while_a_person_is_asked_and_others_work(tmp_path):
    bundle = Bundle("late").worker("a", SLOW, control=SHORT, output_message_type="done")
    bundle.worker("b", 'wait_file("go")', idempotent=True, output_message_type="done")

    decide_late(tmp_path, bundle.seed("b", {}).ends("a", "b"),
                lambda victim: victim.runner.touch("l-1", "go"))


def test_an_agent_whose_state_is_damaged_is_not_started_without_it(tmp_path):
    victim = Victim(tmp_path / "v")
    box = victim.box
    b = Bundle("keeps", policies={"job_type": "service"})
    b.worker("a", "say(next_state={'n': state.get('n', 0) + 1})", step=False,
             idempotent=True).seed("a", {})
    victim.submit(b.write(tmp_path / "bundle"), run_id="r1")

    def handled():
        return box.json("job", "agents", "r1")["agents"][0]["processed"] == 1
    wait_for("the first message", handled)
    job = box.json("job", "status", "r1")["job_id"]
    victim.kill()
    with open_records(box) as records:
        good = records.read("step", f"{job}/@a")
        records.change("step", f"{job}/@a", keep_sum=True, output={"n": 7})
    victim.restart()
    box.glia("send", "r1", "a", "--body", "{}")
    victim.wait_end("r1")
    status = box.json("job", "status", "r1")
    assert (status["status"], status["recovery_requires_review"]) == ("paused", True), status
    GOLDEN.says("damaged state", status["reason"])
    victim.kill()
    with open_records(box) as records:
        records.write("step", f"{job}/@a", good, False)
    victim.restart()
    assert box.ask("POST", f"/v1/contexts/default/jobs/{job}/resume", {}).status == 200
    wait_for("the second message", lambda: box.json("job", "agents", "r1")["agents"][0]["processed"]
             == 2)
    assert box.json("job", "agents", "r1")["agents"][0]["state"] == {"n": 2}
    box.glia("job", "cancel", "r1")
    box.close()
