"""For tests of steps that run on other nodes than the owner of their job."""

import json
import os

from cluster import FAULT_STEP, JOBS, Refused
from glianode import wait_for
from servers import RedisServer, SOAK

TURN = int(os.environ.get("GLIA_TEST_TURN") or "0")
STORES = ("redis", "postgres")
LISTED = ("offers", "taken", "results")  # indexes with a node's name behind a slash


def store_of(number=0):
    """The store of the test with this number: the next commit runs it on the other one."""
    return STORES[(TURN + number) % len(STORES)]


def on_stores(cases):
    """(case, store) pairs: all in a soak, otherwise one for each case."""
    if SOAK:
        return [(case, store) for case in cases for store in STORES]
    return [(case, store_of(i)) for i, case in enumerate(cases)]


def left_behind(server):
    """What the store has of attempts elsewhere: records, and entries of their indexes."""
    if isinstance(server, RedisServer):
        with server.connect() as redis:
            keys = [k for name in LISTED for k in redis.ask("KEYS", f"glia:.index:{name}/*")]
            return sorted(k.decode() for k in [*keys, *redis.ask("KEYS", "glia:taken:*")])
    return sorted(server.sql(
        f"SELECT name, id FROM glia_default.entries WHERE name ~ '^({'|'.join(LISTED)})/' UNION "
        "SELECT kind, id FROM glia_default.records WHERE kind = 'taken'").splitlines())


def wait_forgotten(server):
    """Until the store has nothing of attempts elsewhere any more."""
    try:
        wait_for("the store to forget", lambda: not left_behind(server))
    except AssertionError as error:
        raise AssertionError(f"{error}: {left_behind(server)}") from None


def work(cluster, ms=0, gate=None, words=(), **fields):
    """A step that writes into the ledger; with `gate` it waits until that file exists."""
    more = [*words, *([f"gate={gate}"] if gate else [])]
    return {"run": [FAULT_STEP, cluster.ledger, str(ms), *more], **fields}


def gate(cluster, name):
    """The path of a file that is not there yet."""
    return os.path.join(cluster.folder, f"gate-{name}")


def open_gate(path):
    with open(path, "w", encoding="ascii"):
        pass


def note_job(cluster, node, job, steps):
    """The history is to know the job, and which of its steps write into the ledger."""
    marks = {s: next((m for m in ("idempotent", "unsafe") if spec.get(m)), "")
             for s, spec in steps.items()
             if spec.get("run", [None])[0] == FAULT_STEP and "foreach" not in spec}
    cluster.jobs[job] = steps
    cluster.note("submitted", job=job, node=node.name, run_id=None, marks=marks)
    return job


def submit(cluster, node, steps):
    answer = node.call("POST", JOBS, {"flow": {"name": "elsewhere", "steps": steps}}, 60)
    if answer.status not in (200, 201):
        raise Refused(answer)
    return note_job(cluster, node, answer.json["job_id"], steps)


def submit_file(cluster, node, steps, **files):
    """By the command, which brings the files of the flow."""
    for name, text in files.items():
        node.write(name, text)
    path = node.write("flow.json", json.dumps({"name": "elsewhere", "steps": steps}))
    return note_job(cluster, node, node.json("run", "--detach", path)["job_id"], steps)


def steps_of(cluster, job, node=None):
    """What a node says of the steps; `node` of each is the name that the cluster uses."""
    steps = (node or cluster.living()[0]).document(job)["workflow_state"]["steps"]
    return {s: d | {"node": d.get("node", "").split(".")[0]} for s, d in steps.items()}


def starts_of(cluster, job, steps=None):
    """Of these steps, or of all: what the ledger has."""
    return [e for e in cluster.lines("start", job=job) if steps is None or e["step"] in steps]


def tally(cluster, job, steps=None):
    """step -> how often it was started."""
    found = {}
    for e in starts_of(cluster, job, steps):
        found[e["step"]] = found.get(e["step"], 0) + 1
    return found
