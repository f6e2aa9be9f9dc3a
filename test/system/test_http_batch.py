"""Many submissions in one request: all of them, in order, each with its own answer."""

import http.client
import os
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box, wait_for  # noqa: E402
from httpnode import JOBS, assert_error, serve, wait_end  # noqa: E402

BATCH = f"{JOBS}:batch"
FLOW = {"name": "one", "steps": {"a": {"noop": True}}}


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path)
    serve(box)
    yield box
    box.close()


def test_each_gets_what_it_would_get_alone_and_in_order(box):
    answer = box.ask("POST", BATCH, {"flow": FLOW, "jobs": [
        {"run_id": "first"},
        {"flow": {"steps": {"a": {"shh": 1}}}},
        {"flow": {"name": "own", "steps": {"b": {"python": "print('b')"}}}},
        {"run_id": "not an id"},
        {"unknown": 1},
        {"inputs": [1]},
        {"run_id": "first"},
        17,
        {},
    ]})
    assert answer.status == 200
    jobs = answer.json["jobs"]
    assert [sorted(j)[0] for j in jobs] == ["job_id" if i in (0, 2, 8) else "existing" if i == 6
                                            else "error" for i in range(9)]
    assert jobs[0]["run_id"] == "first"
    assert jobs[1]["error"]["details"][0]["path"].startswith("steps.a")
    assert jobs[3]["error"]["code"] == "invalid" and "run id" in jobs[3]["error"]["message"]
    assert jobs[5]["error"]["field"] == "inputs"
    # The same name and the same content: the same job.
    assert jobs[6]["existing"] is True and jobs[6]["job_id"] == jobs[0]["job_id"]
    for index in (0, 2, 8):
        assert wait_end(box, jobs[index]["job_id"])["status"] == "completed"
    assert box.ask("GET", f"{JOBS}/{jobs[2]['job_id']}").json["name"] == "own"


@pytest.mark.slow
def test_ten_thousand_are_taken_at_once_while_others_are_served(box):
    served = []
    stop = threading.Event()

    def read_all_the_time():
        while not stop.is_set():
            assert box.ask("GET", f"{JOBS}?limit=1").status == 200
            served.append(time.monotonic())

    reader = threading.Thread(target=read_all_the_time)
    reader.start()
    try:
        begin = time.monotonic()
        answer = box.ask("POST", BATCH, {"flow": FLOW, "jobs": [
            {"run_id": f"r-{i}"} for i in range(10000)]})
        end = time.monotonic()
    finally:
        stop.set()
        reader.join()
    jobs = answer.json["jobs"]
    assert [j["run_id"] for j in jobs] == [f"r-{i}" for i in range(10000)]
    assert len({j["job_id"] for j in jobs}) == 10000
    # Not only before it and after it: there were several in the middle half of the time.
    quarter = (end - begin) / 4
    assert len([t for t in served if begin + quarter < t < end - quarter]) > 2
    for index in (0, 5000, 9999):
        assert wait_end(box, jobs[index]["job_id"])["run_id"] == f"r-{index}"
    # Counted by the node: a list that is filtered may come in pages with nothing on them.
    wait_for("all of them", lambda: b'glia_jobs_ended_total{status="completed"} 10000\n' in box.ask(
        "GET", "/metrics").body, seconds=60)


@pytest.mark.parametrize("body, field", [
    ({}, None),
    ({"jobs": 1}, "jobs"),
    ({"jobs": {}}, "jobs"),
    ({"jobs": [{}] * 10001, "flow": FLOW}, "jobs"),
    ({"jobs": [], "job": []}, None),
    ("[]", None),
    ("", None),
])
def test_a_batch_that_is_none_is_refused_as_a_whole(box, body, field):
    error = assert_error(box.ask("POST", BATCH, body), 400, "invalid")
    assert error.get("field") == field


def test_a_batch_of_nothing_is_nothing(box):
    assert box.ask("POST", BATCH, {"jobs": []}).json == {"jobs": []}
    answer = box.ask("POST", BATCH, {"jobs": [{}]})
    assert answer.json["jobs"][0]["error"]["field"] == "flow"
    assert box.ask("GET", JOBS).json["jobs"] == []


def test_a_node_that_stops_answers_every_one(box):
    """None is lost without a word: what is said to be there is there after the restart."""
    results = []

    def send():
        try:
            results.append(box.ask("POST", BATCH, {"flow": FLOW, "jobs": [{}] * 10000}))
        except (OSError, http.client.RemoteDisconnected):
            pass  # the node has gone before it took the request: nothing was promised

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_for("the first jobs", lambda: box.ask("GET", f"{JOBS}?limit=1").json["jobs"])
    box.started[0].terminate()
    for thread in threads:
        thread.join()
    assert box.started[0].wait(30) == 0
    serve(box)
    for answer in results:
        if answer.status == 503:
            continue
        jobs = answer.json["jobs"]
        assert len(jobs) == 10000
        assert {j["error"]["code"] for j in jobs if "error" in j} <= {"unavailable"}
        for job in [j["job_id"] for j in jobs if "job_id" in j][::500]:
            assert box.ask("GET", f"{JOBS}/{job}").status == 200
