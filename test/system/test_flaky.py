"""tools/test runs failed tests again, alone, and tells flaky ones from those that fail. Whatever
would let a real failure count as passed must not."""

import importlib.machinery
import importlib.util
import os
import re
import sys

import pytest

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TEST, "lib"))
import failures  # noqa: E402
import flaky  # noqa: E402
from glianode import ROOT, Box  # noqa: E402

pytestmark = pytest.mark.sqlite_only("tests the tests, not the node")

# Tests whose first run fails: ONCE makes them pass in the second.
ONCE = '''
import os, pathlib, pytest
def is_first(name):
    mark = pathlib.Path(__file__).parent / name
    if mark.exists():
        return False
    mark.touch()
    return True
'''
FLAKY = "def test_{0}():\n    assert not is_first('{0}')\n"


@pytest.fixture(name="runner")
def make_runner(tmp_path, monkeypatch):
    """tools/test with one suite: the tests that are written to the folder it gives."""
    loader = importlib.machinery.SourceFileLoader("tools_test", os.path.join(ROOT, "tools", "test"))
    spec = importlib.util.spec_from_loader("tools_test", loader)
    tool = importlib.util.module_from_spec(spec)
    loader.exec_module(tool)
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {os.path.join(TEST, 'lib')!r})\n"
        "from onstore import pytest_collection_modifyitems, pytest_configure\n")
    monkeypatch.setattr(tool, "take_slot", lambda: (str(tmp_path / "slot"), None))
    monkeypatch.setattr(tool.Run, "build", lambda *_: True)
    monkeypatch.setattr(tool, "LANES", [("it",)])
    monkeypatch.setattr(sys, "argv", ["tools/test"])
    tool.folder = tmp_path

    def use(*how):
        monkeypatch.setattr(tool, "SUITES", [("it", "release", how)])

    tool.use = use
    use("program", *tool.PYTEST, "0", str(tmp_path))
    return tool


def outcome(runner, capsys, text=None):
    """(exit code, the lines at the end)"""
    if text is not None:
        (runner.folder / "test_it.py").write_text(ONCE + text)
    code = runner.main()
    lines = capsys.readouterr().out.splitlines()
    return code, lines


def flaky_lines(lines):
    return [line for line in lines if line.startswith("flaky: ")]


def test_up_to_two_flaky_tests_count_as_passed_and_are_named_last(runner, capsys):
    runner.use("program", *runner.PYTEST, "2", str(runner.folder))
    text = FLAKY.format("a") + "def test_good(): pass\n" + FLAKY.format("b")
    code, lines = outcome(runner, capsys, text)
    assert (code, lines[-1]) == (0, "3 passed, 0 failed")
    assert lines[-3:-1] == flaky_lines(lines) and len(flaky_lines(lines)) == 2
    assert all("test_it.py::test_" in line and "docs/HACKING.md" in line
               for line in lines[-3:-1])


def test_three_flaky_tests_count_as_failed(runner, capsys):
    code, lines = outcome(runner, capsys, "".join(FLAKY.format(n) for n in "abc"))
    assert (code, lines[-1]) == (1, "0 passed, 3 failed")
    assert len(flaky_lines(lines)) == 3 and lines[-2].split()[:2] == ["3", "flaky"]


def test_a_test_that_fails_again_has_failed_beside_a_flaky_one(runner, capsys):
    code, lines = outcome(runner, capsys, FLAKY.format("a") + "def test_b(): assert 0\n")
    assert (code, lines[-1]) == (1, "1 passed, 1 failed")
    assert len(flaky_lines(lines)) == 1
    assert any(line.startswith("FAILED it: test_b") for line in lines)


def test_with_many_failures_none_is_run_again(runner, capsys):
    names = [f"n{i}" for i in range(flaky.RERUN_MAX + 1)]
    code, lines = outcome(runner, capsys, "".join(FLAKY.format(n) for n in names))
    assert code == 1 and re.findall(r"\d+", lines[-1]) == ["0", str(len(names))]
    assert not any("again, alone" in line for line in lines)


