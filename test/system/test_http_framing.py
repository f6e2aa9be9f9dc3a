"""Requests that two readers could understand differently are refused: 400, and the end of the
connection. Behind a proxy they would smuggle a second request past it."""

import json
import os
import socket
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box  # noqa: E402
from httpnode import JOBS, raw, serve, token  # noqa: E402

BODY = b'{"flow": {"steps": {"a": {"noop": true}}}}'
# What a smuggler wants executed: a submission.
EVIL = (b"POST " + JOBS.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


@pytest.fixture(name="box", scope="module")
def make_box(tmp_path_factory):
    box = Box(tmp_path_factory.mktemp("framing"))
    box.address = serve(box, "--listen", "127.0.0.1:0")
    yield box
    box.close()


def converse(box, pieces):
    """Send the pieces, and give back all that comes until the node closes the connection."""
    sock = raw(box, timeout=60)
    got = b""
    try:
        for piece in pieces:
            sock.sendall(piece)
    except OSError:
        pass  # it has closed the connection already
    try:
        while more := sock.recv(65536):
            got += more
    except ConnectionResetError:
        pass
    finally:
        sock.close()
    return got


def post(headers, body=b"", line=b"POST " + JOBS.encode() + b" HTTP/1.1\r\nHost: x\r\n"):
    return line + headers + b"\r\n" + body


LENGTH = b"Content-Length: %d\r\n" % len(BODY)
TE = b"Transfer-Encoding: chunked\r\n"
REFUSED = {
    "length and chunked": post(LENGTH + TE, CHUNKED),
    "chunked and length": post(TE + LENGTH, CHUNKED),
    "two lengths": post(LENGTH + b"Content-Length: 5\r\n", BODY),
    "two lengths, the same": post(LENGTH + LENGTH, BODY),
    "a list of lengths": post(b"Content-Length: 42, 42\r\n", BODY),
    "a length with a sign": post(b"Content-Length: +42\r\n", BODY),
    "a length below zero": post(b"Content-Length: -1\r\n", BODY),
    "a length in hex": post(b"Content-Length: 0x2a\r\n", BODY),
    "a length with a space in it": post(b"Content-Length: 4 2\r\n", BODY),
    "a length that overflows": post(b"Content-Length: 18446744073709551658\r\n", BODY),
    "an empty length": post(b"Content-Length:\r\n", BODY),
    "chunked twice": post(TE + TE, CHUNKED),
    "chunked, then identity": post(TE + b"Transfer-Encoding: identity\r\n", CHUNKED),
    "two codings in one": post(b"Transfer-Encoding: gzip, chunked\r\n", CHUNKED),
    "identity": post(b"Transfer-Encoding: identity\r\n" , BODY),
    "an unknown coding": post(b"Transfer-Encoding: xchunked\r\n", CHUNKED),
    "an empty coding": post(b"Transfer-Encoding:\r\n", CHUNKED),
    "chunked in quotes": post(b'Transfer-Encoding: "chunked"\r\n', CHUNKED),
    "chunked in HTTP/1.0": post(TE, CHUNKED, b"POST " + JOBS.encode() + b" HTTP/1.0\r\n"),
    "a folded header": post(b"A: b\r\n c\r\n" + LENGTH, BODY),
    "a folded coding": post(b"Transfer-Encoding:\r\n chunked\r\n", CHUNKED),
    "a folded coding with a tab": post(b"Transfer-Encoding:\r\n\tchunked\r\n", CHUNKED),
    "a space before the first header": post(b" A: b\r\n" + LENGTH, BODY),
    "CR in a header": post(b"A: b\rC: d\r\n" + LENGTH, BODY),
    "a length behind CR": post(b"A: b\r" + LENGTH, BODY),
    "CR as the end of the headers": post(b"A: b\r\r" + EVIL),
    "CR in the request line": post(LENGTH, BODY, b"POST " + JOBS.encode() + b" HTTP/1.1\rA: b\r\n"),
    "CR CR LF": post(b"A: b\r\r\n" + LENGTH, BODY),
    "LF as the end of a header": post(b"A: b\n" + LENGTH, BODY),
    "LF as the end of the request line": post(LENGTH, BODY,
                                              b"POST " + JOBS.encode() + b" HTTP/1.1\nHost: x\r\n"),
    "NUL in a value": post(b"A: b\0c\r\n" + LENGTH, BODY),
    "NUL behind a coding": post(b"Transfer-Encoding: chunked\0\r\n", CHUNKED),
    "NUL in a name": post(b"A\0B: c\r\n" + LENGTH, BODY),
    "NUL in the request line": post(LENGTH, BODY,
                                    b"POST " + JOBS.encode() + b"\0 HTTP/1.1\r\nHost: x\r\n"),
    "NUL at the beginning": b"\0" + EVIL,
    "another control character": post(b"A: b\x0bc\r\n" + LENGTH, BODY),
    "a space before the colon": post(b"Content-Length : 42\r\n", BODY),
    "a tab before the colon": post(b"Transfer-Encoding\t: chunked\r\n", CHUNKED),
    "a name with a space": post(b"A B: c\r\n" + LENGTH, BODY),
    "no name": post(b": c\r\n" + LENGTH, BODY),
    "no colon": post(b"Abc\r\n" + LENGTH, BODY),
    "no version": post(LENGTH, BODY, b"POST " + JOBS.encode() + b"\r\nHost: x\r\n"),
    "another version": post(LENGTH, BODY, b"POST " + JOBS.encode() + b" HTTP/2.0\r\nHost: x\r\n"),
    "chunk size is no number": post(TE, b"zz\r\n" + BODY),
    "chunk size with a sign": post(TE, b"+2a\r\n%s\r\n0\r\n\r\n" % BODY),
    "chunk size with 0x": post(TE, b"0x2a\r\n%s\r\n0\r\n\r\n" % BODY),
    "chunk size with a space": post(TE, b"2a \r\n%s\r\n0\r\n\r\n" % BODY),
    "chunk size that overflows": post(TE, b"1000000000000002a\r\n%s\r\n0\r\n\r\n" % BODY),
    "no chunk size": post(TE, b"\r\n%s\r\n0\r\n\r\n" % BODY),
    "chunk size ended by LF": post(TE, b"2a\n%s\r\n0\r\n\r\n" % BODY),
    "chunk size ended by CR": post(TE, b"2a\r%s\r\n0\r\n\r\n" % BODY),
    "chunk without its end": post(TE, b"2a\r\n%s0\r\n\r\n" % BODY),
    "chunk ended by LF": post(TE, b"2a\r\n%s\n0\r\n\r\n" % BODY),
    "chunk longer than its size": post(TE, b"29\r\n%s\r\n0\r\n\r\n" % BODY),
    "NUL in the extension of a chunk": post(TE, b"2a;a\0b\r\n%s\r\n0\r\n\r\n" % BODY),
    "LF in the extension of a chunk": post(TE, b"2a;a\n0\r\n\r\n%s" % BODY),
    "last chunk ended by CR": post(TE, b"2a\r\n%s\r\n0\r\r" % BODY),
    "trailer with a length": post(TE, b"2a\r\n%s\r\n0\r\nContent-Length: 5\r\n\r\n" % BODY),
    "trailer that is folded": post(TE, b"2a\r\n%s\r\n0\r\nA: b\r\n c\r\n\r\n" % BODY),
    "trailer with CR": post(TE, b"2a\r\n%s\r\n0\r\nA: b\r\r\n\r\n" % BODY),
    "CR between requests": b"\r" + EVIL,
    "LF between requests": b"\n" + EVIL,
}
assert len(BODY) == 0x2a

WAYS = {
    "at once": lambda text: [text],
    "byte by byte": lambda text: [text[i:i + 1] for i in range(len(text))],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSED)
def test_doubtful_framing_is_refused_and_what_follows_never_runs(box, name, way):
    before = len(box.ask("GET", JOBS + "?limit=500").json["jobs"])
    got = converse(box, WAYS[way](REFUSED[name] + EVIL * 2))
    assert got.startswith(b"HTTP/1.1 400 "), got[:200]
    assert got.count(b"HTTP/1.1 ") == 1, got
    assert len(box.ask("GET", JOBS + "?limit=500").json["jobs"]) == before


@pytest.mark.parametrize("name", REFUSED)
def test_requests_before_a_refused_one_are_answered_first(box, name):
    before = len(box.ask("GET", JOBS + "?limit=500").json["jobs"])
    got = converse(box, [EVIL + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + REFUSED[name] + EVIL])
    statuses = [part.split(b" ", 1)[0] for part in got.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"201", b"200", b"400"], got
    assert len(box.ask("GET", JOBS + "?limit=500").json["jobs"]) == before + 1


ACCEPTED = {
    "a length": post(LENGTH, BODY),
    "a length with space before it": post(b"Content-Length:   42\r\n", BODY),
    "chunked": post(TE, CHUNKED),
    "Chunked": post(b"transfer-encoding:CHUNKED\r\n", CHUNKED),
    "several chunks": post(TE, b"1\r\n{\r\n029\r\n%s\r\n000\r\n\r\n" % BODY[1:]),
    "an extension": post(TE, b"2a;a=b;c=\"d\"\r\n%s\r\n0\r\n\r\n" % BODY),
    "a trailer": post(TE, b"2A\r\n%s\r\n0\r\nA: b\r\nC:\r\n\r\n" % BODY),
    "bytes above 127": post(b"A: \xc3\xbc\xff\r\n" + LENGTH, BODY),
    "an empty value": post(b"A:\r\nB: \r\n" + LENGTH, BODY),
    "an empty line first": b"\r\n" + post(LENGTH, BODY),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_well_formed_is_served_and_the_connection_stays(box, name, way):
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    got = converse(box, WAYS[way](ACCEPTED[name] * 2 + last))
    statuses = [part.split(b" ", 1)[0] for part in got.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"201", b"201", b"200"], got


def connect(box):
    host, port = box.address.split("//")[-1].rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60)


def test_over_tcp_it_is_the_same(box):
    with connect(box) as sock:
        sock.sendall(REFUSED["length and chunked"] + EVIL)
        got = b""
        while more := sock.recv(65536):
            got += more
    assert got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1 ") == 1
    headers, _, body = got.partition(b"\r\n\r\n")
    assert b"Connection: close" in headers
    error = json.loads(body)["error"]
    assert error["code"] == "invalid"
    assert "Content-Length" in error["message"] and "Transfer-Encoding" in error["message"], error


def test_many_requests_in_one_piece_are_all_answered(box):
    """More than the node reads at once, so that a request's headers come in two pieces, wherever
    they are cut. The client sends nothing after them that would wake the node."""
    one = (f"GET /nowhere HTTP/1.1\r\nHost: {box.address}\r\n"
           f"Authorization: Bearer {token(box)}\r\nA: %s\r\n\r\n")
    many = 300
    for i in range(20):
        text = "".join(one % ("a" * ((i + k) % 37)) for k in range(many)).encode()
        fault = b"A B\r\n\r\n" * (i % 2)
        with connect(box) as sock:
            sock.sendall(text + fault)
            got = b""
            while got.count(b"HTTP/1.1 ") < many + i % 2:
                more = sock.recv(65536)
                assert more, f"{got.count(b'HTTP/1.1 ')} answers"
                got += more
        statuses = [part.split(b" ", 1)[0] for part in got.split(b"HTTP/1.1 ")[1:]]
        assert statuses == [b"404"] * many + [b"400"] * (i % 2)
