"""The other commands: looking, stopping, going on, and what they say about mistakes."""

import json
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import GLIA, wait_for  # noqa: E402

GOLDEN = golden.of(__file__)

WAITING = """
name: waiting
steps:
  hold: {sh: 'until [ -e %s/go ]; do sleep 0.02; done'}
  after: {sh: 'echo after', needs: hold}
"""


def start_waiting(box, *args):
    """A running job, and its id."""
    before = len(box.jobs())
    run = box.start("run", box.write("waiting.yaml", WAITING % box.folder), *args)
    job = box.wait_job(before + 1)[0]
    wait_for("the step", lambda: box.step(job, "hold")["status"] == "running")
    return run, job


def line_of(text, word):
    return next(line for line in text.splitlines() if word in line)


# ---- looking ----


def test_without_a_data_folder_there_are_no_jobs_and_none_is_made(box):
    done = box.glia("job", "list")
    assert done.stdout == "" and "no jobs" in done.stderr
    assert box.jobs() == []
    assert not os.path.exists(box.data)


def test_a_list_is_tab_separated_when_piped(box):
    box.glia("run", "--run-id", "one", "--", "true")
    box.glia("run", "--run-id", "two", "--", "false", code=1)
    rows = [line.split("\t") for line in box.glia("job", "list").stdout.splitlines()]
    assert [(r[1], r[2], r[3], r[4]) for r in rows] == [("failed", "false", "two", "1/1"),
                                                       ("completed", "true", "one", "1/1")]
    assert all(len(r) == 7 for r in rows)
    failed = box.glia("job", "list", "--status", "failed").stdout
    assert failed.count("\n") == 1 and "two" in failed
    assert box.glia("job", "list", "--limit", "1").stdout.count("\n") == 1


def test_a_job_is_found_by_id_by_the_beginning_of_it_and_by_run_id(box):
    box.glia("run", "--run-id", "mine", "--", "true")
    job = box.jobs()[0]["job_id"]
    for name in (job, job[:12], job.lower()[:14], "mine"):
        assert box.json("job", "status", name)["job_id"] == job
    assert box.reason("job", "status", "nobody", code=3) == "no_such_job"
    for command in ("status", "cancel"):
        assert box.reason("job", command, job[:3], code=3) == "no_such_job"
    box.glia("run", "--", "true")
    assert box.reason("job", "status", job[:4], code=2) == "job_ambiguous"


def test_status_tells_the_steps_in_the_order_of_the_flow(box):
    flow = box.write("f.yaml", "steps: {z: {sh: 'true'}, a: {sh: 'exit 3', needs: z}, "
                               "m: {sh: 'true', needs: a}}\n")
    job = box.glia("run", flow, code=1).stdout.split("\t")[0]
    rows = [line.split("\t") for line in box.glia("job", "status", job).stdout.splitlines()]
    assert [(r[0], r[1], r[2]) for r in rows] == [("z", "completed", "1"), ("a", "failed", "1"),
                                                 ("m", "skipped", "0")]
    assert rows[1][5] == "exit code 3"


def test_events_can_be_read_from_any_number_on(box):
    job = box.json("run", "--", "true")["job_id"]
    lines = box.glia("job", "events", job).stdout.splitlines()
    types = [line.split("\t")[2] for line in lines]
    assert types == ["job_running", "workflow_step_attempt_started", "workflow_step_completed",
                     "job_completed"]
    later = box.glia("job", "events", job, "--from", "3").stdout.splitlines()
    assert later == lines[2:]
    parsed = [json.loads(line)
              for line in box.glia("job", "events", job, "--json").stdout.splitlines()]
    assert [e["seq"] for e in parsed] == [1, 2, 3, 4]
    assert parsed[1]["attempt_id"] == "run:attempt:1"


def test_events_can_be_followed_to_the_end(box):
    run, job = start_waiting(box)
    follow = box.start("job", "events", job, "--follow")
    wait_for("the first events", lambda: "attempt_started" in box.read(follow.out))
    box.write("go", "")
    box.finish(run)
    assert "job_completed" in box.finish(follow)