def test_a_defect_is_never_flaky(runner, capsys):
    text = ("def test_a():\n    print('x.c:5: runtime error: overflow', *['more'] * 900,"
            " sep='\\n')\n"
            "    assert not is_first('a')\n")
    code, lines = outcome(runner, capsys, text)
    assert (code, lines[-1]) == (1, "0 passed, 1 failed")
    assert not flaky_lines(lines) and not any("again, alone" in line for line in lines)


@pytest.mark.parametrize("report, is_defect", [
    ("==7==ERROR: AddressSanitizer: heap-use-after-free", True),
    ("==7==ERROR: LeakSanitizer: detected memory leaks", True),
    ("WARNING: ThreadSanitizer: data race (pid=7)", True),
    ("glia: core.c:7: assertion failed: n > 0", True),
    ("test_it: x.c:7: f: Assertion `n > 0' failed.", True),
    ("# Test failed with exception: Segmentation fault(11)", True),
    ("['glia', 'serve'] ended with -11", True), ("['glia', 'serve'] ended with -9", False),
    ("['glia', 'serve'] ended with -15", False), ("E   AssertionError: waited 60 s", False)])
def test_what_is_a_defect(report, is_defect):
    said = ["____ test_a ____", report, "FAILED test_it.py::test_a", "1 failed in 1 s"]
    found = failures.of_program("it", said)
    assert found[0].test == "test_it.py::test_a" and found[0].is_defect == is_defect
    assert len(flaky.candidates(found)) == (not is_defect)
    judged = flaky.judge(found, {("it", "test_it.py::test_a")})
    assert judged == ((found, []) if is_defect else ([], found))


def test_a_crash_of_a_node_is_in_the_output_of_its_test(tmp_path, capsys):
    box = Box(tmp_path)
    node = box.start("serve")
    (tmp_path / node.err).write_text("glia: core.c:7: assertion failed: n > 0\n")
    node.send_signal(6)
    node.wait()
    box.close()
    said = capsys.readouterr().out
    assert "assertion failed: n > 0" in said and "ended with -6" in said


def test_a_test_that_vanishes_or_is_skipped_when_alone_has_failed(runner, capsys):
    for text in ("if is_first('x'):\n    def test_a(): assert 0\n",
                 "def test_a():\n    assert not is_first('x')\n    pytest.skip('no')\n"):
        (runner.folder / "x").unlink(missing_ok=True)
        code, lines = outcome(runner, capsys, text)
        assert (code, lines[-1]) == (1, "0 passed, 1 failed")
        assert any("again, alone" in line for line in lines) and not flaky_lines(lines)


def test_a_rerun_that_ends_with_an_error_has_failed(runner, capsys):
    with (runner.folder / "conftest.py").open("a") as file:
        file.write(f"import os\nAGAIN = os.path.exists('{runner.folder}/a')\n"
                   "def pytest_sessionfinish(session):\n    if AGAIN:\n"
                   "        session.exitstatus = 3\n")
    code, lines = outcome(runner, capsys, FLAKY.format("a"))
    assert any("again, alone" in line for line in lines)
    assert (code, lines[-1]) == (1, "0 passed, 1 failed") and not flaky_lines(lines)


def test_a_skipped_test_is_not_hidden_by_a_flaky_one(runner, capsys):
    code, lines = outcome(runner, capsys, FLAKY.format("a") + "def test_b(): pytest.skip('no')\n")
    assert (code, lines[-1]) == (1, "0 passed, 2 failed")


def test_fixtures_that_fail_once_are_counted_once(runner, capsys):
    text = '''
@pytest.fixture
def up():
    assert not is_first('up')
@pytest.fixture
def down():
    yield
    assert not is_first('down')
def test_up(up): pass
def test_down(down): assert not is_first('call')
'''
    code, lines = outcome(runner, capsys, text)
    assert (code, lines[-1]) == (0, "2 passed, 0 failed"), lines
    assert len(flaky_lines(lines)) == 2


