"""Several nodes on one store, as a user meets them: settings, nodes that are listed, lost sessions,
stores that are away, folders that belong to a store, and moving from one store to another."""

import json
import os
import re
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box, wait_for  # noqa: E402
from servers import RedisServer  # noqa: E402


@pytest.fixture(name="redis", scope="module")
def make_redis():
    with RedisServer() as server:
        yield server


@pytest.fixture(name="boxes")
def make_boxes(tmp_path, redis):
    """Data folders by name, all on the store, which is empty at first."""
    made = {}

    def get(name, **env):
        if name not in made:
            folder = tmp_path / name
            folder.mkdir()
            made[name] = Box(folder, GLIA_STORE=redis.url, GLIA_NODE_NAME=name,
                             GLIA_SESSION_TTL="2s", GLIA_ORPHAN_GRACE="1s", **env)
        return made[name]

    if redis.process.poll() is not None:
        redis.start()
    redis.ask("FLUSHALL")
    yield get
    for box in made.values():
        box.close()


def impatient(*boxes):
    """Commands of these say soon that the store is away."""
    for box in boxes:
        box.env["GLIA_STORE"] += "?timeout_ms=300"


def serve(box, *args, ready=True):
    node = box.start("serve", *args)
    word = "ready: process" if ready else "not ready:"
    wait_for("the node", lambda: word in box.read(node.err) or node.poll() is not None)
    assert node.poll() is None, box.read(node.err)
    return node


def stop(box, node):
    node.send_signal(signal.SIGTERM)
    box.finish(node)


def nodes(box, *args):
    return {n["name"].split(".")[0]: n for n in box.json("node", "list", *args)["nodes"]}


def why(box, job):
    return box.json("why", job)["why"]


def log_of(box):
    with open(f"{box.data}/node.log", encoding="utf-8") as file:
        return file.read()


# ---- who is there ----

def test_nodes_see_each_other(boxes):
    a, b, outside = boxes("a"), boxes("b"), boxes("outside")
    serve(a, "--pools", "default=3,gpu=1")
    node = serve(b, "--pools", "default=2")
    for box in (a, b, outside):
        seen = nodes(box)
        assert sorted(seen) == ["a", "b"]
        assert [n["status"] for n in seen.values()] == ["alive", "alive"]
        assert sum(n["leader"] for n in seen.values()) == 1
        assert seen["a"]["own"] == (box is a) and seen["b"]["own"] == (box is b)
        assert 0 < seen["b"]["deadline_in_ms"] <= 2000
        assert seen["a"]["pools"][1] == {"name": "gpu", "slots": 1, "in_use": 0, "waiting": 0}
        assert seen["b"]["pid"] == node.pid and seen["b"]["host"] == os.uname().nodename
    whole = outside.json("cluster", "status")
    assert (whole["store"], whole["shared"], whole["alive"]) == ("redis", True, 2)
    assert {p["name"]: p["slots"] for p in whole["pools"]} == {"default": 5, "gpu": 1}
    assert whole["leader"].split(".")[0] in ("a", "b") and len(whole["versions"]) == 1
    one = b.json("node", "status")
    assert one["name"].startswith("b.") and one["incarnation"] == 1
    assert b.json("node", "status", "a")["name"].startswith("a.")
    assert "there is no node 'x'" in b.glia("node", "status", "x", code=3).stderr
    assert "no node is running" in outside.glia("node", "status", code=5).stderr
    assert a.ask("GET", "/v1/cluster").json["alive"] == 2
    assert a.ask("GET", "/v1/nodes/b").json["session"] == one["session"]
    assert a.ask("GET", "/v1/nodes?all=maybe").status == 400
    stop(b, node)  # in good order, with nothing running: at once
    assert sorted(nodes(a)) == ["a"]
    assert nodes(a, "--all")["b"]["status"] == "dead"


def test_a_command_needs_no_node_to_run_or_to_ask(boxes):
    serve(boxes("a"))
    guest = boxes("guest")
    assert guest.glia("run", "--run-id", "g1", "--", "echo", "from the guest").stdout \
        == "from the guest\n"
    assert boxes("a").jobs()[0]["run_id"] == "g1"
    boxes("a").glia("run", "--run-id", "a1", "--detach", "--", "sleep", "60")
    wait_for("the node's name", lambda: "on node a." in why(guest, "a1"))
    told = why(guest, "a1")
    assert "should that fall silent, another takes it over in about" in told
    guest.glia("job", "cancel", "a1")  # through the inbox of a
    wait_for("the end", lambda: guest.jobs()[0]["status"] == "cancelled")


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
    wait_for("the word of it", lambda: "it has begun a new session" in b.read(node.err))
    wait_for("b", lambda: b.ask("GET", "/readyz").status == 200)
    assert nodes(b)["b"]["pid"] == node.pid  # the same process
    b.glia("run", "--", "true")
    # What ran on another node has its log there.
    assert a.glia("job", "logs", "r", "s").stdout != ""
    assert "lies on node a." in b.glia("job", "logs", "r", "s", code=3).stderr
    assert "lies on node a." in b.glia("job", "logs", "r").stderr
    assert b.ask("GET", "/v1/contexts/default/jobs/r/logs?step=s&follow=true").status == 404
    outside = boxes("outside")
    assert "ran on node a." in outside.glia("job", "logs", "r", "s", code=3).stderr
    a.glia("job", "cancel", "r")


