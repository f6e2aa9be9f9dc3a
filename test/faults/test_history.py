"""The judge of the fault tests is judged itself: it refuses each history that cannot be, for its
reason and for no other, and bears those that can."""

import glob
import json
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
from history import Checker, History, check  # noqa: E402


def stories(kind):
    return sorted(glob.glob(os.path.join(HERE, kind, "*.json")))


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.parametrize("path", stories("bad"), ids=os.path.basename)
def test_a_history_that_cannot_be_is_refused_for_its_reason(path):
    story = read(path)
    assert {rule for rule, _ in check(story["history"])} == {story["rule"]}, story["about"]


@pytest.mark.parametrize("path", stories("good"), ids=os.path.basename)
def test_a_history_that_can_be_is_accepted(path):
    story = read(path)
    assert check(story["history"]) == [], story["about"]


def test_every_rule_has_a_history_that_breaks_it():
    broken = {read(path)["rule"] for path in stories("bad")}
    with open(sys.modules[Checker.__module__].__file__, encoding="utf-8") as file:
        named = file.read().split('self.wrong("')[1:]
    assert {text.split('"')[0] for text in named} == broken and len(broken) >= 5


def test_what_a_power_cut_may_take_is_what_was_said_of_it():
    """The same history without the test's word that the store may forget is refused."""
    story = read(os.path.join(HERE, "good", "power-cut.json"))
    without = [e for e in story["history"] if e.get("kind") != "loss"]
    assert {rule for rule, _ in check(without)} == {"lost submission", "acted without a commit"}


def test_a_history_is_the_same_after_writing_and_reading(tmp_path):
    story = read(stories("good")[0])
    path = tmp_path / "history.json"
    History(story["history"]).save(path)
    assert read(path) == story["history"]
