"""The goldens of the tests: what they accept, and what they do not."""

import os
import re
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402


@pytest.fixture(name="lines")
def make_lines(tmp_path):
    (tmp_path / "it.golden").write_text("a: one <> two\nb: three\n", encoding="utf-8")
    return golden.Golden(str(tmp_path / "it.golden"))


def test_a_text_is_the_line_of_its_key_without_what_is_hidden(lines):
    lines.says("a", "one 7 two\n", ["7"])
    lines.says("a", "one 789 two", [re.compile(r"\d+")])
    for key, text in (("a", "one 7 two"), ("b", "three four"), ("c", "three")):
        with pytest.raises(AssertionError):
            lines.says(key, text)


def test_a_sentence_is_found_in_a_longer_text(lines):
    assert lines.tells("b", "zero\nthree four\n")
    assert not lines.tells("b", "four")
    with pytest.raises(KeyError):
        lines.tells("c", "three")


def test_the_line_of_a_part_must_be_there():
    assert golden.line_of("x 1\ny 2\nz 2\n", "2") == "y 2"
    with pytest.raises(AssertionError):
        golden.line_of("x 1\n", "2")


def test_lines_are_written_where_that_is_wanted_and_never_two_for_a_key(lines, monkeypatch):
    monkeypatch.setattr(golden, "WRITES", True)
    lines.says("c", "five")
    lines.says("c", "five")
    with pytest.raises(AssertionError):
        lines.says("c", "six")
    assert golden.Golden(lines.path).lines() == {"a": "one <> two", "b": "three", "c": "five"}