def test_a_store_that_is_away_kills_nobody(boxes, redis):
    a, b = boxes("a"), boxes("b")
    impatient(a, b, boxes("outside"))
    first, second = serve(a), serve(b)
    redis.kill()
    try:
        told = wait_for("the outage", lambda: a.ask("GET", "/readyz").status == 503 and
                        a.ask("GET", "/readyz").json["error"]["message"])
        assert re.search(r"the store has not taken a write since 20\d\d-", told), told
        assert a.ask("GET", "/healthz").status == 200
        assert "127.0.0.1" in a.glia("job", "list", code=5).stderr
        assert "127.0.0.1" in boxes("outside").glia("job", "list", code=5).stderr
    finally:
        redis.start()
    for box in (a, b):
        wait_for("the node", lambda box=box: box.ask("GET", "/readyz").status == 200)
        box.glia("run", "--", "true")
    assert {n["incarnation"] for n in nodes(a).values()} == {1}, log_of(a) + log_of(b)
    assert first.poll() is None and second.poll() is None


def test_serve_waits_for_its_store(boxes, redis):
    box = boxes("a")
    impatient(box, boxes("b"))
    redis.kill()
    try:
        node = serve(box, ready=False)
        answer = box.ask("GET", "/readyz")
        assert answer.status == 503
        told = answer.json["error"]["message"]
        assert re.search(rf"the store redis://127.0.0.1:{redis.port}/0\S* has not answered since",
                         told), told
        assert box.ask("GET", "/healthz").status == 200
        assert "has not answered since" in box.glia("job", "list", code=5).stderr
        other = boxes("b")
        early = serve(other, ready=False)
        stop(other, early)  # without ever having been ready
        assert "stopped" in other.read(early.err)
    finally:
        redis.start()
    wait_for("the node", lambda: "ready: process" in box.read(node.err))
    box.glia("run", "--", "true")
    stop(box, node)


# ---- which store a folder belongs to ----

def test_a_folder_belongs_to_its_store(boxes, redis):
    box = boxes("a")
    box.glia("run", "--", "true")
    with open(f"{box.data}/store", encoding="utf-8") as file:
        noted = json.load(file)
    assert noted["url"] == redis.url and len(noted["identity"]) > 10
    del box.env["GLIA_STORE"]
    for command in (["run", "--", "true"], ["serve"], ["job", "list"]):
        said = box.glia(*command, code=2).stderr
        assert f"belongs to the store {redis.url}: give that with --store or GLIA_STORE" in said
    assert box.glia("job", "list", "--store", "sqlite:").stdout == ""  # if one says so
    assert len(box.glia("job", "list", "--store", redis.url).stdout.splitlines()) == 1


def test_a_folder_with_jobs_of_its_own_is_not_taken_to_a_server(boxes, redis):
    box = boxes("a")
    del box.env["GLIA_STORE"]
    box.glia("run", "--", "true")
    said = box.glia("run", "--store", redis.url, "--", "true", code=2).stderr
    assert "has a SQLite store of its own" in said and "glia store migrate sqlite: redis://" in said


def test_an_emptied_store_is_not_the_same_store(boxes, redis):
    box = boxes("a")
    box.glia("run", "--", "true")
    redis.ask("FLUSHALL")
    for command in (["serve"], ["run", "--", "true"]):
        said = box.glia(*command, code=5).stderr
        assert "is empty, but this data folder has used the store" in said
        assert f"{box.data}/store" in said
    assert redis.ask("DBSIZE") == 0
    os.remove(f"{box.data}/store")
    os.remove(f"{box.data}/keeper/epoch")
    box.close()  # its keeper
    box.glia("run", "--", "true")


# ---- settings ----

