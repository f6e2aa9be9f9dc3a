"""glia run: a flow or a command gets finished, and its end is told."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import GLIA, ROOT, wait_for  # noqa: E402

GOLDEN = golden.of(__file__)


def ulid(text):
    return len(text) == 26 and text.isalnum()


# ---- flows ----


def test_the_example_runs_to_its_end(box):
    done = box.glia("run", f"{ROOT}/examples/hello.yaml")
    job, run, status = done.stdout.strip().split("\t")
    assert ulid(job) and run == "" and status == "completed"
    assert "retry_wait  post" in done.stderr
    assert "completed   count" in done.stderr
    assert f"glia job logs {job}" in done.stderr
    assert box.step(job, "count")["output"] == {"letters": 3}
    assert box.step(job, "post")["attempt_count"] == 2


def test_the_nightly_example_goes_on_without_what_may_be_missing(box):
    done = box.glia("run", f"{ROOT}/examples/nightly.yaml", "--run-id", "today")
    assert done.stdout.split("\t")[1:] == ["today", "completed\n"]
    steps = box.json("job", "status", "today")["workflow_state"]["steps"]
    assert {k: v["status"] for k, v in steps.items()} == {
        "orders": "completed", "weather": "partial", "report": "completed", "mail": "completed",
        "tidy": "completed"}
    assert steps["weather"]["terminal_outcome"] == "failed"
    words = steps["report"]["output"]["report"].split()
    assert (words[0], words[-1]) == ("16", "unknown")


def test_an_attempt_that_is_stopped_at_its_timeout_is_told_once(box):
    flow = box.write("flow.yaml", "steps: {a: {timeout: 0.3s, sh: sleep 60}}\n")
    said = box.glia("run", flow, code=1).stderr
    assert said.count("  running     a\n") == 1, said
    assert re.search(r"\n  failed      a  [\d.]+m?s  timed out\n", said), said


def test_json_is_one_document_with_the_state_of_the_job(box):
    flow = box.write("flow.json", json.dumps(
        {"name": "doc", "steps": {"a": {"sh": "echo '{\"x\": 1}'"}, "b": {"sh": "exit 4",
                                                                       "needs": "a"}}}))
    done = box.glia("run", flow, "--json", "--run-id", "r-1", code=1)
    doc = json.loads(done.stdout)
    assert (doc["status"], doc["run_id"], doc["name"]) == ("failed", "r-1", "doc")
    assert ulid(doc["job_id"])
    steps = doc["workflow_state"]["steps"]
    assert doc["workflow_state"]["status"] == "failed"
    assert steps["a"]["output"] == {"x": 1} and steps["a"]["terminal_outcome"] == "success"
    assert steps["b"]["terminal_reason"] == "exit code 4" and steps["b"]["attempt_count"] == 1
    assert steps["b"]["started_at"] <= steps["b"]["ended_at"]


def test_a_script_is_taken_as_it_was_when_the_flow_was_submitted(box):
    box.write("scripts/late.py", "print('marker-7')\n")
    flow = box.write("flow.yaml", """
steps:
  wait: {sh: 'until [ -e %s/go ]; do sleep 0.02; done'}
  late: {script: scripts/late.py, needs: wait}
""" % box.folder)
    run = box.start("run", flow)
    job = box.wait_job()[0]
    box.write("scripts/late.py", "print('changed')\n")
    box.write("go", "")
    box.finish(run)
    assert box.glia("job", "logs", job, "late").stdout == "marker-7\n"


def test_an_executable_script_is_run_by_its_first_line(box):
    box.write("tool", "#!/usr/bin/env python3\nimport sys\nprint(sys.version_info[0])\n", 0o755)
    flow = box.write("flow.yaml", "steps: {a: {script: tool}}\n")
    job = box.glia("run", flow).stdout.split("\t")[0]
    assert box.glia("job", "logs", job).stdout == "3\n"


def test_a_step_of_a_flow_has_a_clean_environment_and_a_private_folder(box):
    flow = box.write("flow.yaml", """
