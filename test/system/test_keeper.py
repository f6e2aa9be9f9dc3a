"""glia-keeper as a process: what it runs, what it kills, what it remembers, whom it refuses."""

import hashlib
import os
import signal
import struct
import subprocess
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))

import golden  # noqa: E402
from glianode import AT_ONCE_S  # noqa: E402
from keeperlink import Keeper, Link, alive, encode, wait_for  # noqa: E402

pytestmark = pytest.mark.sqlite_only("the keeper alone, without a node")

GOLDEN = golden.of(__file__)
BUILD = os.environ.get("GLIA_BUILD_RELEASE", os.path.join(ROOT, "build"))
# A build with failpoints, for those that need them.
FAILING = os.environ.get("GLIA_BUILD_CLANG", BUILD)
BINARY = os.path.join(BUILD, "glia-keeper")


class Place:
    """A data folder and the keepers started for it; all of them are ended with the test."""

    def __init__(self, path):
        self.path = str(path)
        self.keepers = []

    def keeper(self, binary=BINARY, **kw):
        k = Keeper(binary, self.path, **kw)
        self.keepers.append(k)
        return k

    def meet(self, idle_ms):
        """A keeper that does not wait for long, and a connection to it. On a busy machine one may
        have gone before we come."""
        def try_to():
            k = self.keeper(idle_ms=idle_ms)
            try:
                return k, Link(self.path)
            except (OSError, AttributeError):  # nobody is there, or says anything any more
                return None
        return wait_for(try_to)

    def run_folder(self, job="J1", attempt="s:attempt:1"):
        return os.path.join(self.path, "contexts", "default", "runs", job, attempt)

    def log(self, **kw):
        with open(os.path.join(self.run_folder(**kw), "log"), "rb") as f:
            return f.read()

    def file(self, name):
        return os.path.join(self.path, "keeper", name)

    def epoch_file(self):
        with open(self.file("epoch")) as f:
            return dict(line.split(" ", 1) for line in f.read().splitlines() if " " in line)

    def end(self):
        for k in self.keepers:
            k.kill(signal.SIGTERM)


@pytest.fixture
def place(tmp_path):
    p = Place(tmp_path)
    yield p
    p.end()


@pytest.fixture
def link(place):
    place.keeper()
    connection = Link(place.path)
    yield connection
    connection.close()


def as_root(test):
    """For what only root can try: for others there is no such test."""
    return test if os.geteuid() == 0 else None


def sh(script):
    return ["sh", "-c", script]


def pids_in(path):
    with open(path) as f:
        return [int(x) for x in f.read().split()]


# ---- results ----

def test_a_step_ends_with_its_exit_code(link):
    e = link.run(sh("exit 7"))
    assert (e["end"], e["exit_code"]) == ("exited", 7)


def test_a_step_that_dies_of_a_signal_says_which(link):
    e = link.run(sh("kill -SEGV $$"))
    assert (e["end"], e["signal"]) == ("signaled", signal.SIGSEGV)


def test_a_program_that_is_not_in_path_is_named_with_the_path(link):
    e = link.run(["frobnicate"], env=["PATH=/usr/bin:/bin"])
    assert e["end"] == "not_executed"
    GOLDEN.says("not in PATH", e["error"])


