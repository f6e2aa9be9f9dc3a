"""Which tests `make test T=WORD` finds."""

import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))

import pick  # noqa: E402

pytestmark = pytest.mark.sqlite_only("about the test tools")

HERE = "test/system/test_pick.py"


@pytest.mark.parametrize("word,found", [
    ("unit", [("unit", None)]),
    ("test_pick", [("system", HERE)]),
    ("test_pick.py", [("system", HERE)]),
    (HERE, [("system", HERE)]),
    (f"{HERE}::test_nothing_is_found", [("system", f"{HERE}::test_nothing_is_found")]),
    ("test_nothing_is_found", [("system", f"{HERE}::test_nothing_is_found")]),
    ("test_takeover", [("faults", "test/faults/test_takeover.py")]),
    ("test_scan", [("unit", "test_scan")]),
    ("a_failed_write_is_made_up_for", [("unit", "test_journal")]),
    ("contract_store_race", [("contract", "contract_store_race")]),
])
def test_a_word_is_found(word, found):
    assert pick.pick(ROOT, ["unit", "system"], word) == found


@pytest.mark.parametrize("word", ["", "nothing", "test_", "pick", "test_pick.py/", ".*", "a_torn"])
def test_nothing_is_found(word):
    assert pick.pick(ROOT, ["unit", "system"], word) == []
