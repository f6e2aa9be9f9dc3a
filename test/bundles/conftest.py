"""What the tests of bundles share: the store they run on (test/lib/onstore.py), a data folder, and
ways to run bundles in it."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from bundlework import Runner  # noqa: E402
from glianode import Box  # noqa: E402
from httpnode import serve  # noqa: E402
from onstore import (make_box, pytest_collection_modifyitems, pytest_configure,  # noqa: E402,F401
                     store)


@pytest.fixture(name="alone")
def make_alone(box):
    """Commands are the node themselves."""
    return Runner(box)


@pytest.fixture(name="served", scope="module")
def make_served(tmp_path_factory):
    """One node for all tests of a file; each test has its own jobs."""
    box = Box(tmp_path_factory.mktemp("served"))
    runner = Runner(box)
    serve(box)
    yield runner
    box.close()


@pytest.fixture(name="own")
def make_own(tmp_path):
    """A node of the test's own."""
    box = Box(tmp_path)
    runner = Runner(box)  # sets where runs are, for the node too
    serve(box)
    yield runner
    box.close()
