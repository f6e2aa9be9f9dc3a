"""Every route does what its line in the table says, and docs/api.md and OpenAPI name them all."""

import ctypes
import json
import os
import re
import signal
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import ROOT, Box, wait_for  # noqa: E402
from httpnode import JOBS, assert_error, serve, submit, wait_end  # noqa: E402

GOLDEN = golden.of(__file__)
CONTEXT = "/v1/contexts/default"

# Queries that share a function with another one, or may wait: that function tells them apart. The
# route of logs asks for some itself.
SHARED_QUERIES = {"STATUS", "WHY", "EVENTS", "DEAD_LETTERS", "STORED_LOGS"}


@pytest.fixture(name="box", scope="module")
def make_box(tmp_path_factory):
    box = Box(tmp_path_factory.mktemp("verbs"))
    serve(box)
    yield box
    box.close()


def wait_step(box, job, step, status):
    wait_for(f"{step} to be {status}", lambda: box.ask("GET", f"{JOBS}/{job}").json[
        "workflow_state"]["steps"][step]["status"] == status)


def test_a_job_is_given_inputs(box):
    flow = {"inputs": {"n": {"type": "integer", "required": True}},
            "steps": {"a": {"sh": 'echo "${inputs.n}" > $GLIA_OUTPUT'}}}
    job = submit(box, flow, inputs={"n": 5})
    assert wait_end(box, job)["workflow_state"]["steps"]["a"]["output"] == 5
    error = assert_error(box.ask("POST", JOBS, {"flow": flow, "inputs": {"m": 5}}), 400, "invalid")
    assert "`m`" in error["message"] and "`n`" in error["message"]
    assert_error(box.ask("POST", JOBS, {"flow": flow, "inputs": [5]}), 400, "invalid")


def test_the_same_run_id_and_content_give_the_same_job(box):
    body = {"flow": {"steps": {"a": {"noop": True}}}, "run_id": "same"}
    first = box.ask("POST", JOBS, body)
    again = box.ask("POST", JOBS, body)
    assert (first.status, again.status) == (201, 200)
    assert again.json["existing"] is True and again.json["job_id"] == first.json["job_id"]
    body["flow"]["steps"]["b"] = {"noop": True}
    assert_error(box.ask("POST", JOBS, body), 409, "exists")


def test_jobs_are_listed_by_name(box):
    job = submit(box, {"name": "rare name", "steps": {"a": {"noop": True}}})
    found = box.ask("GET", f"{JOBS}?name=rare%20name").json["jobs"]
    assert [j["job_id"] for j in found] == [job]
    assert box.ask("GET", f"{JOBS}?name=nobody").json["jobs"] == []


def test_a_signal_a_decision_and_why(box):
    job = submit(box, {"steps": {"s": {"signal": "go"}, "p": {"approval": "ship?", "needs": "s"}}})
    wait_step(box, job, "s", "blocked")
    why = box.ask("GET", f"{JOBS}/{job}/why").json
    assert "'go'" in why["why"] and why["steps"][0]["step_id"] == "s"
    assert box.ask("GET", f"{JOBS}/{job}/why?step=s").json["steps"][0]["why"]
    assert_error(box.ask("GET", f"{JOBS}/{job}/why?step=zz"), 404, "not_found")
    sent = box.ask("POST", f"{JOBS}/{job}/signals/go", '{\n "rows": [1,\n 2]\n}')
    assert sent.json == {"job_id": job}
    wait_step(box, job, "p", "blocked")
    asked = [r for r in box.ask("GET", f"{CONTEXT}/human").json["requests"] if r["job_id"] == job]
    assert asked[0]["kind"] == "approval" and "ship?" in asked[0]["reason"]
    assert box.ask("POST", f"{JOBS}/{job}/steps/p/respond",
                   {"decision": "approve", "who": "me"}).status == 200
    steps = wait_end(box, job)["workflow_state"]["steps"]
    assert steps["p"]["decision"] == "approve"
    assert {"rows": [1, 2]} in (steps["s"]["output"], steps["s"]["output"].get("data"))


@pytest.mark.parametrize("name, body", [
    ("go", "{"), ("go", '"' + "x" * (257 << 10) + '"'), ("go", "[" * 60 + "]" * 60),
    ("not%20a%20name", ""), ("." + "x" * 10, "")],
    ids=["torn", "large", "deep", "blanks", "dot"])  # pytest puts them into the environment
