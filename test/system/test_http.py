"""The API over the unix socket: what it answers and refuses, and that nobody can hold it up."""

import hashlib
import json
import os
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import AT_ONCE_S, Box, wait_for  # noqa: E402
from httpnode import JOBS, assert_error, raw, submit, wait_end  # noqa: E402


@pytest.fixture(name="box")
def make_box(tmp_path):
    """A node that stays until the test is over."""
    box = Box(tmp_path)
    box.node = box.start("run", "--", "sleep", "600")
    job = box.wait_job()[0]
    wait_for("its step", lambda: box.step(job, "run")["status"] == "running")
    yield box
    box.close()


# ---- jobs ----


def test_a_job_is_submitted_watched_and_read(box):
    answer = box.ask("POST", JOBS, {"flow": {"name": "api", "steps": {
        "a": {"sh": "echo hello; echo '{\"n\": 1}' > $GLIA_OUTPUT"},
        "b": {"python": "print('marker-7')", "needs": ["a"]}}}, "run_id": "r1"})
    assert answer.status == 201
    job = answer.json["job_id"]
    assert answer.json == {"job_id": job, "run_id": "r1", "status": "running"}
    doc = wait_end(box, "r1")
    assert doc["job_id"] == job and doc["status"] == "completed"
    assert list(doc["workflow_state"]["steps"]) == ["a", "b"]
    assert doc["workflow_state"]["steps"]["a"]["output"] == {"n": 1}
    log = box.ask("GET", f"{JOBS}/{job}/logs?step=b")
    assert log.body.split(b" ", 1)[1] == b"o marker-7\n"
    assert log.headers["Glia-Ended"] == "true" and log.headers["Glia-Attempt"] == "1"
    listed = box.ask("GET", f"{JOBS}/{job}/logs").json["attempts"]
    assert [(a["step_id"], a["attempt"], a["ended"]) for a in listed] == [("a", 1, True),
                                                                         ("b", 1, True)]


def test_events_are_waited_for(box):
    hold = f"until [ -e {box.folder}/go ]; do sleep 0.02; done"
    job = submit(box, {"steps": {"a": {"sh": hold}}})
    seen = wait_for("the start",
                    lambda: box.ask("GET", f"{JOBS}/{job}/events?from=2").json["events"])
    assert seen[0]["type"] == "workflow_step_attempt_started"
    result = {}

    def watch():
        begin = time.monotonic()
        result["doc"] = box.ask("GET", f"{JOBS}/{job}/events?from=3&wait_ms=20000").json
        result["seconds"] = time.monotonic() - begin

    thread = threading.Thread(target=watch)
    thread.start()
    time.sleep(0.3)
    assert not result
    box.write("go", "")
    thread.join(60)
    assert result["seconds"] < AT_ONCE_S
    assert result["doc"]["events"][0]["type"] == "workflow_step_completed"
    end = box.ask("GET", f"{JOBS}/{job}/events?from=5&wait_ms=20000").json
    assert end["ended"] and end["status"] == "completed" and end["events"] == []


def test_a_wait_without_news_ends_in_time(box):
    job = box.ask("GET", JOBS).json["jobs"][0]["job_id"]
    begin = time.monotonic()
    doc = box.ask("GET", f"{JOBS}/{job}/events?from=100&wait_ms=300").json
    assert doc["events"] == [] and not doc["ended"]
    assert 0.25 < time.monotonic() - begin < AT_ONCE_S


def test_a_list_comes_in_pages(box):
    jobs = [submit(box, {"steps": {"a": {"noop": True}}}) for _ in range(5)]
    found, after = [], ""
    while True:
        page = box.ask("GET", f"{JOBS}?limit=2&after={after}").json
        found += [j["job_id"] for j in page["jobs"]]
        after = page["next"]
        if after is None:
            break
    assert found == sorted(found, reverse=True)
    assert set(found[:5]) == set(jobs) and len(found) == 6
    wait_end(box, jobs[4])
    done = box.ask("GET", f"{JOBS}?status=completed").json["jobs"]
    assert {j["status"] for j in done} == {"completed"}


def test_a_job_is_paused_resumed_and_cancelled(box):
    job = submit(box, {"steps": {"a": {"sh": "sleep 600"}}})
    assert box.ask("POST", f"{JOBS}/{job}/pause", {"who": "me", "reason": "why"}).json == {
        "job_id": job}
    wait_for("the pause", lambda: box.ask("GET", f"{JOBS}/{job}").json["status"] == "paused")
    assert box.ask("GET", f"{JOBS}/{job}").json["reason"].endswith(" me: why")
    assert box.ask("POST", f"{JOBS}/{job}/resume").status == 200
    assert box.ask("POST", f"{JOBS}/{job}/cancel", {}).status == 200
    assert wait_end(box, job)["status"] == "cancelled"
    assert_error(box.ask("POST", f"{JOBS}/{job}/pause"), 409, "state")


