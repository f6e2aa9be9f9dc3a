"""Bad company: random requests, slow and half ones, too many. The node answers or hangs up, never
dies, and serves everybody else meanwhile."""

import os
import random
import resource
import socket
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import AT_ONCE_S, Box, wait_for  # noqa: E402
from httpnode import JOBS, raw, serve, submit, wait_end  # noqa: E402


@pytest.fixture(name="box", scope="module")
def make_box(tmp_path_factory):
    box = Box(tmp_path_factory.mktemp("fuzz"))
    box.address = serve(box, "--listen", "127.0.0.1:0")
    yield box
    box.close()


def assert_alive(box):
    assert box.started[0].poll() is None, box.read(box.started[0].err)
    begin = time.monotonic()
    assert box.ask("GET", "/healthz").json == {"status": "ok"}
    assert time.monotonic() - begin < AT_ONCE_S


def tell(box, text, timeout=60):
    """Send it, and give back all that comes until the node hangs up or says no more."""
    sock = raw(box, timeout=timeout)
    got = b""
    try:
        sock.sendall(text)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it has heard enough, and may have said so
    try:
        while True:
            more = sock.recv(65536)
            if not more:
                break
            got += more
    except OSError:
        pass  # it may hang up, or wait for more
    finally:
        sock.close()
    return got


# ---- chance ----

WORDS = [b"v1", b"contexts", b"default", b"jobs", b"jobs:batch", b"events", b"logs", b"node",
         b"why", b"human", b"trim", b"blobs", b"signals", b"steps", b"a", b"respond", b"retry",
         b"cancel", b"healthz", b"..", b".", b"", b"%", b"%00", b"%2f", b"%zz", b"\xff\xfe",
         b"x" * 300, b"01M7", b"*", b"{job}", b"a[1]", b"openapi.json", b"metrics"]
METHODS = [b"GET", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"HEAD", b"PATCH", b"TRACE", b"CONNECT",
           b"get", b"", b"X" * 100]
QUERIES = [b"", b"?", b"?limit=1", b"?limit=-1", b"?from=99999999999999999999",
           b"?wait_ms=1&from=1", b"?step=a&follow=true", b"?step=%2e%2e", b"?x", b"?=&=&",
           b"?status=\xff", b"?after=" + b"9" * 200, b"?limit=1&limit=2", b"?" + b"a=1&" * 90]
HEADERS = [b"Accept: text/event-stream", b"Last-Event-ID: 5", b"Last-Event-ID: \xff",
           b"Expect: 100-continue", b"Transfer-Encoding: chunked", b"Transfer-Encoding: x",
           b"Connection: close", b"Upgrade: h2c", b"Content-Length: 5",
           b"Content-Length: 99999999999999999999", b"Host: a\r\nHost: b",
           b"Authorization: Bearer x", b": empty", b"No colon", b"A: b\r\n c",
           b"Range: bytes=0-5", b"Origin: null", b"Cookie: " + b"a=b; " * 50]
BODIES = [b"", b"{}", b"[]", b"null", b"{", b"\xff\xfe",
          b'{"flow": {"steps": {"a": {"noop": true}}}}', b'{"jobs": [{}, 1, null]}',
          b'{"flow": ' + b"[" * 100 + b"]" * 100 + b"}",
          b'{"decision": "done", "output": "\\ud800"}', b'{"reason": "' + b"x" * 3000 + b'"}',
          b'{"keep_for": "1y", "keep_jobs": -1}', b"1" * 5000, b'{"from": "a"}', b'"\\u0000"']


