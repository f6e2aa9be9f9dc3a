"""Jobs with many steps and with large outputs: what is read of them has a bound, and all of it can
be had."""

import concurrent.futures
import json
import os
import re
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box, wait_for  # noqa: E402
from httpnode import JOBS, serve, submit, wait_end  # noqa: E402

STEPS = 2500
PAGE = 1000
ITEMS = 12
ITEM_BYTES = 900_000


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path)
    yield box
    box.close()


def state(box, job, query=""):
    answer = box.ask("GET", f"{JOBS}/{job}{query}")
    assert answer.status == 200, answer.body
    return answer.json["workflow_state"]


def pages(box, job, first):
    """The ids of all steps, page by page."""
    found, page = [], first
    while page:
        part = state(box, job, f"?page={page}")
        assert 0 < len(part["steps"]) <= PAGE
        found += part["steps"]
        page = part["next"]
    return found


def test_of_a_large_job_the_first_steps_are_told_and_the_rest_by_pages(box):
    serve(box, "--pools", "default=2")
    steps = {"a": {"sh": "sleep 600"}, "b": {"sh": "exit 3", "on_failure": "continue"}}
    steps |= {f"s{n}": {"sh": "sleep 600"} for n in range(STEPS - len(steps))}
    job = submit(box, {"steps": steps})
    found = wait_for("a failure and two that run", lambda: (lambda s: s if s["counts"].get(
        "partial") == 1 and s["counts"].get("running") == 2 else None)(state(box, job)))
    assert found["complete"] is False and found["steps_total"] == STEPS
    assert len(found["steps"]) == PAGE
    assert list(found["steps"])[:4] == ["b", "a", "s0", "s1"]
    assert [s["status"] for s in found["steps"].values()][1:4] == ["running", "running", "queued"]
    assert sum(found["counts"].values()) == STEPS
    assert pages(box, job, found["next"]) == list(steps)
    # One by name, wherever it is in the order; and only the job.
    assert list(state(box, job, "?step=s2400")["steps"]) == ["s2400"]
    brief = box.ask("GET", f"{JOBS}/{job}?brief=true").json
    assert brief["status"] == "running" and "workflow_state" not in brief
    assert len(state(box, job, "?limit=5")["steps"]) == 5
    # The commands.
    some = box.glia("job", "status", job)
    assert f" 1000 of {STEPS} " in some.stderr
    some = box.glia("job", "status", job, "--json")
    assert f" 1000 of {STEPS} " in some.stderr
    assert len(json.loads(some.stdout)["workflow_state"]["steps"]) == PAGE
    assert len(box.glia("job", "status", job, "--all").stdout.splitlines()) >= STEPS
    assert "s2400" in box.glia("why", job, "s2400").stdout
    box.glia("job", "cancel", job)


@pytest.mark.parametrize("query, code", [
    ("?page=x", 400), ("?page=0", 400), ("?page=99.-1", 400), ("?page=0.7", 400),
    ("?page=-1.-1", 400), ("?step=nobody", 404), ("?step=a%5B3%5D", 404),
    ("?step=a&page=0.-1", 400), ("?step=a&brief=true", 400)])
def test_what_is_not_there_is_refused(box, query, code):
    serve(box)
    job = submit(box, {"steps": {"a": {"noop": True}}})
    answer = box.ask("GET", f"{JOBS}/{job}{query}")
    assert answer.status == code, answer.body
    assert answer.json["error"]["message"]


def test_a_page_may_begin_among_the_instances_of_a_step(box):
    serve(box)
    job = submit(box, {"steps": {
        "many": {"foreach": list(range(30)), "noop": True}, "after": {"noop": True}}})
    wait_end(box, job)
    found, page = [], "0.-1"
    while page:
        part = state(box, job, f"?page={page}&limit=7")
        found += part["steps"]
        page = part["next"]
    assert found == ["many"] + [f"many[{n}]" for n in range(30)] + ["after"]


def test_large_outputs_are_references_and_can_be_had_whole(box):
    serve(box)
    code = f"import json, os\njson.dump('x' * {ITEM_BYTES}, open(os.environ['GLIA_OUTPUT'], 'w'))"
    job = submit(box, {"steps": {"big": {"foreach": list(range(ITEMS)), "python": code},
                                 "small": {"sh": "echo 7 > $GLIA_OUTPUT"}}})
    wait_end(box, job, 120)
    answer = box.ask("GET", f"{JOBS}/{job}")
    assert len(answer.body) < 100_000
    steps = answer.json["workflow_state"]["steps"]
    assert steps["small"]["output"] == 7
    assert "output" not in steps["big[3]"] and steps["big[3]"]["output_bytes"] == ITEM_BYTES + 2
    assert "output" not in steps["big"] and steps["big"]["output_bytes"] > ITEMS * ITEM_BYTES
    one = box.ask("GET", steps["big[3]"]["output_ref"]).json["workflow_state"]["steps"]["big[3]"]
    assert one["output"] == "x" * ITEM_BYTES
    # All of them together are too large for one answer, but not for the command.
    whole = json.loads(box.glia("job", "result", job, "big").stdout)
    assert whole == ["x" * ITEM_BYTES] * ITEMS
    both = json.loads(box.glia("job", "result", job, "--json").stdout)
    assert both == {"big": whole, "small": 7}


def memory_mb(node, name):
    with open(f"/proc/{node.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":")) / 1024


def test_pages_with_large_outputs_take_the_memory_of_one_reader(box):
    serve(box)
    node = box.started[-1]
    code = f"import json, os\njson.dump('x' * {ITEM_BYTES}, open(os.environ['GLIA_OUTPUT'], 'w'))"
    job = submit(box, {"steps": {"big": {"foreach": list(range(60)), "python": code}}})
    wait_end(box, job, 120)
    node.terminate()
    node.wait(30)
    serve(box)  # without what running the job has left in its memory
    node = box.started[-1]
    idle = memory_mb(node, "VmRSS")
    with open(f"/proc/{node.pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak is counted from here
    def read(_):
        reader = box.connect()
        for _ in range(10):
            reader.request("GET", f"{JOBS}/{job}?page=0.-1")
            assert b"big[59]" in reader.getresponse().read()
        reader.close()

    with concurrent.futures.ThreadPoolExecutor(10) as readers:
        list(readers.map(read, range(10)))
    peak = memory_mb(node, "VmHWM") - idle
    assert peak < 48


def test_a_waiting_run_tells_of_steps_beyond_the_first_page(box):
    go = os.path.join(box.folder, "go")
    steps = {"gate": {"sh": f"while [ ! -e '{go}' ]; do sleep 0.1; done"}}
    steps |= {f"s{n}": {"noop": True, "needs": ["gate"]} for n in range(PAGE + 100)}
    steps["bad"] = {"sh": "exit 3", "needs": ["gate"], "on_failure": "continue"}
    run = box.start("run", box.write("large.yaml", json.dumps({"steps": steps})))
    wait_for("the counts", lambda: "steps ended" in box.read(run.err))
    box.write("go", "")
    box.finish(run)
    said = box.read(run.err)
    assert re.search(r"^  partial +bad .*exit code 3", said, re.M), said
    counts = re.search(r"^  (\d+) of (\d+) .*ended$", said, re.M)
    assert counts and counts.groups() == (str(len(steps)), str(len(steps))), said
