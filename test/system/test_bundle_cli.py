"""Bundles on the command line and over HTTP: reading their folders, looking into their jobs."""

import hashlib
import json
import os
import sys
import tarfile

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import ROOT, Box, wait_for  # noqa: E402
from httpnode import JOBS, assert_error, serve  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "sdk", "python"))
import glia  # noqa: E402

GOLDEN = golden.of(__file__)
BLOBS = "/v1/contexts/default/blobs"

WORKER = """#!/usr/bin/env python3
import json, os
run = os.path.join(os.environ["MN_RUNS_ROOT"], os.environ["MN_RUN_ID"])
os.makedirs(os.path.join(run, "sub"), exist_ok=True)
with open(os.path.join(run, "sub", "out.json"), "w") as file:
    json.dump(json.load(open(os.environ["MN_INPUT_FILE"])), file)
print(json.dumps({"next_state": {"seen": 1}, "complete_step": {"done": True}}))
"""

WAITER = """#!/usr/bin/env python3
import json, os, sys, time
run = os.path.join(os.environ["MN_RUNS_ROOT"], os.environ["MN_RUN_ID"])
os.makedirs(run, exist_ok=True)
path = os.path.join(run, "human.jsonl")
with open(path, "a") as file:
    file.write('{"type": "other"}\\nnot json\\n')
    file.write(json.dumps({"type": "human_input_requested", "payload": {
        "request_id": "ship", "prompt": "ship it?", "allowed_decisions": ["approve", "reject"],
        "status": "pending"}}) + "\\n")
    file.write('{"type": "human_input_')  # half a line, as of a worker that died
until = time.time() + 50
while time.time() < until:
    for line in open(path):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry["type"] == "human_input_received" and entry["payload"]["request_id"] == "ship":
            print(json.dumps({"complete_step": entry["payload"]}))
            sys.exit(0)
    time.sleep(0.05)
sys.exit(24)
"""


def manifest(script="main.py", **node):
    config = {"runner_module": "MirrorNeuron.Runner.HostLocal", "command": ["python3", script],
              "upload_path": "worker", "upload_as": "worker", "workdir": "/sandbox/job/worker",
              "output_message_type": "result", "safe_to_retry": True, **node}
    return {
        "apiVersion": "mn.workflow/v2", "kind": "Workflow", "id": "small", "job_name": "small",
        "manifest_version": "1.0",
        "workflow": {"workflow_id": "small", "mode": "static_dag", "entrypoint": "work",
                     "source": "work", "sink": "work", "steps": [{"id": "work"}], "edges": []},
        "agents": {
            "nodes": [{"node_id": "work", "agent_type": "executor", "config": config},
                      {"node_id": "sink", "agent_type": "aggregator",
                       "config": {"terminal_sink": True, "complete_run": True,
                                  "complete_on_message": True}}],
            "edges": [{"edge_id": "e", "from_node": "work", "to_node": "sink",
                       "message_type": "result"}],
            "entrypoints": ["work"]},
        "runtime": {"initial_inputs": {"work": [{"fruit": "apple"}]}}}


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path, MN_RUNS_ROOT=str(tmp_path / "runs"))
    yield box
    box.close()


def bundle(box, doc=None, worker=WORKER):
    box.write("b/manifest.json", json.dumps(doc or manifest(), indent=1))
    box.write("b/payloads/worker/main.py", worker, 0o755)
    return "b"


def test_validate_says_which_executors_can_run_twice(box):
    folder = bundle(box)
    rows = [line.split("\t")[:4] for line in box.glia("validate", folder).stdout.splitlines()]
    assert rows == [["work", "executor", "work", "yes"], ["sink", "aggregator", "", "no"]]
    marked = manifest()
    del marked["agents"]["nodes"][0]["config"]["safe_to_retry"]
    bundle(box, marked)
    doc = box.json("validate", folder)
    assert doc["valid"] and [s["id"] for s in doc["steps"]] == ["work"]
    assert [a["can_run_twice"] for a in doc["agents"]] == [False, False]
    assert doc["agents"][0]["safety"] == "unsafe"


