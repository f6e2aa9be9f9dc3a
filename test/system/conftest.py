"""What all tests of whole programs share: the store they run on, and a data folder.

GLIA_TEST_STORE=sqlite|redis|postgres chooses the store. Tests of what only SQLite has, or of what has
no store at all, carry the marker `sqlite_only` with the reason; with another store they are not
selected."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box  # noqa: E402
from teststore import STORE, Lender  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "sqlite_only(reason): not run on a shared store, because...")


def pytest_collection_modifyitems(config, items):
    bad = [i.nodeid for i in items for m in i.iter_markers("sqlite_only") if len(m.args) != 1]
    if bad:
        raise pytest.UsageError(f"sqlite_only without a reason: {bad[0]}")
    if STORE != "sqlite":
        left = [i for i in items if i.get_closest_marker("sqlite_only")]
        config.hook.pytest_deselected(items=left)
        items[:] = [i for i in items if i not in left]


@pytest.fixture(scope="session", autouse=True)
def store():
    """Every Box gets a store of its own."""
    if STORE == "sqlite":
        yield
        return
    with Lender(STORE) as lender:
        Box.lender = lender
        yield
        Box.lender = None


@pytest.fixture(name="box")
def make_box(tmp_path):
    """A data folder in which nothing runs yet."""
    box = Box(tmp_path)
    yield box
    box.close()
