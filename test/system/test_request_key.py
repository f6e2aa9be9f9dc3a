"""A submission with a request key makes one job, however often it is sent."""

import json
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from bundlework import Bundle  # noqa: E402
from glianode import ROOT, Box, wait_for  # noqa: E402
from httpnode import JOBS, assert_error, serve, wait_end  # noqa: E402
from lossy import Lossy  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "sdk", "python"))
import glia  # noqa: E402

NOOP = {"steps": {"a": {"noop": True}}}
OTHER = {"steps": {"b": {"noop": True}}}
TAKES = {"inputs": {"n": {"type": "number", "default": 1}}, "steps": {"a": {"noop": True}}}


@pytest.fixture(name="served")
def make_served(tmp_path):
    box = Box(tmp_path)
    serve(box)
    yield box
    box.close()


def post(box, flow=None, **more):
    return box.ask("POST", JOBS, {"flow": flow or NOOP, "request_key": "k", **more})


def first(box, **more):
    answer = post(box, **more)
    assert answer.status == 201, answer.body
    return answer.json["job_id"]


def assert_same(answer, job):
    assert answer.status == 200, answer.body
    assert answer.json["existing"] is True and answer.json["job_id"] == job


def is_submission(method, path):
    return method == "POST" and (path.endswith("/jobs") or path.endswith("/retry"))


# ---- the API ----


@pytest.mark.every_store
def test_the_same_request_returns_the_job_for_as_long_as_it_is_kept(served):
    job = first(served)
    assert_same(post(served), job)
    assert wait_end(served, job)["request_key"] == "k"
    answer = post(served)
    assert_same(answer, job)
    assert answer.json["run_id"] == job and answer.json["status"] == "completed"
    served.glia("job", "rm", job)
    again = first(served)
    assert again != job
    assert_same(post(served), again)


@pytest.mark.every_store
def test_the_same_key_with_other_content_is_a_conflict(served):
    job = first(served, flow=TAKES, inputs={"n": 1}, run_id="r", dedupe_key="d")
    same = {"flow": TAKES, "inputs": {"n": 1}, "run_id": "r", "dedupe_key": "d"}
    assert_same(post(served, **same), job)  # the dedupe key is its own
    for other in ({"flow": OTHER, "inputs": {}}, {"inputs": {"n": 2}}, {"run_id": "s"},
                  {"run_id": ""}, {"dedupe_key": "e"}, {"dedupe_key": ""}):
        error = assert_error(post(served, **{**same, **other}), 409, "exists")
        assert error["reason"] == "request_key_taken" and job in error["message"], other
    assert len(served.jobs()) == 1


def test_the_run_id_rules_hold_beside_a_request_key(served):
    job = first(served, run_id="r")
    assert_same(post(served, run_id="r", request_key="other"), job)
    error = assert_error(post(served, flow=OTHER, run_id="r", request_key="third"), 409, "exists")
    assert error["reason"] == "run_id_taken"
    assert len(served.jobs()) == 1


def test_a_bad_request_key_is_refused(served):
    for bad in ("x" * 129, "a b", "-x", "ü"):
        assert_error(post(served, request_key=bad), 400, "invalid")
    assert served.jobs() == []


def test_the_jobs_of_a_batch_have_keys_of_their_own(served):
    batch = {"flow": NOOP, "jobs": [{"request_key": f"k{i}"} for i in range(5)]}
    made = served.ask("POST", f"{JOBS}:batch", batch).json["jobs"]
    again = served.ask("POST", f"{JOBS}:batch", batch).json["jobs"]
    assert [one["job_id"] for one in again] == [one["job_id"] for one in made]
    assert all(one["existing"] for one in again)
    twice = {"flow": NOOP, "jobs": [{"request_key": "t"}, {"request_key": "t"}]}
    one, two = served.ask("POST", f"{JOBS}:batch", twice).json["jobs"]
    assert one["job_id"] == two["job_id"]
    assert len(served.jobs()) == 6


