"""`glia claim run`: one holder at a time, whoever dies, sleeps or cannot be reached."""

import contextlib
import datetime
import json
import os
import signal
import subprocess
import time

import pytest

import golden
from glianode import GLIA, Box, wait_for
from httpnode import serve
from stalls import Stalls

GOLDEN = golden.of(__file__)
CLAIMS = "/v1/contexts/default/claims"
BUSY, LOST = 75, 76


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path)
    yield box
    for process in box.started:  # one that a test left stopped could not be ended
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)
    box.close()


def show(box, key):
    return box.json("claim", "show", key)


def children(pid):
    """None of one that has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(one) for one in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def tell(pid, number):
    """A signal, unless it has ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def family(pid):
    """The process and all below it."""
    found = [pid]
    for child in children(pid):
        found += family(child)
    return found


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


TICKS = "echo $$ > pid; while :; do date +%s.%N >> ticks; sleep 0.05; done"


def ticks(box):
    return [float(line) for line in box.read("ticks").split()] if box.has("ticks") else []


def hold(box, key, *options, command=TICKS):
    """A holder whose command lives, and says so again and again."""
    process = box.start("claim", "run", key, *options, "--", "sh", "-c", command)
    wait_for("the command", lambda: process.poll() is not None or (
        box.has("pid") and box.read("pid").strip()))
    assert process.poll() is None, box.read(process.err)
    return process, int(box.read("pid"))


@pytest.mark.parametrize("has_node", [True, False])
def test_the_command_decides_how_the_claim_ends(box, has_node):
    if has_node:
        serve(box)
    said = box.glia("claim", "run", "a/b", "--owner", "me", "--work-type", "x", "--", "sh", "-c",
                    "echo $GLIA_CLAIM_KEY $GLIA_CLAIM_FENCE $GLIA_CLAIM_ATTEMPT "
                    "$GLIA_CLAIM_OWNER; echo no >&2; exit 3", code=3)
    assert (said.stdout, said.stderr) == ("a/b 1 1 me\n", "no\n")
    claim = show(box, "a/b")
    assert (claim["state"], claim["error_detail"]) == ("failed", "exit code 3")
    assert (claim["owner"], claim["work_type"]) == ("me", "x")
    box.glia("claim", "run", "a/b", "--", "sh", "-c", "kill -KILL $$", code=128 + 9)
    GOLDEN.says("signal 9", show(box, "a/b")["error_detail"])
    said = box.glia("claim", "run", "a/b", "--", "sh", "-c", "cat; echo $GLIA_CLAIM_ATTEMPT",
                    input="in\n")
    assert said.stdout == "in\n3\n"
    assert (show(box, "a/b")["state"], show(box, "a/b")["fence"]) == ("done", 3)
    said = box.glia("claim", "run", "a/b", "--once", "--", "false")
    assert said.stdout == ""
    GOLDEN.says("done", said.stderr, hide=[show(box, "a/b")["owner"]])
    box.glia("claim", "run", "a/b", "--", "/no/such/program", code=127)
    assert show(box, "a/b")["state"] == "failed"
    box.glia("claim", "run", "a/b", "--", box.folder, code=126)


def test_without_a_key_or_a_command_there_is_no_claim(box):
    assert "KEY is missing" in box.glia("claim", "run", "--", "true", code=2).stderr
    assert "after --" in box.glia("claim", "run", "k", code=2).stderr
    assert "after --" in box.glia("claim", "run", "k", "true", code=2).stderr
    said = box.glia("claim", "run", "k", "--lease", "1ms", "--", "true", code=2).stderr
    assert "1s to 1d" in said
    assert box.json("claim", "list")["claims"] == []


def test_the_single_steps_are_commands_too(box):
    got = box.json("claim", "acquire", "k", "--lease", "1h")
    assert got["fence"] == 1
    error = box.error("claim", "acquire", "k", code=BUSY)
    assert error["reason"] == "claim_held"
    assert error["code"] == "busy"
    assert box.json("claim", "renew", "k", "--fence", "1", "--lease", "2h")["lease_ms"] == 7200000
    box.glia("claim", "complete", "k", "--fence", "2", code=LOST)
    box.glia("claim", "renew", "k", "--fence", "1", "--owner", "other", code=LOST)
    assert "--fence is missing" in box.glia("claim", "renew", "k", code=2).stderr
    box.glia("claim", "fail", "k", "--fence", "1", "--error", "why not")
    row = box.glia("claim", "list", "--state", "failed").stdout.rstrip("\n").split("\t")
    assert row[:2] == ["k", "failed"] and row[-2:] == ["", "why not"]
    assert box.glia("claim", "list", "--prefix", "x").stdout == ""
    assert box.glia("claim", "reclaim").stdout == ""
    box.glia("claim", "show", "nobody", code=3)
    # Inside a command nothing need be given, and what it says stands.
    box.glia("claim", "run", "k", "--", "sh", "-c",
             f"{GLIA} claim renew && {GLIA} claim complete && {GLIA} claim complete")
    assert show(box, "k")["state"] == "done"