def test_a_signal_that_is_none_is_refused(box, name, body):
    assert_error(box.ask("POST", f"{JOBS}/any/signals/{name}", body), 400, "invalid")


def test_a_failed_job_is_retried_as_a_new_one(box):
    job = submit(box, {"steps": {"a": {"sh": f"echo x >> {box.folder}/ran"},
                                 "b": {"sh": f"[ -e {box.folder}/good ]", "needs": "a"}}})
    assert wait_end(box, job)["status"] == "failed"
    box.write("good", "")
    answer = box.ask("POST", f"{JOBS}/{job}/retry", {"run_id": "second try"})
    assert_error(answer, 400, "invalid")
    answer = box.ask("POST", f"{JOBS}/{job}/retry", {"from": "b", "run_id": "second"})
    assert answer.status == 201 and answer.json["run_id"] == "second"
    doc = wait_end(box, "second")
    assert (doc["status"], doc["retry_of"]) == ("completed", job)
    assert box.read("ran") == "x\n"
    assert_error(box.ask("POST", f"{JOBS}/{job}/retry", {"from": "zz"}), 404, "not_found")
    assert_error(box.ask("POST", f"{JOBS}/{job}/retry", {"form": "a"}), 400, "invalid")


def test_an_ended_job_is_removed_and_a_live_one_is_not(box):
    hold = f"until [ -e {box.folder}/end ]; do sleep 0.02; done"
    job = submit(box, {"steps": {"a": {"sh": hold}}})
    assert_error(box.ask("DELETE", f"{JOBS}/{job}"), 409, "state")
    box.write("end", "")
    wait_end(box, job)
    assert box.ask("DELETE", f"{JOBS}/{job}").json["job_id"] == job
    assert_error(box.ask("GET", f"{JOBS}/{job}"), 404, "not_found")
    assert_error(box.ask("DELETE", f"{JOBS}/{job}"), 404, "not_found")


def test_ended_jobs_are_trimmed(box):
    for _ in range(3):
        wait_end(box, submit(box, {"name": "trim me", "steps": {"a": {"noop": True}}}))
    done = box.ask("POST", f"{CONTEXT}/trim", {"keep_for": "30d"})
    assert done.status == 200 and done.json["removed_jobs"] == 0
    assert box.ask("POST", f"{CONTEXT}/trim", {"keep_jobs": 0}).json["removed_jobs"] >= 3
    assert box.ask("GET", f"{JOBS}?name=trim%20me").json["jobs"] == []
    for body in ({"keep_for": "soon"}, {"keep_jobs": -1}, {"keep_jobs": "x"}, {"keep": 1}):
        assert_error(box.ask("POST", f"{CONTEXT}/trim", body), 400, "invalid")


