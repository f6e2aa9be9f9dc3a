"""References in shell text: `glia validate` accepts one exactly where the shell expands it.

Random programs are run by the real shell with the references written as variables. If one comes out
as text, the shell did not expand it there, and the flow must be refused; else it is accepted."""

import json
import os
import random
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))
from glianode import GLIA  # noqa: E402

pytestmark = pytest.mark.sqlite_only("runs no node")

REF = "${job.id}"
VARIABLE = "${GLIA_REF_1}"
PER_FLOW = 40
PROGRAMS = 400


class Writer:
    """Programs that only echo, in every kind of quoting."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *choices):
        return self.random.choice(choices)

    def in_double(self, depth):
        plain = self.one("x", REF, "'", "#", '\\"', "${HOME}", "(", "$(")
        return plain if plain != "$(" else "$(" + self.commands(depth - 1) + ")" if depth else "y"

    def word(self, depth):
        kind = self.random.randrange(11)
        inner = "".join(self.in_double(depth) for _ in range(self.random.randrange(3)))
        return [
            "a", REF, "b#c", "${HOME}", "$((1 << 2))",
            "'" + self.one("x", '"', " # ", "(", "`", "$(", REF) + "'",
            '"' + inner + '"',
            "\\" + self.one('"', "'", "$", "#", "(", "a"),
            "${nope:-" + self.one("x", REF, "'y'", '"z"') + "}",
            "`echo " + self.one("x", REF) + "`",
            "$(" + self.commands(depth - 1) + ")" if depth else "c",
        ][kind]

    def command(self, depth):
        echo = "echo " + " ".join(self.word(depth) for _ in range(self.random.randrange(1, 4)))
        kind = self.random.randrange(8)
        if kind == 0:
            return echo + " # " + self.one("it's", '"', REF) + "\n"
        if kind == 1 and depth:
            return "( " + self.commands(depth - 1) + " )\n"
        if kind == 2:
            body = self.one("it's", '"quote', REF, "$(echo x)")
            return "cat <<" + self.one("E", "'E'", "-E", '"E"') + "\n" + body + "\nE\n"
        if kind == 3:
            return "case a in a) " + echo + ';; b) echo "(";; esac\n'
        if kind == 4:
            return "if true; then " + echo + "; fi\n"
        return echo + "\n"

    def commands(self, depth):
        return "".join(self.command(depth) for _ in range(self.random.randrange(1, 3)))


def stays_text(program):
    """Whether the shell leaves a reference unexpanded; None if it cannot run the program."""
    done = subprocess.run(
        ["sh", "-ec", program.replace(REF, VARIABLE)], capture_output=True, text=True, timeout=60,
        env={"GLIA_REF_1": "VALUE", "HOME": "/h", "PATH": os.environ["PATH"]})
    return VARIABLE in done.stdout if done.returncode == 0 else None


def refused(programs, folder):
    """The numbers of those that are."""
    path = folder / "flow.json"
    flow = {"steps": {f"s{i}": {"sh": program} for i, program in enumerate(programs)}}
    path.write_text(json.dumps(flow), encoding="utf-8")
    done = subprocess.run([GLIA, "validate", "--json", str(path)], capture_output=True, text=True)
    errors = json.loads(done.stdout).get("errors", [])
    assert len(errors) < 64, "all of them are told"
    return {int(error["path"].split(".")[1][1:]) for error in errors}


def test_a_reference_is_accepted_where_the_shell_expands_it(tmp_path):
    programs = []
    for seed in range(PROGRAMS):
        writer = Writer(seed)
        program = writer.commands(2) + writer.commands(1)
        if REF in program and stays_text(program) is not None:
            programs.append(program)
    counts = {True: 0, False: 0}
    for begin in range(0, len(programs), PER_FLOW):
        part = programs[begin:begin + PER_FLOW]
        bad = refused(part, tmp_path)
        for number, program in enumerate(part):
            expected = stays_text(program)
            assert (number in bad) == expected, program
            counts[expected] += 1
    assert counts[True] > 20 and counts[False] > 100
