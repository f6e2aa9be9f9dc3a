"""Folders that belong to a store, stores that are checked, and moving from one to another."""

import json
import os
import re
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from clusterbox import make_boxes, make_redis, nodes, serve, stop  # noqa: E402, F401
from glianode import wait_for  # noqa: E402
from proxy import Proxy  # noqa: E402
from servers import PostgresServer  # noqa: E402

GOLDEN = golden.of(__file__)
pytestmark = pytest.mark.sqlite_only("chooses its stores itself")


# ---- which store a folder belongs to ----

def test_a_folder_belongs_to_its_store(boxes, redis):
    box = boxes("a")
    box.glia("run", "--", "true")
    with open(f"{box.data}/store", encoding="utf-8") as file:
        noted = json.load(file)
    assert noted["url"] == redis.url and len(noted["identity"]) > 10
    del box.env["GLIA_STORE"]
    for command in (["run", "--", "true"], ["serve"], ["job", "list"]):
        error = box.error(*command, code=2)
        assert error["reason"] == "store_wrong" and redis.url in error["message"]
    assert box.glia("job", "list", "--store", "sqlite:").stdout == ""  # if one says so
    assert len(box.glia("job", "list", "--store", redis.url).stdout.splitlines()) == 1


def test_a_folder_with_jobs_of_its_own_is_not_taken_to_a_server(boxes, redis):
    box = boxes("a")
    del box.env["GLIA_STORE"]
    box.glia("run", "--", "true")
    assert box.reason("run", "--store", redis.url, "--", "true", code=2) == "store_own_sqlite"


def test_a_node_on_another_store_than_was_asked_for_is_not_used(boxes, redis):
    box, here = boxes("a"), boxes("b")
    url, other = redis.url, re.sub(r"/\d*$", "", redis.url) + "/7"
    del here.env["GLIA_STORE"]
    serve(here)
    serve(box)
    box.glia("run", "--", "true")
    # The node's own store under another spelling, or none: the folder's node is meant.
    del box.env["GLIA_STORE"]
    for words in ([], ["--store", url], ["--store", url + "?timeout_ms=700"]):
        assert len(box.json("job", "list", *words)["jobs"]) == 1
    assert url in box.glia("status").stdout
    box.write("config.yaml", f"store: {other}\n")
    for words, store in ((["--store", other], other), (["--store", "sqlite:"], "sqlite:"),
                         (["--config", f"{box.folder}/config.yaml"], other)):
        for command in (["status"], ["job", "list"], ["run", "--detach"]):
            rest = ["--", "true"] if command[0] == "run" else []
            assert box.glia(*command, *words, *rest, code=2).stdout == ""
            error = box.error(*command, *words, *rest, code=2)
            assert error["reason"] == "node_wrong_store"
            assert all(text in error["message"] for text in (box.data, url, store))
    checks = box.json("doctor", "--store", other, code=1)["checks"]
    assert [c for c in checks if c["result"] == "fail" and url in c["found"]], checks
    error = here.error("job", "list", "--store", "redis://me:secret@127.0.0.1:1/0", code=2)
    assert error["reason"] == "node_wrong_store" and " sqlite:," in error["message"]
    assert " redis://me:***@127.0.0.1:1/0 " in error["message"]
    assert here.glia("job", "list", "--store", "sqlite:").stdout == ""
    assert len(box.json("job", "list")["jobs"]) == 1, "and nothing was submitted"


def is_told_as_bad(box, reason):
    """By who looks at the store, in the words of who would use it."""
    error = box.error("job", "list", code=5)
    assert error["reason"] == reason
    bad = [f["text"] for f in box.json("store", "check", code=1)["findings"]
           if f["level"] == "bad"]
    assert len(bad) == 1 and bad[0] in error["message"]
    found = {c["check"]: c for c in box.json("doctor", code=1)["checks"]}["store"]
    assert found["result"] == "fail" and found["found"] == bad[0]


