"""Questions of workers are told wherever one looks, with the command that answers them; who does
not listen any more, and what is beyond a limit, is told too."""

import json
import os
import re
import shlex
import signal

import golden
import pytest
from bundlework import Bundle, Runner, item
from glianode import Box, keepers, wait_for
from httpnode import serve
from teststore import STORE

GOLDEN = golden.of(__file__)

# Asks what its input says; ends with the first answer, or as it is told.
ASKS = """
path = os.path.join(folder, "human.jsonl")
with open(path, "a") as file:
    for number, more in enumerate(body["asks"]):
        file.write(json.dumps({"type": "human_input_requested", "payload": {
            "request_id": f"q{number}", "prompt": "launch?",
            "allowed_decisions": ["approve", "reject"], **more}}) + "\\n")
    file.write(body.get("behind", "") * body.get("times", 1))
note("asked", 1)
if body.get("fails"):
    sys.exit(3)
def answers():
    with open(path) as file:
        found = [json.loads(line) for line in file if line.startswith('{"type"')]
    return [e["payload"] for e in found if e["type"] == "human_input_received"]
while len(answers()) < body.get("wanted", 1):
    time.sleep(0.02)
say(complete_step={"decision": answers()[0]["decision"]})
"""


def bundle(tmp_path, name, *asks, control=None, **more):
    b = Bundle(name).worker("ask", ASKS, idempotent=True, output_message_type="done",
                            control=control).ends("ask")
    return b.seed("ask", {"asks": list(asks), **more}).write(tmp_path / name)


def start(runner, folder, run_id):
    runner.box.glia("run", folder, "--run-id", run_id, "--detach")
    runner.wait_file(run_id, "asked")
    return runner.box.json("job", "status", run_id)["job_id"]


def wait_told(box, run_id, n=1):
    """Until the node has read so many questions."""
    return wait_for("that it is told", lambda: (
        lambda s: s if s.get("human_requests", 0) == n else None)(
            box.json("job", "status", run_id)))


def listed(box, run_id):
    return [r for r in box.json("human", "list")["requests"] if r.get("run_id") == run_id]


def node_log(box):
    with open(os.path.join(box.data, "node.log"), encoding="utf-8") as file:
        return file.read()


@item("B-12-8")
def test_a_question_is_told_wherever_one_looks(own, tmp_path):
    box = own.box
    job = start(own, bundle(tmp_path, "told", {}, {"expires_at": "2099-01-01T00:00:00Z",
                                                   "default_decision": "reject"}), "told")
    status = wait_told(box, "told", 2)
    command = f"glia human respond {job} q0 --decision approve (or reject)"
    assert command in status["why"] and "launch?" in status["why"], status["why"]
    GOLDEN.says("two questions", status["why"].split("; ", 1)[1], [job])
    assert [r["request_id"] for r in status["requests"]] == ["q0", "q1"]
    assert all(r["listens"] for r in status["requests"])
    assert status["requests"][1]["default_decision"] == "reject"
    assert command in box.glia("why", "told").stdout
    told = box.ask("GET", "/v1/contexts/default/human").json
    assert [(r["job_id"], r["request_id"], r["kind"]) for r in told["requests"]] == [
        (job, "q0", "request"), (job, "q1", "request")]
    assert sorted(told) == ["requests"]
    assert box.json("status")["human"] == 2
    assert command in box.ask("GET", f"/v1/contexts/default/jobs/{job}/why").json["why"]
    assert len(listed(box, "told")) == 2
    box.glia("human", "respond", "told", "q0", "--decision", "approve")
    wait_for("its end", lambda: box.json("job", "status", "told")["status"] == "completed")
    assert box.ask("GET", "/v1/contexts/default/human").json["requests"] == []
    assert "human_requests" not in box.json("job", "status", "told")


@item("B-12-8")
def test_who_follows_a_run_is_told(alone, tmp_path):
    """With and without a node of its own; each question once, and again when it is asked again."""
    box = alone.box
    process = alone.start(bundle(tmp_path, "follow", {}, wanted=2), run_id="follow")
    wait_for("what is said", lambda: "launch?" in box.read(process.err))
    GOLDEN.says("follow", golden.line_of(box.read(process.err), "launch?"),
                [re.compile(r"\S*/glia|01\w{24}")])
    box.glia("human", "respond", "follow", "q0", "--decision", "approve")
    path = os.path.join(alone.folder_of("follow"), "human.jsonl")
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"type": "human_input_requested", "payload": {
            "request_id": "q0", "prompt": "really?"}}) + "\n")
    wait_for("what is said", lambda: "really?" in box.read(process.err))
    box.glia("human", "respond", "follow", "q0", "--decision", "approve")
    ran = alone.finish(process)
    asked = [line for line in ran.done.splitlines() if "--decision" in line]
    assert [" q0 " in line for line in asked] == [True, True], ran.done


