"""A question of a worker that nobody answers: when its time is over the node writes the default
decision down, once, whoever dies or answers meanwhile."""

import fcntl
import json
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import golden
from bundlework import Bundle, Ran, Runner, item
from glianode import GLIA, Box, wait_for
from httpnode import serve

GOLDEN = golden.of(__file__)

# Asks what its input says, and ends with the first answer.
ASKS = """
path = os.path.join(folder, "human.jsonl")
with open(path, "a") as file:
    for number, more in enumerate(body["asks"]):
        file.write(json.dumps({"type": "human_input_requested", "payload": {
            "request_id": f"q{number}", "prompt": "?", "allowed_decisions": ["approve", "reject"],
            **more}}) + "\\n")
note("asked", 1)
def answers():
    with open(path) as file:
        found = [json.loads(line) for line in file]
    return [e["payload"] for e in found if e["type"] == "human_input_received"]
until = time.monotonic() + 40
while len(answers()) < body.get("wanted", 1) and time.monotonic() < until:
    time.sleep(0.02)
say(complete_step={"answers": answers()})
"""


def later(seconds):
    when = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def bundle(tmp_path, name, *asks, wanted=1):
    b = Bundle(name).worker("ask", ASKS, idempotent=True, output_message_type="done").ends("ask")
    return b.seed("ask", {"asks": list(asks), "wanted": wanted}).write(tmp_path / name)


def answers_in(box, run_id):
    with open(os.path.join(box.env["MN_RUNS_ROOT"], run_id, "human.jsonl"),
              encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [e["payload"] for e in lines if e["type"] == "human_input_received"]


def pass_over(box, run_id="tick"):
    """Until the node has looked at all runs once more: it answers a question of another run."""
    folder = os.path.join(box.env["MN_RUNS_ROOT"], run_id)
    name = f"t{time.monotonic_ns()}"
    with open(os.path.join(folder, "human.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps({"type": "human_input_requested", "payload": {
            "request_id": name, "expires_at": later(-1), "default_decision": "approve"}}) + "\n")
    wait_for("a look at the runs", lambda: any(a["request_id"] == name
                                               for a in answers_in(box, run_id)))


def start_ticking(runner, tmp_path):
    """A job that lives until the test ends."""
    runner.box.glia("run", bundle(tmp_path, "tick", {}, wanted=1000), "--run-id", "tick",
                    "--detach")
    runner.wait_file("tick", "asked")


@item("B-12-6")
def test_the_default_is_written_when_the_time_is_over(served, tmp_path):
    box = served.box
    expires = later(1)
    folder = bundle(tmp_path, "over", {"expires_at": expires, "default_decision": "reject"},
                    {"timeout_seconds": 1, "requested_at": later(0),
                     "default_decision": "approve"}, {"timeout_seconds": 1}, wanted=2)
    box.glia("run", folder, "--run-id", "over", "--detach")
    wait_for("its end", lambda: box.json("job", "status", "over")["status"] == "completed")
    first, second = sorted(answers_in(box, "over"), key=lambda a: a["request_id"])
    assert (first["decision"], first["reviewer"], first["approved"]) == ("reject", "timeout", False)
    assert first["at"] >= expires and expires in first["reason"], first
    assert (second["decision"], second["approved"]) == ("approve", True)
    error = box.error("human", "respond", "over", "q0", "--decision", "approve", code=2)
    assert error["reason"] == "request_answered"
    GOLDEN.says("answered", error["message"], [re.compile(r"20\d\d-\S+Z")])
    assert Ran(box, "over").steps["ask"]["output"]["answers"][0]["reviewer"] == "timeout"


@item("B-12-6")
def test_it_is_written_once_whatever_dies(tmp_path):
    box = Box(tmp_path)
    runner = Runner(box)
    try:
        serve(box)
        start_ticking(runner, tmp_path)
        folder = bundle(tmp_path, "dies", {"expires_at": later(1.5),
                                           "default_decision": "approve"}, {}, wanted=2)
        box.glia("run", folder, "--run-id", "dies", "--detach")
        runner.wait_file("dies", "asked")
        for _ in range(3):
            box.started[-1].kill()
            box.started[-1].wait()
            serve(box)
        wait_for("the default", lambda: answers_in(box, "dies"))
        box.started[-1].kill()
        box.started[-1].wait()
        serve(box)
        pass_over(box)
        pass_over(box)
        assert [a["request_id"] for a in answers_in(box, "dies")] == ["q0"]
        box.glia("human", "respond", "dies", "q1", "--decision", "approve")
        wait_for("its end", lambda: box.json("job", "status", "dies")["status"] == "completed")
    finally:
        box.close()