steps:
  a:
    env: {MINE: yes, N: 7}
    sh: |
      env | cut -d= -f1 | sort > %s/names
      pwd > %s/where
      echo "$MINE $N $GLIA_STEP_ID $GLIA_ATTEMPT $GLIA_ATTEMPT_ID $GLIA_RUN_ID" > %s/values
""" % (box.folder, box.folder, box.folder))
    box.env["SECRET_OF_THE_CALLER"] = "x"
    box.glia("run", flow, "--run-id", "r")
    names = box.read("names").split()
    assert "SECRET_OF_THE_CALLER" not in names
    assert {"PATH", "HOME", "GLIA_JOB_ID", "GLIA_OUTPUT", "GLIA_INPUT_FILE",
            "GLIA_IDEMPOTENCY_KEY"} <= set(names)
    assert box.read("values") == "yes 7 a 1 a:attempt:1 r\n"
    assert box.read("where").startswith(box.data)


def test_a_job_that_fails_says_which_step_and_where_to_look(box):
    flow = box.write("flow.yaml", "steps: {good: {sh: 'true'}, bad: {sh: 'exit 9'}}\n")
    done = box.glia("run", flow, code=1)
    job = done.stdout.split("\t")[0]
    assert re.search(r"'bad' .* 9$", done.stderr, re.M), done.stderr
    assert done.stderr.rstrip().endswith(f"glia job logs {job} bad")


def test_the_next_command_carries_the_data_folder_that_was_given(box):
    del box.env["GLIA_DATA_DIR"]
    flow = box.write("flow.yaml", "steps: {a: {sh: 'true'}}\n")
    done = box.glia("run", flow, "--data-dir", "here")
    assert done.stderr.rstrip().endswith("--data-dir here")
    assert box.has("here/node.log")


def test_many_steps_are_told_by_counters_and_exceptions(box):
    steps = {f"s{i}": {"noop": True} for i in range(150)}
    steps["odd"] = {"sh": "exit 1", "on_failure": "skip"}
    flow = box.write("flow.json", json.dumps({"steps": steps}))
    done = box.glia("run", flow)
    assert "skipped     odd" in done.stderr
    assert "s7" not in done.stderr


# ---- commands ----


def test_a_command_speaks_through_and_has_the_callers_folder_and_environment(box):
    box.env["COLOUR"] = "grün"
    done = box.glia("run", "--", "sh", "-c", 'pwd; echo "$COLOUR"; echo oops >&2; echo end')
    assert done.stdout == f"{box.folder}\ngrün\nend\n"
    assert done.stderr == "oops\n"


def test_who_forgets_the_two_dashes_is_told_of_them(box):
    for args in (["echo", "hello"], ["ls", "-l"], ["--run-id", "x", "echo", "a", "b"]):
        done = box.glia("run", *args, code=2)
        at = 2 if args[0] == "--run-id" else 0
        wanted = " ".join(["run", *args[:at], "--", *args[at:]])
        assert f": {GLIA} {wanted}\n" in done.stderr
    flow = box.write("f.yaml", "steps: {a: {noop: true}}\n")
    assert f": {GLIA} run" not in box.glia("run", flow, "more", code=2).stderr


def test_a_command_does_not_get_our_own_settings(box):
    box.env["GLIA_POOLS"] = "default=2"
    done = box.glia("run", "--", "sh", "-c", 'echo "$GLIA_POOLS|$GLIA_DATA_DIR|$GLIA_STEP_ID"')
    assert done.stdout == "||run\n"


def test_a_command_that_fails_exits_with_one(box):
    done = box.glia("run", "--", "sh", "-c", "echo partly; exit 42", code=1)
    assert done.stdout == "partly\n"
    assert "exit code 42" in done.stderr


def test_a_command_that_does_not_exist_is_told_with_its_cause(box):
    done = box.glia("run", "--", "no-such-program", code=1)
    assert "no-such-program" in done.stderr
    assert "job logs" not in done.stderr  # it has said nothing


def test_much_output_comes_through_whole_and_in_order(box):
    done = box.glia("run", "--", "seq", "200000")
    assert done.stdout == "".join(f"{i}\n" for i in range(1, 200001))


def test_a_log_far_beyond_its_limit_comes_through_without_a_line_twice(box):
    done = box.glia("run", "--", "seq", "1500000")
    lines = [int(line) for line in done.stdout.split()]
    assert lines == sorted(set(lines)) and lines[0] == 1 and lines[-1] == 1500000
    assert (len(lines) == 1500000) == (done.stderr == "")


def test_what_was_dropped_before_it_could_be_shown_is_told_with_its_size(box):
    n = 1500000
    command = (f"{GLIA} run -- sh -c 'seq {n}; echo ok > end' | "
               f"(until [ -e end ]; do sleep 0.05; done; cat)")
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=box.folder, env=box.env,
                          text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    lines = [int(line) for line in done.stdout.split()]
    assert lines == sorted(set(lines)) and lines[0] == 1 and lines[-1] == n
    frame = len("1794742571102 o \n")
    missing = sum(len(str(i)) + frame for i in set(range(1, n + 1)) - set(lines))
    assert missing > 0
    *gaps, end = done.stderr.splitlines()
    told = [re.fullmatch(r"-- (\d+) bytes dropped --", gap) for gap in gaps]
    assert all(told) and sum(int(gap[1]) for gap in told) == missing, done.stderr
    GOLDEN.says("dropped", end, [missing])


def test_output_is_shown_while_the_command_runs(box):
    run = box.start("run", "--", "sh", "-c", "echo first; until [ -e go ]; do sleep 0.02; done")
    wait_for("the first line", lambda: box.read(run.out) == "first\n")
    box.write("go", "")
    box.finish(run)


def test_a_reader_that_goes_away_does_not_take_the_job_along(box):
    done = box.glia("run", "--", "sh", "-c", f"seq 100000; echo ok > {box.folder}/end", code=None,
                    stdin=None)
    assert done.returncode == 0
    said = subprocess.check_output(
        f"{GLIA} run -- sh -c 'seq 100000; sleep 0.3; echo ok > {box.folder}/end2' | head -1",
        shell=True, cwd=box.folder, env=box.env, text=True, timeout=60)
    assert said == "1\n"
    assert box.read("end2") == "ok\n"


# ---- interruptions ----


def slow_flow(box, mark=""):
    return box.write("slow.yaml", """