@item("B-12-8")
def test_what_is_told_to_type_can_be_typed(own, tmp_path):
    """Whatever a worker calls its request: a shell takes it as one word."""
    box = own.box
    ids = ["-x --decision", "a b'c\"d$(id)`id`;\u202e&"]
    folder = bundle(tmp_path, "typed", *[{"request_id": i, "allowed_decisions": ["approve"]}
                                         for i in ids], wanted=2)
    job = start(own, folder, "typed")
    for left, request in enumerate(ids):
        status = wait_told(box, "typed", len(ids) - left)
        command = re.search(r"answer with: glia (human respond .*?)(; 1 more waits |$)",
                            status["why"])[1]
        words = shlex.split(command)
        assert request in words and job in words, words
        assert "\u202e" not in box.glia("why", "typed").stdout
        assert "\u202e" not in box.glia("human", "list").stdout
        box.glia(*words)
    wait_for("its end", lambda: box.json("job", "status", "typed")["status"] == "completed")


@item("B-12-9")
def test_an_answer_that_nobody_hears_now_is_said_to_wait(own, tmp_path):
    """Between two attempts, and without a node; the next attempt finds it."""
    box = own.box
    folder = bundle(tmp_path, "deaf", {}, wanted=1)
    start(own, folder, "deaf")
    wait_told(box, "deaf")
    box.started[-1].kill()
    box.started[-1].wait()
    for pid in list(keepers(box.data)):
        os.kill(pid, signal.SIGKILL)
    assert box.json("job", "status", "deaf")["human_requests"] == 1
    assert box.json("status")["human"] == 1
    said = box.glia("human", "respond", "deaf", "q0", "--decision", "approve").stderr
    # On a shared store another node may have it.
    wanted = "no node is running" if STORE == "sqlite" else "answer recorded for run deaf"
    assert wanted in said, said
    serve(box)
    wait_for("its end", lambda: box.json("job", "status", "deaf")["status"] == "completed")