def test_a_script_is_put_first_and_named_then(box):
    text = b"echo by hash\n"
    name = hashlib.sha256(text).hexdigest()
    body = {"flow": {"steps": {"a": {"script": "x.sh"}}}, "files": {"x.sh": {"sha256": name}}}
    error = assert_error(box.ask("POST", JOBS, body), 400, "invalid")
    assert error["reason"] == "flow_invalid"
    assert error["details"][0]["reason"] == "blob_missing"
    put = box.ask("PUT", f"/v1/contexts/default/blobs/{name}", text)
    assert put.status == 201 and put.json == {"sha256": name, "bytes": len(text)}
    assert box.ask("PUT", f"/v1/contexts/default/blobs/{name}", text).status == 201
    job = box.ask("POST", JOBS, body).json["job_id"]
    wait_end(box, job)
    assert b"by hash" in box.ask("GET", f"{JOBS}/{job}/logs?step=a").body
    wrong = box.ask("PUT", f"/v1/contexts/default/blobs/{name}", b"something else")
    assert_error(wrong, 400, "invalid")


def test_a_log_is_read_from_where_one_stopped(box):
    job = submit(box, {"steps": {"a": {"sh": "seq 3"}}})
    wait_end(box, job)
    first = box.ask("GET", f"{JOBS}/{job}/logs?step=a&offset=0")
    lines = first.body.splitlines(keepends=True)
    rest = box.ask("GET", f"{JOBS}/{job}/logs?step=a&offset={len(lines[0])}")
    assert rest.body == lines[1] + lines[2]
    end = int(first.headers["Glia-Next-Offset"])
    assert end == len(first.body)
    assert box.ask("GET", f"{JOBS}/{job}/logs?step=a&offset={end}").body == b""


def test_a_log_that_was_shortened_is_read_on_at_its_mark(box):
    much = "yes 0123456789abcdef | head -c 60000000; echo; echo end"
    job = submit(box, {"steps": {"a": {"sh": much}}})
    wait_end(box, job)
    text, offset = b"", 0
    while True:
        page = box.ask("GET", f"{JOBS}/{job}/logs?step=a&offset={offset}")
        if not page.body:
            break
        text += page.body
        offset = int(page.headers["Glia-Next-Offset"])
    assert len(text) < 25 << 20
    assert text.count(b"bytes dropped --") == 1
    assert text.rstrip().endswith(b"o end")
    # Places count everything that was written, also what was dropped.
    mark = text.index(b"\n-- ") + 1
    missing = int(text[mark:].split()[1])
    assert offset == len(text) - len(b"-- %d bytes dropped --\n" % missing) + missing
    late = box.ask("GET", f"{JOBS}/{job}/logs?step=a&offset={mark + missing - 1000}")
    assert late.body.startswith(b"-- 1000 bytes dropped --\n")
    beyond = box.ask("GET", f"{JOBS}/{job}/logs?step=a&offset={1 << 40}")
    assert beyond.body == b""


# ---- mistakes ----


