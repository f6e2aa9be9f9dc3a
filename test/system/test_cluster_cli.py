"""Several nodes on one store, as a user meets them: settings, nodes that are listed, lost sessions,
stores that are away."""

import os
import re
import signal
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from clusterbox import (CALM, impatient, log_of, make_boxes, make_redis,  # noqa: E402, F401
                        nodes, serve, stop, why)
from glianode import wait_for  # noqa: E402

GOLDEN = golden.of(__file__)
STORE = [re.compile(r"redis://\S+")]  # its URL
pytestmark = pytest.mark.sqlite_only("chooses its stores itself")


# ---- who is there ----

def test_nodes_see_each_other(boxes):
    a, b, outside = boxes("a", **CALM), boxes("b", **CALM), boxes("outside", **CALM)
    serve(a, "--pools", "default=3,gpu=1")
    node = serve(b, "--pools", "default=2")
    for box in (a, b, outside):
        seen = nodes(box)
        assert sorted(seen) == ["a", "b"]
        assert [n["status"] for n in seen.values()] == ["alive", "alive"]
        assert sum(n["leader"] for n in seen.values()) == 1
        assert seen["a"]["own"] == (box is a) and seen["b"]["own"] == (box is b)
        assert 0 < seen["b"]["deadline_in_ms"] <= 30000
        assert seen["a"]["pools"][1] == {"name": "gpu", "slots": 1, "in_use": 0, "waiting": 0}
        assert seen["b"]["pid"] == node.pid and seen["b"]["host"] == os.uname().nodename
    whole = outside.json("cluster", "status")
    assert (whole["store"], whole["shared"], whole["alive"]) == ("redis", True, 2)
    assert {p["name"]: p["slots"] for p in whole["pools"]} == {
        "default": 5, "gpu": 1, "executor.default": 100}
    assert whole["leader"].split(".")[0] in ("a", "b") and len(whole["versions"]) == 1
    one = b.json("node", "status")
    assert one["name"].startswith("b.") and one["incarnation"] == 1
    assert b.json("node", "status", "a")["name"].startswith("a.")
    assert b.reason("node", "status", "x", code=3) == "no_such_node"
    assert outside.reason("node", "status", code=5) == "node_not_found"
    assert a.ask("GET", "/v1/cluster").json["alive"] == 2
    assert a.ask("GET", "/v1/nodes/b").json["session"] == one["session"]
    assert a.ask("GET", "/v1/nodes?all=maybe").status == 400
    stop(b, node)  # in good order, with nothing running: at once
    assert sorted(nodes(a)) == ["a"]
    assert nodes(a, "--all")["b"]["status"] == "dead"


def test_a_node_that_says_it_is_ready_is_seen_to_be_ready(boxes):
    a, b = boxes("a", GLIA_SESSION_TTL="5m"), boxes("b", GLIA_SESSION_TTL="5m")
    serve(a)
    serve(b)
    wait_for("both", lambda: [n["state"] for n in nodes(a).values()] == ["ready", "ready"], 20)


def test_a_command_needs_no_node_to_run_or_to_ask(boxes):
    serve(boxes("a", **CALM))
    guest = boxes("guest", **CALM)
    assert guest.glia("run", "--run-id", "g1", "--", "echo", "marker-7").stdout == "marker-7\n"
    assert boxes("a").jobs()[0]["run_id"] == "g1"
    boxes("a").glia("run", "--run-id", "a1", "--detach", "--", "sleep", "60")
    wait_for("the node's name", lambda: " a." in why(guest, "a1"))
    assert guest.why_codes("a1") == ["running", "other_node"]
    guest.glia("job", "cancel", "a1")  # through the inbox of a
    wait_for("the end", lambda: guest.jobs()[0]["status"] == "cancelled")


def test_a_node_may_be_given_another_name(boxes):
    """Its keeper counts incarnations, the store counts them by name."""
    a = boxes("a")
    for name in ("a", "b", "a", "c", "c"):
        a.env["GLIA_NODE_NAME"] = name
        stop(a, serve(a))
        assert a.glia("run", "--", "echo", name).stdout == f"{name}\n"


def test_who_only_looks_makes_no_store(boxes, redis):
    a = boxes("a")
    assert a.jobs() == [] and a.json("node", "list")["nodes"] == []
    assert redis.ask("KEYS", "*") == []
    stop(a, serve(a))
    redis.ask("FLUSHALL")
    assert a.reason("job", "list", code=5) == "store_emptied"
    assert redis.ask("KEYS", "*") == []


# ---- sessions ----

