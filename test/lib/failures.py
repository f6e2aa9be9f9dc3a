"""What went wrong, told at the end of a log: CI keeps only the end of it.

`of_program` and `of_cmocka` find the failures in what a suite has said; `report` tells them in few
lines, however many there are. flaky.py decides which of them are worth a second run."""

import re

LINES_EACH = 15   # of one failure
LINES_ALL = 150   # of all of them
NAMES_MAX = 40    # failures that are named where not all can be told
KEPT_EACH = 400   # lines of one failure, while a suite is still talking

PYTEST_TITLE = re.compile(r"^_{3,} (\S.*?) _{3,}$")
PYTEST_RULE = re.compile(r"^={3,} .* ={3,}$")
OTHER = re.compile(r"^(?:ok\b|\d+ passed\b)")
MARKED = re.compile(r"^FAIL(?:ED)?\b:?\s*(.*)")
ERROR = re.compile(r"^E  |runtime error: |ERROR: \w+Sanitizer|WARNING: ThreadSanitizer")
PYTEST_SUMMARY = re.compile(r"^(FAILED|ERROR) (\S+\.py::.*)")
PYTEST_PHASE = re.compile(r"^ERROR at (?:setup|teardown) of ")
# A defect however rarely it shows: reports of sanitizers, assertions, and deaths by a signal that
# nobody sends (SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV).
DEFECT = re.compile(r"runtime error: |(?:ERROR|WARNING|SUMMARY): \w+Sanitizer|assertion failed: "
                    r"|Assertion `.*' failed|Test failed with exception: "
                    r"|ended with -(?:4|6|7|8|11)\b")
TAP_BAD = re.compile(r"^not ok \d+ - (.*)")
TAP_OTHER = re.compile(r"^(?:ok|not ok) \d+")


class Failure:
    """One failed test. `test` is what a rerun needs to find it: the node id of pytest, or "PROGRAM:
    TEST" of cmocka; None if it must not be rerun. `is_defect` rules out that it is flaky."""

    def __init__(self, suite, name):
        self.suite = suite
        self.name = name
        self.test = None
        self.is_defect = False
        self.lines = []

    @property
    def is_teardown(self):
        """pytest counts such a test as passed, too."""
        return self.name.startswith("ERROR at teardown")

    def add(self, line):
        self.lines.append(line)
        self.is_defect = self.is_defect or bool(DEFECT.search(line))
        if len(self.lines) > KEPT_EACH:
            del self.lines[KEPT_EACH // 8]  # where it began is worth most, then its end

    def told(self, most=LINES_EACH):
        """Its last lines; first, if they are not among these, what pytest or a sanitizer calls the
        error."""
        lines = [line.rstrip() for line in self.lines if line.strip()]
        last = lines[-most:]
        errors = [line for line in lines[:-most] if ERROR.search(line)][: most // 3]
        return errors + last[len(errors):]


def of_program(suite, lines):
    """The failures in the lines of a program. pytest's begin with a title between underscores,
    those of our own programs with FAIL or FAILED."""
    found, now, is_passes = [], None, False
    for line in lines:
        title, marked = PYTEST_TITLE.match(line), MARKED.match(line)
        summary = PYTEST_SUMMARY.match(line)
        if title:
            now = None if is_passes else Failure(suite, title[1])
        elif PYTEST_RULE.match(line) or OTHER.match(line):
            now = None  # the next part of pytest's page, or the next test of ours
            is_passes = " PASSES " in line
        elif summary and name_test(*summary.groups(), found):
            now = None
        elif marked:
            now = Failure(suite, marked[1])
            if summary:  # of a test that was cut off: it has no title
                now.test = summary[2].rsplit(" - ", 1)[0]
        elif now is not None:
            now.add(line)
            continue
        if now is not None:
            found.append(now)
    return found


def name_test(word, text, found):
    """Note the node id in a line of pytest's short summary ("FAILED NODE ID - MESSAGE", or ERROR)
    on the failure it repeats; False if it repeats none. Both parts may contain " - ", and a title
    has no path: of several with the same title, the first is meant."""
    ends = [m.start() for m in re.finditer(" - ", text)] + [len(text)]
    for failure in found:
        title = PYTEST_PHASE.sub("", failure.name)
        if failure.test is not None or (word == "ERROR") != (title != failure.name):
            continue
        for end in ends:
            name = text[:end].split("::", 1)[1]
            if name.replace("::", ".") == title.replace("::", "."):
                failure.test = text[:end]
                return True
    return False


def of_cmocka(suite, program, output):
    """The failures of one test program: its output is TAP."""
    found, before, now = [], [], None
    for line in output.splitlines():
        bad = TAP_BAD.match(line)
        if bad:
            now = Failure(suite, f"{program}: {bad[1]}")
            now.lines = before
            found.append(now)
        if TAP_OTHER.match(line):
            before = []
            now = now if bad else None
        elif now is not None:
            now.add(line)
        else:
            before = [*before, line][-KEPT_EACH:]
    found = found or [whole(suite, program, output.splitlines())]
    for failure in found:
        failure.test, failure.is_defect = failure.name, bool(DEFECT.search(output))
    return found


def whole(suite, name, lines):
    """A failure of which nothing else is known."""
    failure = Failure(suite, name)
    failure.lines = list(lines)[-KEPT_EACH:]
    failure.is_defect = any(DEFECT.search(line) for line in lines)
    return failure


def report(failures, what="what failed"):
    """The lines that tell all of them, at most LINES_ALL and a few."""
    if not failures:
        return []
    each = max(1, min(LINES_EACH, LINES_ALL // len(failures[:NAMES_MAX]) - 1))
    out = ["", f"== {what} ({len(failures)})"]
    for failure in failures[:NAMES_MAX]:
        out.append(f"FAILED {failure.suite}: {failure.name[:200]}")
        out += ["       " + line[:160] for line in failure.told(each)]
    if len(failures) > NAMES_MAX:
        out.append(f"       and {len(failures) - NAMES_MAX} more: see above")
    return out
