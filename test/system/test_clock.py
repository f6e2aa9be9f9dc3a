"""The wall clock is set, forward or back; only that of the programs of a test (wallclock.c)."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import BUILD, wait_for  # noqa: E402

HOUR_S = 3600 + 30  # and a little, so that what a look takes does not show


def set_clock(box, ahead_s):
    path = box.write("clock", str(ahead_s))
    box.env.update(WALL_CLOCK_FILE=path, LD_PRELOAD=os.path.join(BUILD, "test", "wallclock.so"))


def start_node(box):
    node = box.start("serve")
    wait_for("the node", lambda: "ready: process" in box.read(node.err))
    return node


def clock_check(box):
    return {c["check"]: c for c in box.json("doctor")["checks"]}["clock"]


def test_the_doctor_says_that_the_clock_was_set_while_the_node_ran(box):
    """The node goes on from the time at which it started, so what waits until a time of day comes
    late, or early, by that much."""
    set_clock(box, 0)
    node = start_node(box)
    assert clock_check(box)["result"] == "ok"
    for ahead_s, word in ((HOUR_S, "behind"), (-HOUR_S, "ahead")):
        set_clock(box, ahead_s)
        found = clock_check(box)
        assert found["result"] == "warn"
        assert f" {word} " in found["found"] and "1h 0m" in found["found"]
        assert "restart" in found["to_do"]
    set_clock(box, HOUR_S)
    node.terminate()
    box.finish(node)
    start_node(box)
    assert clock_check(box)["result"] == "ok"