def test_a_retry_may_have_a_request_key(served):
    job = first(served)
    wait_end(served, job)
    made = served.ask("POST", f"{JOBS}/{job}/retry", {"request_key": "again"})
    assert made.status == 201, made.body
    same = served.ask("POST", f"{JOBS}/{job}/retry", {"request_key": "again"})
    assert_same(same, made.json["job_id"])
    error = assert_error(served.ask("POST", f"{JOBS}/{job}/retry", {"request_key": "k"}),
                         409, "exists")
    assert error["reason"] == "request_key_taken"
    assert_error(post(served, request_key="again"), 409, "exists")
    assert len(served.jobs()) == 2


@pytest.mark.every_store
def test_a_key_outlives_its_node(served):
    job = first(served)
    served.started[-1].kill()
    served.started[-1].wait()
    serve(served)
    assert_same(post(served), job)


@pytest.mark.sqlite_only("glia backup is for SQLite")
def test_a_backup_has_the_keys(served, tmp_path):
    job = first(served)
    wait_end(served, job)
    served.glia("backup", str(tmp_path / "b"))
    other = Box(tmp_path / "o", str(tmp_path / "restored"))
    os.makedirs(other.folder)
    other.glia("restore", str(tmp_path / "b"))
    try:
        serve(other)
        assert_same(post(other), job)
    finally:
        other.close()


# ---- a node of an earlier release ----


class Older(Lossy):
    """Refuses request keys, as a node that does not know them."""

    def ask(self, method, path, headers, body):
        if method == "POST" and b'"request_key"' in body:
            error = {"code": "invalid", "hint": "docs/api.md", "request_id": "f",
                     "message": "request_key: there is no such field (line 1, column 2)"}
            count = len(json.loads(body).get("jobs", []))
            text = json.dumps({"jobs": [{"error": error}] * count} if count else {"error": error})
            return (f"HTTP/1.1 {200 if count else 400} x\r\nGlia-Request-Id: f\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
                    f"{text}").encode()
        return super().ask(method, path, headers, body)

    def is_lost(self, method, path, headers, body):
        return b'"request_key"' not in body and super().is_lost(method, path, headers, body)


def test_an_older_node_gets_no_keys_and_each_submission_once(served):
    with Older(served, is_submission, times=0) as proxy:
        client = glia.Client(proxy.server)
        job = client.wait(client.submit(NOOP))
        client.retry(job)
        assert len(client.submit_many([glia.Submission()] * 3, flow=NOOP)) == 3
        client = glia.Client(proxy.server)
        assert len(client.submit_many([glia.Submission()] * 3, flow=NOOP)) == 3
        served.glia("run", "--server", proxy.server, "--detach", appends(served))
        wait_for("the step", lambda: served.has("ran"))
        proxy.left = 2
        with pytest.raises(glia.UnavailableError) as caught:
            client.submit(NOOP)
        assert caught.value.code == "unknown"
        assert served.reason("run", "--server", proxy.server, "--detach", appends(served),
                             code=5) == "maybe_submitted"
    assert len(served.jobs()) == 11
    assert not any(one.get("request_key") for one in served.jobs())


# ---- the command ----


def appends(box, name="ran"):
    return box.write("flow.json", json.dumps({"steps": {
        "a": {"unsafe": True, "sh": f"echo x >> {box.folder}/{name}"}}}))


def crowd(box):
    """More jobs than a client could look through."""
    body = {"flow": NOOP, "jobs": [{} for _ in range(250)]}
    assert box.ask("POST", f"{JOBS}:batch", body).status == 200


@pytest.mark.every_store
@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_a_flow_runs_once_when_the_answer_to_its_submission_is_lost(served, detach):
    def meanwhile():
        wait_for("the step", lambda: served.has("ran"))
        wait_for("its end", lambda: served.jobs()[0]["status"] == "completed")
        crowd(served)

    flow = appends(served)
    with Lossy(served, is_submission, times=3, lost=meanwhile) as proxy:
        served.glia("run", "--server", proxy.server, *detach, flow)
        keys = {json.loads(body)["request_key"] for body in proxy.posts()}
        assert len(proxy.posts()) == 4 and len(keys) == 1
    assert served.read("ran") == "x\n"
    rows = served.json("job", "list", "--limit", "1000")["jobs"]
    assert len([one for one in rows if one.get("request_key") in keys]) == 1


