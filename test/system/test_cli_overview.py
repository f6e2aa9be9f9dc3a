"""How everything stands: why, status, doctor, top; completion and manual pages."""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from clusterbox import CALM, make_boxes, make_redis  # noqa: E402,F401
from glianode import BUILD, GLIA, ROOT, wait_for  # noqa: E402
from httpnode import JOBS  # noqa: E402
from lossy import Lossy  # noqa: E402

GOLDEN = golden.of(__file__)


def start_node(box):
    node = box.start("serve")
    wait_for("the node", lambda: "ready: process" in box.read(node.err))
    return node


def run_blocked(box):
    """A job with a step that waits for a signal and one that waits for it."""
    flow = box.write("blocked.yaml", "name: blocked\nsteps: {s: {signal: go}, "
                                     "t: {noop: true, needs: s}}\n")
    job = box.glia("run", "--detach", flow, "--run-id", "held").stdout.strip()
    wait_for("the wait", lambda: box.step(job, "s")["status"] == "blocked")
    return job


# ---- why ----


def test_why_tells_of_the_job_and_of_each_step_that_has_not_ended(box):
    start_node(box)
    job = run_blocked(box)
    rows = [line.split("\t") for line in box.glia("why", job).stdout.splitlines()]
    assert [row[:2] for row in rows] == [["job", "running"], ["s", "blocked"], ["t", "pending"]]
    assert "signal 'go'" in rows[0][2] and "signal 'go'" in rows[1][2] and "'s'" in rows[2][2]
    doc = box.json("why", "held", "t")
    assert doc["job_id"] == job and list(doc["steps"]) == ["t"]
    assert doc["steps"]["t"]["why"] == rows[2][2]
    assert box.glia("why", "held", "t").stdout == "\t".join(rows[2]) + "\n"
    status = box.json("job", "status", job)
    assert status["why"] == rows[0][2]
    assert rows[1][2] in box.glia("job", "status", job).stdout
    assert "no step" in box.glia("why", job, "z", code=3).stderr
    assert "no job" in box.glia("why", "nobody", code=3).stderr


def test_why_tells_how_a_job_ended_without_a_node(box):
    box.glia("run", "--run-id", "bad", "--", "false", code=1)
    assert "exit code 1" in box.glia("why", "bad").stdout


# ---- status ----


def test_status_works_with_and_without_a_node(box):
    assert box.json("status")["node"] is None
    assert not os.path.exists(box.data)
    box.glia("run", "--", "false", code=1)
    start_node(box)
    run_blocked(box)
    doc = box.json("status")
    assert doc["jobs"]["failed"] == 1 and doc["jobs"]["running"] == 1 and doc["jobs_complete"]
    assert "default" in doc["node"]["pools"] and doc["data_dir"] == box.data
    assert doc["store_bytes"] is None if box.lent else doc["store_bytes"] > 0
    assert doc["human"] == 0
    rows = dict(line.split("\t") for line in box.glia("status").stdout.splitlines())
    assert "serve, process" in rows["node"] and re.search(r"default 0 of \d+", rows["pools"])
    assert rows["jobs"] == "1 running, 1 failed"


# ---- doctor ----


def checks(box, code=0):
    return {c["check"]: c for c in box.json("doctor", code=code)["checks"]}


def test_the_doctor_finds_nothing_wrong_where_nothing_is(box):
    assert all(c["result"] != "fail" for c in checks(box).values())
    assert not os.path.exists(box.data)
    start_node(box)
    box.glia("run", "--", "true")
    found = checks(box)
    assert found["node"]["found"].startswith("it answers: process ")
    assert found["keeper"]["found"] == "it answers" and found["store"]["result"] != "fail"
    assert box.lent or found["store"]["found"] == "sound"  # a server may have warnings
    lines = box.glia("doctor").stdout.splitlines()
    assert len(lines) == len(found) == 13 and all(len(x.split("\t")) == 3 for x in lines)


