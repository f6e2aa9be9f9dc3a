"""Tests that fail in the full run and pass alone.

`candidates` names the failed tests that are worth a second run, `judge` takes its outcome, and
`report` makes the lines for the end of the log. A flaky test counts as passed, unless there are
more than TOLERATED of them: then something is wrong with the machine or with the change, and all
count as failed. docs/HACKING.md lists the known ones until they are fixed."""

import re

RERUN_MAX = 5        # failed tests; with more, none is rerun
RERUN_SECONDS = 1200  # for all reruns together, on a busy machine
TOLERATED = 2


def candidates(failures):
    """The (suite, test) pairs to run again, each once. None if too many tests failed. A test with
    a failure that is a defect is left out: passing alone would not excuse it."""
    failed = {(f.suite, f.test or f.name) for f in failures}
    if len(failed) > RERUN_MAX:
        return []
    defects = {(f.suite, f.test) for f in failures if f.is_defect}
    named = dict.fromkeys((f.suite, f.test) for f in failures if f.test)
    return [test for test in named if test not in defects]


def judge(failures, passed_alone):
    """(failures that count, failures that are flaky), given the set of the (suite, test) pairs that
    passed in a second run."""
    allowed = set(candidates(failures)) & set(passed_alone)
    flaky = [f for f in failures if (f.suite, f.test) in allowed]
    if len(allowed) > TOLERATED:
        return failures, flaky
    return [f for f in failures if f not in flaky], flaky


def adjust(passed, failed, flaky):
    """The sums, with the flaky tests counted as passed."""
    return passed + sum(not f.is_teardown for f in flaky), failed - len(flaky)


def listed(text):
    """The (suite, test) pairs in the table of docs/HACKING.md."""
    section = re.search(r"^## Flaky tests$(.*?)(?=^## |\Z)", text, re.M | re.S)
    rows = re.findall(r"^\| `(\S+) ([^`]+)` \|", section[1] if section else "", re.M)
    return set(rows)


def report(flaky, known):
    """One line for each flaky test, and what to do about it."""
    tests = list(dict.fromkeys((f.suite, f.test) for f in flaky))
    out = []
    for suite, test in tests:
        advice = "listed" if (suite, test) in known else "add it to the list"
        out.append(f"flaky: {suite} {test} (failed in the full run, passed alone;"
                   f" {advice} in docs/HACKING.md)")
    if len(tests) > TOLERATED:
        out.append(f"{len(tests)} flaky tests count as failed: at most {TOLERATED} are tolerated")
    return out
