"""Logs on a shared store: read on another node than the one that ran the step."""

import json
import os
import re
import shutil
import signal
import sys
from types import SimpleNamespace

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from bundlework import Bundle  # noqa: E402
from clusterbox import serve, stop  # noqa: E402
from glianode import Box, keepers, wait_for  # noqa: E402
from records import open_records  # noqa: E402
from servers import PostgresServer, RedisServer  # noqa: E402

pytestmark = pytest.mark.sqlite_only("chooses its stores itself")


@pytest.fixture(scope="module", params=[RedisServer, PostgresServer], ids=["redis", "postgres"])
def server(request):
    with request.param() as started:
        yield started


@pytest.fixture()
def boxes(tmp_path, server):
    """Data folders by name, all on the store, which is empty at first."""
    made = {}

    def get(name, **env):
        if name not in made:
            folder = tmp_path / name
            folder.mkdir()
            made[name] = Box(folder, **{
                "GLIA_STORE": server.url, "GLIA_NODE_NAME": name, "GLIA_SESSION_TTL": "2s",
                "GLIA_ORPHAN_GRACE": "1s", **env})
            made[name].server = server
        return made[name]

    if not server.is_empty():
        server.flush()
    yield get
    for box in made.values():
        box.close()


def records_of(box):
    of = SimpleNamespace(server=box.server)
    return open_records(SimpleNamespace(env=box.env, data=box.data, lender=SimpleNamespace(of=of)))


def ids(box, kind):
    with records_of(box) as records:
        return sorted(i.decode() if isinstance(i, bytes) else i for i in records.ids(kind))


def head(box, job, attempt="work:attempt:1"):
    """What the store has of a log, as its record says; {}: nothing."""
    if f"{job}/{attempt}" not in ids(box, "log"):
        return {}
    with records_of(box) as records:
        return json.loads(records.read("log", f"{job}/{attempt}"))


def submit(box, sh, name="job", **step):
    flow = {"name": name, "steps": {"work": {"sh": sh, **step}}}
    return json.loads(box.glia("run", "--json", "--detach", box.write("f.json", json.dumps(flow)))
                      .stdout)["job_id"]


def wait_copied(box, job, attempt="work:attempt:1"):
    wait_for("the copy of the log", lambda: head(box, job, attempt).get("ended"))


def logs(box, *args, code=0):
    """(its lines, what is said beside it)"""
    done = box.glia("job", "logs", *args, code=code)
    return done.stdout.splitlines(), done.stderr


def names_node(said, name):
    return re.search(rf"\b{name}\.[0-9A-Za-z]{{6}}\b", said) is not None


def missing(box, job, step="work"):
    """What the node says is missing of a log, and whether more may come."""
    page = box.ask("GET", f"/v1/contexts/default/jobs/{job}/logs?step={step}")
    return page.headers["Glia-Log-Missing"], page.headers["Glia-Log-Copied"] == "false"


def test_the_log_of_an_ended_step_is_read_on_another_node(boxes):
    a, b = boxes("a"), boxes("b")
    serve(a)
    job = submit(a, "echo one; echo two >&2; echo three")
    wait_copied(a, job)
    serve(b)
    lines, said = logs(b, job, "work")
    assert sorted(lines) == ["one", "three", "two"]
    assert names_node(said, "a") and missing(b, job) == (None, False)
    assert logs(a, job, "work") == (logs(b, job, "work")[0], "")
    streams = {line["text"]: line["stream"] for line in b.json("job", "logs", job)["lines"]}
    assert streams == {"one": "stdout", "two": "stderr", "three": "stdout"}


def test_without_a_node_the_store_is_asked(boxes):
    a, b = boxes("a"), boxes("b")
    node = serve(a)
    job = submit(a, "echo hello")
    wait_copied(a, job)
    stop(a, node)
    lines, said = logs(b, job, "work")
    assert lines == ["hello"] and names_node(said, "a")


def test_the_log_of_a_running_step_is_read_and_followed(boxes):
    a, b = boxes("a"), boxes("b")
    serve(a)
    gate = os.path.join(a.folder, "gate")
    job = submit(a, f"echo begun; while ! test -e {gate}; do sleep 0.05; done; echo over")
    wait_for("the first copy", lambda: head(a, job))
    serve(b)
    lines, said = logs(b, job, "work")
    assert lines == ["begun"] and len(said.splitlines()) == 2
    assert missing(b, job)[1]
    follower = b.start("job", "logs", "--follow", job, "work")
    wait_for("what there is", lambda: "begun" in b.read(follower.out))
    answer = b.ask("GET", f"/v1/contexts/default/jobs/{job}/logs?step=work")
    assert answer.headers["Glia-Log-Node"].startswith("a.")
    assert answer.headers["Glia-Log-Copied"] == "false"
    a.write("gate", "")
    b.finish(follower)
    assert b.read(follower.out).splitlines() == ["begun", "over"]
    streamed = b.ask("GET", f"/v1/contexts/default/jobs/{job}/logs?step=work&follow=true")
    assert [line.split(b" ", 2)[2] for line in streamed.body.splitlines()] == [b"begun", b"over"]