def test_all_that_is_wrong_is_told_at_once_with_its_place(box):
    doc = manifest()
    doc["agents"]["edges"][0]["to_node"] = "snik"
    folder = bundle(box, doc)
    os.symlink("/etc/passwd", f"{box.folder}/b/payloads/out")
    os.symlink("nowhere", f"{box.folder}/b/payloads/dangling")
    os.mkfifo(f"{box.folder}/b/payloads/pipe")
    box.write("b/config/default.json", '{"a": ')
    told = box.glia("validate", folder, code=2).stderr
    for text in ("snik", "b/payloads/out is a link that leads out", "pipe is neither a file",
                 "b/payloads/dangling is a link that leads nowhere",
                 "b/config/default.json: line 1"):
        assert text in told, told
    assert "b/manifest.json:" in told
    errors = box.json("validate", folder, code=2)["errors"]
    assert any(e["path"] and e["line"] > 0 for e in errors)
    assert box.glia("run", folder, code=2).stderr.count("leads out") == 1
    assert not os.path.exists(f"{box.data}/contexts")


def test_folders_that_are_no_bundles(box):
    os.mkdir(f"{box.folder}/empty")
    assert box.reason("validate", "empty", code=2) == "no_flow_in_folder"
    box.write("bare/manifest.json", json.dumps(manifest()))
    told = box.glia("validate", "bare", code=2).stderr
    GOLDEN.says("no payloads", golden.line_of(told, "glia:"))
    box.write("b.yaml", json.dumps(manifest()))
    assert box.reason("validate", "b.yaml", code=2) == "manifest_not_json"
    os.symlink("/etc/hostname", f"{box.folder}/empty/manifest.json")
    assert box.reason("validate", "empty", code=2) == "link_leads_out"


def test_links_inside_are_followed_and_circles_are_not(box):
    folder = bundle(box)
    os.rename(f"{box.folder}/b/payloads/worker", f"{box.folder}/b/payloads/real")
    os.symlink("real", f"{box.folder}/b/payloads/worker")
    assert box.glia("validate", folder).stderr.rstrip().endswith("2 payloads)")
    os.symlink(".", f"{box.folder}/b/payloads/real/again")
    assert "folders_too_deep" in [e["reason"] for e in box.json(
        "validate", folder, code=2)["errors"]]


def test_a_manifest_file_runs_and_later_edits_do_not_reach_it(box):
    folder = bundle(box)
    run = box.glia("run", f"{folder}/manifest.json", "--run-id", "one",
                   "--set", "inputs.payload.fruit=pear")
    assert run.stdout.split() == [run.stdout.split()[0], "one", "completed"]
    assert json.loads(box.glia("job", "artifacts", "one", "sub/out.json").stdout) == {
        "fruit": "pear"}
    error = box.error("run", folder, "--input-file", "x", code=2)
    assert error["reason"] == "usage" and "--input-file" in error["message"]
    box.write("b/payloads/worker/main.py", "raise SystemExit(3)")
    same = box.glia("run", folder, "--run-id", "one", code=2)
    assert "one" in same.stderr
    assert box.glia("run", folder, code=1).stderr


def test_a_job_of_a_bundle_is_looked_into(box):
    folder = bundle(box)
    box.glia("run", folder, "--run-id", "two")
    doc = box.json("job", "status", "two")
    assert list(doc["workflow_state"]["steps"]) == ["work"]
    assert doc["steps_n"] == 1 and doc["graph_revision"] == 0 and doc["notes"] == []
    assert doc["policy_state"] == {} and doc["recovery_requires_review"] is False
    agents = {a["agent_id"]: a for a in box.json("job", "agents", "two")["agents"]}
    assert agents["work"]["state"] == {"seen": 1} and agents["work"]["processed"] == 1
    assert box.glia("job", "agents", "two", "work").stdout.split("\t")[:3] == [
        "work", "executor", "idle"]
    assert box.reason("job", "agents", "two", "x", code=3) == "no_such_agent"
    assert box.json("job", "result", "two")["agent_id"] == "sink"
    assert box.json("job", "result", "two", "work") == {"done": True}
    assert box.json("job", "dead-letters", "two") == {"dead_letters": []}
    assert box.reason("send", "two", "work", "--body", "{}", code=2) == "job_ended"
    assert "not valid JSON" in box.glia("send", "two", "work", "--body", "{", code=2).stderr


