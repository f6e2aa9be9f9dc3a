"""Streams: events that resume, a thousand watchers, followed logs, and clients that do not read."""

import json
import os
import re
import selectors
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import AT_ONCE_S, Box, wait_for  # noqa: E402
from httpnode import (JOBS, Stream, assert_error, raw_stream, serve, submit,  # noqa: E402
                      wait_end)


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path)
    serve(box)
    yield box
    box.close()


def hold(box, name="go"):
    return f"until [ -e {box.folder}/{name} ]; do sleep 0.02; done"


def test_events_come_as_they_happen_and_the_stream_ends_with_the_job(box):
    job = submit(box, {"steps": {"a": {"sh": hold(box)}, "b": {"noop": True, "needs": "a"}}})
    stream = Stream(box, f"{JOBS}/{job}/events")
    assert stream.answer.status == 200
    assert stream.answer.headers["Content-Type"] == "text/event-stream"
    events = iter(stream)
    first = [next(events), next(events)]
    assert [e[1] for e in first] == ["job_running", "workflow_step_attempt_started"]
    box.write("go", "")
    rest = list(events)
    assert rest[-1] == (None, "end", '{"status":"completed"}')
    numbered = first + rest[:-1]
    assert [int(e[0]) for e in numbered] == list(range(1, len(numbered) + 1))
    for number, event, data in numbered:
        data = json.loads(data)
        assert (data["seq"], data["type"], data["job_id"]) == (int(number), event, job)
    page = box.ask("GET", f"{JOBS}/{job}/events?limit=1000").json["events"]
    assert [json.loads(e[2]) for e in numbered] == page