def test_a_file_that_is_not_executable_is_said_to_be_so(link, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    e = link.run([str(script)])
    GOLDEN.says("not executable", e["error"], [tmp_path])


def test_a_script_whose_interpreter_is_missing_is_told_apart_from_a_missing_script(link, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    e = link.run([str(script)])
    GOLDEN.says("no interpreter", e["error"], [tmp_path])
    e = link.run([str(tmp_path / "nothing")], attempt="s:attempt:2")
    assert "interpreter" not in e["error"]


def test_a_script_without_a_first_line_is_told_what_it_needs(link, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    GOLDEN.says("no first line", link.run([str(script)])["error"], [tmp_path])


def test_a_folder_that_is_not_there_is_named(link):
    e = link.run(["true"], cwd="/no/such/folder")
    assert e["end"] == "not_executed"
    GOLDEN.says("no such cwd", e["error"])


# ---- what a step finds ----

def test_a_step_runs_in_its_own_empty_folder_with_a_clean_environment(link, place):
    e = link.run(sh('pwd; ls -A | wc -l; env | sort; umask; ulimit -c; ls -l /proc/self/fd | wc -l;'
                    ' readlink /proc/self/fd/0; cat "$GLIA_INPUT_FILE"'),
                 env=["A=1", "PATH=/usr/bin:/bin", "LANG=C"], input='{"x":1}')
    assert e["exit_code"] == 0
    lines = [line.split(" ", 2)[2] for line in place.log().decode().splitlines()]
    folder = place.run_folder()
    assert lines[0] == folder + "/work"
    assert lines[1] == "0"
    names = [line.split("=")[0] for line in lines if "=" in line]
    assert names == ["A", "GLIA_INPUT_FILE", "GLIA_OUTPUT", "HOME", "LANG", "PATH", "PWD"]
    assert f"GLIA_OUTPUT={folder}/output.json" in lines
    assert lines[-5:] == ["0022", "0", "5", "/dev/null", '{"x":1}']


def test_files_are_copied_into_the_folder(link, place):
    content = b"#!/bin/sh\ncat data/list\n"
    other = b"one\ntwo\n"
    for c in (content, other):
        digest = hashlib.sha256(c).hexdigest()
        folder = os.path.join(place.path, "contexts", "default", "blobs", digest[:2])
        os.makedirs(folder)
        with open(os.path.join(folder, digest), "wb") as f:
            f.write(c)
    files = [("run.sh", hashlib.sha256(content).hexdigest(), 1),
             ("data/list", hashlib.sha256(other).hexdigest(), 0)]
    e = link.run(["./run.sh"], files=files)
    assert (e["end"], e["exit_code"]) == ("exited", 0), e
    assert [line.split()[2] for line in place.log().splitlines()] == [b"one", b"two"]
    copy = os.stat(os.path.join(place.run_folder(), "work", "run.sh"))
    assert copy.st_nlink == 1 and copy.st_mode & 0o100


def test_a_missing_snapshot_is_a_failure_to_start(link):
    e = link.run(["./x"], files=[("x", "0" * 64, 1)])
    assert e["end"] == "not_executed"
    GOLDEN.says("no snapshot", e["error"].split(": /")[0])


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "", "a//b", "a/"])
def test_a_file_name_that_leads_out_of_the_folder_is_refused(link, name):
    r = link.start(["true"], files=[(name, "0" * 64, 0)])
    assert r["status"] == "invalid"


@pytest.mark.parametrize("field,value", [
    ("job", "../J"), ("job", ".."), ("job", ""), ("job", "a/b"), ("attempt", ".."),
    ("attempt", "a/../b"), ("attempt", "x" * 140 + "/")])
def test_a_name_that_leads_out_of_the_folder_is_refused(link, field, value):
    assert link.start(["true"], **{field: value})["status"] == "invalid"
    assert link.list() == []


def test_a_step_that_leaves_nothing_leaves_no_folder(place):
    k = place.keeper()
    link = Link(place.path)
    link.run(["true"])
    link.run(sh("touch file"), attempt="s:attempt:2")
    assert os.listdir(place.run_folder(attempt="s:attempt:2") + "/work") == ["file"]
    # The folder of the first serves again, as good as new.
    link.run(["true"], attempt="s:attempt:3")
    link.run(sh("ls -A . | wc -l; cat $GLIA_INPUT_FILE"), attempt="s:attempt:4", input="[1]")
    lines = place.log(attempt="s:attempt:4").decode().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["0", "[1]"]
    link.run(["true"], job="J2")
    link.run(["no-such-program"], job="J3")
    k.kill(signal.SIGTERM)
    runs = os.path.dirname(os.path.dirname(place.run_folder()))
    left = {job: os.listdir(os.path.join(runs, job)) for job in os.listdir(runs)}
    assert {job: sorted(names) for job, names in left.items() if names} == {
        "J1": ["s:attempt:2", "s:attempt:4"], "J3": ["s:attempt:1"]}  # J3 has failed


def test_hundreds_of_quiet_jobs_share_a_few_folders(place, tmp_path):
    place.keeper()
    link = Link(place.path)
    marker = tmp_path / "marker"
    for n in range(300):
        link.run(["true"], job=f"J{n}", input="[%d]" % n)
        link.ack(job=f"J{n}")
    link.list()
    runs = os.path.dirname(os.path.dirname(place.run_folder()))
    assert len(os.listdir(runs)) < 100
    # A job gets its folder back when it goes on, and a stranger's file is never handed on.
    oldest = sorted(os.listdir(runs), key=lambda j: int(j[1:]))[0]
    with open(os.path.join(runs, oldest, "stranger"), "w"):
        pass
    link.run(sh(f"ls -A . .. ../.. > {marker}"), job="J0", attempt="s:attempt:2", input='"x"')
    assert "stranger" not in marker.read_text()
    for n in range(300, 310):
        link.run(["true"], job=f"J{n}")
        link.ack(job=f"J{n}")
    link.list()
    assert os.path.exists(os.path.join(runs, oldest, "stranger"))


@pytest.mark.parametrize("trace", [
    "touch ../more", "ln $GLIA_INPUT_FILE ../again",
    "chmod 777 .", "mkdir sub", "rmdir ../work",
    "rm $GLIA_INPUT_FILE; ln -s /etc/passwd $GLIA_INPUT_FILE"])
def test_a_folder_with_any_trace_of_a_step_is_not_used_again(link, place, trace):
    link.run(sh(trace))
    before = os.stat(place.run_folder()).st_ino
    link.run(sh("pwd; ls -lA . .. > /dev/null"), attempt="s:attempt:2", input="[2]")
    assert os.stat(place.run_folder()).st_ino == before
    assert os.stat(place.run_folder(attempt="s:attempt:2")).st_ino != before


def test_the_output_of_one_step_never_gets_into_the_log_of_another(link, place):
    for n in range(1, 31):
        link.start(sh(f"for i in $(seq 50); do echo step-{n}-end; done; printf step-{n}-end"),
                   attempt=f"s{n}:attempt:1")
    for n in range(1, 31):
        link.event(attempt=f"s{n}:attempt:1")
        lines = place.log(attempt=f"s{n}:attempt:1").decode().splitlines()
        assert [line.split(" ", 2)[2] for line in lines] == [f"step-{n}-end"] * 51


# ---- output ----

def test_the_log_has_time_and_stream_of_every_line(link, place):
    before = time.time() * 1000
    link.run(sh("echo out; echo err >&2; printf cut"))
    lines = place.log().decode().splitlines()
    assert sorted(line.split(" ", 1)[1] for line in lines) == ["e err", "o cut", "o out"]
    assert all(before - 2000 < int(line.split()[0]) < before + 20000 for line in lines)


def test_bytes_that_are_no_text_pass_through(link, place):
    link.run(sh(r"printf 'a\377\000b\n'"))
    assert place.log().split(b" o ", 1)[1] == b"a\xff\x00b\n"


def test_the_log_grows_while_the_step_runs(link, place, tmp_path):
    go = tmp_path / "go"
    link.start(sh(f"echo first; while [ ! -e {go} ]; do sleep 0.01; done; echo second"))
    wait_for(lambda: os.path.exists(place.run_folder() + "/log") and b"first" in place.log())
    assert b"second" not in place.log()
    go.touch()
    link.event()
    assert b"second" in place.log()


def test_a_long_line_is_split(link, place):
    link.run(["head", "-c", str(200 * 1024), "/dev/zero"])
    lines = place.log().splitlines()
    assert [len(line.split(b" o ", 1)[1]) for line in lines] == [65536, 65536, 65536, 8192]


def test_a_long_log_keeps_its_beginning_and_its_end(link, place):
    n = 400000  # lines of about 60 bytes
    link.run(sh(f"seq -f 'line %.0f ........................................' 1 {n}"))
    log = place.log()
    assert 9 << 20 < len(log) <= (10 << 20) + 64
    lines = log.splitlines()
    assert lines[0].split()[3] == b"1" and lines[-1].split()[3] == str(n).encode()
    marks = [i for i, line in enumerate(lines) if line.startswith(b"-- ")]
    assert len(marks) == 1
    assert lines[marks[0]].endswith(b" bytes dropped --")
    # Both parts are unbroken, and the mark says how much lies between them.
    first = [int(line.split()[3]) for line in lines[:marks[0]]]
    last = [int(line.split()[3]) for line in lines[marks[0] + 1:]]
    assert first == list(range(1, len(first) + 1))
    assert last == list(range(n - len(last) + 1, n + 1))
    prefix = len(b"1794742571102 o line  ........................................\n")
    missing = sum(prefix + len(str(i)) for i in range(first[-1] + 1, last[0]))
    assert int(lines[marks[0]].split()[1]) == missing


def test_the_output_is_the_file_then_the_last_line(link):
    e = link.run(sh("echo '{\"a\":1}'; echo '[2]' > $GLIA_OUTPUT"))
    assert (e["output"], e["output_source"]) == (b"[2]\n", 1)
    e = link.run(sh("echo x; echo '{\"a\":1}'; echo ''"), attempt="s:attempt:2")
    assert (e["output"], e["output_source"]) == (b'{"a":1}', 2)
    e = link.run(sh("echo '{\"a\":1}'; echo x"), attempt="s:attempt:3")
    assert (e["output"], e["output_source"]) == (b"", 0)


def test_a_last_line_of_a_mebibyte_is_an_output_and_a_longer_one_is_not(link):
    line = "printf '{\"a\":\"'; head -c %d /dev/zero | tr '\\0' x; printf '\"}'"
    e = link.run(sh(line % ((1 << 20) - 8)))
    assert len(e["output"]) == 1 << 20
    e = link.run(sh(line % (1 << 20)), attempt="s:attempt:2")
    assert e["output"] == b""


@pytest.mark.parametrize("make", ["mkfifo $GLIA_OUTPUT", "mkdir $GLIA_OUTPUT",
                                  "ln -s /dev/zero $GLIA_OUTPUT"])
def test_an_output_that_is_no_file_is_an_error_and_blocks_nobody(link, make):
    e = link.run(sh(make))
    assert (e["end"], e["exit_code"]) == ("exited", 0)
    assert "output" in e["error"]


def test_an_output_above_one_mebibyte_is_an_error(link):
    e = link.run(sh("head -c 1048577 /dev/zero > $GLIA_OUTPUT"))
    assert e["exit_code"] == 0
    GOLDEN.says("large output", e["error"])


# ---- ending steps ----

def test_a_deadline_is_kept_by_the_keeper(link):
    begin = time.monotonic()
    e = link.run(["sleep", "100"], timeout_ms=100)
    assert e["end"] == "timeout"
    assert 0.099 <= time.monotonic() - begin < 60  # the keeper counts in whole milliseconds


def test_a_step_that_ignores_sigterm_is_killed_after_its_grace(link):
    begin = time.monotonic()
    e = link.run(sh("trap '' TERM; while :; do sleep 1; done"), timeout_ms=1000, grace_ms=300)
    assert (e["end"], e["signal"]) == ("timeout", signal.SIGKILL)
    assert time.monotonic() - begin >= 1.295  # the keeper counts in whole milliseconds


def test_a_step_may_clean_up_within_its_grace(link, place):
    link.start(sh("trap 'echo cleaning; exit 5' TERM; echo ready; while :; do sleep 0.01; done"),
               grace_ms=10000)
    wait_for(lambda: os.path.exists(place.run_folder() + "/log"))
    assert link.stop()["status"] == 0
    e = link.event()
    assert (e["end"], e["exit_code"]) == ("stopped", 5)
    assert b"cleaning" in place.log()


TREE = """
trap '' TERM
sh -c "trap '' TERM; echo \\$\\$ >> {pids}; sleep 1000 & echo \\$! >> {pids}; wait" &
setsid sh -c "trap '' TERM; echo \\$\\$ >> {pids}; sleep 1000 & echo \\$! >> {pids}; wait" &
(setsid sh -c "echo \\$\\$ >> {pids}; (sleep 1000 & echo \\$! >> {pids}; exec sleep 1000)" &)
env -i setsid sh -c "echo \\$\\$ >> {pids}; exec sleep 1000" &
{more}
"""


def start_tree(link, pids, more, n=7, **kw):
    link.start(sh(TREE.format(pids=pids, more=more)), **kw)
    return wait_for(lambda: os.path.exists(pids) and len(pids_in(pids)) == n and pids_in(pids))


def test_stopping_reaches_every_descendant(link, tmp_path):
    pids = start_tree(link, tmp_path / "pids", "wait", grace_ms=200)
    assert all(alive(p) for p in pids)
    link.stop()
    assert link.event()["end"] == "stopped"
    assert not any(alive(p) for p in pids)  # when the end is told, not some time later


def test_what_a_step_leaves_behind_ends_with_it(link, tmp_path):
    pids = tmp_path / "pids"
    link.start(sh(TREE.format(pids=pids, more=f"while [ $(wc -l < {pids}) -lt 7 ]; do sleep 0.01;"
                                              " done; exit 3")))
    e = link.event()
    assert (e["end"], e["exit_code"]) == ("exited", 3)
    assert not any(alive(p) for p in pids_in(pids))


def test_only_the_descendants_of_the_step_that_ended_are_killed(link, tmp_path):
    mine, other = tmp_path / "mine", tmp_path / "other"
    others = start_tree(link, other, "wait", job="J2", grace_ms=100)
    mines = start_tree(link, mine, "wait", job="J1", grace_ms=100)
    link.stop(job="J1")
    link.event(job="J1")
    assert not any(alive(p) for p in mines)
    assert all(alive(p) for p in others)
    link.stop(job="J2")
    link.event(job="J2")
    assert not any(alive(p) for p in others)


def test_a_daemon_lives_as_long_as_its_step(link, tmp_path):
    pid_file, go = tmp_path / "pid", tmp_path / "go"
    link.start(sh(f"(setsid sh -c 'echo $$ > {pid_file}; exec sleep 1000' &);"
                  f" while [ ! -e {go} ]; do sleep 0.01; done"))
    pid = wait_for(lambda: os.path.exists(pid_file) and pids_in(pid_file))[0]
    link.run(["true"], job="J2")  # some other step's end makes the keeper look at its children
    assert alive(pid)
    go.touch()
    assert link.event(job="J1")["exit_code"] == 0
    assert not alive(pid)


def test_output_of_a_descendant_that_is_killed_is_kept(link, place):
    link.run(sh("(echo from below; touch said; sleep 1000) & until [ -e said ]; do sleep 0.01; "
                "done; echo done"))
    assert b"from below" in place.log()


def test_a_stopped_process_can_be_ended(link):
    link.start(sh("kill -STOP $$; echo no"), grace_ms=200)
    link.stop()
    assert link.event()["end"] == "stopped"


def test_stopping_after_the_end_changes_nothing(link):
    link.run(sh("exit 4"))
    assert link.stop()["status"] == 0
    r = link.attach()
    assert (r["state"], r["end"], r["exit_code"]) == ("ended", "exited", 4)


# ---- names, tokens, times ----

def test_a_known_attempt_is_not_started_again(link, tmp_path):
    count = tmp_path / "count"
    script = sh(f"echo x >> {count}")
    link.run(script)
    assert link.start(script)["status"] == 0
    assert link.start(script, token=9)["status"] == 0
    link.run(["true"], attempt="s:attempt:2", token=9)
    assert count.read_text() == "x\n"


def test_a_lower_token_is_refused_by_start_attach_and_stop(link):
    link.start(["sleep", "100"], token=5)
    assert link.start(["true"], attempt="s:attempt:2", token=4)["status"] == "stale"
    assert link.attach(token=4)["status"] == "stale"
    assert link.stop(token=4)["status"] == "stale"
    assert link.start(["true"], job="J2", token=1)["status"] == 0  # another job, another floor


def test_asking_for_an_attempt_that_never_started_keeps_it_from_starting_with_an_older_token(link):
    assert link.attach(token=3)["state"] == "never"
    assert link.start(["true"], token=2)["status"] == "stale"


def test_a_start_that_comes_too_late_is_refused(link):
    now = int(time.time() * 1000)
    assert link.start(["true"], start_by=now - 1000)["status"] == "stale"
    assert link.attach()["state"] == "never"
    assert link.start(["true"], start_by=now + 60000)["status"] == 0


def test_start_by_is_measured_with_the_clock_of_the_node(place):
    place.keeper()
    hour = 3600 * 1000
    boot = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
    behind = int(time.time() * 1000) - hour  # the node has missed a jump of the wall clock
    link = Link(place.path, clock_offset_ms=behind - boot)
    assert link.start(["true"], start_by=behind + 5000)["status"] == 0
    assert link.start(["true"], job="J2", start_by=behind - 5000)["status"] == "stale"
    assert abs(link.event(job="J1")["started_at"] - behind) < 20000


def test_a_start_decided_in_another_epoch_is_refused(link):
    assert link.start(["true"], epoch="f" * 32)["status"] == "stale"
    assert link.attach(epoch="f" * 32)["state"] == "lost"


# ---- outliving the node ----

CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
from keeperlink import Link
link = Link(sys.argv[2])
link.start(["sh", "-c", sys.argv[3]])
print("started", flush=True)
link.event(job="never")
"""


def test_a_step_survives_kill_9_of_its_node_and_the_result_waits(place, tmp_path):
    place.keeper()
    go = tmp_path / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.01; done; echo '{{\"a\":1}}'; exit 6"
    node = subprocess.Popen([sys.executable, "-c", CLIENT, os.path.join(ROOT, "test", "lib"),
                             place.path, script], stdout=subprocess.PIPE, text=True)
    assert node.stdout.readline() == "started\n"
    node.kill()
    node.wait()
    link = Link(place.path, incarnation=2)
    assert link.attach(token=2)["state"] == "running"
    go.touch()
    e = link.event()
    assert (e["exit_code"], e["output"]) == (6, b'{"a":1}')
    link.close()  # not acknowledged: the next one hears of it too
    link = Link(place.path, incarnation=3)
    assert link.event()["exit_code"] == 6
    assert link.attach(token=3)["state"] == "ended"
    link.ack(token=3)
    assert link.list() == []
    link.close()
    assert Link(place.path, incarnation=4).list() == []


def test_an_older_incarnation_is_refused_and_an_older_connection_dropped(place):
    place.keeper()
    old = Link(place.path, incarnation=5)
    new = Link(place.path, incarnation=6)
    assert old.receive() is None
    late = Link(place.path, incarnation=5)
    assert late.welcome["type"] == "REFUSED" and late.welcome["status"] == "stale"
    assert new.list() == []
    again = Link(place.path, incarnation=6)  # the same node after a broken connection
    assert again.welcome["type"] == "WELCOME"
    assert new.receive() is None


def test_the_highest_incarnation_outlives_the_keeper(place):
    k = place.keeper()
    Link(place.path, incarnation=9)
    k.kill()
    place.keeper()
    assert Link(place.path, incarnation=8).welcome["status"] == "stale"


def test_words_of_a_connection_that_was_replaced_are_not_heard(place, tmp_path):
    k = place.keeper()
    old = Link(place.path)
    os.kill(k.pid, signal.SIGSTOP)  # so that the new connection and the old words come together
    new = Link(place.path, hello=False)
    new.send("HELLO", version_min=1, version_max=1, incarnation=2)
    os.kill(k.pid, signal.SIGCONT)
    epoch = new.receive()["epoch"]
    try:
        old.send("START", req=1, context="default", job="J1", attempt="s:attempt:1", token=1,
                 argv=sh(f"touch {tmp_path}/ran"), epoch=epoch)
    except BrokenPipeError:
        pass
    new.epoch = epoch
    assert new.attach(token=2)["state"] == "never"
    new.run(["true"], attempt="s:attempt:2", token=2)
    assert not os.path.exists(tmp_path / "ran")


# ---- the keeper's own end ----

def test_kill_9_of_the_keeper_ends_its_steps_and_the_next_one_says_lost(place, tmp_path):
    k = place.keeper()
    link = Link(place.path)
    pids = start_tree(link, tmp_path / "pids", "echo $$ >> %s; wait" % (tmp_path / "pids"), n=8)
    link.run(sh("exit 3"), job="J2")  # ended and not acknowledged: this is not lost
    k.kill()
    place.keeper()
    assert not any(alive(p) for p in pids)  # before anybody can ask
    again = Link(place.path, incarnation=2)
    assert again.epoch != link.epoch
    assert again.attach(epoch=link.epoch)["state"] == "lost"
    assert again.event(job="J2")["exit_code"] == 3
    assert [i["job"] for i in again.list()] == ["J2"]


def test_an_idle_keeper_ends_and_the_next_one_continues_its_epoch(place):
    k, link = place.meet(idle_ms=300)
    link.run(["true"])
    link.ack()
    assert link.list() == []
    time.sleep(0.6)
    assert k.alive()  # a connection keeps it
    link.close()
    wait_for(lambda: not k.alive())
    assert place.epoch_file()["state"] == "clean"
    assert not os.path.exists(place.file("sock"))
    place.keeper()
    again = Link(place.path, incarnation=1)
    assert again.epoch == link.epoch
    assert again.attach(attempt="s:attempt:2", epoch=link.epoch)["state"] == "never"


def test_a_running_step_keeps_the_keeper(place, tmp_path):
    k, link = place.meet(idle_ms=300)
    gate = tmp_path / "go"
    link.start(sh(f"until [ -e {gate} ]; do sleep 0.02; done; exit 2"))
    link.close()
    time.sleep(0.6)
    assert k.alive()
    again = Link(place.path, incarnation=2)
    gate.touch()
    assert again.event()["exit_code"] == 2


def test_results_nobody_fetches_are_kept_on_disk_when_the_keeper_goes(place):
    k, link = place.meet(idle_ms=300)
    link.run(sh("echo '{\"a\":1}'; exit 2"))
    link.close()
    wait_for(lambda: not k.alive())
    place.keeper()
    again = Link(place.path, incarnation=2)
    e = again.event()
    assert (e["exit_code"], e["output"]) == (2, b'{"a":1}')
    assert again.epoch == link.epoch


def test_sigterm_ends_the_steps_and_the_next_keeper_calls_them_lost(place):
    k = place.keeper()
    link = Link(place.path)
    link.start(sh("trap 'exit 1' TERM; while :; do sleep 0.01; done"))
    k.kill(signal.SIGTERM)
    place.keeper()
    again = Link(place.path, incarnation=2)
    assert again.epoch != link.epoch
    assert again.attach(epoch=link.epoch)["state"] == "lost"


def test_a_keeper_that_is_about_to_end_proves_nothing_any_more(place, tmp_path):
    k = place.keeper()
    link = Link(place.path)
    link.start(sh("exec sleep 1000"))
    link.start(sh(f"trap '' TERM; touch {tmp_path}/up; while :; do sleep 0.01; done"), job="J2",
               grace_ms=1000)  # this one delays the end
    wait_for(lambda: os.path.exists(tmp_path / "up"))
    os.kill(k.pid, signal.SIGTERM)
    wait_for(lambda: [i["job"] for i in link.list()] == ["J2"])
    assert link.attach()["state"] == "lost"  # it did run, though nothing is known of it now
    assert link.start(["true"], job="J3")["status"] == "unavailable"
    assert Link(place.path, incarnation=2).welcome["status"] == "unavailable"
    wait_for(lambda: not k.alive())


def test_sigterm_with_nothing_running_is_an_orderly_end(place):
    k = place.keeper()
    link = Link(place.path)
    link.run(sh("exit 3"))
    k.kill(signal.SIGTERM)
    place.keeper()
    again = Link(place.path, incarnation=2)
    assert again.epoch == link.epoch
    assert again.event()["exit_code"] == 3
    assert again.attach(attempt="s:attempt:2", epoch=link.epoch)["state"] == "never"


def test_a_second_keeper_of_the_same_folder_does_not_start(place):
    first = place.keeper()
    second = place.keeper()
    assert first.said == "ok"
    GOLDEN.says("second keeper", second.said, [place.path])
    assert Link(place.path).welcome["type"] == "WELCOME"


def test_the_keeper_holds_nothing_it_was_started_with(place, tmp_path):
    held = open(tmp_path / "held", "w")
    k = place.keeper(pass_fds=[held.fileno()])
    targets = [os.readlink(f"/proc/{k.pid}/fd/{n}") for n in os.listdir(f"/proc/{k.pid}/fd")]
    held.close()
    allowed = ("/dev/null", place.path, "anon_inode:", "socket:", "/proc/")
    assert all(t.startswith(allowed) for t in targets), targets
    assert not any(t.endswith("/held") for t in targets)
    assert os.readlink(f"/proc/{k.pid}/cwd") == "/"
    with open(f"/proc/{k.pid}/stat") as f:
        parent, _, session = f.read().rsplit(")", 1)[1].split()[1:4]
    assert int(session) != os.getsid(0)
    assert int(parent) != os.getpid()


@pytest.mark.parametrize("where,lost", [
    ("before_spawn", True), ("after_spawn", True), ("before_end_sync", None),
    ("after_end_sync", False), ("after_report", False)])
def test_a_keeper_that_dies_at_any_point_loses_no_result_it_has_told_of(place, tmp_path, where,
                                                                         lost):
    binary = os.path.join(FAILING, "glia-keeper")
    k = place.keeper(binary=binary, env={"GLIA_FAILPOINT": "keeper." + where})
    link = Link(place.path)
    link.send("START", req=1, context="default", job="J1", attempt="s:attempt:1", token=1,
              argv=sh("exit 4"), epoch=link.epoch)
    told = []
    while True:
        m = link.receive()
        if m is None:
            break
        told.append(m["type"])
    wait_for(lambda: not k.alive())
    place.keeper()
    again = Link(place.path, incarnation=2)
    state = again.attach(token=1, epoch=link.epoch)["state"]
    if "ENDED" in told or lost is False:
        assert state == "ended"
        assert again.event()["exit_code"] == 4
    elif lost:
        assert state == "lost"
    else:
        assert state in ("lost", "ended")


# ---- the journal ----

def test_a_torn_journal_is_cut_off_at_the_last_good_record(place):
    k = place.keeper()
    link = Link(place.path)
    link.run(sh("exit 1"))
    link.run(sh("exit 2"), attempt="s:attempt:2")
    k.kill()
    size = os.path.getsize(place.file("journal"))
    with open(place.file("journal"), "r+b") as f:
        f.truncate(size - 5)
    place.keeper()
    again = Link(place.path, incarnation=2)
    assert again.event()["exit_code"] == 1
    assert again.attach(attempt="s:attempt:2", epoch=link.epoch)["state"] == "lost"
    again.run(sh("exit 3"), attempt="s:attempt:3")  # and it goes on behind the cut
    again.ack(attempt="s:attempt:3")
    assert len(again.list()) == 1


def damage_end_of(place, attempt):
    with open(place.file("journal"), "r+b") as f:
        f.seek(f.read().rindex(attempt.encode()))
        f.write(b"X")


def notes_damage(place):
    """How often the keeper has noted that its journal is damaged."""
    with open(place.file("log")) as f:
        return sum(place.file("journal") in line and "damaged" in line for line in f)


def test_a_damaged_record_costs_only_itself(place):
    k = place.keeper()
    link = Link(place.path)
    for n in (1, 2, 3):
        link.run(sh(f"exit {n}"), attempt=f"s:attempt:{n}")
    k.kill()
    damage_end_of(place, "s:attempt:2")
    place.keeper()
    again = Link(place.path, incarnation=2)
    assert {again.event()["exit_code"], again.event()["exit_code"]} == {1, 3}
    assert len(again.list()) == 2
    assert again.attach(attempt="s:attempt:2", epoch=link.epoch)["state"] == "lost"
    assert notes_damage(place) == 1
    place.keepers[-1].kill()  # what was mended is whole now
    place.keeper()
    third = Link(place.path, incarnation=3)
    assert {third.event()["exit_code"], third.event()["exit_code"]} == {1, 3}
    assert notes_damage(place) == 1


@pytest.mark.parametrize("attempt", ["s:attempt:1", "s:attempt:2"])
def test_a_damaged_journal_of_an_orderly_keeper_proves_nothing(place, attempt):
    """Its epoch would go on, and with it "never" for an attempt whose result is gone."""
    k = place.keeper()
    link = Link(place.path)
    for n in (1, 2):
        link.run(sh(f"exit {n}"), attempt=f"s:attempt:{n}")
    link.close()
    k.kill()
    with open(place.file("epoch")) as f:
        epoch = f.read()
    assert "state running" in epoch
    with open(place.file("epoch"), "w") as f:
        f.write(epoch.replace("state running", "state clean"))
    damage_end_of(place, attempt)
    place.keeper().kill()  # one that dies before anybody has asked it
    place.keeper()
    again = Link(place.path, incarnation=2)
    assert again.epoch != link.epoch
    assert again.attach(attempt=attempt, epoch=link.epoch)["state"] == "lost"
    assert again.attach(attempt="s:attempt:9", epoch=link.epoch)["state"] == "lost"
    assert notes_damage(place) == 1


def test_garbage_instead_of_a_journal_and_an_epoch_is_survived(place):
    os.makedirs(os.path.join(place.path, "keeper"))
    for name in ("journal", "epoch"):
        with open(place.file(name), "wb") as f:
            f.write(os.urandom(3000))
    assert place.keeper().said == "ok"
    assert Link(place.path).run(["true"])["exit_code"] == 0


def test_the_journal_stays_small(place):
    place.keeper()
    link = Link(place.path)
    big = "head -c 600000 /dev/zero | tr '\\0' 0 > $GLIA_OUTPUT"
    link.run(sh("exit 9"), job="J0")  # never acknowledged: must survive every rewriting
    for n in range(1, 21):
        link.run(sh(big), attempt=f"s:attempt:{n}")
        link.ack(attempt=f"s:attempt:{n}")
        link.list()
        assert os.path.getsize(place.file("journal")) < 7 << 20
    place.keepers[0].kill()
    place.keeper()
    again = Link(place.path, incarnation=2)
    assert again.event()["exit_code"] == 9
    assert len(again.list()) == 1


@as_root
def test_a_full_disk_delays_a_result_and_loses_none(place):
    """The journal is on a tiny file system that is full when the step ends."""
    folder = os.path.join(place.path, "keeper")
    os.makedirs(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    try:
        place.keeper()
        link = Link(place.path)
        link.start(sh("while [ ! -e go ]; do sleep 0.01; done;"
                      " printf '{\"a\":\"%09999d\"}' 0; exit 5"))
        with open(place.file("filler"), "wb", buffering=0) as f:
            with pytest.raises(OSError):
                while True:
                    f.write(b"x" * 4096)
        with open(os.path.join(place.run_folder(), "work", "go"), "w"):
            pass
        names = (f"N{n}" for n in range(10000))
        wait_for(lambda: link.start(["true"], job=next(names))["status"] == "unavailable")
        assert link.attach()["state"] == "running"  # nobody has heard of its end
        os.unlink(place.file("filler"))
        e = link.event(job="J1")
        assert (e["exit_code"], len(e["output"])) == (5, 10007)
        assert link.run(["true"], job="J3")["exit_code"] == 0
    finally:
        place.end()
        place.keepers = []
        subprocess.run(["umount", folder], check=True)


# ---- strangers and nonsense ----

@as_root
def test_somebody_else_is_not_heard(place):
    """A process of another user that got hold of the folder's descriptor."""
    place.keeper()
    os.chmod(place.path, 0o755)
    os.chmod(os.path.join(place.path, "keeper"), 0o755)
    os.chmod(place.file("sock"), 0o777)
    folder = os.open(os.path.join(place.path, "keeper"), os.O_PATH)
    script = ("import socket, sys, os; os.setgid(65534); os.setuid(65534);"
              f" s = socket.socket(socket.AF_UNIX); s.connect('/proc/self/fd/{folder}/sock');"
              " s.settimeout(20);"
              " s.sendall(bytes.fromhex(sys.argv[1])) or print('got', s.recv(100))")
    hello = encode("HELLO", version_min=1, version_max=1, incarnation=99)
    out = subprocess.run([sys.executable, "-c", script, hello.hex()], pass_fds=[folder],
                         capture_output=True, text=True, timeout=60, check=False)
    os.close(folder)
    assert "got b''" in out.stdout or "BrokenPipe" in out.stderr or "reset" in out.stderr, out
    assert Link(place.path, incarnation=1).welcome["type"] == "WELCOME"


def test_the_folder_and_the_socket_are_private(place):
    place.keeper()
    assert os.stat(place.file("sock")).st_mode & 0o077 == 0
    assert os.stat(os.path.join(place.path, "keeper")).st_mode & 0o077 == 0


@pytest.mark.parametrize("words", [
    struct.pack("<I", 0),
    struct.pack("<I", 0xffffffff) + b"x" * 100,
    struct.pack("<I", 1) + b"\xff",
    struct.pack("<I", 6) + b"\x01\x01\x00\x00\x00\x08",
    encode("START", req=1, context="default", job="J1", attempt="s:attempt:1", token=1,
           argv=["true"]),
    encode("WELCOME", version_min=1),
    encode("HELLO", version_min=5, version_max=9, incarnation=1),
    encode("HELLO", version_min=0, version_max=0, incarnation=1),
], ids=["empty", "huge", "type", "field", "no hello", "keeper's", "too new", "too old"])
def test_nonsense_is_refused_with_a_sentence(place, words):
    place.keeper()
    link = Link(place.path, hello=False)
    link.sock.sendall(words)
    m = link.receive()
    assert m["type"] == "REFUSED" and m["text"]
    assert link.receive() is None
    assert Link(place.path).welcome["type"] == "WELCOME"


def test_unknown_fields_are_skipped_and_versions_are_agreed_on(place):
    """A node of a later release knows more versions and sends fields this keeper does not know."""
    place.keeper()
    link = Link(place.path, hello=False)
    hello = encode("HELLO", version_min=1, version_max=7, incarnation=1)[4:]
    hello += bytes([200]) + struct.pack("<I", 3) + b"new"
    link.sock.sendall(struct.pack("<I", len(hello)) + hello)
    m = link.receive()
    assert (m["type"], m["version_min"], m["version_max"]) == ("WELCOME", 4, 4)


def test_nonsense_after_hello_ends_that_connection_and_no_step(place):
    place.keeper()
    link = Link(place.path)
    link.start(["sleep", "1000"])
    link.sock.sendall(struct.pack("<I", 3) + b"\x63\x00\x00")
    assert link.receive()["type"] == "REFUSED"
    assert link.receive() is None
    again = Link(place.path, incarnation=1)
    assert again.attach()["state"] == "running"


def test_frames_may_come_in_pieces_and_in_heaps(place):
    place.keeper()
    link = Link(place.path)
    frames = b"".join(encode("START", req=n, context="default", job=f"J{n}", attempt="s:attempt:1",
                             token=1, argv=sh(f"exit {n}"), epoch=link.epoch)
                      for n in range(1, 41))
    for i in range(0, len(frames) // 2, 7):
        link.sock.sendall(frames[i:min(i + 7, len(frames) // 2)])
    half = -(-(len(frames) // 2) // 7) * 7
    link.sock.sendall(frames[min(half, len(frames) // 2):])
    for n in range(1, 41):
        assert link.event(job=f"J{n}")["exit_code"] == n


def test_who_connects_and_says_nothing_is_sent_away(place):
    place.keeper()
    silent = Link(place.path, hello=False)
    begin = time.monotonic()
    assert silent.receive() is None
    assert time.monotonic() - begin < 60


def test_many_strangers_do_not_keep_the_node_out(place):
    place.keeper()
    link = Link(place.path)
    crowd = [Link(place.path, hello=False) for _ in range(40)]
    assert link.run(["true"])["exit_code"] == 0
    for c in crowd:
        c.close()
    assert Link(place.path, incarnation=2).welcome["type"] == "WELCOME"


def test_a_path_of_any_length_will_do(tmp_path):
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)
    place = Place(deep)
    try:
        assert place.keeper().said == "ok"
        e = Link(place.path).run(sh("pwd"))
        assert e["exit_code"] == 0
        assert place.run_folder().encode() in place.log()
    finally:
        place.end()


# ---- the node's silence ----

SPOKEN_MS = 8000  # orphan grace of steps that must live: longer than a busy machine stands still

def silences(place):
    """How often the keeper has said that it misses its node."""
    with open(place.file("log")) as f:
        return f.read().count("node silent")


def wall_ms():
    return int(time.time() * 1000)


def test_steps_of_a_silent_node_end_after_the_orphan_grace(place):
    place.keeper()
    link = Link(place.path, orphan_grace_ms=2000)
    link.start(["sleep", "1000"], grace_ms=100)
    until = time.monotonic() + 2.2
    while time.monotonic() < until:
        time.sleep(0.1)
        link.send("PING")
    assert link.attach()["state"] == "running"
    link.close()
    wait_for(lambda: silences(place))
    again = Link(place.path, incarnation=2)
    assert again.event()["end"] == "orphaned"


def test_orphans_that_do_not_listen_are_killed_and_the_keeper_says_so_once(place):
    place.keeper()
    link = Link(place.path, orphan_grace_ms=2000)
    link.start(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], grace_ms=60000)
    link.close()
    wait_for(lambda: silences(place))
    assert Link(place.path, incarnation=2).event()["end"] == "orphaned"
    assert silences(place) == 1


def test_an_orphan_that_is_found_too_late_is_killed_at_once(place):
    """Others may run it by now: the machine was suspended, say."""
    place.keeper()
    link = Link(place.path, orphan_grace_ms=20 * AT_ONCE_S * 1000, version_max=4)
    link.send("PING", session_until=wall_ms() - 40 * AT_ONCE_S * 1000)
    begin = time.monotonic()
    link.start(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], grace_ms=600000,
               needs_session=1)
    assert link.event()["end"] == "orphaned"
    assert time.monotonic() - begin < AT_ONCE_S


def test_a_new_node_speaks_only_for_the_steps_it_asks_about(place):
    """The others are not its own any more: somebody else may be about to run them."""
    place.keeper()
    link = Link(place.path, orphan_grace_ms=SPOKEN_MS)
    link.start(["sleep", "1000"], attempt="s:attempt:1", grace_ms=100)
    link.start(["sleep", "1000"], attempt="t:attempt:1", grace_ms=100)
    link.close()
    again = Link(place.path, incarnation=2, orphan_grace_ms=SPOKEN_MS)
    assert again.attach(attempt="t:attempt:1")["state"] == "running"
    begin = time.monotonic()
    while not silences(place):
        assert time.monotonic() - begin < 60
        time.sleep(0.1)
        again.send("PING")
    ended = again.event()
    assert (ended["attempt"], ended["end"]) == ("s:attempt:1", "orphaned")
    assert again.attach(attempt="t:attempt:1")["state"] == "running"


def test_a_node_without_a_session_speaks_only_for_steps_that_need_none(place):
    """It lives and talks, but others may have taken its jobs over."""
    place.keeper()
    link = Link(place.path, orphan_grace_ms=SPOKEN_MS, version_max=4)
    link.send("PING", session_until=wall_ms() + 1000)
    link.start(["sleep", "1000"], attempt="s:attempt:1", grace_ms=100, needs_session=1)
    link.start(["sleep", "1000"], attempt="t:attempt:1", grace_ms=100)
    begin = time.monotonic()
    while not silences(place):
        assert time.monotonic() - begin < 60
        time.sleep(0.1)
        link.send("PING")
    ended = link.event()
    assert (ended["attempt"], ended["end"]) == ("s:attempt:1", "orphaned")
    assert link.attach(attempt="t:attempt:1")["state"] == "running"


def test_a_session_that_is_renewed_in_time_ends_nothing(place):
    place.keeper()
    link = Link(place.path, orphan_grace_ms=SPOKEN_MS, version_max=4)
    link.send("PING", session_until=wall_ms() + 100)
    link.start(["sleep", "1000"], grace_ms=100, needs_session=1)
    until = time.monotonic() + 1.3 * SPOKEN_MS / 1000
    while time.monotonic() < until:
        time.sleep(0.1)
        link.send("PING", session_until=wall_ms() + 100)
    assert link.attach()["state"] == "running"


def test_a_node_of_an_earlier_release_speaks_for_all_its_steps(place):
    """It does not say how long its session lasts."""
    place.keeper()
    link = Link(place.path, orphan_grace_ms=SPOKEN_MS, version_max=3)
    link.start(["sleep", "1000"], grace_ms=100)
    until = time.monotonic() + 1.3 * SPOKEN_MS / 1000
    while time.monotonic() < until:
        time.sleep(0.1)
        link.send("PING")
    assert link.attach()["state"] == "running"


def test_without_an_orphan_grace_steps_outlive_a_silent_node(place):
    place.keeper()
    link = Link(place.path)
    link.start(["sleep", "1000"])
    link.close()
    time.sleep(0.5)
    assert Link(place.path, incarnation=2).attach()["state"] == "running"


def test_beacons_come_while_a_step_runs(link, tmp_path):
    gate = tmp_path / "go"
    begin = time.monotonic()
    link.start(sh(f"until [ -e {gate} ]; do sleep 0.02; done"), beacon_ms=50)
    first = link.event("BEACON")
    assert first["attempt"] == "s:attempt:1"
    for _ in range(4):
        link.event("BEACON")
    assert time.monotonic() - begin >= 5 * 0.05 - 0.005  # it counts in whole milliseconds
    gate.touch()
    link.event()


# ---- size ----

def test_an_idle_keeper_is_small(place):
    k = place.keeper()
    link = Link(place.path)
    link.run(["true"])
    with open(f"/proc/{k.pid}/status") as f:
        rss = [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0]
    assert rss < 3 * 1024  # KiB