def test_the_keeper_lives_on_after_the_doctor(box):
    start_node(box)
    run = box.start("run", "--", "sh", "-c", "until [ -e go ]; do sleep 0.02; done; echo done")
    job = box.wait_job()[0]
    wait_for("the step", lambda: box.step(job, "run")["status"] == "running")
    for _ in range(3):
        assert checks(box)["keeper"]["result"] == "ok"
    box.write("go", "")
    assert box.finish(run) == "done\n"
    assert box.step(job, "run")["attempt_count"] == 1


def test_the_doctor_says_what_is_wrong_and_what_to_do(box):
    box.glia("run", "--", "true")
    os.chmod(box.data, 0o777)
    found = checks(box, code=1)["data folder"]
    assert found["result"] == "fail" and found["to_do"] == f"chmod 700 {box.data}"
    os.chmod(box.data, 0o700)
    os.chmod(f"{box.data}/token", 0o644)
    assert checks(box, code=1)["permissions"]["to_do"] == f"chmod 600 {box.data}/token"
    os.chmod(f"{box.data}/token", 0o600)
    assert checks(box)["permissions"]["result"] == "ok"


@pytest.mark.sqlite_only("damages state.db")
def test_the_doctor_finds_a_store_that_is_damaged(box):
    box.glia("run", "--", "true")
    state = f"{box.data}/contexts/default/state.db"
    for name in (state, state + "-wal"):  # the newest pages are in the second
        if os.path.exists(name):
            with open(name, "r+b") as file:
                file.seek(100)
                file.write(b"x" * (os.stat(name).st_size - 100))
    assert checks(box, code=1)["store"]["result"] == "fail"


def test_the_doctor_misses_the_keepers_program(box):
    alone = os.path.join(box.folder, "bin", "glia")
    os.makedirs(os.path.dirname(alone))
    shutil.copy(GLIA, alone)
    box.env["PATH"] = os.path.dirname(alone)
    done = subprocess.run([alone, "doctor"], env=box.env, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1
    rows = {line.split("\t")[1]: line for line in done.stdout.splitlines()}
    assert rows["keeper's program"].startswith("fail\t") and rows["sh"].startswith("fail\t")
    assert rows["python3"].startswith("warn\t")


# ---- top ----


class Screen:
    """`glia top`, or another command, on a terminal of its own."""

    def __init__(self, box, *args, rows=24, columns=100, command=("top",)):
        self.main, end = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.main)
        self.process = subprocess.Popen([GLIA, *command, *args], env=box.env, stdin=end,
                                        stdout=end, stderr=end, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(end)
        self.seen = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, text):
        while text not in self.seen:
            self.seen += os.read(self.main, 65536).decode()
        seen, self.seen = self.seen, self.seen[self.seen.index(text) + len(text):]
        return seen

    def send(self, keys):
        os.write(self.main, keys)

    def finish(self):
        """The kernel looks for text first and for the end second: what was written in between is
        missed by the read that meets the end, and still there for another one."""
        rest = self.seen
        for _ in range(2):
            try:
                while True:
                    rest += os.read(self.main, 65536).decode()
            except OSError:
                self.process.wait(60)
        os.close(self.main)
        return self.process.returncode, rest


def test_top_shows_jobs_and_steps_and_leaves_the_terminal_as_it_was(box):
    start_node(box)
    run_blocked(box)
    box.glia("run", "--", "true")
    screen = Screen(box, "--interval", "100ms")
    first = screen.read_until("q quit")
    assert "\033[?1049h" in first and "slots default 0 of" in first
    assert "blocked" in first and "> " in first and "1/1" in first and "0/2" in first
    assert first.index("0/2") < first.index("1/1") and "signal 'go'" in first
    screen.send(b"j")
    screen.read_until("no step of this job is in progress")
    screen.send(b"\r")
    screen.resize(10, 40)
    screen.read_until("q quit")
    screen.read_until("q quit")
    narrow = screen.read_until("q quit").split("\033[H")[-1]
    lines = [re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", line).rstrip("\r")
             for line in narrow.split("\n")]
    assert len(lines) == 10 and max(len(line) for line in lines) <= 40
    after = termios.tcgetattr(screen.main)
    assert not after[3] & termios.ICANON
    screen.send(b"q")
    code, rest = screen.finish()
    assert code == 0 and rest.endswith("\033[?25h\033[?1049l")