def test_logs_are_told_by_step_and_attempt(box):
    flow = box.write("f.yaml", """
steps:
  a: {sh: 'echo from a; echo also a >&2'}
  b:
    needs: a
    retry: {attempts: 2, backoff: 10ms}
    sh: 'echo try $GLIA_ATTEMPT; [ "$GLIA_ATTEMPT" = 2 ]'
""")
    job = box.glia("run", flow).stdout.split("\t")[0]
    assert box.glia("job", "logs", job).stdout == "a\tfrom a\na\talso a\nb\ttry 2\n"
    assert box.glia("job", "logs", job, "b").stdout == "try 2\n"
    assert box.glia("job", "logs", job, "b", "--attempt", "1").stdout == "try 1\n"
    lines = box.json("job", "logs", job, "a")["lines"]
    assert [(x["stream"], x["text"]) for x in lines] == [("stdout", "from a"), ("stderr", "also a")]
    assert "2 attempts" in box.glia("job", "logs", job, "b", "--attempt", "3", code=3).stderr
    assert "no step" in box.glia("job", "logs", job, "c", code=3).stderr


def test_a_log_can_be_followed_while_the_step_runs(box):
    run = box.start("run", "--json", "--", "sh", "-c",
                    "echo one; until [ -e go ]; do sleep 0.02; done; echo two")
    job = box.wait_job()[0]
    follow = box.start("job", "logs", job, "run", "--follow")
    wait_for("the first line", lambda: box.read(follow.out) == "one\n")
    box.write("go", "")
    box.finish(run)
    assert box.finish(follow) == "one\ntwo\n"


def test_following_a_log_waits_for_the_step_and_goes_on_with_its_next_try(box):
    flow = box.write("f.yaml", """
steps:
  a: {sh: 'until [ -e %(f)s/go ]; do sleep 0.02; done'}
  b:
    needs: a
    retry: {attempts: 3, backoff: 10ms}
    sh: 'echo try $GLIA_ATTEMPT; until [ -e %(f)s/go$GLIA_ATTEMPT ]; do sleep 0.02; done;
      [ $GLIA_ATTEMPT = 3 ]'
""" % {"f": box.folder})
    run = box.start("run", flow)
    job = box.wait_job()[0]
    follow = box.start("job", "logs", job, "b", "--follow")
    first = box.start("job", "logs", job, "a", "--follow", "--attempt", "1")
    time.sleep(0.5)
    assert follow.poll() is None
    box.write("go", "")
    for number in (1, 2, 3):
        wait_for("its line", lambda n=number: f"try {n}\n" in box.read(follow.out))
        box.write(f"go{number}", "")
    assert box.finish(follow) == "try 1\ntry 2\ntry 3\n"
    assert box.finish(first) == ""
    box.finish(run)
    assert box.glia("job", "logs", job, "b", "--follow").stdout == "try 3\n"


def test_following_a_long_log_tells_nothing_twice(box):
    run = box.start("run", "--json", "--", "sh", "-c",
                    "until [ -e go ]; do sleep 0.02; done; seq 1500000")
    job = box.wait_job()[0]
    follow = box.start("job", "logs", job, "run", "--follow")
    box.write("go", "")
    box.finish(run)
    lines = [int(line) for line in box.finish(follow).splitlines() if line[:3] != "-- "]
    assert lines == sorted(set(lines)) and lines[0] == 1 and lines[-1] == 1500000


def test_who_leaves_a_job_of_another_node_hears_how_to_go_on_with_it(box):
    run, _ = start_waiting(box)
    other = box.start("run", "--run-id", "mine", "--", "sh", "-c", "echo here; sleep 60")
    wait_for("the command", lambda: box.read(other.out) == "here\n")
    other.send_signal(signal.SIGINT)
    box.finish(other, 130)
    hide = [GLIA, box.json("job", "status", "mine")["job_id"]]
    GOLDEN.says("goes on", line_of(box.read(other.err), "continues"), hide)
    GOLDEN.says("left", line_of(box.read(other.err), "glia job resume"), hide)
    box.glia("job", "cancel", "mine")
    box.write("go", "")
    box.finish(run)


def test_following_a_log_ends_when_the_job_is_paused(box):
    run, job = start_waiting(box)
    follow = box.start("job", "logs", job, "hold", "--follow")
    time.sleep(0.3)
    assert follow.poll() is None
    box.glia("job", "pause", job)
    box.finish(follow)
    box.finish(run, 6)


@pytest.mark.sqlite_only("on a shared store another node may drive it")
def test_a_job_without_a_node_is_told_to_be_so(box):
    run, job = start_waiting(box)
    commands = (["job", "list"], ["job", "status", job], ["human", "list"],
                ["job", "logs", job, "hold", "--follow"])
    for command in commands[:3]:
        assert not GOLDEN.tells("no node", box.glia(*command).stderr)
    run.kill()
    run.wait()
    for command in commands:
        done = box.glia(*command)
        assert GOLDEN.tells("no node", done.stderr) and "job resume ID'" in done.stderr
    assert box.glia("job", "list", "--json").stderr == ""
    box.glia("job", "cancel", job)
    for command in commands:
        assert not GOLDEN.tells("no node", box.glia(*command).stderr)