def test_who_looks_says_that_the_folder_belongs_to_another_store(boxes, redis):
    box, other = boxes("a"), boxes("b")
    other.env["GLIA_STORE"] = re.sub(r"/\d*$", "", redis.url) + "/7"
    for each in (box, other):
        each.glia("run", "--", "true")
    mine, theirs = box.env["GLIA_STORE"], other.env["GLIA_STORE"]
    for store, key in ((theirs, "replaced"), ("sqlite:", "another store")):
        box.env["GLIA_STORE"] = store
        bad = [f["text"] for f in box.json("store", "check", code=1)["findings"]
               if f["level"] == "bad"]
        found = {c["check"]: c for c in box.json("doctor", code=1)["checks"]}["store"]
        assert found["result"] == "fail" and [found["found"]] == bad
        GOLDEN.says(key, found["found"], [box.data, redis.url, re.compile(r"01\w{24}")])
    del box.env["GLIA_STORE"]
    found = {c["check"]: c for c in box.json("doctor", code=1)["checks"]}["store"]
    GOLDEN.says("another store", found["found"], [box.data, redis.url])
    assert box.json("store", "check", theirs)["good"]  # it may be looked at
    box.env["GLIA_STORE"] = mine
    serve(box)
    del box.env["GLIA_STORE"]
    found = {c["check"]: c for c in box.json("doctor")["checks"]}["store"]
    assert found["result"] == "ok" and "--store" in found["found"]


def test_a_node_whose_store_is_emptied_says_so_once_and_ends(boxes, redis):
    box = boxes("a")
    node = serve(box)
    redis.ask("FLUSHALL")
    wait_for("its end", lambda: node.poll() is not None)
    said = box.read(node.err)
    assert node.returncode == 5 and "trying again" not in said, said
    assert said.count(f"({box.data}/store,") == 1, said
    GOLDEN.says("emptied", golden.line_of(said, f"({box.data}/store,"),
                [box.data, re.compile(r"(?<=the store )\S+(?= there)")])


def test_an_emptied_store_is_not_the_same_store(boxes, redis):
    box = boxes("a")
    box.glia("run", "--", "true")
    assert box.json("store", "check")["good"]
    redis.ask("FLUSHALL")
    for command in (["serve"], ["run", "--", "true"]):
        said = box.glia(*command, code=5).stderr
        GOLDEN.says("emptied", golden.line_of(said, f"({box.data}/store,"),
                    [box.data, re.compile(r"(?<=the store )\S+(?= there)")])
    is_told_as_bad(box, "store_emptied")
    boxes("b").glia("store", "check")  # a folder that remembers nothing
    box.glia("store", "check", redis.url + "?timeout_ms=4000")  # and another URL
    assert redis.ask("DBSIZE") == 0
    boxes("c").glia("run", "--", "true")
    is_told_as_bad(box, "store_replaced")
    redis.ask("FLUSHALL")
    os.remove(f"{box.data}/store")
    os.remove(f"{box.data}/keeper/epoch")
    box.close()  # its keeper
    box.glia("run", "--", "true")


# ---- another store ----

def snapshot(box, *args):
    """Everything a user sees of all jobs."""
    found = {}
    for job in box.json("job", "list", "--all", *args)["jobs"]:
        status = box.json("job", "status", job["job_id"], *args)
        events = box.glia("job", "events", job["job_id"], "--json", *args).stdout
        for thing in (status, *status["workflow_state"]["steps"].values()):
            for key in ("why", "why_code", "why_also"):  # whether a node has it may differ
                thing.pop(key, None)
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
    assert box.reason("store", "migrate", "sqlite:", url, code=2) == "migration_done"
    assert box.reason("run", "--", "true", code=2) == "store_wrong"
    box.env["GLIA_STORE"] = url
    node = serve(box)
    error = box.error("store", "migrate", url, f"sqlite:{tmp_path}/copy", "--data-dir",
                      f"{tmp_path}/elsewhere", code=2)
    assert error["reason"] == "store_in_use"
    assert re.search(r" a\.\w+ .*\bsource\b", error["message"]), error
    box.glia("job", "signal", "r", "go")
    wait_for("the end", lambda: box.jobs()[0]["status"] == "completed")
    stop(box, node)
    before = snapshot(box)
    done = box.json("store", "migrate", url, f"sqlite:{tmp_path}/copy")
    assert done["entries"] > 10 and not done["moved"] and not done["continued"]
    assert snapshot(box, "--store", f"sqlite:{tmp_path}/copy") == before
    assert "not empty" in box.glia("store", "migrate", url, "sqlite:", code=2).stderr