def test_a_log_survives_its_machine(boxes):
    a, b = boxes("a"), boxes("b")
    node = serve(a)
    job = submit(a, "echo last; sleep 600", unsafe=True)
    wait_for("the first copy", lambda: head(a, job))
    node.send_signal(signal.SIGKILL)
    for pid in keepers(a.data):
        os.kill(pid, signal.SIGKILL)
    node.wait()
    shutil.rmtree(a.data)
    serve(b)
    lines, said = logs(b, job, "work", "--attempt", "1")
    assert lines == ["last"]
    assert names_node(said, "a") and missing(b, job)[1]


def test_the_log_of_an_earlier_attempt_is_there(boxes):
    a, b = boxes("a"), boxes("b")
    serve(a)
    job = submit(a, 'echo n$GLIA_ATTEMPT; test $GLIA_ATTEMPT = 2',
                 retry={"attempts": 2, "backoff": "10ms"})
    wait_copied(a, job, "work:attempt:2")
    wait_copied(a, job)
    serve(b)
    assert logs(b, job, "work", "--attempt", "1")[0] == ["n1"]
    assert logs(b, job, "work", "--attempt", "all")[0] == ["1\tn1", "2\tn2"]
    listed = b.ask("GET", f"/v1/contexts/default/jobs/{job}/logs").json["attempts"]
    assert [(x["step_id"], x["attempt"], x["node"].split(".")[0]) for x in listed] == [
        ("work", 1, "a"), ("work", 2, "a")]


def test_only_the_end_of_a_long_log_is_kept(boxes):
    a, b = boxes("a", GLIA_LOG_STORE_BYTES="256K"), boxes("b")
    serve(a)
    job = submit(a, "seq 1000000 1100000")
    wait_copied(a, job)
    serve(b)
    lines, said = logs(b, job, "work")
    found = head(a, job)
    dropped = found["chunks"][0]["from"]
    assert lines[0].split()[1] == str(dropped) and f" {dropped} " in said
    assert f" {dropped} " in missing(b, job)[0]
    assert lines[1:] == [str(n) for n in range(1100001 - len(lines[1:]), 1100001)]
    assert found["size"] - dropped >= 256 << 10
    assert found["size"] - dropped < (256 + 128) << 10
    assert len(ids(a, "logchunk")) == len(found["chunks"])


def test_a_large_log_with_a_hole_is_read_to_its_end(boxes):
    a, b = boxes("a", GLIA_LOG_STORE_BYTES="10M"), boxes("b")
    serve(a)
    job = submit(a, "seq 1000000 2000000")
    wait_copied(a, job)
    assert logs(b, job, "work")[0][-1] == "2000000"


def test_beyond_the_limit_of_a_job_nothing_is_stored(boxes):
    a, b = boxes("a", GLIA_LOG_STORE_BYTES="10M"), boxes("b")
    serve(a)
    flow = {"name": "noisy", "steps": {
        f"s{i}": {"sh": "head -c 7000000 /dev/urandom | base64 -w 1000"} for i in range(3)}}
    flow["steps"]["s1"]["needs"], flow["steps"]["s2"]["needs"] = ["s0"], ["s1"]
    job = json.loads(a.glia("run", "--json", "--detach", a.write("f.json", json.dumps(flow)))
                     .stdout)["job_id"]
    for i in range(3):
        wait_copied(a, job, f"s{i}:attempt:1")
    assert [head(a, job, f"s{i}:attempt:1").get("full", False) for i in range(3)] == [
        False, False, True]
    with records_of(a) as records:
        assert json.loads(records.read("log", job))["bytes"] <= 16 << 20
    stored = a.ask("GET", f"/v1/contexts/default/jobs/{job}/stored-logs").json["attempts"]
    assert [log["full"] for log in stored] == [False, False, True]
    assert len(logs(b, job, "s2")[1].splitlines()) == 2