def test_top_and_the_list_show_which_jobs_wait_for_a_person(box):
    start_node(box)
    flow = box.write("ask.yaml", "name: ask\nsteps: {ask: {approval: '%s?'}, "
                                 "t: {noop: true, needs: ask}}\n" % ("Shall we " * 20))
    job = box.glia("run", "--detach", flow).stdout.strip()
    box.glia("run", "--", "true")
    wait_for("the question", lambda: box.glia("human", "list").stdout)
    screen = Screen(box, columns=80)
    first = screen.read_until("q quit")
    plain = re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", first).replace("\r", "")
    counts = re.search(r"(\d+) running, (\d+) waiting, (\d+) for", plain)
    assert counts.groups() == ("0", "0", "1"), plain
    rows = [line for line in plain.splitlines() if "/1 " in line or "/2, " in line]
    assert rows[0].startswith(f"> {job}") and "0/2, 1 asks" in rows[0]
    assert rows[0].endswith("  ask") and "asks" not in rows[1]
    line = next(line for line in plain.splitlines() if "Shall" in line)
    assert len(line) == 80 and line.endswith("\u2026")
    screen.send(b"q")
    assert screen.finish()[0] == 0
    screen = Screen(box, command=["job", "list"])
    assert "0/2, 1 asks" in screen.read_until("1 of these jobs waits for a person: ")
    assert screen.finish()[0] == 0
    assert "asks" not in box.glia("job", "list").stdout


def test_tables_keep_to_eighty_columns(box):
    flow = box.write("f.yaml", "name: %s\nsteps: {fetch: {sh: 'exit 1', on_failure: continue}, "
                               "wait: {approval: '%s'}}\n"
                     % ("nightly-" * 6, "shall we do it " * 9))
    start_node(box)
    box.glia("run", "--detach", flow, "--run-id", "run-of-tonight")
    wait_for("the question", lambda: box.glia("human", "list").stdout)
    for command in (["job", "list"], ["job", "status", "run-of-tonight"], ["human", "list"],
                    ["why", "run-of-tonight"], ["status"], ["job", "events", "run-of-tonight"]):
        code, text = Screen(box, columns=80, command=[*command]).finish()
        assert code == 0
        lines = re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", text).splitlines()
        table = [line for line in lines if not line.startswith("glia:")]
        # what is one word, like a path or an id, may be longer
        assert all(len(line) <= 80 or "/" in line or len(line.split()) == 1
                   for line in table), "\n".join(table)
        assert not any(re.search(r"\d:\d\d\.\d\d\dZ  ", line) for line in table)
    text = Screen(box, columns=80, command=["job", "list"]).finish()[1]
    assert "nightly-" in text and "\u2026" in text and "run-of-tonight" in text


def test_top_asks_for_the_steps_of_a_job_when_something_happened_to_it(box):
    start_node(box)
    job = run_blocked(box)

    def asked(what):
        return sum(path.startswith(what) for _, path, _ in list(proxy.requests))

    with Lossy(box, lambda method, path: False) as proxy:
        screen = Screen(box, "--server", proxy.server, "--interval", "100ms")
        screen.read_until("signal 'go'")
        for _ in range(20):
            screen.read_until("q quit")
        assert asked(f"{JOBS}/{job}") <= 2  # again when it has become old
        box.glia("job", "signal", job, "go")
        screen.read_until("no step of this job is in progress")
        screen.send(b"q")
        assert screen.finish()[0] == 0


