"""What every suite of whole programs has in common: the store it runs on, and a share of it.

GLIA_TEST_STORE=sqlite|redis|postgres chooses the store. Tests of what only SQLite has, or of what
has no store at all, carry the marker `sqlite_only` with the reason; with another store they are not
selected.

GLIA_TEST_SHARE=n takes one of n shares of the tests: about every n-th, chosen by a hash of its name
and of the store, but of each file at least one, of the crash tests four times as many, all that are
marked with `every_store`, and none that is marked as slow. A test that goes through a list takes
`share_of` it. GLIA_TEST_TURN=t says which share: t modulo n. tools/test derives it from the commit,
so that one commit after the other runs other shares.

A conftest.py imports all of it: pytest finds hooks and fixtures there."""

import os
import zlib

import pytest

from glianode import Box
from teststore import STORE, Lender

SHARE = int(os.environ.get("GLIA_TEST_SHARE") or "1")
TURN = int(os.environ.get("GLIA_TEST_TURN") or "0")
CRASH_MORE = 4


def pytest_configure(config):
    config.addinivalue_line("markers", "sqlite_only(reason): not run on a shared store, because...")
    config.addinivalue_line("markers", "slow: not in a share of the tests")
    config.addinivalue_line("markers", "every_store: in every share of the tests")
    config.addinivalue_line("markers", "item(ids): what of contract.txt a test shows")


def pick(items):
    """The share."""
    chosen = set()
    for path in {i.path for i in items}:
        mine = [i for i in items if i.path == path and not i.get_closest_marker("slow")]
        every = SHARE // CRASH_MORE if path.name.startswith("test_crash") else SHARE
        lots = {i: zlib.crc32(f"{STORE} {path.name} {i.name}".encode()) for i in mine}
        found = [i for i in mine
                 if (lots[i] - TURN) % max(every, 1) == 0 or i.get_closest_marker("every_store")]
        chosen.update(found or [sorted(mine, key=lots.get)[TURN % len(mine)]] if mine else [])
    return chosen


def share_of(names):
    """What one test runs of many alike."""
    names = list(names)
    return names[(zlib.crc32(STORE.encode()) + TURN) % min(SHARE, len(names))::SHARE]


def pytest_collection_modifyitems(config, items):
    bad = [i.nodeid for i in items for m in i.iter_markers("sqlite_only") if len(m.args) != 1]
    if bad:
        raise pytest.UsageError(f"sqlite_only without a reason: {bad[0]}")
    chosen = set(items)
    if STORE != "sqlite":
        chosen = {i for i in items if not i.get_closest_marker("sqlite_only")}
    if SHARE > 1:
        chosen = pick(chosen)
    config.hook.pytest_deselected(items=[i for i in items if i not in chosen])
    items[:] = [i for i in items if i in chosen]


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
