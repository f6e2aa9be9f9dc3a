"""Nodes with different pools on one store: a step runs where its pool is, a bundle where its pools
are, however the job got there."""

import json
import os
import re
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from clusterbox import serve, stop, why  # noqa: E402
from glianode import Box, wait_for  # noqa: E402
from servers import PostgresServer, RedisServer  # noqa: E402

pytestmark = pytest.mark.sqlite_only("chooses its stores itself")

CPU = {"GLIA_POOLS": "default=4"}
GPU = {"GLIA_POOLS": "default=1,gpu=1", "MN_EXECUTOR_POOL_CAPACITIES": "default=4,gpu=1"}

WORKER = """#!/usr/bin/env python3
import json, os, time
open(os.environ["TEST_PATH"] + ".ran", "a").close()
while not os.path.exists(os.environ["TEST_PATH"] + ".go"):
    time.sleep(0.05)
print(json.dumps({"next_state": {"seen": 1}, "complete_step": {"done": True}}))
"""


@pytest.fixture(name="server", scope="module", params=[RedisServer, PostgresServer],
                ids=["redis", "postgres"])
def make_server(request):
    with request.param() as server:
        yield server


def empty(server):
    if isinstance(server, RedisServer):
        server.ask("FLUSHALL")
    else:
        server.sql("DROP SCHEMA IF EXISTS glia_default CASCADE; DROP SCHEMA IF EXISTS glia CASCADE")


@pytest.fixture(name="boxes")
def make_boxes(tmp_path, server):
    made = []

    def get(name, pools):
        folder = tmp_path / name
        folder.mkdir()
        made.append(Box(folder, **{
            "GLIA_STORE": server.url, "GLIA_NODE_NAME": name, "GLIA_SESSION_TTL": "2s",
            "GLIA_ORPHAN_GRACE": "1s", "MN_RUNS_ROOT": str(folder / "runs"), **pools}))
        return made[-1]

    empty(server)
    yield get
    for box in made:
        box.close()


def flow(box, name, steps):
    return box.write(f"{name}.json", json.dumps({"name": name, "steps": steps}))


def until(path):
    return f"touch {path}.ran; until [ -e {path}.go ]; do sleep 0.05; done"


def bundle(box, name, path):
    config = {"runner_module": "MirrorNeuron.Runner.HostLocal", "command": ["python3", "main.py"],
              "upload_path": "worker", "upload_as": "worker", "workdir": "/sandbox/job/worker",
              "output_message_type": "result", "safe_to_retry": True, "pool": "gpu",
              "environment": {"TEST_PATH": path}}
    box.write(f"{name}/manifest.json", json.dumps({
        "apiVersion": "mn.workflow/v2", "kind": "Workflow", "id": name, "job_name": name,
        "manifest_version": "1.0",
        "workflow": {"workflow_id": name, "mode": "static_dag", "entrypoint": "work",
                     "source": "work", "sink": "work", "steps": [{"id": "work"}], "edges": []},
        "agents": {
            "nodes": [{"node_id": "work", "agent_type": "executor", "config": config},
                      {"node_id": "sink", "agent_type": "aggregator",
                       "config": {"terminal_sink": True, "complete_run": True,
                                  "complete_on_message": True}}],
            "edges": [{"edge_id": "e", "from_node": "work", "to_node": "sink",
                       "message_type": "result"}],
            "entrypoints": ["work"]},
        "runtime": {"initial_inputs": {"work": [{"fruit": "apple"}]}}}))
    box.write(f"{name}/payloads/worker/main.py", WORKER, 0o755)
    return name


def make(box, kind, name, path):
    """A job whose only step wants the pool gpu and runs until PATH.go is there."""
    if kind == "bundle":
        return bundle(box, name, path)
    return flow(box, name, {"work": {"pool": "gpu", "idempotent": True, "sh": until(path)}})


def status(box, job):
    return box.json("job", "status", job)["status"]


def completed(box, job):
    def ended():
        now = status(box, job)
        assert now not in ("failed", "cancelled"), why(box, job)
        return now == "completed"

    wait_for("its end", ended)


def ran_on(box, job, step):
    return box.step(job, step)["node"].split(".")[0]


@pytest.mark.parametrize("kind", ["flow", "bundle"])
def test_a_job_submitted_to_a_node_without_its_pool_runs_where_the_pool_is(boxes, kind):
    cpu, gpu = boxes("cpu", CPU), boxes("gpu", GPU)
    serve(cpu)
    serve(gpu)
    wait_for("the other", lambda: len(cpu.json("node", "list")["nodes"]) == 2)
    path = f"{cpu.folder}/one"
    job = make(cpu, kind, "one", path)

    def submit():  # until the node has heard of the other one
        return cpu.glia("run", job, "--run-id", "one", "--detach", code=None).returncode == 0

    wait_for("that it is accepted", submit)
    wait_for("its step", lambda: os.path.exists(f"{path}.ran"))
    if kind == "flow":
        def code():
            return cpu.json("why", "one", "work")["steps"]["work"]["why_code"]

        wait_for("where it runs", lambda: code() == "runs_elsewhere")
    else:
        assert "gpu" in why(cpu, "one")
    cpu.write("one.go", "")
    completed(cpu, "one")
    if kind == "flow":
        assert ran_on(cpu, "one", "work") == "gpu"