def test_top_ends_with_an_interrupt_and_without_a_node(box):
    screen = Screen(box, rows=3, columns=20)
    screen.read_until("no node")
    screen.send(b"\x03")
    code, rest = screen.finish()
    assert code == 0
    assert rest.endswith("\033[?1049l"), repr(rest)


def away(redis, how):
    """From now on the store does not answer."""
    if how == "stopped":
        redis.pause()
    else:
        redis.kill()


# With the longer time the command gives up before the node does.
@pytest.mark.parametrize("how, timeout_ms", [("killed", 5000), ("stopped", 30000)])
def test_status_and_top_tell_of_a_store_that_does_not_answer(boxes, redis, how, timeout_ms):
    one = boxes("one", **CALM, GLIA_STORE=f"{redis.url}?timeout_ms={timeout_ms}")
    start_node(one)
    one.glia("run", "--", "true")
    away(redis, how)
    try:
        wait_for("its notice", lambda: one.ask("GET", "/readyz").status == 503)
        screen = Screen(one, columns=200)
        done, doc = one.glia("status", code=5), one.json("status", code=5)
        seen = screen.read_until("q quit")
        assert one.ask("GET", "/healthz").status == 200
        screen.send(b"q")
        assert screen.finish()[0] == 0
    finally:
        redis.resume()
    rows = dict(line.split("\t") for line in done.stdout.splitlines())
    assert "serve, process" in rows["node"]
    GOLDEN.says("jobs", rows["jobs"])
    assert doc["node"]["reason_code"] == "store_silent"
    assert re.search(r" since 20\d\d-", rows["not ready"])
    assert doc["node"]["reason"] == rows["not ready"] and rows["not ready"] in seen
    assert doc["jobs"] is None and doc["human"] is None and not doc["jobs_complete"]
    assert doc["error"]["code"] == "unavailable"
    for text in (done.stderr, doc["error"]["message"], seen):
        assert GOLDEN.tells(how, text) and "kill" not in text.replace(one.data, "")


def test_top_needs_a_terminal(box):
    assert "glia status" in box.glia("top", code=2).stderr
    assert "100ms to 1h" in box.glia("top", "--interval", "1ms", code=2).stderr


# ---- completion ----


def complete(box, *words):
    out = box.glia("__complete", "--", *words).stdout
    return [line.split("\t")[0] for line in out.splitlines()]


@pytest.fixture(name="known")
def make_known(box):
    flow = box.write("f.yaml", "name: known\nsteps: {fetch: {noop: true}, send: {noop: true}}\n")
    box.glia("run", flow, "--run-id", "mine")
    return box.jobs()[0]["job_id"]


def test_words_are_completed_from_the_table_of_commands(box):
    assert "job" in complete(box, "") and "__complete" not in complete(box, "")
    assert complete(box, "jo") == ["job"]
    assert complete(box, "job", "st") == ["status"]
    assert complete(box, "job", "list", "--sta") == ["--status"]
    assert "cancelled" in complete(box, "job", "list", "--status", "")
    assert complete(box, "completion", "") == ["bash", "zsh", "fish"]
    assert complete(box, "run", "") == [":files", ":folders"]
    assert complete(box, "run", "--input-file", "") == [":files"]
    assert complete(box, "run", "--", "") == [":files"]
    assert complete(box, "help", "jo") == ["job"]
    assert complete(box, "--da") == ["--data-dir"]
    assert complete(box, "nothing", "") == [] and complete(box, "job", "status", "x", "") == []


def test_jobs_and_steps_are_those_there_are(box, known):
    assert complete(box, "job", "status", "") == [known, "mine"]
    assert complete(box, "job", "status", known[:12].lower()) == [known]
    assert complete(box, "job", "logs", "mine", "") == ["fetch", "send"]
    assert complete(box, "job", "logs", "mine", "--attempt", "1", "s") == ["send"]
    assert complete(box, "job", "retry", "mine", "--from", "f") == ["fetch"]
    assert complete(box, "job", "rm", known, "m") == ["mine"]
    elsewhere = [known, "mine"] if box.lent else []  # a server is the same from any folder
    assert complete(box, "--data-dir", f"{box.folder}/other", "job", "status", "") == elsewhere
    assert not os.path.exists(f"{box.folder}/other")