steps:
  first: {sh: 'echo 1 >> %s/first'}
  second:
    needs: first
    %s
    sh: |
      echo 1 >> %s/second
      until [ -e %s/go ]; do sleep 0.02; done
      echo 1 >> %s/second.end
  third: {sh: 'echo 1 >> %s/third', needs: second}
""" % (box.folder, mark, *[box.folder] * 4))


def test_an_interrupt_pauses_the_job_and_it_can_go_on(box):
    run = box.start("run", slow_flow(box))
    wait_for("the second step", lambda: box.has("second"))
    run.send_signal(signal.SIGINT)
    job = box.finish(run, 130).split("\t")[0]
    assert f"glia job resume {job}" in box.read(run.err)
    assert box.json("job", "status", job)["status"] == "paused"
    box.write("go", "")
    assert box.glia("job", "resume", job).stdout.endswith("completed\n")
    assert box.read("first") == "1\n" and box.read("second") == "1\n1\n"
    assert box.read("third") == "1\n"


def test_an_interrupt_leaves_an_unsafe_step_to_end(box):
    run = box.start("run", slow_flow(box, "unsafe: true"))
    wait_for("the second step", lambda: box.has("second"))
    run.send_signal(signal.SIGINT)
    wait_for("the pause", lambda: "pausing" in box.read(run.err))
    assert run.poll() is None
    box.write("go", "")
    job = box.finish(run, 130).split("\t")[0]
    assert box.step(job, "second")["status"] == "completed"
    box.glia("job", "resume", job)
    assert box.read("second") == "1\n" and box.read("third") == "1\n"


def test_a_second_interrupt_leaves_at_once_and_what_runs_goes_on(box):
    run = box.start("run", slow_flow(box, "unsafe: true"))
    wait_for("the second step", lambda: box.has("second"))
    run.send_signal(signal.SIGINT)
    wait_for("the pause", lambda: "pausing" in box.read(run.err))
    run.send_signal(signal.SIGINT)
    box.finish(run, 130)
    assert not box.has("second.end")
    box.write("go", "")
    wait_for("the step's own end", lambda: box.has("second.end"))
    job = box.wait_job()[0]
    box.glia("job", "resume", job)
    assert box.read("second") == "1\n" and box.read("third") == "1\n"


# ---- a terminal ----


def run_on_terminal(box, *args, gate=None, **env):
    """What a command writes to a terminal of 24 lines; when it has said that something runs, there
    is a file with the name of the gate."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(box.folder)
        os.execve(GLIA, [GLIA, *args], {**box.env, **env})
    text = b""
    while True:
        ready, _, _ = select.select([fd], [], [], 60)
        assert ready, text
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
        if gate is not None and b"running" in text:
            box.write(gate, "")
    os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return text.decode(), status


