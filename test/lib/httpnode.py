"""A node that stays, asked over HTTP: its socket, its TCP listener, and streams of events."""

import http.client
import os
import re
import socket

from glianode import Answer, Connection, wait_for

JOBS = "/v1/contexts/default/jobs"


def serve(box, *args):
    """Start `glia serve`; gives back its address on TCP, if it listens there."""
    process = box.start("serve", *args)

    def ready():
        assert process.poll() is None, box.read(process.err)
        return re.search(r"ready: process .*", box.read(process.err))

    line = wait_for("the node", ready).group()
    found = re.search(r"http://(\S+)", line)
    return found.group(1) if found else None


def token(box):
    with open(os.path.join(box.data, "token"), encoding="ascii") as file:
        return file.read().strip()


def ask_tcp(address, method, path, body=None, headers=None):
    """One request over TCP, with exactly these headers (Host is added if absent)."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.putrequest(method, path, skip_host="Host" in (headers or {}))
        for name, value in (headers or {}).items():
            for one in value if isinstance(value, list) else [value]:
                connection.putheader(name, one)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def submit(box, flow, **more):
    answer = box.ask("POST", JOBS, {"flow": flow, **more})
    assert answer.status == 201, answer.body
    return answer.json["job_id"]


def wait_end(box, job, seconds=60):
    def ended():
        doc = box.ask("GET", f"{JOBS}/{job}").json
        return doc if doc["status"] in ("completed", "failed", "cancelled") else None

    return wait_for("the end of the job", ended, seconds)


def assert_error(answer, status, code):
    assert answer.status == status, answer.body
    error = answer.json["error"]
    assert error["code"] == code and error["message"] and error["request_id"]
    assert answer.headers["Glia-Request-Id"] == error["request_id"]
    assert answer.headers["Content-Type"] == "application/json"
    return error


def raw(box, timeout=60):
    """A connection on which a test says what it likes."""
    connection = Connection(box.socket, timeout=timeout)
    connection.connect()
    return connection.sock


class Stream:
    """The events of a job as they come."""

    def __init__(self, box, path, **headers):
        self.connection = box.connect()
        self.connection.request("GET", path, headers={"Accept": "text/event-stream", **headers})
        self.answer = self.connection.getresponse()

    def __iter__(self):
        """(id, event, data) of each; comments are left out."""
        found = {}
        for line in self.answer:
            line = line.decode().rstrip("\n")
            if line:
                key, _, value = line.partition(": ")
                found[key] = value
            elif found:
                if "data" in found:
                    yield found.get("id"), found["event"], found["data"]
                found = {}

    def close(self):
        self.connection.close()


def raw_stream(box, job, seq=0):
    """A watcher as a plain socket, for tests with very many."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(60)
    sock.connect(box.socket)
    sock.sendall(f"GET {JOBS}/{job}/events?from={seq} HTTP/1.1\r\nHost: x\r\n"
                 "Accept: text/event-stream\r\n\r\n".encode())
    return sock
