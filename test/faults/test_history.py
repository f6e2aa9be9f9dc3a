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
    assert {rule for rule, _ in check(without)} == {"lost submission", "uncommitted act"}


@pytest.mark.parametrize("asked, wrong", [(-0.1, set()), (0.1, {"an end was left"})])
def test_an_answer_that_was_late_is_no_lie(asked, wrong):
    """Who asked before another was told of the end may hear of the time before it."""
    story = read(os.path.join(HERE, "bad", "end-left.json"))["history"]
    looks = [e for e in story if e["what"] == "seen"]
    end = next(e for e in looks if e["status"] == "cancelled")
    later = [e for e in looks if e["job"] == end["job"] and e["status"] != "cancelled"]
    assert later and all(e["t"] > end["t"] for e in later)
    for e in later:
        e["asked"] = end["t"] + asked
    assert {rule for rule, _ in check(story)} == wrong


def test_a_history_is_the_same_after_writing_and_reading(tmp_path):
    story = read(stories("good")[0])
    path = tmp_path / "history.json"
    History(story["history"]).save(path)
    assert read(path) == story["history"]
