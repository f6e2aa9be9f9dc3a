"""The folders of attempts: what is in them, and what is left of them afterwards."""

import os
import signal
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))

import golden  # noqa: E402
from keeperlink import Keeper, Link, wait_for  # noqa: E402

pytestmark = pytest.mark.sqlite_only("the keeper alone, without a node")

GOLDEN = golden.of(__file__)
BUILD = os.environ.get("GLIA_BUILD_RELEASE", os.path.join(ROOT, "build"))
BINARY = os.path.join(BUILD, "glia-keeper")


class Place:
    """A data folder, and the keeper and connection of the moment."""

    def __init__(self, path):
        self.path = str(path)
        self.keeper = self.link = None

    def open(self):
        self.keeper = Keeper(BINARY, self.path)
        self.link = Link(self.path)

    def close(self):
        self.link.close()
        self.keeper.kill(signal.SIGTERM)

    def folder(self, *names, attempt="s:attempt:1"):
        return os.path.join(self.path, "contexts", "default", "runs", "J1", attempt, *names)

    def names(self, **kw):
        return sorted(os.listdir(self.folder(**kw)))

    def run(self, script, **kw):
        return self.link.run(["sh", "-c", script], **kw)

    def ack(self, **kw):
        """Acknowledge, and wait until the keeper has heard it."""
        self.link.ack(**kw)
        self.link.list()

    def trash(self):
        try:
            return os.listdir(os.path.join(self.path, "keeper", "trash"))
        except FileNotFoundError:
            return []


@pytest.fixture
def place(tmp_path):
    p = Place(tmp_path / "data")
    p.open()
    yield p
    p.close()


def test_the_working_folder_of_a_step_that_succeeded_goes_when_its_end_is_acknowledged(place):
    place.run('mkdir -p a/b; echo 1 > a/b/c; echo "{}" > $GLIA_OUTPUT; echo hello')
    assert place.names() == ["env", "input.json", "log", "output.json", "work"]
    assert os.path.exists(place.folder("work", "a", "b", "c"))
    place.ack()
    assert place.names() == ["env", "input.json", "log", "output.json"]
    wait_for(lambda: place.trash() == [])


def test_an_empty_working_folder_goes_too(place):
    place.run("echo hello")
    place.ack()
    assert place.names() == ["env", "input.json", "log"]
    wait_for(lambda: place.trash() == [])


@pytest.mark.parametrize("script,more", [
    ("echo 1 > a; exit 3", {}),
    ("echo 1 > a; kill -9 $$", {}),
    ("echo 1 > a; sleep 60", {"timeout_ms": 2000}),
    ("echo 1 > a; head -c 2000000 /dev/zero > $GLIA_OUTPUT", {}),
], ids=["exit code", "signal", "timeout", "bad output"])
def test_the_working_folder_of_a_step_that_failed_stays(place, script, more):
    place.run(script, **more)
    place.ack()
    assert os.listdir(place.folder("work")) == ["a"]
    assert "env" in place.names()


@pytest.mark.parametrize("argv", [["false"], ["no-such-program"]])
def test_also_a_step_that_failed_in_silence_can_be_looked_into(place, argv):
    place.link.run(argv, env=["A=1"])
    place.ack()
    assert place.names() == ["env", "input.json", "work"]
    place.link.run(["true"], attempt="t:attempt:1")
    assert place.names() == ["env", "input.json", "work"]


def test_the_working_folder_of_a_step_that_was_stopped_stays(place):
    place.link.start(["sh", "-c", "echo 1 > a; sleep 60"])
    wait_for(lambda: os.path.exists(place.folder("work", "a")))
    place.link.stop()
    assert place.link.event()["end"] == "stopped"
    place.ack()
    assert os.listdir(place.folder("work")) == ["a"]


def test_the_working_folder_stays_if_the_node_calls_it_a_failure(place):
    """Whether an output is JSON only the node knows."""
    place.run('echo 1 > a; echo "{" > $GLIA_OUTPUT')
    place.ack(status=-5)
    assert os.listdir(place.folder("work")) == ["a"]