def test_what_a_run_has_left_is_listed_and_exported(box):
    folder = bundle(box)
    box.glia("run", folder, "--run-id", "three")
    os.symlink("/etc/passwd", f"{box.folder}/runs/three/link")
    box.write("runs/three/" + "n" * 120 + ".txt", "long")
    rows = [line.split("\t") for line in box.glia("job", "artifacts", "three").stdout.splitlines()]
    listed = {r[0]: r for r in rows}
    content = box.read("runs/three/sub/out.json")
    assert listed["sub/out.json"][1:3] == [str(len(content)), "application/json"]
    assert listed["sub/out.json"][4] == hashlib.sha256(content.encode()).hexdigest()
    assert "link" not in listed
    for path in ("../three/sub/out.json", "link", "sub", "/etc/passwd"):
        assert box.glia("job", "artifacts", "three", path, code=None).returncode in (2, 3)
    box.glia("job", "export", "three", "--to", "three.tar")
    with tarfile.open(f"{box.folder}/three.tar") as tar:
        names = tar.getnames()
        assert json.load(tar.extractfile("manifest.json")) == manifest()
        assert json.load(tar.extractfile("status.json"))["run_id"] == "three"
        events = [json.loads(line) for line in tar.extractfile("events.jsonl")]
        assert tar.extractfile("artifacts/sub/out.json").read().decode() == content
    assert {"result.json", "artifacts/" + "n" * 120 + ".txt"} <= set(names)
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert "exists" in box.glia("job", "export", "three", "--to", "three.tar", code=2).stderr


def test_over_http(box):
    bundle(box)
    serve(box)
    content = box.read("b/payloads/worker/main.py").encode()
    sha = hashlib.sha256(content).hexdigest()
    body = {"run_id": "four", "bundle": {"manifest": manifest(), "payloads": [
        {"path": "worker/main.py", "sha256": sha, "executable": True}]}}
    assert assert_error(
        box.ask("POST", JOBS, body), 400, "invalid")["reason"] == "blob_missing"
    assert box.ask("PUT", f"{BLOBS}/{sha}", content).status == 201
    assert box.ask("GET", f"{BLOBS}/{sha}").body == content
    assert_error(box.ask("GET", f"{BLOBS}/{'0' * 64}"), 404, "not_found")
    for path in ("../x", "/x", "a//b", "a/", "a\nb"):
        bad = json.loads(json.dumps(body))
        bad["bundle"]["payloads"][0]["path"] = path
        assert_error(box.ask("POST", JOBS, bad), 400, "invalid")
    both = {**body, "flow": {"steps": {"a": {"noop": True}}}}
    assert_error(box.ask("POST", JOBS, both), 400, "invalid")
    wrong = json.loads(json.dumps(body))
    del wrong["bundle"]["manifest"]["agents"]["entrypoints"]
    wrong["bundle"]["manifest"]["workflow"]["steps"] = [{"id": "a", "trigger_rule": "x"}]
    details = assert_error(box.ask("POST", JOBS, wrong), 400, "invalid")["details"]
    assert details and all(d["message"] for d in details)
    assert box.ask("POST", JOBS, body).status == 201
    assert box.ask("POST", JOBS, body).json["existing"] is True
    wait_for("its end", lambda: box.ask("GET", f"{JOBS}/four").json["status"] == "completed")
    listed = box.ask("GET", f"{JOBS}/four/artifacts").json
    assert [a["path"] for a in listed["artifacts"]] == ["sub/out.json"]
    answer = box.ask("GET", f"{JOBS}/four/artifacts?path=sub/out.json")
    assert answer.json == {"fruit": "apple"}
    assert answer.headers["Content-Type"] == "application/json"
    assert_error(box.ask("GET", f"{JOBS}/four/artifacts?path=../four/sub/out.json"), 400, "invalid")
    assert len(box.ask("GET", f"{JOBS}/four/agents?limit=1").json["agents"]) == 1
    after = box.ask("GET", f"{JOBS}/four/agents?after=work").json
    assert [a["agent_id"] for a in after["agents"]] == ["sink"] and after["next"] is None
    assert_error(box.ask("POST", f"{JOBS}/four/dead-letters/x/redrive"), 400, "invalid")
    assert_error(box.ask("GET", f"{JOBS}/four/messages?number=99"), 404, "not_found")