def test_jobs_move_from_server_to_server(boxes, redis):
    box, other = [boxes(name, GLIA_SESSION_TTL="6s") for name in ("a", "b")]
    with PostgresServer() as postgres:
        assert box.json("store", "check", postgres.url)["good"]
        box.env["GLIA_STORE"] = other.env["GLIA_STORE"] = postgres.url
        node, mate = serve(box), serve(other)
        box.glia("run", "--run-id", "first", "--", "true")
        box.glia("run", "--run-id", "asleep", "--detach", "--", "sleep", "60")
        assert sorted(nodes(other)) == ["a", "b"]
        stop(other, mate)
        stop(box, node)
        # Its step runs on, so its session is left to expire: the store is in use until then.
        wait_for("the end of its session", lambda: "migrated: " in box.glia(
            "store", "migrate", postgres.url, redis.url, code=None).stdout)
        before = box.jobs()
        assert other.json("store", "check")["good"]
        postgres.sql("DROP SCHEMA glia, glia_default CASCADE")
        is_told_as_bad(other, "store_emptied")
        found = boxes("c").json("store", "check", postgres.url)["findings"]
        assert {f["level"] for f in found} <= {"good", "warning"}
        assert [f for f in found if GOLDEN.tells("empty", f["text"])], found
    box.env["GLIA_STORE"] = redis.url
    assert before[0].pop("node").startswith("a.")  # of a session that the new store does not have
    assert box.jobs() == before and len(before) == 2
    node = serve(box)  # its keeper has heard of more incarnations than this store has given out
    box.glia("job", "cancel", "asleep")
    box.glia("run", "--", "true")
    stop(box, node)


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

    kills = refused = 0
    with Proxy(redis.port) as proxy:
        proxy.delay_s = 0.02  # so that it can be killed in the middle
        for least in (200, 600, 1000):
            process = box.start("store", "migrate", "sqlite:", redis.url_at(proxy.port))
            wait_for("some of it",
                     lambda p=process, n=least: entries() >= n or p.poll() is not None)
            kills += process.poll() is None
            process.kill()
            process.wait()
            if b'"copying"' in (redis.ask("HGET", "glia:migration:state", "v") or b""):
                reason = boxes("b").reason("run", "--", "true", code=2)
                refused += reason == "migration_unfinished"
    done = box.json("store", "migrate", "sqlite:", url)
    assert kills > 0 and refused > 0 and done["continued"] and done["entries"] > 2000
    jobs = box.json("job", "list", "--all", "--store", url)["jobs"]
    assert jobs == box.json("job", "list", "--all", "--store", "sqlite:")["jobs"]
    assert len(jobs) == 400


def test_a_target_that_is_in_use_is_refused(boxes, redis):
    box, other = boxes("a"), boxes("b")
    url = box.env.pop("GLIA_STORE")
    box.glia("run", "--", "true")
    node = serve(other)
    error = box.error("store", "migrate", "sqlite:", url, code=2)
    assert error["reason"] == "store_in_use" and " target" in error["message"]
    stop(other, node)
    other.glia("run", "--", "true")
    assert "not empty" in box.glia("store", "migrate", "sqlite:", url, code=2).stderr
    assert box.reason("store", "migrate", url, url, code=2) == "migration_same"
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
    redis.ask("CONFIG", "SET", "maxmemory", "100000")
    try:
        assert "raise maxmemory" in box.glia("store", "check", code=1).stdout
    finally:
        redis.ask("CONFIG", "SET", "maxmemory", "0")
    del box.env["GLIA_STORE"]
    fresh = boxes("b")
    assert "state.db" in fresh.glia("store", "check", "sqlite:", code=3).stderr
    nobody = "redis://127.0.0.1:1/0?timeout_ms=300"
    assert "Connection refused" in fresh.glia("store", "check", nobody, code=5).stderr