@pytest.mark.parametrize("url, said", [
    ("mysql://u:topsecret@h/n", "'mysql://u:***@h/n' must begin with sqlite:, redis://"),
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


# ---- another store ----

def snapshot(box, *args):
    """Everything a user sees of all jobs."""
    found = {}
    for job in box.json("job", "list", "--all", *args)["jobs"]:
        status = box.json("job", "status", job["job_id"], *args)
        events = box.glia("job", "events", job["job_id"], "--json", *args).stdout
        status.pop("why", None)
        for step in status["workflow_state"]["steps"].values():
            step.pop("why", None)
        found[job["job_id"]] = (status, events)
    return found


def test_jobs_move_to_a_server_and_back(boxes, redis, tmp_path):
    box = boxes("a")
    url = box.env.pop("GLIA_STORE")
    flow = box.write("f.yaml", "steps:\n  a: {sh: 'echo {\\\"x\\\":1}'}\n"
                               "  w: {needs: a, signal: go}\n"
                               "  b: {needs: w, sh: 'echo ${steps.a.output.x}'}\n")
    box.glia("run", "--run-id", "old", "--", "true")
    node = serve(box)
    box.glia("run", flow, "--run-id", "r", "--detach")
    wait_for("the wait", lambda: box.step("r", "w")["status"] == "blocked")
    said = box.glia("store", "migrate", "sqlite:", url, code=2).stderr
    assert "process" in said  # the node has the folder
    stop(box, node)
    before = snapshot(box)
    assert "migrated: " in box.glia("store", "migrate", "sqlite:", url).stdout
    assert snapshot(box, "--store", url) == before
    assert "done already" in box.glia("store", "migrate", "sqlite:", url, code=2).stderr
    assert "belongs to the store" in box.glia("run", "--", "true", code=2).stderr
    box.env["GLIA_STORE"] = url
    node = serve(box)
    said = box.glia("store", "migrate", url, f"sqlite:{tmp_path}/copy", "--data-dir",
                    f"{tmp_path}/elsewhere", code=2).stderr
    assert re.search(r"node a\.\w+ uses the source: stop it first", said), said
    box.glia("job", "signal", "r", "go")
    wait_for("the end", lambda: box.jobs()[0]["status"] == "completed")
    stop(box, node)
    before = snapshot(box)
    done = box.json("store", "migrate", url, f"sqlite:{tmp_path}/copy")
    assert done["entries"] > 10 and not done["moved"] and not done["continued"]
    assert snapshot(box, "--store", f"sqlite:{tmp_path}/copy") == before
    assert "not empty" in box.glia("store", "migrate", url, "sqlite:", code=2).stderr


def test_a_migration_that_was_killed_goes_on(boxes, redis):
    box = boxes("a")
    url = box.env.pop("GLIA_STORE")
    node = serve(box)
    body = {"flow": {"steps": {"a": {"noop": True}, "b": {"noop": True, "needs": "a"}}},
            "jobs": [{"run_id": f"r{i}"} for i in range(400)]}
    assert box.ask("POST", "/v1/contexts/default/jobs:batch", body).status == 200
    wait_for("the jobs", lambda: box.json("status")["jobs"]["completed"] == 400)
    stop(box, node)

    def entries():
        """What has arrived, as the record of the migration says."""
        value = redis.ask("HGET", "glia:migration:state", "v")
        return json.loads(value)["writes"] if value else 0

    kills = 0
    for least in (200, 600, 1000):
        process = box.start("store", "migrate", "sqlite:", url)
        wait_for("some of it", lambda p=process, n=least: entries() >= n or p.poll() is not None)
        kills += process.poll() is None
        process.kill()
        process.wait()
    done = box.json("store", "migrate", "sqlite:", url)
    assert kills > 0 and done["continued"] and done["entries"] > 2000
    jobs = box.json("job", "list", "--all", "--store", url)["jobs"]
    assert jobs == box.json("job", "list", "--all", "--store", "sqlite:")["jobs"]
    assert len(jobs) == 400


def test_a_target_that_is_in_use_is_refused(boxes, redis):
    box, other = boxes("a"), boxes("b")
    url = box.env.pop("GLIA_STORE")
    box.glia("run", "--", "true")
    node = serve(other)
    assert "uses the target" in box.glia("store", "migrate", "sqlite:", url, code=2).stderr
    stop(other, node)
    other.glia("run", "--", "true")
    assert "not empty" in box.glia("store", "migrate", "sqlite:", url, code=2).stderr
    assert "the same store" in box.glia("store", "migrate", url, url, code=2).stderr
    assert len(other.jobs()) == 1


def test_a_store_is_checked(boxes, redis):
    box = boxes("a")
    found = box.json("store", "check")
    assert found["good"] and found["store"] == redis.url
    assert {f["level"] for f in found["findings"]} <= {"good", "warning"}
    redis.ask("CONFIG", "SET", "appendonly", "no")
    try:
        bad = box.json("store", "check", redis.url, code=1)
        assert not bad["good"] and "bad" in [f["level"] for f in bad["findings"]]
        assert "appendonly" in box.glia("run", "--", "true", code=2).stderr
        box.env["GLIA_STORE_ALLOW_LOSS"] = "true"
        box.glia("run", "--", "true")
    finally:
        redis.ask("CONFIG", "SET", "appendonly", "yes")
    del box.env["GLIA_STORE"]
    fresh = boxes("b")
    assert "state.db" in fresh.glia("store", "check", "sqlite:", code=3).stderr
    nobody = "redis://127.0.0.1:1/0?timeout_ms=300"
    assert "Connection refused" in fresh.glia("store", "check", nobody, code=5).stderr
