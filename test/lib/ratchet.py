"""The CPU time each suite may take (tools/test.ratchet).

CPU time is compared, not wall-clock time: it hardly depends on what else the machine does. A suite
that takes more than MARGIN and SECONDS_FREE above its allowance fails the run."""

import os

PATH = os.path.join("tools", "test.ratchet")
MARGIN = 0.5
SECONDS_FREE = 20  # of short suites


def read(root):
    """{suite: CPU seconds}"""
    with open(os.path.join(root, PATH), encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {suite: float(seconds) for suite, seconds in rows}


def limit(allowed):
    return allowed * (1 + MARGIN) + SECONDS_FREE


def note(allowances, suite):
    """What to print beside the CPU time a suite has taken."""
    return f", allowed {allowances[suite]:.0f} s" if suite in allowances else ""


def complaint(allowances, suite, cpu):
    """Why a suite that took `cpu` seconds fails the run, or None. A suite without a line in the
    table has an allowance of 0."""
    allowed = allowances.get(suite, 0)
    if cpu <= limit(allowed):
        return None
    return (f"{suite} took {cpu:.0f} s of CPU time, more than the {limit(allowed):.0f} s that its"
            f" allowance of {allowed:.0f} s permits. Make it cheaper, or raise its line in {PATH}"
            " and say why in the commit")
