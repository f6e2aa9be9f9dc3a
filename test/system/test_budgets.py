"""The bounds of the tests: hangs are found, and suites keep to their CPU time."""

import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))
import follow  # noqa: E402
import ratchet  # noqa: E402

pytestmark = pytest.mark.sqlite_only("tests the tests, not the node")


def follow_shell(script, monkeypatch, **bounds):
    monkeypatch.setattr(follow, "LOOK_SECONDS", 0.1)
    for name, value in bounds.items():
        monkeypatch.setattr(follow, name, value)
    lines, code, _ = follow.follow(["sh", "-c", script], dict(os.environ), ROOT)
    return list(lines), code


def test_a_program_that_waits_for_ever_is_named_by_what_runs(monkeypatch):
    lines, code = follow_shell("echo begun; sleep 1234; echo", monkeypatch, SILENT_SECONDS=1)
    assert code == -9 and lines[0] == "begun"
    assert lines[1].startswith(f"{follow.HUNG}: {follow.WAITS} ")
    assert any(line.endswith("sleep 1234") for line in lines[2:])


def test_a_program_that_computes_for_ever_is_ended(monkeypatch):
    lines, code = follow_shell("while :; do :; done", monkeypatch, SPIN_CPU_SECONDS=0.3)
    assert code == -9 and follow.SPINS in lines[0]


def test_whatever_is_printed_is_progress(monkeypatch):
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf .; sleep 0.5; done; exit 3"
    assert follow_shell(script, monkeypatch, SILENT_SECONDS=5) == (["." * 12], 3)


def test_a_suite_must_keep_to_its_allowance():
    allowed = {"unit": 100}
    assert ratchet.complaint(allowed, "unit", 170) is None
    assert "tools/test.ratchet" in ratchet.complaint(allowed, "unit", 171)
    assert "allowance of 0 s" in ratchet.complaint(allowed, "other", 21)


def test_every_suite_has_an_allowance():
    done = subprocess.run([os.path.join(ROOT, "tools", "test"), "--list"], capture_output=True,
                          text=True, check=True)
    assert sorted(done.stdout.split()) == sorted(ratchet.read(ROOT))