def in_shell(box, *command):
    env = dict(box.env, PATH=f"{BUILD}:{box.env['PATH']}", HOME=box.folder)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True,
                          stdin=subprocess.DEVNULL).stdout


def test_bash_completes(box, known):
    assert known
    box.write("c", box.glia("completion", "bash").stdout)
    script = (f"source {box.folder}/c; compopt() {{ echo compopt $*; }}\n"
              "ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _glia\n"
              "echo \"${COMPREPLY[@]}\"; }\n"
              "ask glia job res; ask glia job logs mine ''; ask glia run ''; complete -p glia")
    assert in_shell(box, "bash", "-c", script).splitlines() == [
        "result resume", "fetch send", "compopt -o default", "compopt -o dirnames", "",
        "complete -F _glia glia"]


def test_zsh_completes(box, known):
    assert known
    box.write("c", box.glia("completion", "zsh").stdout)
    script = ("compdef() { print compdef $@ }; _files() { print files $@ }\n"
              "_describe() { print -l -- $found }\n"
              f"source {box.folder}/c\n"
              "ask() { words=(\"$@\"); CURRENT=$#; _glia }\n"
              "ask glia job res; ask glia job logs mine ''; ask glia run ''; true")
    lines = in_shell(box, "zsh", "-f", "-c", script).splitlines()
    assert [line.split(":")[0] for line in lines[1:3]] == ["result", "resume"]
    for line in lines[1:3]:  # with their summaries
        assert line.split(":")[1] in box.glia("help", "job", line.split(":")[0]).stdout
    assert lines[:1] + lines[3:] == ["compdef _glia glia", "fetch:completed", "send:completed",
                                     "files", "files -/"]


def test_fish_completes(box, known):
    assert known
    box.write("c", box.glia("completion", "fish").stdout)
    script = (f"source {box.folder}/c; complete -C 'glia job res'; "
              "complete -C 'glia job logs mine '; complete -C 'glia run c'")
    out = in_shell(box, "fish", "--no-config", "-c", f"cd {box.folder}; {script}").splitlines()
    assert [line.split("\t")[0] for line in out] == ["result", "resume", "fetch", "send", "c"]


# ---- manual pages ----


def test_every_group_of_commands_has_a_page_that_is_installed(box):
    groups = {line.split()[1] for line in box.glia("help").stdout.splitlines()
              if line.startswith("  glia ")}
    box.glia("__man", box.folder)
    made = {name for name in os.listdir(box.folder) if name.endswith(".1")}
    assert made == {"glia.1"} | {f"glia-{group}.1" for group in groups}
    with open(f"{ROOT}/man/meson.build", encoding="utf-8") as file:
        installed = set(re.findall(r"'(glia[a-z-]*\.1)'", file.read()))
    assert made == installed


def test_the_pages_are_good_roff_and_name_every_option(box):
    box.glia("__man", box.folder)
    for name in sorted(n for n in os.listdir(box.folder) if n.endswith(".1")):
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-cbou", f"{box.folder}/{name}"],
                              capture_output=True, text=True, timeout=60, check=True)
        assert done.stderr == "", name
        text = done.stdout
        for section in ("NAME", "SYNOPSIS", "OPTIONS OF ALL COMMANDS"):
            assert re.search(rf"^{section}$", text, re.M), (name, section)
        words = name[:-2].split("-")[1:]
        if words:
            for option in re.findall(r"^  (--[\w-]+)", box.glia("help", *words).stdout, re.M):
                assert option in text.replace("\u2010", "-"), (name, option)


def test_json_comes_from_all_that_tells_something(box):
    for command in (["status"], ["doctor"], ["job", "list"], ["human", "list"], ["version"]):
        assert isinstance(json.loads(box.glia(*command, "--json").stdout), dict)
