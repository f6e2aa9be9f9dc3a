"""Commands on a shared store without `glia serve`: each is a node for a moment, a guest. What one
of them leaves behind is taken up by the next of its folder, and by whoever waits for it."""

import json
import os
import re
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from clusterbox import CALM, make_boxes, make_redis, serve, why  # noqa: E402, F401
from glianode import wait_for  # noqa: E402
from records import open_records  # noqa: E402

GOLDEN = golden.of(__file__)
JOBS = "/v1/contexts/default/jobs"

pytestmark = pytest.mark.sqlite_only("chooses its stores itself")


STEPS = 100


def begin(box, name):
    """A command with steps one after the other: each stays until the file NAME.NUMBER is there."""
    path = f"{box.folder}/{name}"
    flow = box.write(f"{name}.json", json.dumps({"name": name, "steps": {
        f"s{i}": {"idempotent": True, "needs": [f"s{i - 1}"] if i > 1 else [],
                  "sh": f"echo x >> {path}.ran; until [ -e {path}.{i} ]; do sleep 0.05; done"}
        for i in range(1, STEPS + 1)}}))
    run = box.start("run", flow, "--run-id", name)
    wait_for("its step", lambda: box.has(f"{name}.ran"))
    return run


def let(box, name, first=1, last=STEPS):
    for number in range(first, last + 1):
        box.write(f"{name}.{number}", "")


def kill(run):
    run.kill()
    run.wait()


def status_of(box, job):
    return box.json("job", "status", job)["status"]


def follow(box, name, other):
    """A command of `box` that waits for the job of another folder, and tells how it gets on."""
    waits = box.start("job", "resume", name)
    box.wait_node()
    for number in range(1, STEPS):
        if "running" in box.read(waits.err):
            break
        let(other, name, number, number)
        time.sleep(0.1)
    assert "running" in box.read(waits.err), "the test would show nothing"
    return waits


def test_who_waits_for_the_job_of_another_folder_takes_it_over(boxes):
    a, b = boxes("a"), boxes("b")
    first = begin(a, "one")
    waits = follow(b, "one", a)
    kill(first)
    let(a, "one")
    b.finish(waits)
    assert status_of(b, "one") == "completed"


def test_who_does_not_wait_for_it_leaves_it_alone(boxes):
    """... and the next command of its own folder goes on with it."""
    a, b = boxes("a"), boxes("b")
    kill(begin(a, "one"))
    second = begin(b, "two")
    wait_for("its death", lambda: "node_dead" in b.why_codes("one"))
    let(a, "one")
    third = begin(a, "three")
    wait_for("its end", lambda: status_of(a, "one") == "completed")
    for box, name, run in ((b, "two", second), (a, "three", third)):
        let(box, name)
        box.finish(run)


def test_what_a_dead_guest_left_goes_to_a_node_that_serves(boxes):
    a, b = boxes("a"), boxes("b")
    kill(begin(a, "one"))
    let(a, "one")
    serve(b)
    wait_for("its end", lambda: status_of(b, "one") == "completed")


@pytest.mark.parametrize("verb, end", [("cancel", "cancelled"), ("pause", "paused")])
def test_a_command_from_elsewhere_stops_what_a_dead_guest_left(boxes, verb, end):
    """Nobody is there who could have declared it dead before."""
    a, b = boxes("a"), boxes("b")
    kill(begin(a, "one"))
    b.glia("job", verb, "one")
    assert status_of(b, "one") == end


def test_who_waits_for_a_job_that_nobody_may_take_up_is_told(boxes):
    a, b = boxes("a", GLIA_STACK="blue"), boxes("b", GLIA_STACK="green")
    first = begin(a, "one")
    waits = follow(b, "one", a)
    kill(first)
    wait_for("a word", lambda: "'blue'" in b.read(waits.err))
    GOLDEN.says("only blue", golden.line_of(b.read(waits.err), "'blue'"))
    assert waits.poll() is None
    let(a, "one")
    a.glia("job", "resume", "one")
    b.finish(waits)


def test_who_waits_for_a_job_without_its_flow_is_told(boxes, redis):
    a = boxes("a")
    node = serve(a)
    waits = begin(a, "one")
    kill(node)
    flow, = redis.ask("KEYS", "glia:flow:*")
    redis.ask("DEL", flow)
    serve(a)
    a.finish(waits, 5)
    GOLDEN.says("no flow", golden.line_of(a.read(waits.err), "remove"),
                [re.compile(r"\b(01\w{24}|[0-9a-f]{12,64})\b")])


def test_a_damaged_job_that_a_node_has_is_not_removed_from_elsewhere(boxes):
    """Its record is damaged in the store, and as it should be in the memory of its node. A command
    of another folder does not know that at first."""
    a, b = boxes("a", **CALM), boxes("b", **CALM)
    serve(a)
    run = begin(a, "one")
    job = a.json("job", "status", "one")["job_id"]
    with open_records(a) as store:
        store.write("job", job, store.read("job", job).replace(":", ": "), keep_sum=True)
    for _ in range(3):
        error = b.error("job", "rm", job, code=None)
        assert error["reason"] == "job_not_ended" and "cancel" in error["message"], error
    # Its node goes on with it and will write the record anew, so whoever waits there goes on, too.
    assert a.ask("GET", f"{JOBS}/{job}/events?from=1000").status == 200
    assert a.ask("GET", f"{JOBS}/{job}?brief=true").json["damaged"]
    let(a, "one")
    a.finish(run)
    b.glia("job", "rm", job)
