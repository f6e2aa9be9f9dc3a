#!/usr/bin/python3
"""Counts assertions, for the ratchet of tools/tidy.

    tools/asserts.py     the counts of each room (a folder of src/), and of each of its folders

A condition is one GL_ASSERT about arguments or state, even if it joins several with &&. Conditions
that only test whether a pointer is NULL, constants, comments and macros are not counted.
docs/HACKING.md says what to assert.
"""

import os
import re
import subprocess
import sys

# Rooms with a goal, in conditions for each hundred functions.
GOALS = {"core": 100, "node": 50, "store": 50, "keeper": 50}

NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
                   r"|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
POINTER = re.compile(r"[\w.\[\]]+(?:->[\w.\[\]]+)*\s*[!=]=\s*NULL|NULL\s*[!=]=.*"
                     r"|true|false|[01]", re.S)


def conditions(text):
    """Each condition that counts, in order."""
    text = NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for found in re.finditer(r"\bGL_ASSERT\s*\(", text):
        depth, at = 1, found.end()
        while depth > 0 and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        condition = text[found.end():at - 1]
        if not all(POINTER.fullmatch(part.strip(" \n()")) for part in condition.split("&&")):
            yield condition


def functions(text):
    """The number of functions: the opening brace of a body is in the first column."""
    return len(re.findall(r"^\{$", text, re.M))


def tally(texts):
    """{room: (functions, conditions)} of the rooms with a goal, from {path: text}."""
    found = {}
    for path, text in texts.items():
        parts = path.split("/")
        if path.endswith((".c", ".h")) and parts[0] == "src" and parts[1] in GOALS:
            n, asserted = found.get(parts[1], (0, 0))
            found[parts[1]] = n + functions(text), asserted + len(list(conditions(text)))
    return found


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "src"], cwd=root,
                         capture_output=True, text=True, check=True)
    folders = {}
    for path in out.stdout.split():
        if os.path.exists(os.path.join(root, path)):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                folders.setdefault(os.path.dirname(path), {})[path] = file.read()
    for room, goal in GOALS.items():
        inside = {f: t for f, t in folders.items() if (f + "/").startswith(f"src/{room}/")}
        total = tally({p: t for texts in inside.values() for p, t in texts.items()})
        for name, n in [(f"src/{room}", total), *((f, tally(t)) for f, t in inside.items())]:
            count, asserted = n.get(room, (0, 0))
            if count > 0:
                indent = "" if name == f"src/{room}" and n is total else "  "
                print(f"{indent}{name}: {count} functions, {asserted} conditions, "
                      f"{asserted / count:.2f} each"
                      + (f" (goal {goal / 100})" if not indent else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