def test_a_stream_goes_on_where_it_was_left(box):
    steps = {f"s{i}": {"noop": True, **({"needs": f"s{i - 1}"} if i else {})} for i in range(300)}
    job = submit(box, {"steps": steps})
    wait_end(box, job)
    whole = list(Stream(box, f"{JOBS}/{job}/events"))
    assert len(whole) > 600  # more than one page of it
    half = whole[len(whole) // 2][0]
    rest = list(Stream(box, f"{JOBS}/{job}/events", **{"Last-Event-ID": half}))
    assert rest == whole[len(whole) // 2 + 1:]
    # The header counts, not the address that a browser repeats.
    assert list(Stream(box, f"{JOBS}/{job}/events?from=1", **{"Last-Event-ID": half})) == rest
    assert list(Stream(box, f"{JOBS}/{job}/events?from={half}"))[1:] == rest
    assert list(Stream(box, f"{JOBS}/{job}/events?from=100000")) == [whole[-1]]


def test_a_stream_of_nothing_is_an_error_like_others(box):
    headers = {"Accept": "text/event-stream"}
    assert_error(box.ask("GET", f"{JOBS}/nobody/events", headers=headers), 404, "not_found")
    job = submit(box, {"steps": {"a": {"noop": True}}})
    for bad in ("x", "-1", "9223372036854775807", "1" * 40):
        answer = box.ask("GET", f"{JOBS}/{job}/events", headers={**headers, "Last-Event-ID": bad})
        assert assert_error(answer, 400, "invalid")["field"] == "Last-Event-ID"


@pytest.mark.slow
def test_a_stream_shows_that_it_is_alive(box):
    job = submit(box, {"steps": {"a": {"sh": hold(box)}}})
    sock = raw_stream(box, job, seq=3)
    begin = time.monotonic()
    text = b""
    while text.count(b"\n:\n\n") < 2:  # one at once, as there is nothing to tell, one after 15 s
        text += sock.recv(65536)
    assert 10 < time.monotonic() - begin < 60
    sock.close()


def test_streams_end_when_the_node_does(box):
    job = submit(box, {"steps": {"a": {"sh": hold(box)}}})
    stream = Stream(box, f"{JOBS}/{job}/events")
    events = iter(stream)
    assert next(events)[1] == "job_running"
    box.started[0].terminate()
    last = list(events)[-1]
    assert last[1] == "error" and json.loads(last[2])["code"] == "unavailable"
    assert box.started[0].wait(60) == 0


@pytest.mark.slow
def test_a_thousand_watchers_see_everything_and_hold_up_nobody(box):
    """Some of them read, some stand still, some hang up: the job and other clients go on."""
    job = submit(box, {"steps": {
        "a": {"sh": hold(box)},
        **{f"s{i}": {"noop": True, "needs": "a"} for i in range(200)}}})
    watchers = [raw_stream(box, job) for _ in range(1000)]
    still = [raw_stream(box, job) for _ in range(100)]  # never read
    gone = [raw_stream(box, job) for _ in range(100)]
    for sock in gone:
        sock.close()
    begin = time.monotonic()
    assert box.ask("GET", "/healthz").status == 200
    assert time.monotonic() - begin < AT_ONCE_S
    box.write("go", "")
    texts = read_all(watchers)
    events = box.ask("GET", f"{JOBS}/{job}/events?limit=1000").json["events"]
    wanted = [e["seq"] for e in events]
    for text in texts:
        assert [int(n) for n in re.findall(rb"(?m)^id: (\d+)$", text)] == wanted
        assert b"event: end\n" in text
    begin = time.monotonic()
    other = submit(box, {"steps": {"a": {"noop": True}}})
    assert wait_end(box, other)["status"] == "completed"
    assert time.monotonic() - begin < AT_ONCE_S
    for sock in watchers + still:
        sock.close()


def read_all(socks):
    """Read each to the end of its answer; the chunks' lengths are taken out."""
    texts = {sock: b"" for sock in socks}
    with selectors.DefaultSelector() as selector:
        for sock in socks:
            selector.register(sock, selectors.EVENT_READ)
        until = time.monotonic() + 60
        left = len(socks)
        while left > 0:
            assert time.monotonic() < until, f"{left} streams have not ended"
            for key, _ in selector.select(1):
                more = key.fileobj.recv(1 << 20)
                texts[key.fileobj] += more
                if not more or texts[key.fileobj].endswith(b"\r\n0\r\n\r\n"):
                    selector.unregister(key.fileobj)
                    left -= 1
    return [unchunk(text) for text in texts.values()]


def unchunk(text):
    rest, out = text.partition(b"\r\n\r\n")[2], b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        out += rest[:int(size, 16)]
        rest = rest[int(size, 16) + 2:]
    return out


@pytest.mark.slow
def test_a_watcher_that_does_not_read_gets_no_more_than_its_share(box):
    """A job with megabytes of events: the node's memory does not grow with who does not read."""
    def resident():
        with open(f"/proc/{box.started[0].pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) << 10

    job = submit(box, {"steps": {
        f"s{i}": {"noop": True, **({"needs": f"s{i - 1}"} if i % 20 else {})}
        for i in range(10000)}})
    wait_end(box, job, 60)
    before = resident()
    still = [raw_stream(box, job) for _ in range(200)]
    wait_for("the streams to fill up",
             lambda: box.ask("GET", "/v1/node").status == 200 and resident() > before)
    time.sleep(2)
    # 200 times the whole would be about 1 GB; a page, a connection's memory and a thread's waste
    # are about 150 KB each.
    assert resident() - before < 120 << 20
    for sock in still:
        sock.close()


# ---- logs ----


def follow(box, job, query, into):
    connection = box.connect()
    connection.request("GET", f"{JOBS}/{job}/logs?follow=true&{query}")
    answer = connection.getresponse()
    into["status"] = answer.status
    for line in answer:
        into.setdefault("lines", []).append((time.monotonic(), line.split(b" ", 2)[2].strip()))
    into["end"] = time.monotonic()
    connection.close()


def test_a_log_is_followed_to_the_end_of_its_attempt(box):
    job = submit(box, {"steps": {
        "a": {"sh": f"echo one; {hold(box)}; echo two; {hold(box, 'end')}; echo three"},
        "b": {"sh": "echo later", "needs": "a"}}})
    seen, later = {}, {}
    threads = [threading.Thread(target=follow, args=(box, job, "step=a", seen)),
               threading.Thread(target=follow, args=(box, job, "step=b", later))]
    for thread in threads:
        thread.start()
    wait_for("the first line", lambda: len(seen.get("lines", [])) == 1)
    box.write("go", "")
    written = time.monotonic()
    wait_for("the second line", lambda: len(seen["lines"]) == 2)
    assert seen["lines"][1][0] - written < AT_ONCE_S
    box.write("end", "")
    for thread in threads:
        thread.join(60)
    assert [line for _, line in seen["lines"]] == [b"one", b"two", b"three"]
    # Followed before it had begun.
    assert [line for _, line in later["lines"]] == [b"later"]


def test_a_log_that_is_complete_is_a_stream_that_ends_at_once(box):
    job = submit(box, {"steps": {"a": {"sh": "seq 100000"}, "b": {"sh": "exit 1", "needs": "a"},
                                 "c": {"noop": True, "needs": "b"}}})
    wait_end(box, job)
    whole = box.ask("GET", f"{JOBS}/{job}/logs?step=a&follow=true")
    assert len(whole.body.splitlines()) == 100000
    offset = whole.body.index(b"\n", 1 << 20) + 1
    rest = box.ask("GET", f"{JOBS}/{job}/logs?step=a&follow=true&offset={offset}")
    assert rest.body == whole.body[offset:]
    # A step that never ran, and never will.
    assert box.ask("GET", f"{JOBS}/{job}/logs?step=c&follow=true").body == b""


def test_an_attempt_that_fails_ends_its_stream_and_the_next_has_its_own(box):
    job = submit(box, {"steps": {"a": {
        "sh": f"echo try $GLIA_ATTEMPT; [ -e {box.folder}/go ] || exit 1",
        "retry": {"attempts": 5, "backoff": "1s"}}}})
    first = {}
    follow(box, job, "step=a&attempt=1", first)
    assert first["status"] in (200, 404)
    box.write("go", "")
    wait_end(box, job)
    assert box.ask("GET", f"{JOBS}/{job}/logs?step=a&attempt=1&follow=true").body


def test_followers_that_hang_up_are_forgotten(box):
    job = submit(box, {"steps": {"a": {"sh": f"echo x; {hold(box)}"}}})
    for _ in range(20):
        connection = box.connect()
        connection.request("GET", f"{JOBS}/{job}/logs?step=a&follow=true")
        connection.getresponse().readline()
        connection.close()

    def connections():
        return len(os.listdir(f"/proc/{box.started[0].pid}/fd"))

    wait_for("the node to notice", lambda: connections() < 20 + 40)
    before = connections()
    assert box.ask("GET", "/healthz").status == 200
    box.write("go", "")
    wait_end(box, job)
    wait_for("all of them to go", lambda: connections() <= before)