@pytest.mark.parametrize("method, path, body, status, code", [
    ("GET", "/nowhere", None, 404, "not_found"),
    ("GET", "/", None, 404, "not_found"),
    ("GET", JOBS + "/a/b/c/d/e/f/g/h/i", None, 404, "not_found"),
    ("DELETE", JOBS, None, 405, "invalid"),
    ("POST", "/healthz", None, 405, "invalid"),
    ("GET", "/v1/contexts/other/jobs", None, 404, "not_found"),
    ("POST", "/v1/contexts/other/jobs", {"flow": {"steps": {"a": {"noop": True}}}}, 404,
     "not_found"),
    ("PUT", "/v1/contexts/other/blobs/" + "0" * 64, "x", 404, "not_found"),
    ("GET", JOBS + "/nobody", None, 404, "not_found"),
    ("GET", JOBS + "/..%2f..%2fetc", None, 404, "not_found"),
    ("GET", JOBS + "?limit=many", None, 400, "invalid"),
    ("GET", JOBS + "?limit=1001", None, 400, "invalid"),
    ("GET", JOBS + "?status=nice", None, 400, "invalid"),
    ("GET", JOBS + "/x/events?from=-1", None, 400, "invalid"),
    ("GET", JOBS + "/x/events?wait_ms=30001", None, 400, "invalid"),
    ("GET", JOBS + "/x/logs?step=..%2f..", None, 404, "not_found"),
    ("POST", JOBS, "", 400, "invalid"),
    ("POST", JOBS, "{", 400, "invalid"),
    ("POST", JOBS, "[]", 400, "invalid"),
    ("POST", JOBS, {"flow": {}}, 400, "invalid"),
    ("POST", JOBS, {"flow": 1}, 400, "invalid"),
    ("POST", JOBS, {"floww": {}}, 400, "invalid"),
    ("POST", JOBS, {"flow": {"steps": {"a": {"noop": True}}}, "run_id": "not an id"}, 400,
     "invalid"),
    ("POST", JOBS, {"flow": {"steps": {"a": {"noop": True, "pool": "none"}}}}, 400, "invalid"),
    ("POST", JOBS, {"flow": {"steps": {"a": {"script": "x.sh"}}}}, 400, "invalid"),
    ("POST", JOBS + "/nobody/pause", None, 404, "not_found"),
    ("POST", JOBS + "/x/pause", {"why": "x"}, 400, "invalid"),
    ("POST", JOBS + "/x/pause", {"reason": "x" * 600}, 400, "invalid"),
    ("POST", JOBS + "/x/steps/a/respond", {}, 400, "invalid"),
])
def test_mistakes_have_one_shape(box, method, path, body, status, code):
    assert_error(box.ask(method, path, body), status, code)


def test_all_errors_of_a_flow_come_with_their_places(box):
    body = '{\n "flow": {"steps": {\n  "a": {"sh": 1},\n  "b": {"needs": "c", "sh": "true"}}}}'
    error = assert_error(box.ask("POST", JOBS, body), 400, "invalid")
    assert error["field"] == "flow"
    assert [(d["line"], d["column"], d["path"]) for d in error["details"]] == [
        (3, 15, "steps.a.sh"), (4, 18, "steps.b.needs")]


def test_a_step_that_waits_for_nobody_cannot_be_decided(box):
    job = submit(box, {"steps": {"a": {"sh": "sleep 600"}}})
    path = f"{JOBS}/{job}/steps/a/respond"
    assert_error(box.ask("POST", path, {"decision": "done", "output": {"x": 1}}), 409, "state")
    assert_error(box.ask("POST", f"{JOBS}/{job}/steps/zz/respond", {"decision": "done"}), 404,
                 "not_found")
    assert box.ask("GET", "/v1/contexts/default/human").json == {"requests": []}


def test_a_web_page_cannot_drive_the_node(box):
    answer = box.ask("GET", JOBS, headers={"Origin": "http://example.org"})
    assert_error(answer, 403, "denied")


def test_a_body_that_is_too_large_is_refused_before_it_is_read(box):
    connection = box.connect()
    connection.putrequest("POST", JOBS)
    connection.putheader("Content-Length", str((72 << 20) + 1))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    assert json.loads(answer.read())["error"]["code"] == "limit"
    connection.close()


def test_a_body_without_a_length_that_is_too_large_is_answered(box):
    """One cannot know before it has come; the answer follows when all of it has."""
    piece = b"100000\r\n" + b"a" * (1 << 20) + b"\r\n"
    for _ in range(5):  # nothing of an earlier one counts against the limit of all bodies
        connection = box.connect()
        connection.putrequest("POST", JOBS)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        for _ in range(100):
            connection.send(piece)
        connection.send(b"0\r\n\r\n")
        answer = connection.getresponse()
        assert answer.status == 413
        error = json.loads(answer.read())["error"]
        assert error["code"] == "limit" and "72 MiB" in error["message"]
        connection.close()


def test_bodies_altogether_have_a_limit(box):
    """Five clients announce 60 MiB each: the fifth is asked to come back."""
    waiting = []
    for _ in range(5):
        connection = box.connect()
        connection.putrequest("POST", JOBS)
        connection.putheader("Content-Length", str(60 << 20))
        connection.endheaders()
        waiting.append(connection)
        wait_for("the headers to be read", lambda: box.ask("GET", "/healthz").status == 200)
    answer = waiting[4].getresponse()
    assert answer.status == 429
    for connection in waiting:
        connection.close()
    wait_for("the budget to be given back",
             lambda: box.ask("POST", JOBS, " " * (60 << 20)).status == 400)