def test_on_a_terminal_each_step_has_one_line_that_is_updated(box):
    flow = box.write("flow.yaml", f"""name: pretty
steps:
  a: {{sh: 'until [ -e {box.folder}/go ]; do sleep 0.02; done'}}
  b: {{sh: 'true', needs: a}}
""")
    text, status = run_on_terminal(box, "run", flow, gate="go")
    assert status == 0
    assert "\x1b[2A\r" in text and "\x1b[32mcompleted" in text
    last = text.split("\x1b[2A\r")[-1]
    assert last.count("completed") == 3  # two steps and the result
    assert "2 steps in" in last


def test_on_a_terminal_instances_stand_behind_their_step(box):
    flow = box.write("flow.yaml", "steps: {each: {foreach: [1, 2], sh: sleep 0.2}, "
                                  "end: {noop: true, needs: each}}\n")
    text, _ = run_on_terminal(box, "run", flow, NO_COLOR="1")
    last = re.split(r"\x1b\[\d+A\r", text)[-1].splitlines()  # the id of a job may end in A, too
    names = [word.removesuffix("\x1b[K") for line in last[:4] for word in line.split()[1:2]]
    assert names == ["each", "each[0]", "each[1]", "end"], text


def test_no_color_is_heeded(box):
    flow = box.write("flow.yaml", "steps: {a: {sh: 'true'}}\n")
    text, _ = run_on_terminal(box, "run", flow, NO_COLOR="1")
    assert "completed" in text and "\x1b[3" not in text


def test_on_a_terminal_a_command_is_told_its_job(box):
    text, _ = run_on_terminal(box, "run", "--", "echo", "hello")
    assert text == f"glia: job {box.jobs()[0]['job_id']}\r\nhello\r\n"


def test_what_steps_say_of_themselves_cannot_steer_the_terminal(box):
    box.glia("run", "--run-id", "x", "--", "true")
    flow = box.write("flow.yaml", 'name: "\\e[31mred"\nsteps: {a: {sh: "true"}}\n')
    box.glia("run", flow, code=None)
    text, _ = run_on_terminal(box, "job", "list", NO_COLOR="1")
    assert "\x1b" not in text


def test_a_script_that_is_a_fifo_is_refused_at_once(box):
    os.mkfifo(os.path.join(box.folder, "pipe.sh"))
    box.write("flow.yaml", "steps: {a: {script: pipe.sh}}")
    error, = box.json("validate", "flow.yaml", code=2)["errors"]
    assert (error["path"], error["reason"]) == ("steps.a.script", "file_not_regular")


def test_the_folder_holds_a_token_for_its_owner_alone(box):
    box.glia("run", "--", "true")
    path = os.path.join(box.data, "token")
    assert os.stat(path).st_mode & 0o777 == 0o600
    token = box.read(path)
    box.glia("run", "--", "true")
    assert len(token.strip()) == 64 and box.read(path) == token
