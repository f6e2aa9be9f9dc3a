"""The end of a test run's log names what failed, also when much did: CI keeps only the end."""

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import failures  # noqa: E402

pytestmark = pytest.mark.sqlite_only("tests the tests, not the node")

BAD_FILE = '''
def test_good():
    pass

def test_bad():
    for i in range(40):
        print("line", i)
    assert "this" == "that"

class TestGroup:
    def test_in_a_class(self):
        raise ValueError("told loudly")
'''


def pytest_said(tmp_path, *options):
    (tmp_path / "test_it.py").write_text(BAD_FILE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run([*command, "test_it.py"], cwd=tmp_path, text=True, capture_output=True,
                          check=False)
    assert done.returncode == 1
    return done.stdout.splitlines()


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_failures_of_pytest_are_named_once_each(tmp_path, options):
    found = failures.of_program("system", pytest_said(tmp_path, *options))
    assert sorted(f.name for f in found) == ["TestGroup.test_in_a_class", "test_bad"]
    bad = next(f for f in found if f.name == "test_bad").told()
    assert any("this" in line and line.startswith("E ") for line in bad), bad
    assert bad[-1] == "line 39" and len(bad) <= failures.LINES_EACH


def test_failures_of_our_own_programs_are_named():
    said = ["ok   fine", "FAIL  rule-7", "    src/a.c", "ok   more",
            "FAILED: seed-7", "trace", "1 passed, 2 failed"]
    found = failures.of_program("swarm", said)
    assert [f.name for f in found] == ["rule-7", "seed-7"]
    assert [f.told() for f in found] == [["    src/a.c"], ["trace"]]


def test_failures_of_cmocka_are_named():
    said = ("1..3\nok 1 - fine\nmarker 7\n"
            "not ok 2 - a_torn_record_is_refused\n# 1 != 2\nok 3 - x")
    (found,) = failures.of_cmocka("unit", "test_it", said)
    assert found.name == "test_it: a_torn_record_is_refused"
    assert found.told() == ["marker 7", "# 1 != 2"]


def test_a_program_that_breaks_off_is_named_with_its_last_lines():
    said = "1..3\nok 1 - fine\n" + "\n".join(f"ASAN {i}" for i in range(100))
    (found,) = failures.of_cmocka("unit", "test_it", said)
    assert found.name == "test_it" and found.told()[-1] == "ASAN 99"


def test_what_a_sanitizer_found_is_told_although_much_follows():
    said = ["FAILED: seed 7", "x.c:56:12: runtime error: null pointer", *["t=1 trace"] * 100]
    (found,) = failures.of_program("swarm", said)
    assert "null pointer" in found.told()[0] and len(found.told()) == failures.LINES_EACH


@pytest.mark.parametrize("many", [1, 3, 30, 300])
def test_a_report_is_short_however_much_failed(many):
    all_of_them = [failures.whole("system", f"test_{i}", ["said"] * 500) for i in range(many)]
    lines = failures.report(all_of_them)
    assert len(lines) <= failures.LINES_ALL + 5
    assert any("test_0" in line for line in lines)
    assert not failures.report([])