@item("B-12-9")
def test_a_question_of_an_attempt_that_has_ended(own, tmp_path):
    """Its worker has left, and the next attempt comes later: the answer waits for it."""
    box = own.box
    control = {"retry": {"max_attempts": 2, "backoff_ms": 600000}}
    start(own, bundle(tmp_path, "left", {}, fails=True, control=control), "left")
    status = wait_for("the wait", lambda: (
        lambda s: s if s.get("human_requests") and not s["requests"][0]["listens"]
        else None)(box.json("job", "status", "left")))
    assert GOLDEN.tells("kept", status["why"]), status
    one, = listed(box, "left")
    assert one["listens"] is False
    assert GOLDEN.tells("kept", box.glia("human", "list").stdout)
    assert GOLDEN.tells("kept", box.glia("human", "respond", "left", "q0", "--decision",
                                         "approve").stderr)
    ask = {"type": "human_input_requested", "payload": {"request_id": "late"}}
    with open(os.path.join(own.folder_of("left"), "human.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(ask) + "\n")
    box.glia("job", "cancel", "left")
    assert listed(box, "left") == []
    error = box.error("human", "respond", "left", "late", "--decision", "approve", code=2)
    assert error["reason"] == "job_ended" and "(cancelled)" in error["message"]


@item("B-12-10")
def test_a_default_that_is_not_allowed_is_never_written(own, tmp_path):
    box = own.box
    start(own, bundle(tmp_path, "bad", {"expires_at": "2020-01-01T00:00:00Z",
                                        "default_decision": "launch"},
                      {"expires_at": "2020-01-01T00:00:00Z", "default_decision": "reject"},
                      wanted=2), "bad")
    wait_told(box, "bad")  # the other one has got its default
    assert GOLDEN.tells("default", box.json("job", "status", "bad")["why"])
    wait_for("the log", lambda: GOLDEN.tells("default in the log", node_log(box)))
    done = box.glia("human", "list")
    assert GOLDEN.tells("default", done.stderr)
    assert GOLDEN.tells("default in the list", done.stdout)
    assert listed(box, "bad")[0]["default_refused"] is True
    error = box.error("human", "respond", "bad", "q0", "--decision", "approve", code=2)
    assert error["reason"] == "request_default_refused" and "launch" in error["message"]
    path = os.path.join(own.folder_of("bad"), "human.jsonl")
    with open(path, encoding="utf-8") as file:
        answers = [line for line in file if "human_input_received" in line]
    assert len(answers) == 1 and '"q1"' in answers[0]
    assert node_log(box).count("'launch'") == 1
    box.glia("job", "cancel", "bad")


@item("B-12-10")
@pytest.mark.parametrize("what", ["bytes", "requests", "line"])
def test_what_is_beyond_a_limit_is_told(served, tmp_path, what):
    box, run_id = served.box, f"beyond-{what}"
    log = json.dumps({"type": "log", "text": "x" * 1000}) + "\n"
    folder = {
        "bytes": lambda: bundle(tmp_path, run_id, {}, behind=log, times=17000, wanted=9),
        "requests": lambda: bundle(tmp_path, run_id, *[{} for _ in range(10001)], wanted=9),
        "line": lambda: bundle(tmp_path, run_id, {}, {"prompt": "x" * 1100000}, wanted=9),
    }[what]()
    start(served, folder, run_id)
    said = {"bytes": "human.jsonl has more than 16 MiB: only the end of it is read",
            "requests": "human.jsonl has more than 10000 requests",
            "line": "its line has more than 1 MiB"}[what]
    wait_for("that it is told", lambda: said in box.json("job", "status", run_id)["why"])
    assert f"run {run_id}: {said}" in node_log(box) or f"run {run_id}: a question" in node_log(box)
    assert said in box.glia("human", "list", "--json").stderr
    asked = {"bytes": "q0", "requests": "q10000", "line": "q1"}[what]
    assert said in box.glia("human", "respond", run_id, asked, "--decision", "approve",
                            code=3).stderr
    if what == "requests":
        assert box.json("job", "status", run_id)["human_requests"] == 10000
        told = box.ask("GET", "/v1/contexts/default/human").json
        mine = [r for r in told["requests"] if r["run_id"] == run_id]
        assert len(mine) == 10 and told["more"] >= 9990
    box.glia("job", "cancel", run_id)


@item("B-12-10")
def test_what_is_no_file_is_told(served, tmp_path):
    box = served.box
    b = Bundle("other").worker("ask", """
os.mkfifo(os.path.join(folder, "human.jsonl"))
note("asked", 1)
wait_file("go")
""", idempotent=True, output_message_type="done").ends("ask").seed("ask", {})
    start(served, b.write(tmp_path / "other"), "other")
    wait_for("that it is told", lambda: GOLDEN.tells("pipe", box.glia("why", "other").stdout))
    assert GOLDEN.tells("pipe", golden.line_of(node_log(box), " other: "))
    assert GOLDEN.tells("pipe", box.glia("human", "list").stderr)
    assert GOLDEN.tells("pipe", box.glia("human", "respond", "other", "q", "--decision",
                                         "approve", code=3).stderr)
    box.glia("job", "cancel", "other")


@item("B-12-8")
def test_who_is_far_away_is_told_by_the_node(tmp_path):
    """The node's files are not looked at: the list and the one who follows hear of it from it."""
    os.makedirs(tmp_path / "client")
    box = Box(tmp_path)
    client = Box(tmp_path / "client")
    Runner(box)
    try:
        client.env["GLIA_SERVER"] = f"http://{serve(box, '--listen', '127.0.0.1:0')}"
        client.env["GLIA_TOKEN"] = box.read("data/token").strip()
        client.env["MN_RUNS_ROOT"] = str(tmp_path / "client" / "runs")
        folder = bundle(tmp_path, "far", *[{} for _ in range(12)])
        process = client.start("run", folder, "--run-id", "far")
        wait_for("what is said", lambda: re.search(r" q9 .*launch\?.* human respond .* q9 ",
                                                   client.read(process.err)))
        done = client.glia("human", "list")
        assert done.stdout.count("launch?") == 10 and "2 more worker" in done.stderr
        assert client.json("status")["human"] == 12
        assert "0 steps, 12 requests" in client.glia("status").stdout
        assert client.reason("human", "respond", "far", "q0", "--decision", "approve",
                             "--runs-root", str(tmp_path / "no"), code=None) == "request_elsewhere"
        box.glia("human", "respond", "far", "q11", "--decision", "approve")
        assert process.wait(60) == 0
    finally:
        client.close()
        box.close()