@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_who_never_gets_an_answer_is_told_that_there_may_be_a_job(served, detach):
    with Lossy(served, is_submission, times=-1) as proxy:
        reason = served.reason("run", "--server", proxy.server, *detach, appends(served), code=5)
        assert len({json.loads(body)["request_key"] for body in proxy.posts()}) == 1
    assert reason == "maybe_submitted"
    assert len(served.jobs()) == 1


def test_a_command_runs_once_when_the_answer_to_its_submission_is_lost(served):
    with Lossy(served, lambda method, path: True, times=4) as proxy:
        done = served.glia("run", "--server", proxy.server, "--", "sh", "-c",
                           f"echo x >> {served.folder}/ran; echo hello")
        assert done.stdout == "hello\n"
    assert served.read("ran") == "x\n"
    assert len(served.jobs()) == 1


def test_each_run_has_a_key_of_its_own(served):
    flow = appends(served)
    for _ in range(2):
        served.glia("run", flow)
    jobs = served.jobs()
    assert len({one["request_key"] for one in jobs}) == 2
    assert all(one["run_id"] == one["job_id"] for one in jobs)
    assert not any(one.get("dedupe_key") for one in jobs)
    assert served.read("ran") == "x\nx\n"


@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_a_retry_runs_once_when_its_answer_is_lost(served, detach):
    flow = served.write("fails.json", json.dumps({"steps": {
        "a": {"sh": f"echo x >> {served.folder}/ran; exit 1"}}}))
    job = json.loads(served.glia("run", "--json", flow, code=1).stdout)["job_id"]
    with Lossy(served, is_submission, times=2) as proxy:
        served.glia("job", "retry", "--server", proxy.server, job, *detach,
                    code=0 if detach else 1)
    wait_for("its end", lambda: served.jobs()[0]["status"] == "failed")
    assert served.read("ran") == "x\nx\n"
    assert len(served.jobs()) == 2


def test_a_bundle_runs_once_when_the_answer_to_its_submission_is_lost(served):
    folder = Bundle().worker("w").seed("w").write(f"{served.folder}/bundle")
    with Lossy(served, is_submission, times=2) as proxy:
        served.glia("run", "--server", proxy.server, "--detach", folder)
    assert len(served.jobs()) == 1


# ---- the Python client ----


@pytest.mark.every_store
def test_the_client_sends_a_submission_again(served):
    with Lossy(served, is_submission, times=2, lost=lambda: crowd(served)) as proxy:
        client = glia.Client(proxy.server)
        job = client.submit({"steps": {"a": {"sh": f"echo x >> {served.folder}/ran"}}})
        assert job.existing and job.run_id == job.job_id
        client.wait(job)
        assert len({json.loads(body)["request_key"] for body in proxy.posts()}) == 1
    assert served.read("ran") == "x\n"


def test_the_client_sends_batches_and_retries_again(served):
    def loses(method, path):
        return method == "POST"

    with Lossy(served, loses, times=2) as proxy:
        client = glia.Client(proxy.server)
        made = client.submit_many([glia.Submission() for _ in range(20)], flow=NOOP)
        assert len({one.job_id for one in made}) == 20
        job = client.wait(made[0])
        proxy.left = 2
        again = client.retry(job)
        assert again.existing
    assert len(served.jobs()) == 21


def test_the_client_takes_a_key_of_the_caller(served):
    client = glia.Client(data_dir=served.data)
    job = client.submit(NOOP, request_key="mine")
    assert client.submit(NOOP, request_key="mine").job_id == job.job_id
    with pytest.raises(glia.ConflictError) as caught:
        client.submit(OTHER, request_key="mine")
    assert caught.value.code == "exists"
    assert client.submit_many([glia.Submission(request_key="mine")], flow=NOOP)[0].job_id \
        == job.job_id
