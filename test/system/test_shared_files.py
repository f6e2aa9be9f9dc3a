"""Files of flows on a shared store: given to one node, needed by another."""

import contextlib
import hashlib
import json
import os
import re
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from cluster import JOBS, Cluster  # noqa: E402
from glianode import Answer, Connection, wait_for  # noqa: E402
from servers import RedisServer  # noqa: E402

GOLDEN = golden.of(__file__)
pytestmark = pytest.mark.sqlite_only("chooses its stores itself")

BLOBS = "/v1/contexts/default/blobs"
PIECE = 1 << 20


@pytest.fixture(scope="module")
def server():
    with RedisServer() as started:
        yield started


@pytest.fixture()
def pair(server):
    server.flush()
    with Cluster(server.url, count=2, args=("--pools", "default=1")) as made:
        yield made


def script(padding=0):
    """Says where it ran, and is as large as wanted."""
    text = '#!/bin/sh\npwd >>"$LEDGER"\nwhile test -e "$HOLD"; do sleep 0.02; done\nexit 0\n'
    return (text + "#" + "x" * padding + "\n").encode()


def put(node, content):
    sha = hashlib.sha256(content).hexdigest()
    connection = Connection(node.socket)
    connection.request("PUT", f"{BLOBS}/{sha}", body=content)
    answer = Answer(connection.getresponse())
    connection.close()
    assert answer.status in (200, 201, 204), answer.body
    return sha


def flow(pair, sha, hold=""):
    env = {"LEDGER": os.path.join(pair.folder, "where"), "HOLD": hold or "/nowhere"}
    return {"flow": {"name": "files", "steps": {"work": {"script": "work.sh", "env": env}}},
            "files": {"work.sh": {"sha256": sha, "executable": True}}}


def submit(node, body):
    answer = node.call("POST", JOBS, body, 60)
    assert answer.status in (200, 201), answer.body
    return answer.json["job_id"]


def ends(pair, job, status="completed"):
    wait_for(f"{job} to be {status}",
             lambda: pair.nodes[0].document(job)["status"] in ("completed", "failed"))
    document = pair.nodes[0].document(job)
    assert document["status"] == status, json.dumps(document)
    return document


def places(pair):
    path = os.path.join(pair.folder, "where")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [os.path.relpath(line.strip(), pair.folder).split(os.sep)[0] for line in file]


def has(node, sha):
    return os.path.exists(
        os.path.join(node.data, "contexts", "default", "blobs", sha[:2], sha))


def records(server, sha):
    return sorted(k.decode() for k in server.ask("KEYS", f"glia:*{sha}*")
                  if b":blob:" in k)


@contextlib.contextmanager
def busy(pair, node):
    """Its only slot is taken, so that others run what it is given."""
    hold = os.path.join(pair.folder, "hold")
    with open(hold, "w", encoding="utf-8"):
        pass
    before = len(places(pair))
    job = submit(node, flow(pair, put(node, script(7)), hold))
    wait_for("the slot to be taken", lambda: places(pair)[before:] == [node.name])
    try:
        yield
    finally:
        os.unlink(hold)
    ends(pair, job)


@pytest.mark.parametrize("size", [0, 2 * PIECE + PIECE // 2], ids=["small", "large"])
def test_a_file_given_to_a_full_node_is_run_by_another(pair, server, size):
    first, second = pair.nodes
    content = script(size or 1)
    sha = put(first, content)
    assert not has(second, sha)
    with busy(pair, first):
        ends(pair, submit(first, flow(pair, sha)))
    assert places(pair) == ["n1", "n2"]
    assert has(second, sha)
    with open(os.path.join(second.data, "contexts/default/blobs", sha[:2], sha), "rb") as file:
        assert file.read() == content
    assert len(records(server, sha)) >= 1 + -(-len(content) // PIECE)


def test_a_retry_needs_no_file_where_it_is_asked_for(pair):
    first, second = pair.nodes
    sha = put(first, script())
    job = submit(first, flow(pair, sha))
    ends(pair, job)
    answer = second.call("POST", f"{JOBS}/{job}/retry", {"from": "work"}, 30)
    assert answer.status in (200, 201), answer.body
    ends(pair, answer.json["job_id"])
    assert len(places(pair)) == 2


def test_a_file_that_is_nowhere_is_refused(pair):
    answer = pair.nodes[0].call("POST", JOBS, flow(pair, "0" * 64))
    assert answer.status == 400
    assert b'"blob_missing"' in answer.body


def test_a_file_that_was_spoiled_in_the_store_fails_the_step_and_says_so(pair, server):
    first, second = pair.nodes
    sha = put(first, script())
    ends(pair, submit(first, flow(pair, sha)))
    assert not has(second, sha)
    piece = next(k for k in records(server, sha) if k.endswith(f"{sha}/0"))
    server.ask("HSET", piece, "v", "#!/bin/sh\nexit 0\n")
    with busy(pair, first):
        document = ends(pair, submit(first, flow(pair, sha)), "failed")
    reasons = {step.get("terminal_reason") for step in document["workflow_state"]["steps"].values()}
    reason, = [reason for reason in reasons if reason and "work.sh" in reason]
    GOLDEN.says("damaged", reason, [re.compile(r"\b[0-9a-f]{12,64}\b")])
    assert not has(second, sha)


def test_what_no_job_names_goes(pair, server):
    first, second = pair.nodes
    sha = put(first, script())
    job = submit(first, flow(pair, sha))
    ends(pair, job)
    answer = second.call("POST", "/v1/contexts/default/trim", {"keep_jobs": 0}, 30)
    assert answer.status == 200, answer.body
    assert answer.json["removed_jobs"] == 1
    assert answer.json["removed_flows"] == 1
    assert records(server, sha)  # young: somebody may be about to need it
    again = submit(first, flow(pair, sha))  # which believed that the flow is there
    ends(pair, again)