def test_the_node_tells_how_it_is(box):
    assert box.ask("GET", "/healthz").json == {"status": "ok"}
    assert box.ask("GET", "/readyz").json == {"status": "ready"}
    assert box.ask("GET", "/v1/node").json["name"]
    answer = box.ask("GET", "/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4"
    assert re.search(rb"(?m)^glia_slots_in_use\{pool=\"default\"\} \d+$", answer.body)

    def asked():
        told = box.ask("GET", "/metrics").body
        return int(re.search(rb'glia_persons_asked_total\{for="approval"\} (\d+)', told)[1])

    before = asked()
    submit(box, {"steps": {"p": {"approval": "ship?"}}})
    wait_for("the question", lambda: asked() == before + 1)
    assert_error(box.ask("POST", "/v1/node/yield"), 409, "state")


@pytest.mark.slow
def test_a_node_whose_loop_stands_still_is_not_healthy(box):
    """The control thread alone is stopped; the others go on."""
    pid = box.started[0].pid
    tasks = {open(f"/proc/{pid}/task/{t}/comm", encoding="ascii").read().strip(): int(t)
             for t in os.listdir(f"/proc/{pid}/task")}
    with TraceStopped(tasks["glia-control"]):
        begin = time.monotonic()
        for path in ("/healthz", "/readyz"):
            error = assert_error(box.ask("GET", path), 503, "unavailable")
            assert error["reason"] == "node_silent"
        assert 8 < time.monotonic() - begin < 60
        assert_error(box.ask("GET", "/nowhere"), 404, "not_found")
    wait_for("it to recover", lambda: box.ask("GET", "/healthz").status == 200)


class TraceStopped:
    """Hold one thread of another process still, as a debugger does."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, tid):
        self.tid = tid
        self.call = ctypes.CDLL(None, use_errno=True).ptrace
        self.call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def __enter__(self):
        assert self.call(self.SEIZE, self.tid, None, None) == 0, "ptrace is not allowed here"
        assert self.call(self.INTERRUPT, self.tid, None, None) == 0
        os.waitpid(self.tid, 0x40000000)  # __WALL: also of a thread

    def __exit__(self, *_):
        assert self.call(self.DETACH, self.tid, None, None) == 0


# ---- slips, and what is written about all this ----


@pytest.mark.parametrize("path", [
    f"{JOBS}?stauts=failed", f"{JOBS}/x/events?form=1", f"{JOBS}/x?limt=1", "/v1/node?limit=1",
    f"{JOBS}/x/logs?follow=yes&step=a",
])
def test_a_slip_in_the_query_is_not_ignored(box, path):
    error = assert_error(box.ask("GET", path), 400, "invalid")
    assert error["field"]
    GOLDEN.says(f"hint, {path}", str(error.get("hint")))


def test_a_wrong_method_is_told_the_right_ones(box):
    answer = box.ask("PATCH", f"{JOBS}/x")
    assert assert_error(answer, 405, "invalid")["hint"] == "allowed: GET, DELETE"
    assert answer.headers["Allow"] == "GET, DELETE"


def no_doubles(pairs):
    assert len(dict(pairs)) == len(pairs), "a name stands twice in one object"
    return dict(pairs)


def test_the_openapi_document_and_the_docs_name_every_route(box):
    doc = json.loads(box.ask("GET", "/v1/openapi.json").body, object_pairs_hook=no_doubles)
    with open(os.path.join(ROOT, "docs/api.md"), encoding="utf-8") as file:
        text = file.read()
    documented = dict(re.findall(r"^\| `([A-Z]+ [^`?]+)\??([^`]*)` \|", text, re.M))
    names = {"{context}": "default", "{job}": "JOB", "{step}": "STEP", "{name}": "NAME",
             "{sha256}": "SHA256", "{key}": "KEY", "{number}": "NUMBER"}
    routes = set()
    ids = set()
    for path, methods in doc["paths"].items():
        for method, about in methods.items():
            ids.add(about["operationId"])
            assert about["summary"] and "default" in about["responses"]
            wanted = re.findall(r"\{(\w+)\}", path)
            assert wanted == [p["name"] for p in about["parameters"] if p["in"] == "path"]
            short = path
            for name, word in names.items():
                short = short.replace(name, word)
            routes.add(f"{method.upper()} {short}")
            query = [f"{p['name']}=" for p in about["parameters"] if p["in"] == "query"]
            assert documented[f"{method.upper()} {short}"] == "&".join(query)
            schema = about.get("requestBody", {}).get("content", {}).get(
                "application/json", {}).get("schema", {})
            for field in schema.get("properties", {}):
                assert f"`{field}`" in text or f'"{field}"' in text, f"{short}: {field}"
    assert routes == set(documented)
    assert len(ids) == len(routes)


def test_signals_of_the_system_do_not_end_connections(box):
    os.kill(box.started[0].pid, signal.SIGHUP)
    assert box.ask("GET", "/healthz").status == 200


def source_of(*folders):
    for folder in folders:
        base = os.path.join(ROOT, "src", folder)
        for name in sorted(os.listdir(base)):
            if name.endswith((".c", ".h")):
                with open(os.path.join(base, name), encoding="utf-8") as file:
                    yield f"{folder}/{name}", file.read()


def test_only_the_table_knows_a_query():
    with open(os.path.join(ROOT, "src/api/verbs.def"), encoding="utf-8") as file:
        queries = set(re.findall(r"^VERB\((\w+), \w+, QUERY,", file.read(), re.M))
    assert SHARED_QUERIES < queries
    told = [f"{path} names GL_VERB_{name}" for path, text in source_of("api", "http", "node")
            for name in re.findall(r"GL_VERB_(\w+)", text) if name in queries - SHARED_QUERIES]
    assert told == []