def test_reading_starts_nothing(box):
    run, job = start_waiting(box)
    run.kill()
    run.wait()
    before = os.stat(f"{box.data}/node.log").st_mtime_ns
    assert box.json("job", "status", job)["status"] == "running"
    assert box.glia("job", "events", job, "--follow").stdout != ""
    box.glia("job", "logs", job)
    box.glia("human", "list")
    assert os.stat(f"{box.data}/node.log").st_mtime_ns == before


# ---- stopping and going on ----


def test_a_job_of_another_command_can_be_paused_and_resumed(box):
    run, job = start_waiting(box)
    box.glia("job", "pause", job, "--reason", "lunch")
    out = box.finish(run, 6)
    assert out.endswith("paused\n")
    GOLDEN.says("paused", line_of(box.read(run.err), "glia: paused"))
    box.write("go", "")
    assert box.glia("job", "resume", job).stdout.endswith("completed\n")


def test_a_job_of_another_command_can_be_cancelled(box):
    run, job = start_waiting(box)
    box.glia("job", "cancel", job, "--reason", "no need")
    assert box.finish(run, 1).endswith("cancelled\n")
    GOLDEN.says("cancelled", line_of(box.read(run.err), "glia: cancelled"))
    done = box.glia("job", "resume", job, code=1)
    GOLDEN.says("resume cancelled", line_of(done.stderr, "already"))


def test_going_on_with_a_job_that_has_ended_exits_as_it_ended(box):
    box.glia("run", "--run-id", "good", "--", "true")
    box.glia("run", "--run-id", "bad", "--", "false", code=1)
    done = box.glia("job", "resume", "good")
    assert done.stdout.endswith("completed\n")
    GOLDEN.says("resume completed", line_of(done.stderr, "already"))
    done = box.glia("job", "resume", "bad", code=1)
    GOLDEN.says("resume failed", line_of(done.stderr, "already"))


def test_pausing_and_cancelling_need_no_node(box):
    run, job = start_waiting(box)
    run.kill()
    run.wait()
    assert box.glia("job", "pause", job).stdout.endswith("paused\n")
    assert box.glia("job", "cancel", job).stdout.endswith("cancelled\n")
    assert box.jobs()[0]["status"] == "cancelled"


def test_a_job_without_a_node_is_picked_up_where_it_was(box):
    run, job = start_waiting(box)
    run.kill()
    run.wait()
    resume = box.start("job", "resume", job)
    box.write("go", "")
    box.finish(resume)
    # The step outlived its node: it was not started again.
    assert box.step(job, "hold")["attempt_count"] == 1


def test_a_run_id_stands_for_one_content_for_ever(box):
    run, job = start_waiting(box, "--run-id", "nightly")
    assert box.reason("run", "--run-id", "nightly", "--", "true", code=2) == "run_id_taken"
    box.write("go", "")
    box.finish(run)
    again = box.glia("run", "waiting.yaml", "--run-id", "nightly")
    GOLDEN.says("run again", line_of(again.stderr, "run id"), [job])
    assert again.stdout == f"{job}\tnightly\tcompleted\n" and len(box.jobs()) == 1
    box.glia("run", "--run-id", "nightly", "--", "true", code=2)


# ---- flow files ----


BAD = """name: bad
steps:
  a:
    sh: [x]
    retries: 3
  b:
    need: a
    script: missing.py
"""


def test_all_errors_of_a_flow_file_are_told_at_once_with_their_places(box):
    flow = box.write("bad.yaml", BAD)
    for command in ("run", "validate"):
        done = box.glia(command, flow, code=2)
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        GOLDEN.says("steps.a.sh", lines[0], [flow])
        assert lines[1] == "     4 |     sh: [x]"
        assert lines[2] == "       |         ^"
        assert lines[3].startswith(f"{flow}:5:5: steps.a.retries: ") and "`retry`?" in lines[3]
        assert lines[6].startswith(f"{flow}:7:5: steps.b.need: ") and "`needs`?" in lines[6]
        assert lines[9].startswith(f"{flow}:8:13: steps.b.script: cannot open")
    assert not os.path.exists(box.data)  # nothing was changed
    doc = json.loads(box.glia("validate", flow, "--json", code=2).stdout)
    assert not doc["valid"]
    assert [(e["line"], e["path"]) for e in doc["errors"]] == [
        (4, "steps.a.sh"), (5, "steps.a.retries"), (7, "steps.b.need"), (8, "steps.b.script")]


