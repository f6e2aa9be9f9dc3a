"""What can be asked of a job, and done to it, one command after the other."""

import json
import os
import pty
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import GLIA, wait_for  # noqa: E402


GOLDEN = golden.of(__file__)
TWICE = """
name: twice
steps:
  a:
    sh: 'echo try $GLIA_ATTEMPT; [ "$GLIA_ATTEMPT" = 2 ] && echo "{\\"x\\": 1}"'
    retry: {attempts: 2, backoff: 10ms}
  b: {sh: 'echo b >&2; touch left; exit 3', needs: a, env: {MARK: seen}}
  c: {noop: true}
"""


@pytest.fixture(name="failed")
def make_failed(box):
    box.glia("run", box.write("twice.yaml", TWICE), "--run-id", "failed", code=1)
    return "failed"


def start_node(box):
    node = box.start("serve")
    wait_for("the node", lambda: "ready: process" in box.read(node.err))
    return node


# ---- looking ----


def test_a_list_is_filtered_and_paged(box):
    flow = box.write("f.yaml", "name: noop\nsteps: {a: {noop: true}}\n")
    jobs = [box.json("run", flow)["job_id"] for _ in range(3)]
    box.glia("run", "--", "true")
    rows = box.glia("job", "list", "--name", "noop").stdout.splitlines()
    assert [row.split("\t")[0] for row in rows] == jobs[::-1]
    first = box.glia("job", "list", "--limit", "2", "--name", "noop")
    assert first.stdout.count("\n") == 2 and f"--after {jobs[1]}" in first.stderr
    page = box.json("job", "list", "--limit", "2", "--name", "noop")
    assert page["next"] == jobs[1]
    rest = box.glia("job", "list", "--after", jobs[1], "--name", "noop")
    assert rest.stdout.split("\t")[0] == jobs[0] and "more" not in rest.stderr
    for after in ("noop", jobs[1][:16]):  # from there it would begin somewhere
        assert box.reason("job", "list", "--after", after, code=2) == "after_invalid"
    doc = box.json("job", "list", "--all")
    assert len(doc["jobs"]) == 4 and doc["next"] is None
    assert box.reason("job", "list", "--all", "--limit", "2", code=2) == "usage"
    GOLDEN.says("none", box.glia("job", "list", "--name", "nobody").stderr, [box.data])


def test_status_has_the_fields_scripts_rely_on(box, failed):
    doc = box.json("job", "status", failed)
    assert doc["run_id"] == "failed" and doc["status"] == "failed" and len(doc["job_id"]) == 26
    step = doc["workflow_state"]["steps"]["a"]
    assert step["status"] == "completed" and step["terminal_outcome"] == "success"
    assert step["attempt_count"] == 2 and step["output"] == {"x": 1}
    assert step["started_at"] < step["ended_at"]
    assert doc["workflow_state"]["steps"]["b"]["terminal_reason"] == "exit code 3"


def test_logs_of_all_attempts_with_their_times(box, failed):
    lines = box.glia("job", "logs", failed, "a", "--attempt", "all").stdout.splitlines()
    assert lines == ["1\ttry 1", "2\ttry 2", '2\t{"x": 1}']
    lines = box.glia("job", "logs", failed, "--attempt", "all", "--timestamps").stdout.splitlines()
    assert [line.split("\t", 1)[1] for line in lines] == [
        "a\t1\ttry 1", "a\t2\ttry 2", 'a\t2\t{"x": 1}', "b\t1\tb"]
    assert all(line.startswith("20") and line[23] == "Z" for line in lines)
    doc = box.json("job", "logs", failed, "--attempt", "all")["lines"]
    assert [(x["step_id"], x["attempt"]) for x in doc] == [("a", 1), ("a", 2), ("a", 2), ("b", 1)]
    assert "--attempt all" in box.glia("job", "logs", failed, "a", "--attempt", "all", "--follow",
                                      code=2).stderr


def test_logs_of_a_foreach_step_are_those_of_its_instances(box):
    flow = box.write("f.yaml", """
steps:
  each: {foreach: [eu, us], sh: 'echo "at ${job.item}"'}
  each_else: {sh: 'echo not asked for'}
""")
    box.glia("run", flow, "--run-id", "r")
    lines = box.glia("job", "logs", "r", "each").stdout.splitlines()
    assert lines == ["each[0]\tat eu", "each[1]\tat us"]
    assert box.glia("job", "logs", "r", "each[1]").stdout == "at us\n"
    assert [x["step_id"] for x in box.json("job", "logs", "r", "each")["lines"]] == [
        "each[0]", "each[1]"]
    assert "each[0]" in box.glia("job", "logs", "r", "each", "--follow", code=2).stderr


