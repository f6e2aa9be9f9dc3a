"""What went wrong, told at the end of a log: CI keeps only the end of it.

`of_program` and `of_cmocka` find the failures in what a suite has said; `report` tells them in few
lines, however many there are."""

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
TAP_BAD = re.compile(r"^not ok \d+ - (.*)")
TAP_OTHER = re.compile(r"^(?:ok|not ok) \d+")


class Failure:
    def __init__(self, suite, name):
        self.suite = suite
        self.name = name
        self.lines = []

    def add(self, line):
        self.lines.append(line)
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
    found, now = [], None
    for line in lines:
        title, marked = PYTEST_TITLE.match(line), MARKED.match(line)
        if title:
            now = Failure(suite, title[1])
        elif PYTEST_RULE.match(line) or OTHER.match(line):
            now = None  # the next part of pytest's page, or the next test of ours
        elif marked and not is_summary(marked[1], found):
            now = Failure(suite, marked[1])
        elif now is not None:
            now.add(line)
            continue
        if now is not None:
            found.append(now)
    return found


def is_summary(text, found):
    """Whether it is a line of pytest's short summary, which repeats what has a title already."""
    name = text.split(" - ")[0].split("::")[-1]
    return any(f.name.split(".")[-1] == name for f in found)


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
    return found or [whole(suite, program, output.splitlines())]


def whole(suite, name, lines):
    """A failure of which nothing else is known."""
    failure = Failure(suite, name)
    failure.lines = list(lines)[-KEPT_EACH:]
    return failure


def report(failures):
    """The lines that tell all of them, at most LINES_ALL and a few."""
    if not failures:
        return []
    each = max(1, min(LINES_EACH, LINES_ALL // len(failures[:NAMES_MAX]) - 1))
    out = ["", f"== what failed ({len(failures)})"]
    for failure in failures[:NAMES_MAX]:
        out.append(f"FAILED {failure.suite}: {failure.name[:200]}")
        out += ["       " + line[:160] for line in failure.told(each)]
    if len(failures) > NAMES_MAX:
        out.append(f"       and {len(failures) - NAMES_MAX} more: see above")
    return out
