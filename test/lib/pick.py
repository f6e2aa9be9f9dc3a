"""Finds the tests that a word means: `make test T=WORD`.

A word is the name of a suite, a file of tests with or without its folder and ending, a test
function, or "FILE::test". `pick` returns the (suite, test) pairs: the test is what pytest or
tools/test runs alone, or None for a whole suite."""

import glob
import os
import re

# Of the suites that run one folder with pytest, those that run it with the default store.
FOLDERS = {"system": "test/system", "bundles": "test/bundles", "faults": "test/faults"}
# Suites of C programs, in order of preference: one program is in several of them.
CMOCKA = ("unit", "contract", "scenario")


def python_files(root):
    for suite, folder in FOLDERS.items():
        for path in sorted(glob.glob(os.path.join(root, folder, "test_*.py"))):
            yield suite, os.path.relpath(path, root)


def c_files(root):
    for suite in CMOCKA:
        for path in sorted(glob.glob(os.path.join(root, "test", suite, "*.c"))):
            yield suite, os.path.relpath(path, root)


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def defines(root, path, pattern):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return re.search(pattern, file.read(), re.MULTILINE) is not None


def pick(root, suites, word):
    """All (suite, test) pairs that `word` means; [] if there is no such test."""
    if word in suites:
        return [(word, None)]
    file, _, test = word.partition("::")
    named = [(suite, path) for suite, path in python_files(root) if stem(file) == stem(path)]
    if named:
        return [(suite, f"{path}::{test}" if test else path) for suite, path in named]
    programs = [(suite, stem(path)) for suite, path in c_files(root) if stem(file) == stem(path)]
    if programs:
        return programs[:1]
    name = re.escape(word.partition("[")[0])
    found = [(suite, f"{path}::{word}") for suite, path in python_files(root)
             if defines(root, path, rf"^def {name}\(")]
    return found or [(suite, stem(path)) for suite, path in c_files(root)
                     if defines(root, path, rf"^static void {name}\(void \*\*state\)")]