def test_a_folder_that_was_given_is_never_removed(place, tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    place.run("echo 1 > a; echo hello", cwd=str(given))
    place.ack()
    assert os.listdir(given) == ["a"]
    assert place.names() == ["env", "input.json", "log"]


def test_what_a_link_in_a_working_folder_points_to_is_not_touched(place, tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    (given / "kept").write_text("1")
    place.run(f"ln -s {given} link; mkdir d; ln -s {given} d/link; echo hello")
    place.run(f"cd ..; rmdir work; ln -s {given} work; echo hello", attempt="t:attempt:1")
    place.ack()
    place.ack(attempt="t:attempt:1")
    wait_for(lambda: place.trash() == [])
    assert place.names() == ["env", "input.json", "log"]
    assert place.names(attempt="t:attempt:1") == ["env", "input.json", "log"]
    assert os.listdir(given) == ["kept"]


def test_whatever_a_step_leaves_can_be_removed(place):
    script = ("import os\n"
              "for i in range(300):\n"
              "    open(f'f{i}', 'w').close()\n"
              "os.makedirs('ro/inner'); open('ro/inner/x', 'w').close()\n"
              "os.chmod('ro/inner', 0o555); os.chmod('ro', 0o555)\n"
              "os.mkdir('none'); os.mkdir('none/in'); os.chmod('none', 0)\n"
              "os.mkfifo('pipe'); os.symlink('nowhere', 'link')\n"
              "for i in range(500):\n"
              "    os.mkdir('d'); open('x', 'w').close(); os.chdir('d')\n")
    e = place.link.run([sys.executable, "-c", script])
    assert e["exit_code"] == 0
    place.ack()
    assert place.names() == ["env", "input.json"]
    wait_for(lambda: place.trash() == [])


def test_what_a_keeper_did_not_get_to_the_next_one_removes(place):
    place.close()
    trash = os.path.join(place.path, "keeper", "trash")
    os.makedirs(os.path.join(trash, "1.a0", "b", "c"))
    with open(os.path.join(trash, "1.a0", "b", "x"), "w"):
        pass
    place.open()
    wait_for(lambda: place.trash() == [])


def test_a_result_of_an_earlier_keeper_is_cleared_when_it_is_acknowledged(place):
    place.run("echo 1 > a; echo hello")
    place.keeper.kill(signal.SIGKILL)
    place.link.close()
    place.open()
    assert os.path.exists(place.folder("work", "a"))
    place.ack()
    assert place.names() == ["env", "input.json", "log"]


def test_the_environment_is_noted_without_secrets_and_for_nobody_else(place):
    place.run("exit 3", env=["A=1", "B=x y\nz", "S=public"],
              secrets=["S=correct-horse", "T=battery"])
    place.ack()
    with open(place.folder("env"), "rb") as f:
        variables = f.read().decode().split("\0")
    assert variables[-1] == ""
    assert variables[:2] == ["A=1", "B=x y\nz"]
    names = [v.split("=")[0] for v in variables[:-1]]
    assert names == ["A", "B", "GLIA_INPUT_FILE", "GLIA_OUTPUT", "PATH", "HOME", "LANG"]
    assert os.stat(place.folder("env")).st_mode & 0o777 == 0o600


def test_the_note_of_a_reused_folder_is_that_of_its_last_step(place):
    """Folders of quiet steps serve again, with a shorter environment too."""
    place.run("exit 0", env=["LONG=" + "x" * 500], input='{"long": "%s"}' % ("y" * 500))
    place.ack()
    place.run("exit 3", attempt="t:attempt:1", env=["A=1"], input="{}")
    with open(place.folder("env", attempt="t:attempt:1"), "rb") as f:
        names = [v.split(b"=")[0] for v in f.read().split(b"\0")]
    assert names == [b"A", b"GLIA_INPUT_FILE", b"GLIA_OUTPUT", b"PATH", b"HOME", b"LANG", b""]
    with open(place.folder("input.json", attempt="t:attempt:1")) as f:
        assert f.read() == "{}"


def test_what_a_step_has_added_to_its_input_is_not_in_that_of_the_next(place):
    place.run("echo more and more and more >> $GLIA_INPUT_FILE", input="[1]")
    place.run("cat $GLIA_INPUT_FILE", attempt="t:attempt:1", input="[2]")
    with open(place.folder("log", attempt="t:attempt:1")) as f:
        assert f.read().endswith(" o [2]\n")


def test_a_step_cannot_plant_files_for_a_later_one(place):
    """Whatever times and modes it gives its folders, a folder with something in it serves once."""
    place.run("""/usr/bin/python3 -c '
import os
before = [(path, os.stat(path)) for path in ("..", ".")]
open("planted", "w").write("x"); open("../planted", "w").write("x"); os.mkdir("sub")
for path, was in before:
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
'""")
    place.run("ls -A . ..", attempt="t:attempt:1")
    with open(place.folder("log", attempt="t:attempt:1")) as f:
        assert "planted" not in f.read()


def test_each_step_has_pipes_of_its_own(place):
    """A process outside may still hold those of an earlier one."""
    said = []
    for i in range(3):
        place.run("readlink /proc/$$/fd/1 /proc/$$/fd/2 > fds", attempt="s:attempt:%d" % i)
        with open(place.folder("work", "fds", attempt="s:attempt:%d" % i)) as f:
            said += f.read().split()
    assert len(said) == len(set(said)) == 6, said


def test_instances_of_a_step_have_folders_of_their_own(place):
    for i in range(3):
        attempt = "fetch[%d]:attempt:1" % i
        e = place.run("echo $PWD; exit %d" % i, attempt=attempt)
        assert e["exit_code"] == i and e["attempt"] == attempt
        with open(place.folder("log", attempt=attempt)) as f:
            assert f.read().endswith("/fetch[%d]:attempt:1/work\n" % i)
    assert len(place.link.list()) == 3
    for i in range(3):
        place.ack(attempt="fetch[%d]:attempt:1" % i)
    assert place.link.list() == []


# ---- links that a step has planted ----

@pytest.mark.parametrize("planted", ["J2", "J2/s:attempt:1", "J2/s:attempt:1/work"])
def test_a_link_in_the_place_of_a_run_folder_is_refused(place, tmp_path, planted):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    runs = os.path.join(place.path, "contexts", "default", "runs")
    path = os.path.join(runs, planted)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(elsewhere, path)
    e = place.run("pwd; touch here", job="J2")
    assert e["end"] == "not_executed", e
    assert GOLDEN.tells("link", e["error"]), e
    assert list(elsewhere.iterdir()) == []
    assert place.run("true", job="J3")["exit_code"] == 0


@pytest.mark.parametrize("kind", ["process", "worker"])
@pytest.mark.parametrize("planted", ["J2", "J2/s:attempt:1"])
def test_nothing_behind_such_a_link_is_made_or_removed(place, tmp_path, kind, planted):
    elsewhere, name = tmp_path / "elsewhere", "s:attempt:1" if kind == "process" else "s.attempt.1"
    precious = elsewhere / ("." if planted.endswith("1") else name) / "work"
    precious.mkdir(parents=True)
    (precious / "file").write_text("precious")
    runs = os.path.join(place.path, "contexts", "default", "runs")
    path = os.path.join(runs, planted if kind == "process" else planted.replace(":", "."))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(elsewhere, path)
    before = sorted(str(p) for p in elsewhere.rglob("*"))
    how = {"driver": "worker", "is_worker": 1} if kind == "worker" else {}
    e = place.run("true", job="J2", **how)
    assert e["end"] == "not_executed" and GOLDEN.tells("link", e["error"]), e
    place.ack(job="J2")
    assert place.run("true", job="J3")["exit_code"] == 0
    place.ack(job="J3")
    wait_for(lambda: not os.path.isdir(f"{place.path}/keeper/trash")
             or not os.listdir(f"{place.path}/keeper/trash"))
    assert sorted(str(p) for p in elsewhere.rglob("*")) == before
