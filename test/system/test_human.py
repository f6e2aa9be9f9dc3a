"""Unsafe work whose outcome nobody knows waits for a person, who decides."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import keepers, wait_for  # noqa: E402

GOLDEN = golden.of(__file__)
HIDE = [re.compile(r"\S*/glia|01\w{24}")]
FLOW = """
name: pay
steps:
  pay:
    unsafe: true
    retry: 3
    sh: |
      echo started >> "$LEDGER"
      if [ "$(wc -l < "$LEDGER")" = 1 ]; then sleep 60; fi
      echo '{"paid": 2}' > "$GLIA_OUTPUT"
    env: {LEDGER: LEDGER_PATH}
  note:
    needs: pay
    sh: cat "$GLIA_INPUT_FILE"
"""


def starts(box):
    return box.read("ledger").count("started") if box.has("ledger") else 0


def lose_it(box):
    """Run the flow, and kill the keeper under the unsafe step: its outcome is not known."""
    box.write("flow.yaml", FLOW.replace("LEDGER_PATH", os.path.join(box.folder, "ledger")))
    run = box.start("run", "flow.yaml", "--run-id", "pay-1")
    wait_for("the step to start", lambda: starts(box) == 1)
    for pid in list(keepers(box.data)):
        os.kill(pid, signal.SIGKILL)
    box.finish(run, code=6)
    assert "human respond" in box.read(run.err) or "human list" in box.read(run.err)


def test_a_lost_unsafe_step_blocks_and_the_job_pauses(box):
    lose_it(box)
    status = box.json("job", "status", "pay-1")
    assert status["status"] == "paused" and status["hold"] == "review"
    step = status["workflow_state"]["steps"]["pay"]
    assert (step["status"], step["blocked_on"]) == ("blocked", "review")
    request, = box.json("human", "list")["requests"]
    assert (request["run_id"], request["step_id"]) == ("pay-1", "pay")
    assert request["decisions"] == ["rerun", "done", "failed"]
    assert starts(box) == 1


def test_rerun_starts_it_once_more(box):
    lose_it(box)
    done = box.glia("human", "respond", "pay-1", "pay", "--decision", "rerun", "--reviewer", "ann")
    GOLDEN.says("rerun", done.stderr, HIDE)
    box.glia("job", "resume", "pay-1")
    assert starts(box) == 2
    step = box.step("pay-1", "pay")
    assert (step["status"], step["decision"], step["decided_by"]) == ("completed", "rerun", "ann")
    assert step["output"] == {"paid": 2}
    assert box.json("human", "list")["requests"] == []


def test_done_completes_it_with_the_output_given(box):
    lose_it(box)
    box.glia("human", "respond", "pay-1", "pay", "--decision", "done", "--output", '{"paid": 1}')
    box.glia("job", "resume", "pay-1", code=None)
    assert starts(box) == 1
    status = box.json("job", "status", "pay-1")
    assert status["status"] == "completed"
    assert status["workflow_state"]["steps"]["pay"]["output"] == {"paid": 1}
    assert '"paid":1' in box.glia("job", "logs", "pay-1", "note").stdout.replace(" ", "")


def test_failed_fails_it_without_another_try(box):
    lose_it(box)
    done = box.glia("human", "respond", "pay-1", "pay", "--decision", "failed", "--reason",
                    "not paid")
    GOLDEN.says("failed", done.stderr, HIDE)
    box.glia("job", "resume", "pay-1", code=1)
    assert starts(box) == 1
    status = box.json("job", "status", "pay-1")
    assert status["status"] == "failed"
    assert "not paid" in status["workflow_state"]["steps"]["pay"]["terminal_reason"]


def test_wrong_answers_change_nothing(box):
    lose_it(box)
    for args, code, reason in [
            (("pay-1", "pay"), 2, "usage"),
            (("pay-1", "pay", "--decision", "maybe"), 2, "decision_invalid"),
            (("pay-1", "note", "--decision", "done"), 2, "step_decided"),
            (("pay-1", "nothing", "--decision", "done"), 3, "no_such_step"),
            (("pay-1", "pay", "--decision", "done", "--output", "{"), 2, "usage"),
            (("other", "pay", "--decision", "done"), 3, "no_such_job"),
    ]:
        assert box.reason("human", "respond", *args, code=code) == reason, args
    assert box.step("pay-1", "pay")["status"] == "blocked"


def test_who_waits_is_told_of_a_review_while_other_steps_run(box):
    box.write("flow.yaml", f"""
steps:
  pay: {{sh: "echo started >> '{box.folder}/ledger'; sleep 60", unsafe: true}}
  hold: {{sh: "until [ -e '{box.folder}/go' ]; do sleep 0.02; done", idempotent: true}}
""")
    run = box.start("run", "flow.yaml", "--run-id", "two-1")
    wait_for("the steps", lambda: starts(box) == 1
             and box.step("two-1", "hold")["status"] == "running")
    for pid in list(keepers(box.data)):
        os.kill(pid, signal.SIGKILL)
    wait_for("the review", lambda: "--decision" in box.read(run.err))
    GOLDEN.says("review", golden.line_of(box.read(run.err), "--decision"), HIDE)
    box.glia("human", "respond", "two-1", "pay", "--decision", "done")
    box.write("go", "")
    box.finish(run)
    assert box.read(run.err).count("--decision") == 1


def test_an_unsafe_step_that_was_cut_off_is_not_tried_again_by_itself(box):
    """By its timeout, or by somebody's kill: how far it came nobody knows. A failure it tells of
    itself is another matter, and so is a flow that says what may be tried again."""
    for name, ends, retry in (("late", "sleep 60", "2"), ("killed", "kill -9 $$", "2"),
                              ("failed", "exit 3", "2"),
                              ("told", "sleep 60", "{attempts: 2, on: [timeout], backoff: 1ms}")):
        box.write(f"{name}.yaml", f"""
steps:
  pay: {{unsafe: true, timeout: 300ms, retry: {retry}, sh: 'echo x >> {box.folder}/{name}; {ends}'}}
""")
        asks = name in ("late", "killed")
        done = box.glia("run", f"{name}.yaml", "--run-id", name, code=6 if asks else 1)
        assert box.read(name) == ("x\n" if asks else "x\nx\n"), done.stderr
        if asks:
            step = box.step(name, "pay")
            assert (step["status"], step["blocked_on"]) == ("blocked", "review")
            GOLDEN.says(f"cut off, {name}", step["last_error"])
            box.glia("human", "respond", name, "pay", "--decision", "rerun")
            box.glia("job", "resume", name, code=6)
            assert box.read(name) == "x\nx\n"
    GOLDEN.says("retries", golden.line_of(box.glia("validate", "late.yaml").stdout, "pay"))