@pytest.mark.parametrize("has_node", [True, False])
def test_many_who_want_it_run_one_after_the_other(box, has_node):
    if has_node:
        serve(box)
    body = "echo begin >> log; sleep 0.1; echo end >> log"
    runs = [box.start("claim", "run", "k", "--wait", "50s", "--", "sh", "-c", body)
            for _ in range(5)]
    for run in runs:
        box.finish(run)
    assert box.read("log").split() == ["begin", "end"] * 5
    assert (show(box, "k")["fence"], show(box, "k")["attempt"]) == (5, 1)


def test_a_claim_is_kept_far_beyond_its_lease(box):
    serve(box)
    holder, _ = hold(box, "k", "--lease", "5s")
    until = when(show(box, "k")["lease_until"])
    while time.time() < until + 2:
        box.glia("claim", "run", "k", "--", "true", code=BUSY)
    claim = show(box, "k")
    assert (claim["state"], claim["fence"]) == ("claimed", 1)
    assert holder.poll() is None
    node = box.ask("GET", "/v1/node").json["claims"]
    assert node["steals"] == 0 and node["renew_failed"] == 0 and node["renewed"] >= 2


def takes_over(box, key="k"):
    """Somebody else gets the claim, and its command runs alone."""
    box.glia("claim", "run", key, "--wait", "30s", "--owner", "next", "--", "sh", "-c",
             "date +%s.%N > taken")
    assert show(box, key)["owner"] == "next" and show(box, key)["state"] == "done"
    assert max(ticks(box)) < float(box.read("taken")), "two at a time"


def test_a_holder_that_is_stopped_is_ended_before_somebody_else_begins(box):
    serve(box)
    with Stalls() as stalls:
        holder, command = hold(box, "k", "--lease", "4s")
        os.kill(holder.pid, signal.SIGSTOP)
        until = when(show(box, "k")["lease_until"])
        wait_for("the end of the command", lambda: not lives(command))
        assert max(ticks(box)) < until + stalls.slack(), "it lived longer than its lease"
    takes_over(box)
    wait_for("more than its lease", lambda: time.time() > until + 1)
    os.kill(holder.pid, signal.SIGCONT)
    box.finish(holder, LOST)
    assert (show(box, "k")["owner"], show(box, "k")["fence"]) == ("next", 2)


def test_when_all_of_it_sleeps_nothing_of_it_goes_on(box):
    serve(box)
    holder, _ = hold(box, "k", "--lease", "3s", command="echo $$ > pid; "
                     "while ! [ -e go ]; do date +%s.%N >> ticks; sleep 0.02; done; touch effect")
    wait_for("ticks", lambda: ticks(box))
    everybody = family(holder.pid)
    assert len(everybody) >= 3
    for pid in reversed(everybody):
        tell(pid, signal.SIGSTOP)
    takes_over(box)
    box.write("go", "")  # whoever goes on would do it now
    for pid in everybody:
        if lives(pid):
            tell(pid, signal.SIGCONT)
            if pid == everybody[1]:  # the minder first has to notice
                wait_for("its end", lambda: not lives(everybody[2]))
    box.finish(holder, LOST)
    assert not box.has("effect")
    assert (show(box, "k")["owner"], show(box, "k")["state"]) == ("next", "done")


def test_if_the_holder_is_killed_its_command_ends_and_the_lease_runs_out(box):
    holder, command = hold(box, "k", "--lease", "8s",
                           command="(trap '' TERM; while :; do date +%s.%N >> ticks; sleep 0.05; "
                           "done) & echo $$ > pid; wait")
    everybody = family(holder.pid)
    wait_for("ticks", lambda: ticks(box))
    holder.kill()
    holder.wait()
    until = when(show(box, "k")["lease_until"])
    wait_for("the end of all of it", lambda: not any(lives(pid) for pid in everybody))
    assert max(ticks(box)) < until and not lives(command)
    box.glia("claim", "run", "k", "--", "true", code=BUSY)
    takes_over(box)
    assert show(box, "k")["attempt"] == 2