def test_a_followed_log_is_one_document_per_line(box, failed):
    out = box.glia("job", "logs", failed, "a", "--follow", "--json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in out] == ["try 2", '{"x": 1}']


def test_the_result_is_what_the_last_steps_left(box, failed):
    assert box.glia("job", "result", failed, "a").stdout == '{"x": 1}\n'
    assert box.glia("job", "result", failed, "c").stdout == "null\n"
    assert box.glia("job", "result", failed, code=1).stdout == "b\tnull\nc\tnull\n"
    assert box.json("job", "result", failed, code=1) == {"b": None, "c": None}
    assert "no step" in box.glia("job", "result", failed, "z", code=3).stderr
    job = box.json("run", "--", "echo", '{"rows": [1]}')["job_id"]
    assert box.json("job", "result", job) == {"run": {"rows": [1]}}


def test_a_job_that_has_not_ended_has_no_result(box):
    start_node(box)
    flow = box.write("f.yaml", "steps: {s: {signal: go}}\n")
    job = box.glia("run", "--detach", flow).stdout.strip()
    assert box.reason("job", "result", job, code=2) == "no_result_yet"
    assert box.reason("job", "result", job, "s", code=2) == "no_output_yet"
    box.glia("job", "pause", job)
    box.glia("job", "result", job, code=6)


# ---- again ----


def test_a_retry_does_only_what_did_not_complete(box):
    flow = box.write("f.yaml", """
steps:
  a: {sh: 'echo a >>%(f)s/did; echo "{\\"n\\": 1}"'}
  b: {sh: 'echo b >>%(f)s/did; [ -e %(f)s/good ]', needs: a}
""" % {"f": box.folder})
    first = box.glia("run", flow, code=1).stdout.split("\t")[0]
    box.write("good", "")
    done = box.glia("job", "retry", first, "--run-id", "second")
    job, run_id, status = done.stdout.strip().split("\t")
    assert job != first and (run_id, status) == ("second", "completed")
    assert box.read("did") == "a\nb\nb\n"
    doc = box.json("job", "status", "second")
    assert doc["retry_of"] == first
    assert doc["workflow_state"]["steps"]["a"]["output"] == {"n": 1}
    GOLDEN.says("reused", golden.line_of(box.glia("job", "status", "second").stdout,
                                         "a\tcompleted\t0\t"), [first])
    assert not GOLDEN.tells("all reused", done.stderr)
    again = box.json("job", "retry", first, "--from", "a")
    assert again["status"] == "completed" and box.read("did") == "a\nb\nb\na\nb\n"
    assert GOLDEN.tells("all reused", box.glia("job", "retry", again["job_id"]).stderr)
    said = box.glia("job", "retry", again["job_id"], "--from", "b").stderr
    assert not GOLDEN.tells("all reused", said) and box.read("did") == "a\nb\nb\na\nb\nb\n"
    assert box.reason("job", "retry", first, "--from", "z", code=3) == "no_such_step"
    assert box.reason("job", "retry", "nobody", code=3) == "no_such_job"
    assert len(box.jobs()) == 5


def test_a_retry_names_the_unsafe_steps_that_it_starts_again(box):
    flow = box.write("f.yaml", """
steps:
  paid: {sh: 'true', unsafe: true}
  mail: {sh: 'exit 1', unsafe: true, needs: paid}
  never: {sh: 'true', unsafe: true, needs: mail}
  safe: {sh: 'exit 1', on_failure: continue}
""")
    box.glia("run", flow, "--run-id", "r", code=1)
    said = box.glia("job", "retry", "r", code=1).stderr
    assert said.count("unsafe") == 1
    GOLDEN.says("unsafe", golden.line_of(said, "unsafe"))
    assert box.step("r", "mail")["unsafe"] is True and "unsafe" not in box.step("r", "safe")


def test_a_retry_can_be_left_to_a_node(box, failed):
    assert box.reason("job", "retry", failed, "--detach", code=5) == "node_not_found"
    assert len(box.jobs()) == 1
    start_node(box)
    job = box.glia("job", "retry", failed, "--detach").stdout.strip()
    wait_for("its end", lambda: box.json("job", "status", job)["status"] == "failed")
    assert box.json("job", "retry", failed, "--detach")["job_id"] != job


# ---- away with it ----


def test_ended_jobs_are_removed(box, failed):
    other = box.json("run", "--", "true")["job_id"]
    folder = f"{box.data}/contexts/default/runs/{other}"
    assert os.path.isdir(folder)
    assert box.glia("job", "rm", failed, other).stdout == f"{failed}\n{other}\n"
    assert box.jobs() == [] and not os.path.exists(folder)
    assert box.reason("job", "rm", other, code=3) == "no_such_job"


def test_a_job_that_has_not_ended_is_not_removed(box):
    start_node(box)
    flow = box.write("f.yaml", "steps: {s: {signal: go}}\n")
    job = box.glia("run", "--detach", flow).stdout.strip()
    assert box.reason("job", "rm", job, code=2) == "job_not_ended"
    box.glia("job", "cancel", job)
    assert box.json("job", "rm", job) == {"removed": [job]}


def on_terminal(box, answer, *args):
    """Run a command on a terminal of its own and answer its question; its exit code."""
    main, end = pty.openpty()
    process = subprocess.Popen([GLIA, *args], env=box.env, stdin=end, stdout=end, stderr=end)
    os.close(end)
    seen = b""
    try:
        while answer and b"[y/N] " not in seen:  # else its echo may come before the question
            seen += os.read(main, 4096)
        os.write(main, answer)
        while True:
            seen += os.read(main, 4096)
    except OSError:
        pass
    os.close(main)
    return process.wait(60), seen.decode()


def test_on_a_terminal_a_person_is_asked_first(box, failed):
    code, seen = on_terminal(box, b"n\n", "job", "rm", failed)
    assert code == 1
    GOLDEN.says("asked first", seen, [failed])
    assert len(box.jobs()) == 1
    assert on_terminal(box, b"y\n", "job", "rm", failed)[0] == 0
    assert box.jobs() == []
    job = box.json("run", "--", "true")["job_id"]
    code, seen = on_terminal(box, b"", "job", "rm", "--yes", job)
    assert code == 0 and "Remove" not in seen


# ---- signals ----


def test_a_signal_reaches_the_step_that_waits_for_it(box):
    start_node(box)
    flow = box.write("f.yaml", "steps: {s: {signal: go}, t: {signal: later, needs: s}}\n")
    job = box.glia("run", "--detach", flow).stdout.strip()
    box.glia("job", "signal", job, "later")  # kept until somebody waits
    assert box.why_code(job, "s") == "waits_for_signal"
    box.glia("job", "signal", job, "go", "--data", '{"from": "test"}')
    wait_for("the end", lambda: box.json("job", "status", job)["status"] == "completed")
    assert box.step(job, "s")["output"] == {"from": "test"}


def test_a_signal_nobody_will_wait_for_is_refused(box):
    start_node(box)
    flow = box.write("f.yaml", "steps: {s: {signal: payment}}\n")
    job = box.glia("run", flow, "--detach").stdout.strip()
    error = box.error("job", "signal", job, "paymnt", code=3)
    assert error["reason"] == "signal_unwanted" and "'payment'" in error["message"]
    box.glia("job", "cancel", job)


def test_a_refusal_has_nothing_to_do_with_other_jobs(box):
    """The data of a signal is not a run id, even where a job has that name."""
    start_node(box)
    for name in ("123", "plain"):
        box.glia("run", "--run-id", name, "--", "true")
    for data in ("5", "123", '"123"'):
        error = box.error("job", "signal", "plain", "go", "--data", data, code=2)
        assert error["reason"] == "job_ended", error


def test_the_data_of_a_signal_is_json(box, failed):
    for args, says in [(["--data", "{"], "not valid JSON"),
                       (["--data", "1", "--data-file", "x"], "either"),
                       (["--data-file", "nowhere"], "No such file")]:
        assert says in box.glia("job", "signal", failed, "go", *args, code=2).stderr
    assert "no job" in box.glia("job", "signal", "nobody", "go", code=3).stderr


# ---- a shell ----


def test_a_shell_opens_where_a_failed_step_worked(box, failed):
    box.env["SHELL"] = "/bin/sh"
    done = box.glia("job", "shell", failed, "b", code=7,
                    input="pwd; ls; echo $MARK $GLIA_ATTEMPT; exit 7\n")
    folder, *rest = done.stdout.splitlines()
    assert folder.endswith("/b:attempt:1/work")
    assert "left" in rest and "seen 1" in rest
    for step, attempt, reason in [("z", "1", "no_such_step"), ("b", "2", "no_such_attempt"),
                                  ("a", "2", "workspace_gone")]:
        assert box.reason("job", "shell", failed, step, "--attempt", attempt, code=3) == reason


# ---- people ----


def test_an_approval_is_asked_listed_and_answered(box):
    flow = box.write("f.yaml", """
steps:
  ask: {approval: {message: 'Ship it?', decisions: [ship, hold]}}
  go: {noop: true, needs: ask}
""")
    run = box.start("run", flow, "--run-id", "release")
    wait_for("the question",
             lambda: "human respond" in box.read(run.err) and box.read(run.err).endswith("\n"))
    assert box.read(run.err).endswith(" ask --decision ship\n")
    row = box.glia("human", "list").stdout.strip().split("\t")
    assert row[1:] == ["release", "ask", "approval", "ship|hold", "Ship it?"]
    assert "Ship it?" in box.glia("why", "release", "ask").stdout
    assert "ship" in box.glia("human", "respond", "release", "ask", "--decision", "no",
                              code=2).stderr
    box.glia("human", "respond", "release", "ask", "--decision", "ship", "--reviewer", "ada")
    box.finish(run)
    assert box.step("release", "ask")["decided_by"] == "ada"
    assert box.glia("human", "list").stdout == ""