def test_a_node_that_was_taken_for_dead_begins_anew(boxes):
    a, b = boxes("a"), boxes("b")
    serve(a)
    node = serve(b)
    flow = b.write("f.yaml", "steps:\n  s: {idempotent: true, sh: 'echo begun; sleep 30'}\n")
    b.glia("run", flow, "--run-id", "r", "--detach")
    wait_for("the step", lambda: b.step("r", "s")["status"] == "running")
    assert b.step("r", "s")["node"].startswith("b.")
    node.send_signal(signal.SIGSTOP)
    try:
        wait_for("a to take it over", lambda: a.step("r", "s").get("node", "").startswith("a."))
        assert nodes(a, "--all")["b"]["status"] == "dead"
    finally:
        node.send_signal(signal.SIGCONT)
    wait_for("its next session", lambda: nodes(a).get("b", {}).get("incarnation") == 2)
    wait_for("the word of it", lambda: GOLDEN.tells("a new session", b.read(node.err)))
    wait_for("b", lambda: b.ask("GET", "/readyz").status == 200)
    assert nodes(b)["b"]["pid"] == node.pid  # the same process
    b.glia("run", "--", "true")
    # What ran on another node has its log there.
    assert a.glia("job", "logs", "r", "s").stdout != ""
    error = b.error("job", "logs", "r", "s", code=3)
    assert error["reason"] == "log_elsewhere" and " a." in error["message"]
    assert "--data-dir" in error["message"]
    assert " node a." in b.glia("job", "logs", "r").stderr
    assert b.ask("GET", "/v1/contexts/default/jobs/r/logs?step=s&follow=true").status == 404
    outside = boxes("outside")
    error = outside.error("job", "logs", "r", "s", code=3)
    assert error["reason"] == "log_elsewhere" and " node a." in error["message"]
    a.glia("job", "cancel", "r")


def test_who_changes_its_stack_is_dead_to_the_first_one(boxes):
    a, b, job = boxes("a"), boxes("b"), "r"
    first = serve(a, "--stack", "blue")
    flow = a.write("f.yaml", "steps:\n  s: {sh: 'echo $$ >> %s/ran; until [ -e %s/go ]; do "
                   "sleep 0.05; done'}\n" % (a.folder, a.folder))
    a.glia("run", flow, "--run-id", job, "--detach")
    wait_for("the step", lambda: a.has("ran") and a.read("ran").endswith("\n"))
    first.kill()
    first.wait()
    serve(a, "--stack", "green")
    serve(b, "--stack", "blue")
    wait_for("b to take it over", lambda: b.step(job, "s").get("node", "").startswith("b."))
    pids = wait_for("its start", lambda: len(a.read("ran").split()) > 1 and a.read("ran").split())
    assert len(pids) == 2 and not os.path.exists(f"/proc/{pids[0]}")  # ended before
    a.write("go", "")
    wait_for("the end", lambda: b.jobs()[0]["status"] == "completed")


def test_a_strangers_key_keeps_nobody_alive(boxes, redis):
    redis.ask("SET", "glia:.session:bogus", "1")
    redis.ask("ZADD", "glia:.alive", "5", "bogus")
    a, b = boxes("a"), boxes("b")
    serve(a)
    node = serve(b)
    node.kill()
    wait_for("b to be dead", lambda: nodes(a, "--all")["b"]["status"] == "dead")


def test_a_run_that_was_asleep_too_long_still_tells_the_end(boxes):
    serve(boxes("a"))
    box = boxes("laptop")
    flow = box.write("f.yaml", "steps:\n  s: {idempotent: true, sh: 'until [ -e %s/go ]; do "
                     "sleep 0.05; done'}\n" % box.folder)
    run = box.start("run", flow, "--run-id", "r")
    wait_for("the step", lambda: box.has("data/node.sock") and box.jobs())
    run.send_signal(signal.SIGSTOP)
    try:
        a = boxes("a")
        wait_for("a to take it over", lambda: a.step("r", "s").get("node", "").startswith("a."))
        box.write("go", "")
        wait_for("the end", lambda: a.jobs()[0]["status"] == "completed")
    finally:
        run.send_signal(signal.SIGCONT)
    assert box.finish(run).endswith("\tr\tcompleted\n")