def test_with_the_python_client(box):
    folder = bundle(box)
    box.start("serve")
    box.wait_node()
    box.glia("run", folder, "--run-id", "py")
    with glia.Client(data_dir=box.data) as client:
        assert [a["agent_id"] for a in client.agents("py")] == ["work", "sink"]
        assert client.result("py")["agent_id"] == "sink"
        assert [a["path"] for a in client.artifacts("py")] == ["sub/out.json"]
        assert json.loads(client.artifact("py", "sub/out.json")) == {"fruit": "apple"}
        assert list(client.dead_letters("py")) == [] and client.redrive("py") == 0
        with pytest.raises(glia.ConflictError):
            client.send("py", "work", {"a": 1}, priority=0)
        with pytest.raises(glia.InvalidError):
            client.send("py", "work", {"a": 1}, priority=1001)


def test_requests_in_the_file_of_a_run_are_listed_and_answered(box):
    folder = bundle(box, worker=WAITER)
    box.start("serve")
    box.wait_node()
    job = box.glia("run", folder, "--run-id", "five", "--detached").stdout.strip()
    asked = wait_for("the request", lambda: box.glia("human", "list").stdout)
    assert asked.rstrip("\n").split("\t") == [job, "five", "ship", "request", "approve|reject",
                                               "ship it?"]
    assert box.json("human", "list")["requests"][0]["request_id"] == "ship"
    respond = ("human", "respond", "five")
    assert box.reason(*respond, "ship", "--decision", "maybe", code=2) == "decision_invalid"
    assert box.reason(*respond, "shop", "--decision", "approve", code=3) == "no_such_request"
    box.glia("human", "respond", job, "ship", "--decision", "approve", "--reviewer", "ann",
             "--runs-root", f"{box.folder}/runs")
    error = box.error(*respond, "ship", "--decision", "reject", code=2)
    assert error["reason"] == "request_answered" and "ann" in error["message"]
    wait_for("its end", lambda: box.json("job", "status", "five")["status"] == "completed")
    noted = box.step("five", "work")["output"]
    assert (noted["decision"], noted["reviewer"], noted["approved"]) == ("approve", "ann", True)
    assert box.glia("human", "list").stdout == ""


def test_requests_say_until_when_and_what_counts_then(box):
    extra = {"mute": {"expires_at": "2020-01-01T00:00:00+01:00"},
             "late": {"timeout_seconds": 3600.5, "default_decision": "approve"},
             "never": {"timeout_seconds": "soon"}}
    lines = [json.dumps({"type": "human_input_requested", "timestamp": "2099-01-01T00:00:00Z",
                         "payload": {"request_id": name, "prompt": "ship?", **more}})
             for name, more in extra.items()]
    box.start("serve")
    box.wait_node()
    box.glia("run", bundle(box, worker=WAITER), "--run-id", "eight", "--detached")
    wait_for("the request", lambda: box.glia("human", "list").stdout)
    with open(f"{box.folder}/runs/eight/human.jsonl", "a", encoding="utf-8") as file:
        file.write("\n" + "\n".join(lines) + "\n")
    rows = [line.split("\t") for line in box.glia("human", "list").stdout.splitlines()]
    assert {r[2]: r[5] for r in rows} == {
        "ship": "ship it?", "never": "ship?",
        "mute": "ship? (expired 2019-12-31T23:00:00.000Z)",
        "late": "ship? (until 2099-01-01T01:00:01.000Z; then: approve)"}
    told = {r["request_id"]: r for r in box.json("human", "list")["requests"]}
    assert told["mute"]["expired"] is True and told["late"]["expired"] is False
    assert told["late"]["default_decision"] == "approve" and "expires_at" not in told["never"]
    respond = ("human", "respond", "eight")
    assert box.reason(*respond, "mute", "--decision", "approve", code=2) == "request_timed_out"
    assert "human_input_received" not in box.read("runs/eight/human.jsonl")
    for name in ("late", "never", "ship"):
        box.glia(*respond, name, "--decision", "approve")
    wait_for("its end", lambda: box.json("job", "status", "eight")["status"] == "completed")