def test_the_rerun_has_the_store_and_the_share_of_its_suite(runner, capsys):
    text = "".join(FLAKY.format(f"n{i}").replace("    ", "    assert os.environ['GLIA_TEST_SHARE'] "
                                                 "== '5'\n    ") for i in range(7))
    runner.use("program", "env", "GLIA_TEST_SHARE=5", "GLIA_TEST_TURN=0", *runner.PYTEST, "0",
               str(runner.folder))
    code, lines = outcome(runner, capsys, text)
    ran = len(flaky_lines(lines))
    assert 1 <= ran <= 2, "of seven tests, names were to be chosen so that a share has one or two"
    assert (code, lines[-1]) == (0, f"{ran} passed, 0 failed")


def test_other_programs_are_not_run_again(runner, capsys):
    script = runner.folder / "swarm"
    script.write_text(f"#!/bin/sh\ntest -e {runner.folder}/x && echo 1 passed && exit\n"
                      f"touch {runner.folder}/x\necho FAILED a.py::seed\necho 0 passed, 1 failed\n"
                      "exit 1\n")
    script.chmod(0o755)
    runner.use("program", str(script))
    code, lines = outcome(runner, capsys)
    assert (code, lines[-1]) == (1, "0 passed, 1 failed")
    assert not any("again, alone" in line for line in lines)


@pytest.mark.parametrize("said, is_flaky", [
    ("not ok 2 - it_waits", True),
    ("not ok 2 - it_waits\necho x.c:5: runtime error: overflow", False),
    ("not ok 2 - it_waits\nkill -SEGV $$", False), ("more\nkill -SEGV $$", False)])
def test_a_program_of_cmocka_is_run_again(runner, capsys, monkeypatch, said, is_flaky):
    script = runner.folder / "test_it"
    script.write_text(f"#!/bin/sh\necho ok 1 - fine\ntest -e {runner.folder}/x && echo ok 2 -"
                      f" it_waits && exit\ntouch {runner.folder}/x\necho {said}\nexit 1\n")
    script.chmod(0o755)
    runner.use("cmocka", "unit")
    monkeypatch.setattr(runner.Run, "cmocka_tests", lambda *_: [
        {"name": "test_it", "cmd": [str(script)], "timeout": 60}])
    code, lines = outcome(runner, capsys)
    assert (code, lines[-1]) == ((0, "2 passed, 0 failed") if is_flaky else
                                 (1, "1 passed, 1 failed"))
    assert len(flaky_lines(lines)) == is_flaky


def test_without_time_left_nothing_is_called_flaky(runner, capsys, monkeypatch):
    monkeypatch.setattr(flaky, "RERUN_SECONDS", 0)
    code, lines = outcome(runner, capsys, FLAKY.format("a"))
    assert (code, lines[-1]) == (1, "0 passed, 1 failed") and not flaky_lines(lines)


def test_a_fault_test_that_was_cut_off_can_be_run_again():
    said = ["bad  240.0 s  test/faults/test_x.py::test_y[a]", "..",
            "FAILED test/faults/test_x.py::test_y[a] - not at its end after 240 s",
            "0 passed, 1 failed"]
    (found,) = failures.of_program("faults", said)
    assert flaky.candidates([found]) == [("faults", "test/faults/test_x.py::test_y[a]")]


def test_the_table_of_known_flaky_tests_is_read():
    text = ("## A\n| `system test/a.py::b` | x |\n## Flaky tests\n\n| test | since |\n|---|---|\n"
            "| `system test/a.py::c[1 - 2]` | today | |\n\n## B\n| `system test/a.py::d` | x |\n")
    assert flaky.listed(text) == {("system", "test/a.py::c[1 - 2]")}
    failure = failures.whole("system", "c", [])
    failure.test = "test/a.py::c[1 - 2]"
    assert "; listed in" in flaky.report([failure], flaky.listed(text))[0]
    assert "; add it" in flaky.report([failure], set())[0]
