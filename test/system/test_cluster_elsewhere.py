"""Attempts on nodes other than their job's owner, as commands, the API and metrics show them."""

import json
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from clusterbox import (CALM, make_boxes, make_redis, nodes,  # noqa: E402, F401
                        serve, stop)
from glianode import wait_for  # noqa: E402

pytestmark = pytest.mark.sqlite_only("chooses its stores itself")


def until(box):
    return f"until [ -e {box.folder}/go ]; do sleep 0.05; done"


def run(box, name, steps):
    """A job whose steps run until the file `go` is there."""
    path = box.write(f"{name}.json", json.dumps({"name": name, "steps": {
        key: {"idempotent": True, "sh": until(box), **more} for key, more in steps.items()}}))
    wait_for("that it is accepted",  # once the node has heard of the pools of the other one
             lambda: box.glia("run", path, "--run-id", name, "--detach", code=None).returncode == 0)


def explained(box, job, step):
    return box.json("why", job, step)["steps"][step]


def results(step):
    return {n["node"].split(".")[0]: n["result"] for n in step.get("nodes", [])}


def metrics(box):
    return {line.split()[0]: line.split()[1]
            for line in box.ask("GET", "/metrics").body.decode().splitlines()
            if not line.startswith("#")}


def pair(boxes, left="default=1", right="default=1"):
    a, b = boxes("a", GLIA_POOLS=left, **CALM), boxes("b", GLIA_POOLS=right, **CALM)
    serve(a)
    serve(b)
    wait_for("both", lambda: [n["state"] for n in nodes(a).values()] == ["ready", "ready"])
    return a, b


def test_a_step_on_another_node_says_where_it_runs_and_both_nodes_count_it(boxes):
    a, b = pair(boxes)
    run(a, "one", {"x": {}, "y": {}})
    wait_for("both steps", lambda: sorted(
        explained(a, "one", s)["why_code"] for s in "xy") == ["running", "runs_elsewhere"])
    away = next(s for s in "xy" if explained(a, "one", s)["why_code"] == "runs_elsewhere")
    outside = boxes("outside", **CALM)
    for box in (b, outside):  # whoever is asked
        assert explained(box, "one", away)["why_code"] == "runs_elsewhere"
    lines = a.glia("job", "events", "one", "--json").stdout.splitlines()
    started = {e["step_id"]: e.get("node", "") for e in map(json.loads, lines)
               if e["type"] == "workflow_step_attempt_started"}
    assert started[away].startswith("b.") and started.keys() - {away} == set("xy") - {away}
    assert [node for step, node in started.items() if step != away] == [""]

    seen = wait_for("what they publish", lambda: (
        lambda n: n if n["a"]["elsewhere"] == 1 and n["b"]["taken"] == 1 else None)(nodes(outside)))
    pool = next(p for p in seen["b"]["pools"] if p["name"] == "default")
    assert pool["taken"] == [{"owner": seen["a"]["name"], "slots": 1}]
    whole = outside.json("cluster", "status")
    assert (whole["running"], whole["elsewhere"], whole["waiting"]) == (2, 1, 0)
    assert whole["longest_waiting"] is None
    pool = next(p for p in whole["pools"] if p["name"] == "default")
    assert (pool["slots"], pool["in_use"], pool["taken"]) == (2, 2, 1)
    node = a.ask("GET", "/v1/node").json
    counts = ("attempts_running", "attempts_elsewhere", "attempts_taken")
    assert [node[c] for c in counts] == [2, 1, 0]
    node = b.ask("GET", "/v1/node").json
    assert [node[c] for c in counts] == [0, 0, 1]
    assert node["pools"]["default"]["taken"] == 1
    assert metrics(a)["glia_attempts_elsewhere"] == "1"
    assert metrics(a)["glia_offers_made_total"] == "1"
    assert metrics(b)["glia_attempts_taken"] == "1"
    assert metrics(b)["glia_offers_taken_total"] == "1"
    a.write("go", "")
    wait_for("the end", lambda: a.json("job", "status", "one")["status"] == "completed")
    wait_for("that nothing is left", lambda: metrics(b)["glia_attempts_taken"] == "0")
    assert metrics(a)["glia_attempts_elsewhere"] == "0"
    assert metrics(a)["glia_offers_withdrawn_total"] == metrics(a)["glia_offers_lost_total"] == "0"


