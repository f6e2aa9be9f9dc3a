"""Sentences for people, compared with a file beside the tests: the one place that knows them.

    GOLDEN = golden.of(__file__)               test_keeper.py has keeper.golden
    GOLDEN.says("no program", end["error"])    the line `no program: ...` of it

Whatever is different in each run (folders, process ids) is passed as `hide`, and stands there as
`<>`; a compiled pattern hides all that it matches. With GLIA_GOLDEN=write in the environment, lines
are written instead of compared.

    GOLDEN.says("no node", line_of(err, "glia:"))     the line of a longer text that has a part
    GOLDEN.tells("no node", text)                     does the text contain that sentence?

`tells` is for waiting and for `not`. It does not write: a test that says `not` also shows the same
key where the sentence does appear, so that it cannot be satisfied by another wording.
"""

import os
import re


WRITES = os.environ.get("GLIA_GOLDEN") == "write"  # some tests remove such variables


def shown(text, hide):
    for part in hide:
        if isinstance(part, re.Pattern):
            text = part.sub("<>", text)
        else:
            text = text.replace(str(part), "<>")
    return re.sub(r"\s*\n\s*", " | ", text.strip())


def line_of(text, part):
    """The first line that contains the part: an id, a number, a name."""
    found = [line for line in text.splitlines() if part in line]
    assert found, f"no line with {part!r}: {text}"
    return found[0]


class Golden:
    def __init__(self, path):
        self.path = path
        self.written = {}

    def lines(self):
        if not os.path.exists(self.path):
            return {}
        with open(self.path, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(": ", 1) for line in file)

    def says(self, key, text, hide=()):
        text = shown(text, hide)
        if WRITES:
            assert self.written.setdefault(key, text) == text, f"{self.path}: {key}: two texts"
            lines = {**self.lines(), key: text}
            with open(self.path, "w", encoding="utf-8") as file:
                file.writelines(f"{k}: {v}\n" for k, v in sorted(lines.items()))
        assert text == self.lines().get(key), f"{self.path}: {key}"

    def tells(self, key, text, hide=()):
        return self.lines()[key] in shown(text, hide)


def of(test_file):
    folder, name = os.path.split(os.path.abspath(test_file))
    name = name.removeprefix("test_").removesuffix(".py")
    return Golden(os.path.join(folder, f"{name}.golden"))