@pytest.mark.parametrize("name, text, place", [
    ("x.yaml", "steps: {a: [1,\n", ":2:1: "),
    ("x.json", '{"steps": {"a": {"sh": "true",}}}', ":1:31: "),
    ("x.json", "", ":1:1: "),
])
def test_what_is_no_yaml_or_json_is_told_with_its_place(box, name, text, place):
    flow = box.write(name, text)
    done = box.glia("validate", flow, code=2)
    assert done.stderr.startswith(f"{flow}{place}")


def test_a_file_that_is_not_there_is_bad_input(box):
    GOLDEN.says("no flow file", box.glia("run", "nowhere.yaml", code=2).stderr)


def test_validate_tells_which_steps_can_run_twice(box):
    flow = box.write("f.yaml", "steps: {a: {sh: 'true', idempotent: true}, b: {sh: 'true'}, "
                               "c: {sh: 'true', unsafe: true}}\n")
    rows = [line.split("\t") for line in box.glia("validate", flow).stdout.splitlines()]
    assert [(r[0], r[1]) for r in rows] == [("a", "yes"), ("b", "yes"), ("c", "no")]
    for row in rows:
        GOLDEN.says(f"runs twice: {row[1]} {row[0]}".replace(": ", " "), row[2])
    doc = json.loads(box.glia("validate", flow, "--json").stdout)
    assert [s["can_run_twice"] for s in doc["steps"]] == [True, True, False]


def test_a_flow_that_wants_more_than_there_is_is_refused(box):
    flow = box.write("f.yaml", "steps: {a: {sh: 'true', pool: gpu}}\n")
    assert "gpu" in box.glia("run", flow, code=2).stderr
    box.env["GLIA_POOLS"] = "default=1,gpu=1"
    box.glia("run", flow)


@pytest.mark.parametrize("pools", ["default", "default=0", "=4", "a=1,a=2", "default=x", "d=1,,"])
def test_pools_are_checked(box, pools):
    box.env["GLIA_POOLS"] = pools
    done = box.glia("run", "--", "true", code=2)
    assert "GLIA_POOLS" in done.stderr


# ---- usage ----


@pytest.mark.parametrize("args, shows", [
    (["job", "statsu", "x"], ""),
    (["jbo", "list"], ""),
    (["jobs"], ""),
    (["job", "xyzzy"], "  glia job resume "),
    (["jobs", "status", "x"], ""),
    (["humans"], ""),
    (["help", "jobs"], ""),
    (["help", "job", "statsu"], ""),
    (["validat", "x"], ""),
    (["job", "list", "--statsu", "x"], ""),
    (["job", "list", "--limit"], ""),
    (["job", "list", "--limit", "many"], ""),
    (["job", "list", "--json=1"], ""),
    (["job", "logs", "x", "--follow=1"], ""),
    (["job", "status"], "usage: glia job status ID"),
    (["human", "respond", "x"], ""),
    (["validate"], ""),
    (["run"], ""),
    (["run", "--", ""], ""),
    (["run", "--run-id", "", "--", "true"], ""),
    (["human", "respond", "x", "y", "--decision", "failed", "--output", "1"], ""),
    (["job", "status", "a", "b"], ""),
    (["job"], "glia job resume"),
    (["human"], "glia human respond"),
    (["run", "--"], ""),
    (["run", "x.yaml", "--", "true"], ""),
    (["--limit", "1", "job", "list"], ""),
    (["--foo"], ""),
    (["--jsn", "job", "list"], ""),
    (["--jsno", "job", "list"], ""),
    (["--data-dir"], ""),
])
def test_mistakes_on_the_command_line_are_told_with_what_was_meant(box, args, shows):
    done = box.glia(*args, code=2)
    assert shows in done.stderr and done.stdout == ""
    GOLDEN.says(f"mistake, {shlex.join(args)}", line_of(done.stderr, "glia:"))