def test_a_body_in_chunks_is_taken(box):
    connection = box.connect()
    body = json.dumps({"flow": {"steps": {"a": {"noop": True}}}}).encode()
    connection.request("POST", JOBS, body=iter([body[:7], body[7:]]), encode_chunked=True,
                       headers={"Transfer-Encoding": "chunked"})
    assert connection.getresponse().status == 201
    connection.close()


# ---- bad company ----


@pytest.mark.parametrize("garbage", [
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET " + b"/x" * 40000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
    b"POST " + JOBS.encode() + b" HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    b"POST " + JOBS.encode() + b" HTTP/1.1\r\nContent-Length: x\r\n\r\n",
], ids=["no path", "version", "long path", "many headers", "negative length", "odd length"])
def test_garbage_is_refused_and_the_node_lives(box, garbage):
    sock = raw(box)
    try:
        sock.sendall(garbage)
        answer = sock.recv(65536)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4") or b" 505 " in answer[:16]
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before everything was sent
    sock.close()
    assert box.ask("GET", "/healthz").json == {"status": "ok"}


def test_slow_and_half_requests_hold_up_nobody(box):
    slow = [raw(box) for _ in range(50)]
    for i, sock in enumerate(slow):
        text = b"POST " + JOBS.encode() + b" HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{"
        sock.sendall(text[:20 + i * 2] if i % 10 else b"\0\0\0\0")
    begin = time.monotonic()
    job = submit(box, {"steps": {"a": {"noop": True}}})
    assert wait_end(box, job)["status"] == "completed"
    assert time.monotonic() - begin < AT_ONCE_S
    for sock in slow:
        sock.close()


def test_a_client_that_goes_away_while_it_waits_holds_up_nobody(box):
    job = box.ask("GET", JOBS).json["jobs"][0]["job_id"]
    for _ in range(20):
        sock = raw(box)
        sock.sendall(f"GET {JOBS}/{job}/events?from=100&wait_ms=30000 HTTP/1.1\r\n\r\n".encode())
        sock.close()
    assert box.ask("GET", "/healthz").status == 200
    box.glia("job", "cancel", job)
    box.finish(box.node, 1)  # the node does not wait for them when it ends


def test_a_client_that_does_not_read_holds_up_nobody(box):
    job = submit(box, {"steps": {"a": {"sh": "seq 200000"}}})
    wait_end(box, job)
    lazy = [raw(box) for _ in range(20)]
    for sock in lazy:
        sock.sendall(f"GET {JOBS}/{job}/logs?step=a HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 5)
    begin = time.monotonic()
    assert wait_end(box, submit(box, {"steps": {"a": {"noop": True}}}))["status"] == "completed"
    assert time.monotonic() - begin < AT_ONCE_S
    for sock in lazy:
        sock.close()


def test_more_connections_than_there_may_be_are_turned_away(box):
    crowd = []
    for _ in range(600):
        sock = raw(box)
        crowd.append(sock)
    for sock in crowd:
        sock.close()
    wait_for("room", lambda: box.ask("GET", "/healthz").status == 200)


def test_many_clients_at_once_all_get_their_jobs_done(box):
    done, errors = [], []

    def work():
        try:
            connection = box.connect()
            for _ in range(20):
                connection.request("POST", JOBS,
                                   body=json.dumps({"flow": {"steps": {"a": {"noop": True}}}}))
                done.append(json.loads(connection.getresponse().read())["job_id"])
            connection.close()
        except Exception as error:  # pylint: disable=broad-except
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(set(done)) == 320
    wait_for("all jobs", lambda: len(
        box.ask("GET", f"{JOBS}?status=completed&limit=1000").json["jobs"]) == 320)


def test_the_node_tells_about_itself(box):
    doc = box.ask("GET", "/v1/node").json
    assert doc["attempts_running"] == 1 and doc["pools"]["default"]["in_use"] == 1


def test_a_path_is_never_cut_short_or_parted_by_an_escape(box):
    job = submit(box, {"steps": {"a": {"sh": "sleep 60"}}})
    for path in (f"{JOBS}/{job}/cancel%00zz", f"{JOBS}/{job}/pause%00"):
        assert_error(box.ask("POST", path, {}), 404, "not_found")
    assert_error(box.ask("POST", f"{JOBS}/{job}%2fcancel", {}), 405, "invalid")
    assert box.ask("GET", f"{JOBS}/{job}%00x").status == 404
    assert box.ask("GET", f"{JOBS}/{job[:-1]}%{ord(job[-1]):02x}").json["status"] == "running"