class Forgetful(socketserver.ThreadingUnixStreamServer):
    """In the place of a node: what another one says, and once that has told the end of a job, three
    times that it begins a new session."""

    daemon_threads = True

    def __init__(self, box, node):
        os.makedirs(box.data, mode=0o700)
        super().__init__(box.socket, Forwarding)
        self.node, self.refuses = node, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Forwarding(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if 0 < self.server.refuses <= 3:
            status, told = 503, (b'{"error":{"code":"unavailable","message":'
                                 b'"this node is opening a new session"}}')
            self.server.refuses += 1
        else:
            answer = self.server.node.ask(self.command, self.path, body or None)
            status, told = answer.status, answer.body
            if b'"ended":true' in told:
                self.server.refuses += 1
        self.send_response(status)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    do_GET = do_POST = do_PUT = forward


def test_a_node_that_begins_anew_is_waited_for_also_after_the_end(boxes):
    """It told the end before it knew that it had been taken for dead."""
    serve(boxes("a"))
    box = boxes("laptop")
    node = Forgetful(box, boxes("a"))
    try:
        told = box.glia("run", box.write("f.yaml", "steps:\n  s: {sh: 'true'}\n"), "--run-id", "r")
    finally:
        node.shutdown()
        node.server_close()
    assert node.refuses == 4 and told.stdout.endswith("\tr\tcompleted\n"), told.stderr


def test_a_store_that_is_away_kills_nobody(boxes, redis):
    # Unmarked steps outlive an outage that is shorter than session and grace together.
    a, b = [boxes(name, GLIA_SESSION_TTL="6s", GLIA_ORPHAN_GRACE="5m") for name in ("a", "b")]
    impatient(a, b, boxes("outside"))
    first, second = serve(a), serve(b)
    waiting = b.start("run", "--run-id", "w", "--", "sh", "-c", f"until [ -e {b.folder}/go ]; do "
                      "sleep 0.1; done")
    wait_for("its step", lambda: b.jobs() and b.step("w", "run")["status"] == "running")
    redis.written_bytes()  # it answers first while its disk is slow, and would forget
    redis.kill()
    try:
        told = wait_for("the outage", lambda: a.ask("GET", "/readyz").status == 503 and
                        a.ask("GET", "/readyz").json["error"])
        assert told["reason"] == "store_silent"
        assert re.search(r" since 20\d\d-", told["message"]), told
        assert a.ask("GET", "/healthz").status == 200
        assert "127.0.0.1" in a.glia("job", "list", code=5).stderr
        assert "127.0.0.1" in boxes("outside").glia("job", "list", code=5).stderr
        wait_for("a word of it", lambda: "; waiting" in b.read(waiting.err))
        wait_for("a line of serve", lambda: GOLDEN.tells("away", a.read(first.err), STORE))
    finally:
        redis.start()
    for box in (a, b):
        wait_for("the node", lambda box=box: box.ask("GET", "/readyz").status == 200)
        box.glia("run", "--", "true")
    assert {n["incarnation"] for n in nodes(a).values()} == {1}, log_of(a) + log_of(b)
    wait_for("its end", lambda: GOLDEN.tells("back", a.read(first.err)))
    b.write("go", "")
    b.finish(waiting)
    assert b.step("w", "run")["attempt_count"] == 1  # the step has noticed nothing
    assert first.poll() is None and second.poll() is None


def test_serve_waits_for_its_store(boxes, redis):
    box = boxes("a")
    impatient(box, boxes("b"))
    redis.written_bytes()
    redis.kill()
    try:
        node = serve(box, ready=False)
        answer = box.ask("GET", "/readyz")
        assert answer.status == 503
        error = answer.json["error"]
        assert error["reason"] == "store_silent"
        assert f"redis://127.0.0.1:{redis.port}/0" in error["message"], error
        assert box.ask("GET", "/healthz").status == 200
        assert box.reason("job", "list", code=5) == "store_silent"
        other = boxes("b")
        early = serve(other, ready=False)
        stop(other, early)  # without ever having been ready
        assert "stopped" in other.read(early.err)
    finally:
        redis.start()
    wait_for("the node", lambda: "ready: process" in box.read(node.err))
    box.glia("run", "--", "true")
    stop(box, node)


# ---- settings ----

@pytest.mark.parametrize("url, said", [
    ("mysql://u:topsecret@h/n", "'mysql://u:***@h/n' "),
    ("redis://u:topsecret@", ""),
    ("redis://u:topsecret@h:99999", ""),
])
def test_what_is_wrong_with_a_url_is_told_without_its_password(boxes, url, said):
    box = boxes("a")
    box.env["GLIA_STORE"] = url
    for command in (["run", "--", "true"], ["serve"], ["job", "list"]):
        done = box.glia(*command, code=2)
        assert said in done.stderr and "topsecret" not in done.stderr
    assert not os.path.exists(f"{box.data}/store")


def test_a_password_is_never_shown(boxes, redis):
    redis.ask("ACL", "SETUSER", "glia", "on", ">topsecret", "~*", "&*", "+@all")
    box = boxes("a")
    box.env["GLIA_STORE"] = f"redis://glia:topsecret@127.0.0.1:{redis.port}/0"
    node = serve(box, "--log", "debug")
    shown = box.json("config", "show")["settings"]["store"]
    assert shown["value"] == f"redis://glia:***@127.0.0.1:{redis.port}/0"
    said = box.glia("config", "show").stdout + box.glia("store", "check").stdout
    said += box.glia("debug", "dump", "--output", "-").stdout
    said += box.glia("node", "status").stdout + box.glia("cluster", "status").stdout
    stop(box, node)
    box.env["GLIA_STORE"] = f"redis://glia:topsecret2@127.0.0.1:{redis.port}/0"
    box.env["GLIA_STORE"] += "?timeout_ms=300"
    said += box.glia("job", "list", code=5).stderr
    refused = serve(box, ready=False)
    stop(box, refused)
    said += box.read(refused.err) + log_of(box)
    said += box.glia("store", "migrate", "sqlite:", box.env["GLIA_STORE"], code=5).stderr
    said += box.read(node.err) + open(f"{box.data}/store", encoding="utf-8").read()
    assert "glia:***@" in said and "topsecret" not in said