def make_request(chance):
    path = b"/" + b"/".join(chance.choices(WORDS, k=chance.randrange(0, 8)))
    if chance.random() < 0.5:
        path = b"/v1/contexts/default/jobs/" + chance.choice(WORDS) + b"/" + chance.choice(WORDS)
    body = chance.choice(BODIES)
    headers = chance.sample(HEADERS, chance.randrange(0, 3))
    if chance.random() < 0.8:
        headers.append(b"Content-Length: %d" % len(body))
    text = b"%s %s%s HTTP/1.%d\r\n%s\r\n%s" % (
        chance.choice(METHODS), path, chance.choice(QUERIES), chance.randrange(0, 3),
        b"".join(h + b"\r\n" for h in [b"Host: x"] + headers), body)
    if chance.random() < 0.2:
        text = bytearray(text)
        for _ in range(chance.randrange(1, 6)):
            text[chance.randrange(len(text))] = chance.randrange(256)
        text = bytes(text)
    return text[:chance.randrange(len(text))] if chance.random() < 0.1 else text


@pytest.mark.parametrize("seed", range(8))
def test_random_requests_are_answered_or_refused(box, seed):
    chance = random.Random(seed)
    for _ in range(60):
        text = make_request(chance)
        got = tell(box, text, timeout=0.5)
        assert got == b"" or got.startswith(b"HTTP/1."), (text, got)
        assert b" 500 " not in got[:16], (text, got)
    assert_alive(box)


@pytest.mark.parametrize("seed", range(4))
def test_random_requests_in_a_row_on_one_connection(box, seed):
    chance = random.Random(100 + seed)
    for _ in range(20):
        tell(box, b"".join(make_request(chance) for _ in range(10)), timeout=0.5)
    assert_alive(box)


def test_requests_in_a_row_are_answered_in_their_order(box):
    one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    two = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /v1/node HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    got = tell(box, one + two + one + last)
    assert [part[:3] for part in got.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200", b"200"]


@pytest.mark.parametrize("count, status", [(2, 400), (64, 400), (65, 414), (1000, 414),
                                           (5000, 414), (20000, 414)])
def test_many_arguments_get_an_answer(box, count, status):
    query = b"&".join(b"a%d=1" % i for i in range(count))
    got = tell(box, b"GET /v1/node?" + query + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 %d " % status), got[:200]


def test_many_headers_and_long_paths_get_an_answer(box):
    headers = b"".join(b"A%d: 1\r\n" % i for i in range(3000))
    assert tell(box, b"GET /v1/node HTTP/1.1\r\n" + headers + b"\r\n")[:12] == b"HTTP/1.1 431"
    long_path = b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n"
    assert tell(box, long_path)[:12] == b"HTTP/1.1 414"


# ---- time ----


@pytest.mark.slow
def test_a_request_that_trickles_in_is_ended_after_half_a_minute(box):
    """Something moves all the time, so it is not idleness that ends it; others are served."""
    socks = [raw(box) for _ in range(20)]
    begin = time.monotonic()
    ended = None
    for sock in socks:
        sock.sendall(b"POST " + JOBS.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n")
    while ended is None and time.monotonic() - begin < 90:
        time.sleep(2)
        try:
            for sock in socks:
                sock.sendall(b"X: y\r\n")
        except OSError:
            ended = time.monotonic() - begin
    assert ended is not None and 25 < ended
    assert_alive(box)
    for sock in socks:
        sock.close()


def test_one_client_cannot_take_all_connections(box):
    """It is refused at three quarters; another process is served all the while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    socks = []
    try:
        refused = 0
        while refused < 50 and len(socks) < 4000:
            sock = raw(box)
            sock.setblocking(False)
            socks.append(sock)
            if len(socks) % 50 == 0:
                settle(sock)
                refused = sum(is_closed(s) for s in socks[-50:])
        assert 2500 < len(socks) < 4000
        # `glia` is another process.
        box.glia("job", "list")
    finally:
        for sock in socks:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_for("room", lambda: is_served(box))
    job = submit(box, {"steps": {"a": {"noop": True}}})
    assert wait_end(box, job)["status"] == "completed"


def settle(sock):
    """Until the node has come to it, and so to all that came before: it answers or hangs up."""
    sock.settimeout(60)
    try:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        sock.recv(65536)
    except OSError:
        pass
    sock.setblocking(False)


def is_closed(sock):
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def is_served(box):
    try:
        return box.ask("GET", "/healthz").status == 200
    except OSError:
        return False