def test_help_and_version_are_data(box):
    assert "glia run" in box.glia("help").stdout
    assert box.glia("--help").stdout == box.glia("help").stdout
    assert box.glia("run", "--help").stdout == box.glia("help", "run").stdout
    assert box.glia("help", "job").stdout.count("usage:") == 17
    assert "glia run" in box.glia(code=2).stdout
    assert box.glia("version").stdout.startswith("glia 0.")
    assert set(box.json("version")) == {"version", "build"}
    assert "unknown command" in box.glia("help", "nothing", code=2).stderr
    for word in ("--help", "-h"):
        group = box.glia("job", word).stdout
        assert group.count("  glia job ") == 17 and "glia run" not in group


def test_mistakes_are_told_as_json_where_that_was_asked_for(box):
    for args, exit_code, code, says in [
            (("job", "status", "nobody"), 3, "not_found", "no job"),
            (("job", "list", "--limit", "x"), 2, "invalid", "--limit takes"),
            (("job", "status"), 2, "invalid", "ID is missing"),
            (("jobs",), 2, "invalid", "did you mean 'job list'?"),
            (("job",), 2, "invalid", "one more word"),
            (("run", "nowhere.yaml"), 2, None, "No such file"),
            (("job", "cancel", "nobody"), 3, "not_found", "no job"),
    ]:
        error = box.json(*args, code=exit_code)["error"]
        assert code in (None, error["code"]) and says in error["message"]
    flow = box.write("bad.yaml", "steps: {a: {sh: 7}, b: {needs: c, noop: true}}\n")
    assert box.json("run", flow, code=2) == box.json("validate", flow, code=2)
    assert len(box.json("run", flow, code=2)["errors"]) == 2


# ---- stdout ----


@pytest.mark.parametrize("where", ["/dev/full", "&-"])
def test_what_cannot_be_printed_is_told(box, where):
    box.glia("run", "--", "true")
    for command in ("job list", "version", "help", "run -- seq 100000"):
        done = subprocess.run(["sh", "-c", f"{GLIA} {command} >{where}"], env=box.env, text=True,
                              capture_output=True, timeout=60, check=False)
        assert done.returncode == 5, command
        GOLDEN.says("not printed", line_of(done.stderr, "standard output").rpartition(":")[0])
    assert [job["status"] for job in box.jobs()] == ["completed", "completed"]


def test_a_reader_that_has_had_enough_is_no_error(box):
    box.glia("run", "--run-id", "much", "--", "seq", "200000")
    command = f"{GLIA} job logs much | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], env=box.env, text=True,
                          capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("1\n0\n", "")


# ---- the data folder ----


def test_a_data_folder_with_too_long_a_path_is_refused_in_short(box):
    box.env["GLIA_DATA_DIR"] = "/tmp" + "/" + "x" * 4000
    for command in (["run", "--", "true"], ["job", "list"]):
        assert len(box.glia(*command, code=2).stderr) < 200
        assert box.reason(*command, code=2) == "folder_path_too_long"


def test_a_data_folder_that_is_a_file_is_named_so(box):
    box.env["GLIA_DATA_DIR"] = box.write("file", "")
    for command in (["run", "--", "true"], ["job", "list"]):
        assert box.reason(*command, code=5) == "folder_is_file"
    box.glia("version")


def test_who_asks_is_known_without_the_environment(box):
    del box.env["USER"]
    box.env.pop("LOGNAME", None)
    run, job = start_waiting(box)
    box.glia("job", "cancel", job)
    box.finish(run, 1)
    assert pwd.getpwuid(os.getuid()).pw_name in line_of(box.read(run.err), "glia: cancelled")


def test_a_disk_that_cannot_be_written_is_told_as_such(box):
    os.makedirs(box.folder + "/file", exist_ok=True)
    with open(box.data, "w", encoding="utf-8"):
        pass
    done = box.glia("run", "--", "true", code=5)
    assert box.data in done.stderr


def test_without_its_keeper_there_is_no_node(box):
    alone = os.path.join(box.folder, "bin", "glia")
    os.makedirs(os.path.dirname(alone))
    shutil.copy(GLIA, alone)
    done = subprocess.run([alone, "run", "--", "true"], env=box.env, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 5 and "glia-keeper" in done.stderr


@pytest.mark.sqlite_only("damages state.db")
def test_a_damaged_store_is_told_as_such(box):
    box.glia("run", "--", "true")
    path = f"{box.data}/contexts/default/state.db"
    before = os.stat(path).st_size
    for name in (path, path + "-wal"):
        if os.path.exists(name):
            with open(name, "wb") as file:
                file.write(b"x" * before)
    for command in (["run", "--", "true"], ["job", "list"]):
        assert "is damaged" in box.glia(*command, code=5).stderr
    assert os.stat(path).st_size == before
