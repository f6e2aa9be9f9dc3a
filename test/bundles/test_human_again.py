"""A run id used again after its job was removed: the new job begins with nothing of the old one,
whatever dies, and what the old one left is kept beside it."""

import json
import os
import signal

from bundlework import Bundle, item
from glianode import keepers, wait_for
from httpnode import serve

# Asks, and ends with the first answer in the file, whoever it was meant for.
ASKS = """
path = os.path.join(folder, "human.jsonl")
with open(path, "a") as file:
    file.write(json.dumps({"type": "human_input_requested", "payload": {
        "request_id": "q", "prompt": "launch?", "allowed_decisions": ["approve", "reject"]}})
        + "\\n")
note("asked", os.environ["MN_JOB_ID"])
def answers():
    with open(path) as file:
        found = [json.loads(line) for line in file]
    return [e["payload"] for e in found if e["type"] == "human_input_received"]
while not answers():
    time.sleep(0.02)
say(complete_step={"decision": answers()[0]["decision"]})
"""


def bundle(tmp_path):
    b = Bundle("ask").worker("ask", ASKS, idempotent=True, output_message_type="done").ends("ask")
    return b.seed("ask", {}).write(tmp_path / "ask")


def submit(own, folder, times):
    """A job under the run id, until its worker has asked so many times; its id."""
    own.box.glia("run", folder, "--run-id", "again", "--detach")
    job = own.box.json("job", "status", "again")["job_id"]
    wait_asked(own, job, times)
    return job


def wait_asked(own, job, times):
    path = os.path.join(own.folder_of("again"), "asked")

    def asked():
        if not os.path.exists(path):
            return False
        with open(path, encoding="utf-8") as file:
            return file.read().count(job) >= times
    wait_for("the question", asked)


def answer(own, decision):
    own.box.glia("human", "respond", "again", "q", "--decision", decision, "--reviewer", decision)
    wait_for("its end", lambda: own.box.json("job", "status", "again")["status"] == "completed")
    steps = own.box.json("job", "status", "again")["workflow_state"]["steps"]
    return steps["ask"]["output"]["decision"]


def answers_in(path):
    with open(os.path.join(path, "human.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [e["payload"]["decision"] for e in lines if e["type"] == "human_input_received"]


def aside(own):
    """What lies beside the run's folder."""
    return sorted(n for n in os.listdir(own.env["MN_RUNS_ROOT"]) if n not in ("again", ".glia"))


@item("B-12-7")
def test_an_old_approval_is_not_the_new_jobs(own, tmp_path):
    folder = bundle(tmp_path)
    first = submit(own, folder, 1)
    assert answer(own, "approve") == "approve"
    own.box.glia("job", "rm", "again", "--yes")
    second = submit(own, folder, 1)
    assert aside(own) == [f"again.{first}"]
    assert answers_in(os.path.join(own.env["MN_RUNS_ROOT"], f"again.{first}")) == ["approve"]
    assert answer(own, "reject") == "reject"
    listed = own.box.json("job", "artifacts", "again")["artifacts"]
    assert sorted(f["path"] for f in listed) == ["asked", "human.jsonl"]
    own.box.glia("job", "rm", "again", "--yes")
    submit(own, folder, 1)
    assert aside(own) == sorted([f"again.{first}", f"again.{second}"])
    own.box.glia("job", "cancel", "again")


@item("B-12-7")
def test_a_worker_that_empties_its_folder_leaves_no_approval(own, tmp_path):
    """Many begin with that; whose the folder is stands elsewhere."""
    wipe = Bundle("wipe").worker("ask", "import shutil\nshutil.rmtree(folder)\n"
                                 "os.makedirs(folder)\n" + ASKS, idempotent=True,
                                 output_message_type="done").ends("ask").seed("ask", {})
    folder = wipe.write(tmp_path / "wipe")
    first = submit(own, folder, 1)
    assert answer(own, "approve") == "approve"
    own.box.glia("job", "rm", "again", "--yes")
    submit(own, bundle(tmp_path), 1)
    assert aside(own) == [f"again.{first}"]
    assert answer(own, "reject") == "reject"


@item("B-12-7")
def test_a_job_keeps_its_answer_whatever_dies(own, tmp_path):
    """Node, keeper and worker, before and after the answer: the folder is taken once."""
    folder = bundle(tmp_path)
    first = submit(own, folder, 1)
    answer(own, "approve")
    own.box.glia("job", "rm", "again", "--yes")
    second = submit(own, folder, 1)
    own.box.started[-1].kill()
    own.box.started[-1].wait()
    for pid in list(keepers(own.box.data)):
        os.kill(pid, signal.SIGKILL)
    serve(own.box)
    wait_asked(own, second, 2)
    own.box.started[-1].kill()
    own.box.started[-1].wait()
    for pid in list(keepers(own.box.data)):
        os.kill(pid, signal.SIGKILL)
    own.box.glia("human", "respond", "again", "q", "--decision", "reject")
    serve(own.box)
    wait_for("its end", lambda: own.box.json("job", "status", "again")["status"] == "completed")
    assert answers_in(own.folder_of("again")) == ["reject"]
    assert aside(own) == [f"again.{first}"]


def test_what_an_earlier_job_left_is_not_told_of_the_next(own, tmp_path):
    """Also before the first worker has started, when the folder is still the earlier one's."""
    folder = bundle(tmp_path)
    first = submit(own, folder, 1)
    own.box.glia("job", "cancel", "again")
    wait_for("its end", lambda: own.box.json("job", "status", "again")["status"] == "cancelled")
    own.box.glia("job", "rm", "again", "--yes")
    late = Bundle("late").worker("ask", ASKS, idempotent=True, pool="gpu",
                                 output_message_type="done").ends("ask").seed("ask", {})
    own.box.env["MN_EXECUTOR_POOL_CAPACITIES"] = "gpu=1"
    own.box.started[-1].terminate()
    own.box.started[-1].wait()
    serve(own.box)
    held = Bundle("held").worker("hold", "wait_file('go')", idempotent=True, pool="gpu",
                                 output_message_type="done").ends("hold").seed("hold", {})
    own.box.glia("run", held.write(tmp_path / "held"), "--run-id", "held", "--detach")
    wait_for("its worker", lambda: os.path.exists(os.path.join(
        own.env["MN_RUNS_ROOT"], ".glia", "held")))
    own.box.glia("run", late.write(tmp_path / "late"), "--run-id", "again", "--detach")
    assert own.box.json("human", "list")["requests"] == []
    assert own.box.json("job", "artifacts", "again")["artifacts"] == []
    assert own.box.reason("human", "respond", "again", "q", "--decision", "approve",
                          code=3) == "nothing_asked"
    own.touch("held", "go")
    wait_asked(own, own.box.json("job", "status", "again")["job_id"], 1)
    assert [r["request_id"] for r in own.box.json("human", "list")["requests"]] == ["q"]
    assert aside(own) == sorted([f"again.{first}", "held"])
    own.box.glia("job", "cancel", "again")


def test_a_folder_of_nobody_is_taken_as_it_is(own, tmp_path):
    """Made by somebody before the run: what lies there is meant for it."""
    own.touch("again", "prepared")
    submit(own, bundle(tmp_path), 1)
    assert aside(own) == []
    assert os.path.exists(os.path.join(own.folder_of("again"), "prepared"))
    own.box.glia("job", "cancel", "again")