def test_messages_wait_are_sent_and_dead_ones_delivered_again(box):
    hold = f"import os, time\nwhile not os.path.exists('{box.folder}/go'): time.sleep(0.02)\n"
    lost = ("print('{\"complete_step\": true, \"emit_messages\": [{\"to\": \"nobody\", "
            "\"type\": \"x\", \"body\": {\"n\": 7}}]}')\n")
    folder = bundle(box, manifest(output_message_type=None), worker=hold + lost)
    box.start("serve")
    box.wait_node()
    box.glia("run", folder, "--run-id", "six", "--detach")
    wait_for("the worker", lambda: box.json("job", "agents", "six")["agents"][0].get("handling"))
    box.glia("send", "six", "work", "--type", "more", "--body", '{"a": [1]}')
    rows = [line.split("\t") for line in box.glia("job", "messages", "six").stdout.splitlines()]
    assert [r[1:4] for r in rows] == [["work", "runtime", "init"], ["work", "tester", "more"]]
    one = json.loads(box.glia("job", "messages", "six", "--number", rows[1][0]).stdout)
    assert one["body"] == {"a": [1]} and one["envelope"]["type"] == "more"
    assert box.reason("send", "six", "nobody", code=3) == "no_such_agent"
    box.write("go", "")
    dead = wait_for("the dead letter",
                    lambda: box.json("job", "dead-letters", "six")["dead_letters"])
    assert (dead[0]["to"], dead[0]["message"]["body"]) == ("nobody", {"n": 7}) and dead[0]["reason"]
    told = box.glia("job", "dead-letters", "six", "--redrive", "all", code=None)
    assert told.returncode in (2, 3) and told.stderr  # nobody is still nobody, or the job has ended
    box.glia("job", "cancel", "six", code=None)


def test_jobs_of_bundles_are_removed_with_all_they_had(box):
    folder = bundle(box)
    box.glia("run", folder, "--run-id", "seven")
    box.glia("job", "rm", "seven", "--yes")
    assert box.jobs() == []
    box.glia("run", folder, "--run-id", "seven")
    assert box.json("job", "agents", "seven")["agents"][0]["processed"] == 1


HOLDER = """#!/usr/bin/env python3
import json, os, time
run = os.path.join(os.environ["MN_RUNS_ROOT"], os.environ["MN_RUN_ID"])
while not os.path.exists(os.path.join(run, "go")):
    time.sleep(0.02)
print(json.dumps({"complete_step": {"done": True}}))
"""


def test_a_message_that_is_handled_is_listed_as_that_and_waits_no_more(box):
    serve(box)
    doc = manifest()
    doc["runtime"]["initial_inputs"]["work"].append({"fruit": "pear"})
    job = box.json("run", bundle(box, doc, HOLDER), "--run-id", "one", "--detach")["job_id"]

    def messages(*words):
        return box.json("job", "messages", job, *words)["messages"]

    wait_for("the worker", lambda: [m["status"] for m in messages()][:1] == ["handling"])
    first, second = messages()
    assert (first["status"], second["status"]) == ("handling", "queued")
    assert [m["status"] for m in messages("--agent", "work")] == ["handling", "queued"]
    assert messages("--number", str(first["number"]))[0]["status"] == "handling"
    assert "handling" in box.glia("job", "messages", job).stdout
    work = box.json("job", "agents", job)["agents"][0]
    assert (work["agent_id"], work["handling"], work["waiting"]) == ("work", first["number"], 1)
    box.write("runs/one/go", "")
    wait_for("the end", lambda: box.json("job", "status", job)["status"] == "completed")
    assert "handling" not in [m["status"] for m in messages()]


def test_events_tell_of_agents_and_messages_in_the_table(box):
    box.glia("run", bundle(box), "--run-id", "one")
    rows = [line.split("\t")[2:] for line in box.glia("job", "events", "one").stdout.splitlines()]
    for kind, agent, word in (("message_queued", "sink", "2"), ("route_selected", "work", "sink"),
                              ("message_acked", "work", "1"),
                              ("executor_lease_requested", "work", "default")):
        text, = [row[3] for row in rows if row[:2] == [kind, agent] and word in row[3].split()]
        GOLDEN.says(f"{kind} of {agent}", text)
    assert not [row for row in rows if row[1].startswith("@")]
    silent = {row[0] for row in rows if row[0].startswith(("message_", "route_")) and not row[3]}
    assert not silent
