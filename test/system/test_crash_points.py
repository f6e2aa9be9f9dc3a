"""The process dies at every failpoint: the node, or the keeper, whoever passes it. Each is really
reached, and afterwards everything ends right."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from crashpoints import (COUNTS_ALONE, counts_as_host, die_alone, die_as_host,  # noqa: E402
                         names_in_docs, names_in_source)

AT_ONCE = 6


def points():
    for name in names_in_source():
        mark = pytest.mark.sqlite_only("a point of SQLite's adapter")
        yield pytest.param(name, marks=[mark] if name.startswith("sqlite.") else [])


@pytest.mark.parametrize("name", points())
def test_a_death_at_a_failpoint_loses_nothing(name):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        deaths = [pool.submit(die_alone, name, count) for count in COUNTS_ALONE]
        deaths += [pool.submit(die_as_host, name, count) for count in counts_as_host(name)]
    errors = [str(d.exception()) for d in deaths if d.exception()]
    assert not errors, "\n\n".join(errors)


@pytest.mark.sqlite_only("runs no node")
def test_every_failpoint_is_documented_and_no_other():
    assert names_in_docs() == names_in_source()