@item("B-12-6")
def test_of_a_person_and_the_time_out_one_wins(served, tmp_path):
    """People answer just before the end, just then, and after it."""
    box, expires = served.box, time.time() + 2

    def respond(run_id, who, at):
        wait_for("the moment", lambda: time.time() >= at)
        return subprocess.run([GLIA, "human", "respond", run_id, "q0", "--decision", "approve",
                               "--reviewer", who, "--json"], env=box.env, check=False,
                              capture_output=True, text=True, timeout=30)

    moments = {"race-0": (-0.5, -0.5, 0.3), "race-1": (-0.1, 0, 0.5), "race-2": (0.1, 0.9, 1.1)}
    for run_id in moments:
        question = {"expires_at": later(expires - time.time()), "default_decision": "reject"}
        box.glia("run", bundle(tmp_path, run_id, question), "--run-id", run_id, "--detach")
        served.wait_file(run_id, "asked")
    with ThreadPoolExecutor(9) as pool:
        said = {run_id: [pool.submit(respond, run_id, f"p{n}", expires + offset)
                         for n, offset in enumerate(offsets)]
                for run_id, offsets in moments.items()}
    for run_id, futures in said.items():
        wait_for("an answer", lambda run_id=run_id: answers_in(box, run_id))
        one, = answers_in(box, run_id)
        done = [f.result() for f in futures]
        won = [f"p{n}" for n, d in enumerate(done) if d.returncode == 0]
        assert won == ([] if one["reviewer"] == "timeout" else [one["reviewer"]]), (one, done)
        assert {json.loads(d.stdout)["error"]["reason"] for d in done if d.returncode != 0} <= {
            "request_answered", "request_defaulted"}, done
        assert one["decision"] == ("approve" if won else "reject")


def test_nothing_is_written_where_nobody_waits(served, tmp_path):
    """Of a job that has ended, and in a folder that is no job's."""
    box = served.box
    start_ticking(served, tmp_path)
    question = {"expires_at": later(0.5), "default_decision": "approve"}
    box.glia("run", bundle(tmp_path, "ended", question, wanted=9), "--run-id", "ended", "--detach")
    served.wait_file("ended", "asked")
    box.glia("job", "cancel", "ended")
    alien = os.path.join(box.env["MN_RUNS_ROOT"], "alien")
    os.makedirs(alien)
    with open(os.path.join(alien, "human.jsonl"), "w", encoding="utf-8") as file:
        file.write(json.dumps({"type": "human_input_requested", "payload": {
            "request_id": "q0", **question, "expires_at": later(-5)}}) + "\n")
    until = later(0.6)
    wait_for("its time", lambda: later(0) > until)
    pass_over(box)
    pass_over(box)
    assert answers_in(box, "alien") == []
    assert len(answers_in(box, "ended")) <= 1  # before it was cancelled, at most
    error = box.error("human", "respond", "alien", "q0", "--decision", "reject", code=2)
    assert error["reason"] == "request_defaulted" and "approve" in error["message"]
    box.glia("job", "cancel", "tick")


def ask_again(box, run_id, **payload):
    path = os.path.join(box.env["MN_RUNS_ROOT"], run_id, "human.jsonl")
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"type": "human_input_requested", "payload": payload}) + "\n")


def test_the_last_line_that_asks_counts(own, tmp_path):
    """Its end and its default; and what was answered before it does not count."""
    box = own.box
    start_ticking(own, tmp_path)
    old = {"request_id": "q", "expires_at": later(-5), "default_decision": "approve"}
    new = {**old, "expires_at": later(300), "default_decision": "reject"}
    box.glia("run", bundle(tmp_path, "again", old, new, wanted=3), "--run-id", "again", "--detach")
    own.wait_file("again", "asked")
    pass_over(box)
    pass_over(box)
    assert answers_in(box, "again") == []
    box.glia("human", "respond", "again", "q", "--decision", "reject")
    assert "is answered" in box.glia("human", "respond", "again", "q", "--decision", "approve",
                                     code=2).stderr
    ask_again(box, "again", **new)
    one, = [r for r in box.json("human", "list")["requests"] if r.get("run_id") == "again"]
    assert (one["request_id"], one["default_decision"]) == ("q", "reject")
    box.glia("human", "respond", "again", "q", "--decision", "approve")
    ask_again(box, "again", **old)
    wait_for("its end", lambda: box.json("job", "status", "again")["status"] == "completed")
    assert [(a["decision"], a["reviewer"] == "timeout") for a in answers_in(box, "again")] == [
        ("reject", False), ("approve", False), ("approve", True)]


def test_a_lock_of_the_worker_holds_nobody_up(own, tmp_path):
    """Neither the defaults of other runs, nor a command, nor the end of the node."""
    box = own.box
    start_ticking(own, tmp_path)
    folder = bundle(tmp_path, "locks", {}, {}, wanted=2)
    box.glia("run", folder, "--run-id", "locks", "--detach")
    own.wait_file("locks", "asked")
    path = os.path.join(box.env["MN_RUNS_ROOT"], "locks", "human.jsonl")
    with open(path, encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ask_again(box, "locks", request_id="q0", expires_at=later(-1), default_decision="approve")
        pass_over(box)
        pass_over(box)
        pass_over(box)
        assert answers_in(box, "locks") == []
        assert box.reason("human", "respond", "locks", "q1", "--decision", "approve",
                          code=None) == "requests_locked"
        box.started[-1].terminate()
        box.started[-1].wait(20)
    with open(os.path.join(box.data, "node.log"), encoding="utf-8") as file:
        assert file.read().count(": another process") == 1
    serve(box)
    wait_for("the default", lambda: answers_in(box, "locks"))