def test_a_waiting_step_says_of_each_node_why_it_does_not_run_there(boxes):
    a, b = pair(boxes)
    run(a, "one", {"x": {}, "y": {}})
    wait_for("both steps", lambda: sorted(
        explained(a, "one", s)["why_code"] for s in "xy") == ["running", "runs_elsewhere"])
    run(a, "two", {"z": {}})
    wait_for("its reason", lambda: explained(a, "two", "z")["why_code"] == "waits_for_slots")
    step = explained(a, "two", "z")
    assert results(step) == {"a": "busy", "b": "busy"}
    assert step["nodes"][0]["node"].startswith("a.") and all(n["why"] for n in step["nodes"])
    api = a.ask("GET", "/v1/contexts/default/jobs/two").json["workflow_state"]["steps"]["z"]
    assert results(api) == results(step)
    wait_for("what the others know", lambda: results(explained(b, "two", "z")) == results(step))
    table = a.glia("why", "two", "z").stdout
    assert table.count("busy") == 2 and "\ta." in table and "\tb." in table
    longest = wait_for("the longest", lambda: b.json("cluster", "status")["longest_waiting"])
    assert (longest["step_id"], longest["pool"]) == ("z", "default")
    assert longest["node"].startswith("a.") and longest["since"] > "2"
    run(a, "three", {"here": {"cwd": str(a.folder)}})
    wait_for("its reason", lambda: explained(a, "three", "here")["why_code"] == "waits_for_slots")
    assert results(explained(a, "three", "here")) == {"a": "busy", "b": "step_stays"}
    a.write("go", "")
    wait_for("the end", lambda: {j["status"] for j in a.jobs()} == {"completed"})


def test_a_pool_that_only_another_node_has_is_waited_for_there(boxes):
    a, b = pair(boxes, right="default=1,gpu=1")
    run(a, "one", {"x": {"pool": "gpu"}})
    wait_for("it", lambda: explained(a, "one", "x")["why_code"] == "runs_elsewhere")
    run(a, "two", {"y": {"pool": "gpu"}})
    codes = ("pool_on_other_nodes", "offered")  # it may queue there
    wait_for("its reason", lambda: explained(a, "two", "y")["why_code"] in codes)
    assert explained(b, "two", "y")["why_code"] in codes
    a.write("go", "")
    wait_for("the end", lambda: {j["status"] for j in a.jobs()} == {"completed"})
    assert a.step("two", "y")["node"].startswith("b.")


def test_a_node_that_is_restarted_keeps_what_it_has_taken(boxes):
    """Its session goes on, so the owner does not give its attempts up meanwhile."""
    a, b = boxes("a", GLIA_POOLS="default=1", **CALM), boxes("b", GLIA_POOLS="gpu=1", **CALM)
    serve(a)
    node = serve(b)
    path = f"{a.folder}/begun"
    run(a, "one", {"x": {"pool": "gpu", "sh": f"echo begun >> {path}; {until(a)}"}})
    wait_for("its start", lambda: os.path.exists(path))
    stop(b, node)
    assert nodes(a, "--all")["b"]["status"] != "dead"
    serve(b)
    wait_for("that it is taken up", lambda: metrics(b)["glia_attempts_taken"] == "1")
    a.write("go", "")
    wait_for("the end", lambda: a.json("job", "status", "one")["status"] == "completed")
    assert a.read("begun") == "begun\n"
    assert metrics(a)["glia_offers_lost_total"] == "0"


def test_an_attempt_whose_node_dies_is_given_up_once(boxes):
    a, b = boxes("a", GLIA_POOLS="default=1"), boxes("b", GLIA_POOLS="gpu=1")
    serve(a)
    node = serve(b)
    run(a, "one", {"x": {"pool": "gpu"}})
    wait_for("it", lambda: explained(a, "one", "x")["why_code"] == "runs_elsewhere")
    node.kill()
    node.wait()
    wait_for("its reason", lambda: explained(a, "one", "x")["why_code"] == "pool_not_offered")
    assert metrics(a)["glia_offers_lost_total"] == "1"
    wait_for("the table", lambda: results(explained(a, "one", "x")) == {"a": "no_pool"})
    serve(b)
    wait_for("it", lambda: explained(a, "one", "x")["why_code"] == "runs_elsewhere")
    a.write("go", "")
    wait_for("the end", lambda: a.json("job", "status", "one")["status"] == "completed")


def test_a_step_runs_only_where_the_labels_are_as_required(boxes):
    a = boxes("a", GLIA_POOLS="default=4", GLIA_LABELS="zone=a", **CALM)
    b = boxes("b", GLIA_POOLS="default=4", GLIA_LABELS="zone=b,disk=ssd", **CALM)
    serve(a)
    serve(b)
    wait_for("both", lambda: [n["state"] for n in nodes(a).values()] == ["ready", "ready"])
    run(a, "labels", {"x": {"node_labels": {"zone": ["b", "c"], "disk": True}},
                      "y": {"node_labels": {"zone": "a", "disk": False}},
                      "z": {"node_labels": {"zone": "z"}}})
    wait_for("two of them", lambda: [explained(a, "labels", s)["why_code"] for s in "xy"]
             == ["runs_elsewhere", "running"])
    assert results(explained(a, "labels", "z")) == {"a": "labels", "b": "labels"}
    c = boxes("c", GLIA_POOLS="default=1", GLIA_LABELS="zone=z", **CALM)
    serve(c)  # a node that joins has it
    wait_for("the third", lambda: explained(a, "labels", "z")["why_code"] == "runs_elsewhere")
    a.write("go", "")
    wait_for("the end", lambda: a.json("job", "status", "labels")["status"] == "completed")