def test_a_removed_job_leaves_nothing(boxes):
    a = boxes("a")
    serve(a)
    few = submit(a, "echo small")
    many = submit(a, "head -c 700000 /dev/urandom | base64 -w 1000")
    wait_copied(a, few)
    wait_copied(a, many)
    assert len(ids(a, "logchunk")) > 10 and len(ids(a, "log")) == 4
    for job in (few, many):
        a.wait_job()
        wait_for("the end", lambda: a.json("job", "status", job)["status"] == "completed")
        a.glia("job", "rm", job)
    assert (ids(a, "log"), ids(a, "logchunk")) == ([], [])


def test_retention_removes_logs(boxes):
    a = boxes("a")
    serve(a)
    jobs = [submit(a, "echo small") for _ in range(5)]
    for job in jobs:
        wait_copied(a, job)
    wait_for("the end", lambda: all(job["status"] == "completed" for job in a.jobs()))
    assert a.json("store", "trim", "--keep-jobs", "1")["removed_jobs"] == 4
    assert ids(a, "log") == [jobs[4], f"{jobs[4]}/work:attempt:1"]
    assert ids(a, "logchunk") == [f"{jobs[4]}/work:attempt:1/0"]


def test_a_node_that_stops_finishes_its_copies(boxes):
    a, b = boxes("a"), boxes("b")
    a.glia("run", a.write("f.json", json.dumps(
        {"name": "quick", "steps": {"work": {"sh": "echo done"}}})))
    job, = ids(a, "job")
    assert head(a, job)["ended"]
    assert logs(b, job, "work")[0] == ["done"]


def test_what_prints_nothing_writes_nothing(boxes):
    a = boxes("a")
    serve(a)
    job = submit(a, "true")
    wait_for("the end", lambda: a.json("job", "status", job)["status"] == "completed")
    assert (ids(a, "log"), ids(a, "logchunk")) == ([], [])


def test_it_can_be_turned_off(boxes):
    a, b = boxes("a", GLIA_LOG_STORE_BYTES="0"), boxes("b")
    serve(a)
    job = submit(a, "echo here")
    wait_for("the end", lambda: a.json("job", "status", job)["status"] == "completed")
    assert (ids(a, "log"), ids(a, "logchunk")) == ([], [])
    serve(b)
    assert b.reason("job", "logs", job, "work", code=3) == "log_elsewhere"
    assert logs(a, job, "work") == (["here"], "")


def test_sqlite_has_no_logs(tmp_path):
    box = Box(tmp_path, GLIA_STORE="sqlite:")
    box.server = None
    box.glia("run", box.write("f.json", json.dumps(
        {"name": "quick", "steps": {"work": {"sh": "echo done"}}})))
    assert (ids(box, "log"), ids(box, "logchunk")) == ([], [])
    box.close()


def test_logs_of_agents_are_read_on_another_node(boxes, tmp_path):
    a, b = boxes("a"), boxes("b")
    hear = "print('n', body['n'], file=sys.stderr)\n"
    bundle = Bundle("one")
    bundle.worker("ear", hear + "if body['n'] == 2: emit(('go', {'n': 3}))", step=False,
                  output_message_type=None, safe_to_retry=True)
    bundle.worker("mouth", hear + "say(complete_step=True)", step=False,
                  output_message_type="done", safe_to_retry=True)
    bundle.step("talk", agent_ids=["mouth"]).ends("mouth").edge("ear", "mouth", "go")
    bundle.seed("ear", {"n": 1}, {"n": 2})
    for box in (a, b):
        box.env["MN_RUNS_ROOT"] = str(tmp_path / "runs")
    a.glia("run", bundle.write(os.path.join(a.folder, "bundle")), "--run-id", "one")
    here = [line for line in logs(a, "one")[0] if "\tn " in line]
    assert [line.split()[-1] for line in here] == ["1", "2", "3"]
    stored = [line for line in logs(b, "one")[0] if "\tn " in line]
    assert stored == here  # without a node
    serve(b)
    lines, said = logs(b, "one")
    assert [line for line in lines if "\tn " in line] == here and names_node(said, "a")
    first = b.ask("GET", "/v1/contexts/default/jobs/one/logs?step=@ear&attempt=1")
    assert b" n 1" in first.body


def test_a_migration_to_sqlite_leaves_logs_out(boxes, tmp_path, server):
    a = boxes("a")
    a.glia("run", a.write("f.json", json.dumps(
        {"name": "quick", "steps": {"work": {"sh": "echo done"}}})))
    assert ids(a, "log") != []
    target = tmp_path / "target"
    a.glia("store", "migrate", server.url, f"sqlite:{target}")
    copy = Box(tmp_path, data=str(target), GLIA_STORE="sqlite:")
    copy.server = None
    assert len(ids(copy, "job")) == 1
    assert (ids(copy, "log"), ids(copy, "logchunk")) == ([], [])
    copy.close()