def test_what_cannot_be_renewed_is_ended_in_time(box):
    serve(box)
    box.env["GLIA_SERVER"] = f"unix:{box.socket}"
    node = box.started[0]
    with Stalls() as stalls:
        holder, command = hold(box, "k", "--lease", "4s")
        os.kill(node.pid, signal.SIGSTOP)
        wait_for("the end of the command", lambda: not lives(command))
        late = stalls.slack()
    box.finish(holder, LOST)
    os.kill(node.pid, signal.SIGCONT)
    claim = show(box, "k")
    assert claim["state"] == "claimed" and max(ticks(box)) < when(claim["lease_until"]) + late
    takes_over(box)


def test_a_claim_that_is_taken_away_ends_the_command_at_once(box):
    serve(box)
    holder, command = hold(box, "k", "--lease", "3s", "--owner", "me", "--grace", "200ms",
                           command="trap '' TERM; " + TICKS)
    answer = box.ask("POST", f"{CLAIMS}/fail", {"key": "k", "owner": "me", "fence": 1})
    assert answer.status == 200
    box.finish(holder, LOST)
    assert not lives(command) and "lost" in box.read(holder.err)
    assert "error_detail" not in show(box, "k")


def test_signals_are_the_commands_business(box):
    serve(box)
    holder, _ = hold(box, "k", command="trap 'echo term > got; exit 7' TERM; trap 'echo usr >> got'"
                     " USR1; " + TICKS)
    os.kill(holder.pid, signal.SIGUSR1)
    wait_for("the first", lambda: box.has("got") and "usr" in box.read("got"))
    os.kill(holder.pid, signal.SIGTERM)
    box.finish(holder, 7)
    assert box.read("got") == "term\n"
    assert show(box, "k")["error_detail"] == "exit code 7"


def test_who_waits_can_be_interrupted_and_has_nothing(box):
    serve(box)
    box.json("claim", "acquire", "k", "--lease", "1h")
    run = box.start("claim", "run", "k", "--wait", "1h", "--", "true")
    wait_for("its word", lambda: "waiting" in box.read(run.err))
    os.kill(run.pid, signal.SIGINT)
    box.finish(run, 130)
    assert show(box, "k")["fence"] == 1


def test_what_a_command_leaves_behind_ends_with_it(box):
    serve(box)
    box.glia("claim", "run", "k", "--", "sh", "-c", "sleep 1000 >&- 2>&- & echo $! > pid")
    wait_for("its end", lambda: not lives(int(box.read("pid"))))
    assert show(box, "k")["state"] == "done"


def test_a_node_may_come_and_go_meanwhile(box):
    node_less, _ = hold(box, "k", "--lease", "9s")
    serve(box)
    renewed = show(box, "k")["last_heartbeat_at"]
    wait_for("a renewal through the node",
             lambda: box.ask("GET", f"{CLAIMS}/k").json["last_heartbeat_at"] > renewed)
    box.started[1].kill()
    box.started[1].wait()
    renewed = show(box, "k")["last_heartbeat_at"]
    wait_for("a renewal without one", lambda: show(box, "k")["last_heartbeat_at"] > renewed)
    os.kill(node_less.pid, signal.SIGINT)
    box.finish(node_less, 130)
    assert show(box, "k")["state"] == "failed"


def test_a_terminal_belongs_to_the_command_and_comes_back(box):
    code = f"""
import json, os, pty, sys
pid, tty = pty.fork()
if pid == 0:
    os.execv({GLIA!r}, [{GLIA!r}, "claim", "run", "k", "--", "sh", "-c",
                        "read line; echo got $line; read line; exit 9"])
os.write(tty, b"one\\n")
out = b""
while b"got one" not in out:
    out += os.read(tty, 1000)
os.write(tty, b"\\x03")
try:
    while os.read(tty, 1000):
        pass
except OSError:
    pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run(["/usr/bin/python3", "-c", code], env=box.env, cwd=box.folder, text=True,
                          capture_output=True, timeout=60, check=True)
    assert done.stdout == "130\n", done.stderr
    GOLDEN.says("signal 2", show(box, "k")["error_detail"])