@pytest.mark.parametrize("kind", ["flow", "bundle"])
def test_a_job_waits_for_the_node_with_its_pool_to_come_back(boxes, kind):
    cpu, gpu = boxes("cpu", CPU), boxes("gpu", GPU)
    serve(cpu)
    node = serve(gpu)
    path = f"{gpu.folder}/one"
    gpu.glia("run", make(gpu, kind, "one", path), "--run-id", "one", "--detach")
    wait_for("its step", lambda: os.path.exists(f"{path}.ran"))
    os.remove(f"{path}.ran")
    node.kill()
    node.wait()
    wait_for("its reason", lambda: "pool_not_offered" in cpu.why_codes("one"))
    assert status(cpu, "one") == "running"
    serve(gpu)
    wait_for("its step", lambda: os.path.exists(f"{path}.ran"))
    gpu.write("one.go", "")
    completed(cpu, "one")


def test_steps_go_to_a_node_with_room_and_only_if_it_has_their_pool(boxes):
    """The first node is full, and the other one has room; but not in all the pools they need."""
    gpu, cpu = boxes("gpu", GPU), boxes("cpu", CPU)
    serve(gpu)
    path = f"{gpu.folder}/first"
    gpu.glia("run", flow(gpu, "first", {"work": {"idempotent": True, "sh": until(path)}}),
             "--run-id", "first", "--detach")
    wait_for("its step", lambda: os.path.exists(f"{path}.ran"))
    both = flow(gpu, "both", {"a": {"idempotent": True, "sh": "true"},
                              "b": {"idempotent": True, "pool": "gpu", "needs": ["a"],
                                    "sh": "true"}})
    plain = flow(gpu, "plain", {"a": {"idempotent": True, "sh": "true"}})
    for number in range(4):
        gpu.glia("run", both, "--run-id", f"both{number}", "--detach")
        gpu.glia("run", plain, "--run-id", f"plain{number}", "--detach")
    serve(cpu)
    for number in range(4):
        completed(gpu, f"plain{number}")
        assert ran_on(gpu, f"plain{number}", "a") == "cpu"
    gpu.write("first.go", "")
    for number in range(4):
        completed(gpu, f"both{number}")
        assert ran_on(gpu, f"both{number}", "b") == "gpu"


def test_steps_run_where_their_pools_are_if_no_node_has_all(boxes):
    left, right = boxes("left", {"GLIA_POOLS": "default=2,one=1"}), \
        boxes("right", {"GLIA_POOLS": "default=2,two=1"})
    serve(left)
    serve(right)
    job = flow(left, "job", {"a": {"pool": "one", "idempotent": True, "sh": "true"},
                             "b": {"pool": "two", "idempotent": True, "needs": ["a"], "sh": "true"},
                             "c": {"pool": "one", "idempotent": True, "needs": ["b"],
                                   "sh": "true"}})
    wait_for("that it is accepted", lambda: left.glia("run", job, "--run-id", "job", "--detach",
                                                      code=None).returncode == 0)
    completed(left, "job")
    assert [ran_on(left, "job", s) for s in "abc"] == ["left", "right", "left"]


def test_a_node_that_comes_back_without_its_pool_gives_the_job_up(boxes):
    gpu, cpu = boxes("gpu", GPU), boxes("cpu", CPU)
    node = serve(gpu)
    path = f"{gpu.folder}/one"
    job = flow(gpu, "one", {"a": {"idempotent": True, "sh": until(path)},
                            "b": {"pool": "gpu", "idempotent": True, "needs": ["a"], "sh": "true"}})
    gpu.glia("run", job, "--run-id", "one", "--detach")
    wait_for("its step", lambda: os.path.exists(f"{path}.ran"))
    stop(gpu, node)
    gpu.env.update(CPU)
    del gpu.env["MN_EXECUTOR_POOL_CAPACITIES"]
    serve(gpu)
    gpu.write("one.go", "")
    wait_for("its reason", lambda: "pool_not_offered" in gpu.why_codes("one"))
    cpu.env.update(GPU)
    serve(cpu)
    completed(cpu, "one")
    assert ran_on(cpu, "one", "b") == "cpu"


def test_a_pool_that_no_node_has_is_refused_and_the_doctor_tells_who_has_which(boxes):
    cpu, gpu = boxes("cpu", CPU), boxes("gpu", GPU)
    serve(cpu)
    serve(gpu)
    job = flow(cpu, "job", {"a": {"pool": "tpu", "sh": "true"}})

    def refused():
        error = cpu.error("run", job, "--detach", code=None)
        assert error["reason"] in ("pools_unknown", "pool_not_offered"), error
        return error["reason"] == "pool_not_offered" and "'tpu'" in error["message"]

    wait_for("the refusal", refused)
    checks = {c["check"]: c for c in cpu.json("doctor", code=None)["checks"]}
    assert checks["pools"]["result"] == "ok"
    assert re.search(r"'gpu' [^';]* gpu\.", checks["pools"]["found"])
    assert "'default'" not in checks["pools"]["found"]
