"""How a worker of a bundle runs: its workspace, files, environment, and what its stdout means."""

import gzip
import json
import os
import re
import time
from datetime import datetime

import pytest

import golden
from bundlework import Bundle, Runner, get, item
from glianode import Box, wait_for

GOLDEN = golden.of(__file__)

# Writes down everything a worker can see.
LOOK = """
def tree(top):
    return sorted(os.path.relpath(os.path.join(w, n), top)
                  for w, _, names in os.walk(top) for n in names)
def is_private(path):
    # is it, or a folder above it, closed to others?
    return path != "/" and (os.stat(path).st_mode & 0o077 == 0 or is_private(os.path.dirname(path)))
workspace = os.path.dirname(os.environ["MN_INPUT_FILE"])
with open(os.environ["MN_BODY_FILE"], "rb") as file:
    raw = file.read()
note(os.environ["MN_AGENT_ID"] + ".look", {
    "env": dict(os.environ), "argv": sys.argv, "cwd": os.getcwd(), "workspace": workspace,
    "tree": tree(workspace), "body": body, "context": context, "message": load("MN_MESSAGE_FILE"),
    "raw": raw.hex(), "is_private": is_private(workspace)})
"""


def look(ran, agent):
    """What this agent saw, at each run."""
    return ran.lines(f"{agent}.look")


@pytest.fixture(name="seen", scope="module")
def make_seen(tmp_path_factory):
    """One job with many kinds of workers."""
    box = Box(tmp_path_factory.mktemp("seen"), OF_THE_NODE="node", PASSED="from-node", OVER="node",
              GLIA_TEST_SECRET_TOKEN="hidden")
    runner = Runner(box)
    b = Bundle("seen")
    b.files["payloads/tools/one.txt"] = "one"
    b.files["payloads/tools/deep/two.txt"] = "two"
    b.files["scenario.json"] = json.dumps({"story": 1})
    b.files["config/default.json"] = json.dumps({"a": {"b": 1, "c": 2}, "list": [1, 2]})
    b.files["config/overwrite.json"] = json.dumps({"a": {"b": 5}, "list": [3]})
    b.worker("first", LOOK + "say(first=1)", output_message_type="went",
             environment={"NUMBER": 7, "FLAG": True, "TEXT": "t", "OVER": "bundle",
                          "PASSED": "bundle",
                          "MN_WORKFLOW_STEP_ID": "another"},
             pass_env=["PASSED", "NOT_THERE"], beacon_enabled=True, beacon_interval_ms=2000,
             beacon_timeout_ms=9000, timeout_seconds=25,
             command=["python3", "first.py", "{input_file}", "{context_file}", "{message_file}",
                      "{body_file}", "{workdir}", "{job_id}", "x-{agent_id}-y"])
    b.worker("second", LOOK + "print('not JSON at all'); print('on stderr', file=sys.stderr)",
             ["first"],
             upload_path=None, upload_paths=[{"source": "tools", "target": "kit"},
                                             {"source": "second.py", "target": "kit/second.py"},
                                             {"source": "tools/one.txt", "target": "uno.txt"}],
             workdir="/sandbox/job/kit")
    b.worker("third",
             LOOK + "say(outputs={'v': 1}, artifacts=[], metrics={'m': 2}, status='completed')",
             ["second"], upload_as="renamed/third.py",
             command="exec python3 renamed/third.py 'a b'")
    b.worker("fourth", LOOK + "say(x=4)", ["third"], sandbox_upload_path="/mnt/virtual",
             workdir="/mnt/virtual")
    b.worker("fifth", LOOK, ["fourth"], workdir="/usr",
             command='exec python3 "$(dirname "$MN_INPUT_FILE")/fifth.py"')
    b.sink()
    b.edge("first", "second", "went").chain("second", "third", "fourth", "fifth", "sink")
    b.seed("first",
           {"body": {"hello": "wörld", "_mn_step": {"keep": 1, "run_inputs": 2, "step_input": 3}},
                     "headers": {"x-trace": "t1"}, "priority": 5, "correlation_id": "corr-1"})
    for node in b.flow["nodes"]:
        if node["config"].get("upload_path", "") is None:
            del node["config"]["upload_path"]
    path = b.write(box.folder + "/bundle")
    yield runner.run(path, run_id="seen-1")
    box.close()


@item("B-7.2-1", "B-7.2-2", "B-7.2-3", "B-2.2-1")
def test_the_files_of_a_worker(seen):
    one = look(seen, "first")[0]
    env = one["env"]
    for name, path in [("MN_INPUT_FILE", "mirror_neuron_input.json"),
                       ("MN_MESSAGE_FILE", "mirror_neuron_message.json"),
                       ("MN_BODY_FILE", "mirror_neuron_body.bin"),
                       ("MN_CONTEXT_FILE", "mirror_neuron_context.json")]:
        assert env[name] == os.path.join(one["workspace"], path)
    assert one["body"]["hello"] == "wörld"
    assert one["message"]["body"] == one["body"]
    assert json.loads(bytes.fromhex(one["raw"])) == one["body"]
    assert sorted(one["message"]) == ["artifacts", "body", "envelope", "headers", "stream"]


@item("B-5.1-1", "B-4-6", "B-4-7")
def test_the_envelope_of_a_seed_and_of_what_follows(seen):
    seed = look(seen, "first")[0]["message"]
    envelope = seed["envelope"]
    assert envelope["spec_version"] == "mn-msg/1" and envelope["job_id"] == seen.job_id
    assert envelope["from"] == "runtime" and envelope["to"] == "first"
    assert envelope["type"] == "init" and envelope["class"] == "command"
    assert envelope["correlation_id"] == "corr-1" and envelope["priority"] == 5
    assert envelope["attempt"] == 1 and envelope["message_id"]
    assert envelope["content_type"] == "application/json"
    assert envelope["content_encoding"] == "identity"
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", envelope["timestamp"])
    later = look(seen, "second")[0]["message"]["envelope"]
    assert later["from"] == "first" and later["to"] == "second" and later["type"] == "went"
    assert later["message_id"] != envelope["message_id"]


@item("B-5.1-2", "B-5.1-3", "B-5.2-1", "B-5.2-2")
def test_what_a_message_takes_over(seen):
    chain = [look(seen, name)[0]["message"] for name in ("first", "second", "third", "fourth")]
    for earlier, later in zip(chain, chain[1:]):
        assert later["envelope"]["correlation_id"] == "corr-1"
        assert later["envelope"]["causation_id"] == earlier["envelope"]["message_id"]
        assert later["envelope"]["class"] == "command"
        assert later["headers"]["x-trace"] == "t1"
    for name, message in zip(("first", "second", "third", "fourth"), chain):
        assert message["headers"]["mn.workflow.step_id"] == name
        assert message["headers"].get("mn.workflow.attempt_id",
                                      f"{name}:attempt:1") == f"{name}:attempt:1"


@item("B-7.2-4", "B-7.2-5", "B-7.2-6")
def test_the_context(seen):
    context = look(seen, "second")[0]["context"]
    assert context["job_id"] == seen.job_id and context["agent_id"] == "second"
    assert context["agent_type"] == "executor" and context["template_type"] == "generic"
    assert context["agent_state"] == {} and context["timestamp"]
    workflow = context["workflow"]
    assert workflow["step_id"] == "second" and workflow["attempt"] == 1
    assert workflow["attempt_id"] == "second:attempt:1" and workflow["run_id"]
    assert workflow["idempotency_key"] and workflow["deadline_at"]
    assert workflow["heartbeat_deadline_at"]
    assert "template_id" not in workflow and "region_id" not in workflow


@item("B-7.3-1", "B-7.3-6", "B-2.2-7", "B-2.2-8")
def test_whose_variables_win(seen):
    env = look(seen, "first")[0]["env"]
    assert env["OF_THE_NODE"] == "node"
    assert (env["NUMBER"], env["FLAG"], env["TEXT"]) == ("7", "true", "t")
    assert env["OVER"] == "bundle"
    assert env["PASSED"] == "from-node" and "NOT_THERE" not in env
    assert env["MN_WORKFLOW_STEP_ID"] == "first"
    assert "hidden" not in json.dumps(env)


@item("B-7.3-2", "B-7.3-5", "B-11-7", "B-4-4")
def test_the_names_of_a_worker(seen):
    for name in ("first", "second"):
        one = look(seen, name)[0]
        env = one["env"]
        assert env["MN_JOB_ID"] == seen.job_id and env["MN_AGENT_ID"] == name
        assert env["MN_AGENT_TYPE"] == "executor" and env["MN_AGENT_TEMPLATE"] == "generic"
        assert os.path.realpath(env["MN_WORKDIR"]) == os.path.realpath(one["cwd"])
        assert env["MN_BODY_CONTENT_TYPE"] == "application/json"
        assert env["MN_BODY_CONTENT_ENCODING"] == "identity"
        assert env["MN_RUN_ID"] == "seen-1" and env["MN_RUNS_ROOT"] == seen.box.env["MN_RUNS_ROOT"]
        assert env["MN_ARTIFACTS_JSON"] == "[]"
        assert re.fullmatch(r"seen-1:\d+", env["MN_ATTEMPT_ID"])
        assert json.loads(env["MN_ALLOCATION_JSON"]) == {"devices": [], "ports": [], "volumes": [],
                                                         "runtime_driver": "host_local"}


@item("B-7.3-3", "B-15-3")
def test_the_names_of_an_attempt(seen):
    one = look(seen, "second")[0]
    env, workflow = one["env"], one["context"]["workflow"]
    assert env["MN_WORKFLOW_STEP_ID"] == "second" and env["MN_WORKFLOW_ATTEMPT"] == "1"
    assert env["MN_WORKFLOW_ATTEMPT_ID"] == "second:attempt:1"
    for name in ("RUN_ID", "DEADLINE_AT", "HEARTBEAT_DEADLINE_AT", "IDEMPOTENCY_KEY"):
        assert env[f"MN_WORKFLOW_{name}"] == workflow[name.lower()], name


@item("B-7.3-4")
def test_the_names_of_beacons(seen):
    env = look(seen, "first")[0]["env"]
    assert env["MN_AGENT_BEACON_STDOUT_PREFIX"] == "__MN_AGENT_BEACON__"
    assert env["MN_AGENT_BEACON_INTERVAL_MS"] == "2000"
    assert env["MN_AGENT_BEACON_TIMEOUT_MS"] == "9000"
    assert env["MN_AGENT_BEACON_REQUIRED"] == "false"
    assert env["MN_AGENT_BEACON_JOB_ID"] == seen.job_id
    assert env["MN_AGENT_BEACON_AGENT_ID"] == "first"
    assert "MN_AGENT_BEACON_INTERVAL_MS" not in look(seen, "second")[0]["env"]


@item("B-7.3-7")
def test_the_names_of_the_core(seen):
    env = look(seen, "first")[0]["env"]
    assert env["GLIA_JOB_ID"] == seen.job_id
    assert env["GLIA_ATTEMPT_ID"] != env["MN_ATTEMPT_ID"]


@item("B-4-2", "B-4-3")
def test_configuration_and_scenario(seen):
    env = look(seen, "third")[0]["env"]
    config = json.loads(env["MN_BLUEPRINT_CONFIG_JSON"])
    assert config["a"] == {"b": 5, "c": 2} and config["list"] == [3]
    assert config["identity"]["run_id"] == "seen-1"
    assert config["outputs"]["run_root"] == seen.box.env["MN_RUNS_ROOT"]
    assert json.loads(env["MN_BLUEPRINT_SCENARIO_JSON"]) == {"story": 1}


@item("B-2.2-3")
def test_placeholders_in_a_command(seen):
    one = look(seen, "first")[0]
    env = one["env"]
    assert one["argv"][1:] == [env["MN_INPUT_FILE"], env["MN_CONTEXT_FILE"], env["MN_MESSAGE_FILE"],
                               env["MN_BODY_FILE"], env["MN_WORKDIR"], seen.job_id, "x-first-y"]


@item("B-2.2-2", "B-2.2-4")
def test_a_command_as_text_and_an_upload_under_another_name(seen):
    one = look(seen, "third")[0]
    assert one["argv"] == ["renamed/third.py", "a b"]
    assert "renamed/third.py" in one["tree"] and "third.py" not in one["tree"]


@item("B-2.2-5", "B-2.2-6")
def test_uploads_and_the_working_folder(seen):
    one = look(seen, "second")[0]
    assert {"kit/one.txt", "kit/deep/two.txt", "kit/second.py", "uno.txt"} <= set(one["tree"])
    assert os.path.realpath(one["cwd"]) == os.path.realpath(os.path.join(one["workspace"], "kit"))
    four = look(seen, "fourth")[0]
    assert os.path.realpath(four["cwd"]) == os.path.realpath(four["workspace"])


@item("B-2.2-25")
def test_a_working_folder_outside(seen):
    one = look(seen, "fifth")[0]
    assert one["cwd"] == "/usr" and one["env"]["MN_WORKDIR"] == "/usr"


@item("B-5.2-3")
def test_the_headers_of_an_attempt(seen):
    headers = {k[len("mn.workflow."):]: v for k,
               v in look(seen, "second")[0]["message"]["headers"].items()
               if k.startswith("mn.workflow.")}
    workflow = look(seen, "second")[0]["context"]["workflow"]
    for name in ("run_id", "step_id", "attempt_id", "attempt", "deadline_at",
                 "heartbeat_deadline_at",
                 "idempotency_key"):
        assert headers[name] == workflow[name], name
    assert headers["timeout_seconds"] == 300 and headers["heartbeat_timeout_ms"] == 300000
    assert headers["source_step_id"] == "first"


@item("B-7.3-9")
def test_the_folder_of_a_job(seen):
    places = {look(seen, name)[0]["env"]["MN_JOB_DATA_DIR"]
              for name in ("first", "second", "third")}
    assert len(places) == 1 and os.path.isdir(places.pop())
    env = look(seen, "first")[0]["env"]
    assert "MN_GRPC_TARGET" in env and env["MN_JOB_DATA_ACCESS"]
    assert env["MN_JOB_DATA_GENERATION"] == "1"


@item("B-13-5")
def test_where_a_message_is(seen):
    message = look(seen, "third")[0]["message"]["envelope"]["message_id"]
    mine = [e["type"] for e in seen.events if get(e, "message_id") == message]
    kinds = ["message_queued", "agent_message_received", "message_acked"]
    assert [k for k in mine if k in kinds] == kinds, seen


@item("B-7.1-1")
def test_a_workspace_is_private_and_goes(seen):
    places = set()
    for name in ("first", "second", "third", "fourth"):
        one = look(seen, name)[0]
        places.add(one["workspace"])
        assert one["is_private"]
        wait_for("the workspace to go", lambda p=one["workspace"]: not os.path.exists(p))
    assert len(places) == 4


@item("B-7.4-12", "B-7.4-2", "B-2.2-9", "B-2.2-11")
def test_the_default_payload(seen):
    body = look(seen, "second")[0]["body"]
    assert body["agent_id"] == "first"
    sandbox = body["sandbox"]
    assert {"exit_code", "runner_exit_code", "stdout", "stderr", "logs", "raw_output",
            "sandbox_name",
            "remote_dir", "runner", "node_name", "attempts", "lease"} <= set(sandbox), sandbox
    assert json.loads(sandbox["stdout"]) == {"first": 1} and sandbox["exit_code"] == 0
    assert sandbox["runner"] == "host_local" and sandbox["attempts"] == 1
    lease = sandbox["lease"]
    assert lease["pool"] == "default" and lease["slots"] == 1 and lease["lease_id"]
    assert lease["queue_wait_ms"] >= 0
    third = look(seen, "third")[0]["body"]["sandbox"]
    assert third["stdout"].strip() == "not JSON at all" and third["stderr"].strip() == "on stderr"
    assert look(seen, "third")[0]["message"]["envelope"]["type"] == "executor_result"


@item("B-7.4-13", "B-7.4-14")
def test_the_shape_of_the_sdk(seen):
    body = look(seen, "fourth")[0]["body"]
    assert body["outputs"] == {"v": 1} and body["artifacts"] == [] and body["metrics"] == {"m": 2}
    assert body["status"] == "completed" and body["agent_id"] == "third" and "sandbox" not in body
    assert body["_mn_step"] == {"keep": 1}
    assert look(seen, "second")[0]["body"]["_mn_step"] == {"keep": 1}


@item("B-7.4-1", "B-7.4-11", "B-7.5-1", "B-2.1-5")
def test_what_is_not_json_is_ignored(seen):
    assert set(seen.statuses.values()) == {"completed"}


@item("B-13-1", "B-13-2", "B-8-1")
def test_events_and_ledger_of_a_job(seen):
    order = seen.order("job_validated", "job_scheduled", "job_running", "job_completed")
    assert order == ["job_validated", "job_scheduled", "job_running", "job_completed"], seen
    for event in seen.events:
        assert event["type"] and event["timestamp"] and event["job_id"] == seen.job_id
    step = seen.steps["first"]
    assert step["attempt_count"] == 1 and step["terminal_outcome"] == "success"
    assert step["started_at"] and step["ended_at"] and "output" in step
    done = [e for e in seen.of("sandbox_job_completed")]
    assert [get(e, "agent_id") for e in done] == ["first", "second", "third", "fourth", "fifth"]
    assert {get(e, "exit_code") for e in done} == {0}


# ---- what a worker says ----

def small(runner, tmp_path, bundle, *args, **options):
    return runner.run(bundle.write(tmp_path / "bundle"), *args, **options)


@item("B-7.4-9", "B-7.4-10", "B-7.4-4", "B-13-3", "B-8.5-4")
def test_the_order_of_effects(served, tmp_path):
    b = Bundle("order").worker("a", """
say(events=[{"type": "one", "payload": {"n": 1}}, {"type": 5}, "text",
            {"type": "two", "payload": {"n": 2}}, {"type": "no_payload"}],
    emit_messages=[{"type": "extra", "body": {"n": 3}}], next_state={"n": 4})
""", output_message_type="usual").worker("b", """
note("types", load("MN_MESSAGE_FILE")["envelope"]["type"])
seen = state.get("seen", 0) + 1
last = {"complete_step": True, "emit_messages": [{"type": "done", "body": {}}]}
say(next_state={"seen": seen}, **(last if seen == 2 else {}))
""", ["a"], workflow_complete_step=False, output_message_type=None)
    b.ends("b").edge("a", "b", "usual").edge("a", "b", "extra").seed("a", {})
    ran = small(served, tmp_path, b)
    assert ran.lines("types") == ["usual", "extra"]
    kinds = ("sandbox_job_completed", "one", "two", "workflow_step_completed", "route_selected")
    mine = [e["type"] for e in ran.events if e["type"] in kinds
            and "a" in (get(e, "agent_id"), get(e, "step_id"), get(e, "from"), get(e, "from_node"))]
    assert mine[:4] == ["sandbox_job_completed", "one", "two", "workflow_step_completed"], ran
    assert get(ran.one("two"), "n") == 2 and get(ran.one("two"), "agent_id") == "a"


@item("B-7.4-5")
@pytest.mark.parametrize("said, output", [("True", None), ('{"v": 7}', {"v": 7}), ("[1]", [1]),
                                          ('"text"', "text")])
def test_complete_step(served, tmp_path, said, output):
    b = Bundle("complete").worker("a", f"say(complete_step={said})",
                                       output_message_type="done").ends("a")
    ran = small(served, tmp_path, b.seed("a", {}))
    if output is None:
        assert ran.steps["a"]["output"]["sandbox"]["exit_code"] == 0, ran
    else:
        assert ran.steps["a"]["output"] == output, ran


@item("B-7.4-5", "B-7.4-11")
@pytest.mark.parametrize("said", ["None", "False"])
def test_no_complete_step(served, tmp_path, said):
    """null and false say nothing: the step completes by itself."""
    b = Bundle("implicit").worker("a", f"say(complete_step={said})",
                                       output_message_type="done").ends("a")
    ran = small(served, tmp_path, b.seed("a", {}))
    assert ran.steps["a"]["output"]["agent_id"] == "a", ran


@item("B-7.4-8")
@pytest.mark.parametrize("name", ["complete_job", "complete_job?"])
def test_complete_job_fails_the_attempt(served, tmp_path, name):
    b = Bundle("old").worker("a", f"say(**{{{name!r}: True}})").ends("a").seed("a", {})
    ran = small(served, tmp_path, b, code=1)
    assert ran.statuses == {"a": "failed"} and "complete_job" in json.dumps(ran.steps["a"]), ran


@item("B-7.4-7", "B-5.3-4")
def test_messages_in_order_and_straight(served, tmp_path):
    b = Bundle("straight").worker("a", """
say(emit_messages=[{"to": "b", "type": "t", "payload": {"n": 1}},
                   {"type": "along", "body": {"n": 2}, "headers": {"h": "1"}, "class": "event"},
                   {"to": "b", "type": "t", "body_base64": "aGVsbG8=",
                    "content_type": "text/plain"},
                   {"to": "b", "type": "t", "body": {"n": 4}, "correlation_id": "mine",
                    "causation_id": "c"}])
""", output_message_type=None).worker("b", """
message = load("MN_MESSAGE_FILE")
with open(os.environ["MN_BODY_FILE"], "rb") as file:
    note("got", [message["envelope"], message["headers"], file.read().decode()])
seen = state.get("seen", 0) + 1
said = {"next_state": {"seen": seen}}
if seen == 4:
    said |= {"complete_step": True, "emit_messages": [{"type": "done", "body": {}}]}
say(**said)
""", ["a"], workflow_complete_step=False, output_message_type=None)
    b.ends("b").edge("a", "b", "along").seed("a", {})
    ran = small(served, tmp_path, b)
    one, two, three, four = ran.lines("got")
    assert json.loads(one[2]) == {"n": 1} and json.loads(two[2]) == {"n": 2}
    assert three[2] == "hello" and three[0]["content_type"] == "text/plain"
    assert two[1]["h"] == "1" and two[0]["class"] == "event"
    assert four[0]["correlation_id"] == "mine" and four[0]["causation_id"] == "c"


@item("B-5.3-5")
def test_a_message_to_nobody_is_a_dead_letter(served, tmp_path):
    b = Bundle("dead").worker("a", "say(emit_messages=[{'to': 'nobody', 'type': 't', 'body': 1}])",
                              output_message_type="done").ends("a").seed("a", {})
    ran = small(served, tmp_path, b)
    assert "nobody" in json.dumps(ran.one("dead_letter")), ran
    dead = served.box.json("job", "dead-letters", ran.run_id)
    assert "nobody" in json.dumps(dead), dead


@item("B-2.2-10")
def test_null_as_output_type_sends_nothing(served, tmp_path):
    b = Bundle("silent").worker("a", "say(emit_messages=[{'type': 'done', 'body': {'n': 1}}])",
                                output_message_type=None).sink().edge("a", "sink", "*").seed("a",
                                                                                             {})
    ran = small(served, tmp_path, b)
    assert ran.result["output"]["count"] == 1
    assert not ran.of("aggregator_received", count=2), ran
    assert "executor_result" not in json.dumps(ran.result)


@item("B-7.5-2", "B-7.5-4")
def test_after_a_failure_nothing_is_acted_on(served, tmp_path):
    b = Bundle("bad").worker("a", """
say(events=[{"type": "never", "payload": {}}], complete_step=True, next_state={"x": 1})
note("ran", 1)
sys.exit(3)
""", max_attempts=3).ends("a").seed("a", {})
    b.flow["steps"][0]["control"] = {"retry": {"max_attempts": 1}}
    ran = small(served, tmp_path, b, code=1)
    assert not ran.of("never") and ran.statuses == {"a": "failed"}, ran
    assert len(ran.lines("ran")) == 1, "it did not look transient"
    assert ran.status["status"] == "failed"
    ran.one("job_failed")


@item("B-7.5-3", "B-10-4")
@pytest.mark.parametrize("words", ["H2 Protocol Error", "Connection REFUSED", "artifact_not_ready",
                                   "deadline exceeded", "tls close_notify"])
def test_transient_failures_are_tried_again_under_the_same_lease(served, tmp_path, words):
    b = Bundle("shaky").worker("a", f"""
message = load("MN_MESSAGE_FILE")["envelope"]["message_id"]
note("ran", [os.environ["MN_JOB_ID"], message, time.time()])
with open(os.path.join(folder, "ran")) as file:
    if len(file.readlines()) < 3:
        print({words!r})
        sys.exit(9)
say(x=1)
""", max_attempts=3, retry_backoff_ms=100, output_message_type="done").ends("a").seed("a", {})
    b.flow["steps"][0]["control"] = {"retry": {"max_attempts": 1}}
    ran = small(served, tmp_path, b)
    runs = ran.lines("ran")
    assert len(runs) == 3 and len({run[0] for run in runs}) == 1 and len({run[1]
                                                                          for run in runs}) == 1
    assert runs[1][2] - runs[0][2] >= 0.1 and runs[2][2] - runs[1][2] >= 0.2
    assert ran.steps["a"]["attempt_count"] == 1
    assert ran.steps["a"]["output"]["sandbox"]["attempts"] == 3
    ran.one("executor_lease_acquired", agent_id="a")
    ran.one("executor_lease_released", agent_id="a")


@item("B-7.5-5", "B-2.2-13")
def test_a_time_out_ends_the_group(served, tmp_path):
    b = Bundle("slow").worker("a", """
import subprocess
child = subprocess.Popen(["sleep", "600"])
note("pids", [os.getpid(), child.pid])
time.sleep(600)
""", timeout_seconds=3, control={"timeout_seconds": 60}).ends("a").seed("a", {})
    ran = small(served, tmp_path, b, code=1)
    assert ran.status["error"]["code"] == "worker_timed_out", ran.status["error"]
    GOLDEN.says("time-out", ran.steps["a"]["terminal_reason"])
    for pid in ran.lines("pids")[0]:
        wait_for("the group to end", lambda p=pid: not os.path.exists(f"/proc/{p}"))


@item("B-7.5-6", "B-16-3")
def test_cancelling_ends_every_worker(served, tmp_path):
    b = Bundle("cancel").worker("a", "note('pid', os.getpid()); time.sleep(600)")
    b = b.ends("a").seed("a", {})
    process = served.start(b.write(tmp_path / "bundle"))
    served.wait_file(process.run_id, "pid")
    served.box.glia("job", "cancel", process.run_id)
    ran = served.finish(process, code=1)
    assert ran.status["status"] == "cancelled", ran
    ran.one("job_cancelled")
    wait_for("the worker to end", lambda: not os.path.exists(f"/proc/{ran.lines('pid')[0]}"))


@item("B-7.5-7")
def test_a_worker_that_will_not_end(served, tmp_path):
    b = Bundle("stubborn").worker("a", """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
note("pid", os.getpid())
while True:
    time.sleep(1)
""")
    process = served.start(b.ends("a").seed("a", {}).write(tmp_path / "bundle"))
    served.wait_file(process.run_id, "pid")
    served.box.glia("job", "cancel", process.run_id)
    begin = time.monotonic()
    ran = served.finish(process, code=1)
    wait_for("the worker to end", lambda: not os.path.exists(f"/proc/{ran.lines('pid')[0]}"))
    assert 1 < time.monotonic() - begin < 40


@item("B-7.5-6", "B-13-1")
def test_pausing_ends_workers_and_resuming_runs_them_again(served, tmp_path):
    b = Bundle("pause").worker("a", """
note("pid", os.getpid())
with open(os.path.join(folder, "pid")) as file:
    if len(file.readlines()) == 1:
        time.sleep(600)
say(x=1)
""", safe_to_retry=True, output_message_type="done")
    b = b.ends("a").seed("a", {})
    process = served.start(b.write(tmp_path / "bundle"))
    served.wait_file(process.run_id, "pid")
    served.box.glia("job", "pause", process.run_id)
    ran = served.finish(process, code=6)
    assert ran.status["status"] == "paused", ran
    wait_for("the worker to end", lambda: not os.path.exists(f"/proc/{ran.lines('pid')[0]}"))
    served.box.glia("job", "resume", process.run_id)
    ran = served.finish(served.start(b.write(tmp_path / "bundle"), run_id=process.run_id))
    assert ran.status["status"] == "completed" and len(ran.lines("pid")) == 2, ran
    assert ran.order("job_pausing", "job_paused", "job_resumed") == ["job_pausing", "job_paused",
                                                                     "job_resumed"], ran


@item("B-2.2-17")
def test_a_failure_message_instead_of_failing(served, tmp_path):
    b = Bundle("instead").worker("a", "sys.exit('the disk is gone')",
                                      failure_message_type="done").ends("a")
    ran = small(served, tmp_path, b.seed("a", {}))
    told = ran.result["output"]["last_message"]
    told = told.get("body", told)
    assert told["agent_id"] == "a" and told["status"] == "failed", told
    assert told["outputs"]["failed_agent_id"] == "a" and told["outputs"]["fallback_used"] is True
    ran.one("executor_fallback_dispatched")


@item("B-2.2-19", "B-H-5")
def test_stdout_is_cut_at_its_limit(served, tmp_path):
    b = Bundle("chatty").worker("a", "print('x' * 5000)", max_output_bytes=1000,
                                     output_message_type="done").ends("a").seed("a", {})
    ran = small(served, tmp_path, b)
    stdout = ran.steps["a"]["output"]["sandbox"]["stdout"]
    assert stdout.startswith("xxxx") and len(stdout) < 1500, len(stdout)
    assert "stdout cut" in stdout, stdout[-200:]
    ran.one("sandbox_output_truncated", agent_id="a")


@item("B-2.2-20")
def test_a_delay_before_the_first_message(served, tmp_path):
    b = Bundle("late").worker("a", "note('at', time.time())", startup_delay_ms=600,
                                   output_message_type="done").ends("a").seed("a", {})
    ran = small(served, tmp_path, b)
    running = [e for e in ran.events if e["type"] == "job_running"][0]["timestamp"]
    begun = datetime.fromisoformat(running.replace("Z", "+00:00")).timestamp()
    assert ran.lines("at")[0] - begun >= 0.55


@item("B-2.2-23")
def test_an_absent_runner_is_said(served, tmp_path):
    b = Bundle("plain").worker("a", "say(x=1)", output_message_type="done").ends("a").seed("a", {})
    del b.flow["nodes"][0]["config"]["runner_module"]
    ran = small(served, tmp_path, b)
    assert "names no runner_module" in json.dumps(ran.status.get("notes")), ran.status


@item("B-5.1-4", "B-7.2-3")
def test_a_packed_body(served, tmp_path):
    b = Bundle("gzip").worker("a", "say(emit_messages=[{'type': 'packed', 'body': {'n': 1}, "
                                   "'content_encoding': 'gzip'}])", output_message_type=None)
    b.worker("b", LOOK + "emit(('done', {}))", ["a"],
             output_message_type=None)
    b.ends("b").edge("a", "b", "packed").seed("a", {})
    one = look(small(served, tmp_path, b), "b")[0]
    assert one["env"]["MN_BODY_CONTENT_ENCODING"] == "gzip"
    assert json.loads(gzip.decompress(bytes.fromhex(one["raw"]))) == {"n": 1}
    assert one["body"] == {"n": 1}


def test_an_answer_that_is_too_long_fails_its_attempt(served, tmp_path):
    """To take it for a text would be to forget what it says."""
    b = Bundle("long").worker("a", "emit(('big', 'y' * 1100000))", output_message_type=None,
                              max_attempts=1)
    b.worker("b", "say()", ["a"]).ends("b").edge("a", "b", "big").seed("a", {})
    ran = small(served, tmp_path, b, code=1)
    assert ran.statuses["a"] == "failed", ran
    assert "max_output_bytes is 1048576" in ran.steps["a"]["terminal_reason"], ran


@item("B-5.1-5")
def test_a_large_body_arrives_whole(served, tmp_path):
    b = Bundle("large").worker("a",
                               "emit(('big', {'text': 'y' * 700000}))",
                               output_message_type=None)
    b.worker("b", "note('size', [len(body['text']), set(body['text']) == {'y'}]);"
                  "emit(('done', {}))", ["a"],
             output_message_type=None)
    b.ends("b").edge("a", "b", "big").seed("a", {})
    assert small(served, tmp_path, b).lines("size") == [[700000, True]]


@item("B-7.1-3", "B-7.1-1")
def test_a_worker_that_changes_its_uploads_changes_nothing(served, tmp_path):
    b = Bundle("spoil").worker("a", """
with open("data.txt") as file:
    note("read", file.read())
with open("data.txt", "w") as file:
    file.write("spoilt")
if len(open(os.path.join(folder, "read")).readlines()) == 2:
    say(complete_step=True, emit_messages=[{"type": "done", "body": {}}])
""", upload_paths=[{"source": "a.py", "target": "a.py"},
                   {"source": "data.txt", "target": "data.txt"}],
                               workflow_complete_step=False, output_message_type=None)
    b.files["payloads/data.txt"] = "good"
    ran = small(served, tmp_path, b.ends("a").seed("a", {}, {}))
    assert ran.lines("read") == ["good", "good"]


# ---- beacons ----

@item("B-7.6-1", "B-7.6-3")
def test_beacons_keep_a_step_alive(served, tmp_path):
    b = Bundle("beacons").worker("a", "time.sleep(14)", beacon_enabled=True,
                                      beacon_interval_ms=300,
                                      beacon_timeout_ms=10000,
                                 output_message_type="done").ends("a").seed("a", {})
    ran = small(served, tmp_path, b)
    beacons = ran.of("agent_beacon", agent_id="a")
    told = [e["payload"]["status"] for e in beacons]
    assert told[0] == "started" and told[-1] == "completed" and told.count("working") >= 3, told
    payload = beacons[1]["payload"]
    assert payload["schema"] == "mn.agent.beacon.v1" and payload["source"] == "runtime"
    assert payload["interval_ms"] == 300 and payload["timeout_ms"] == 10000
    assert payload["sequence"] >= 1


@item("B-7.6-3", "B-8.4-3")
def test_without_beacons_the_heartbeat_deadline_ends_it(served, tmp_path):
    b = Bundle("silent").worker("a", "note('pid', os.getpid()); time.sleep(600)",
                                     beacon_timeout_ms=3000).ends("a").seed("a", {})
    b.flow["steps"][0]["control"] = {"retry": {"max_attempts": 1}}
    ran = small(served, tmp_path, b, code=1)
    ran.one("workflow_step_attempt_timed_out", step_id="a")
    wait_for("the worker to end", lambda: not os.path.exists(f"/proc/{ran.lines('pid')[0]}"))


@item("B-7.6-2")
def test_beacons_and_events_among_the_lines_of_stdout(served, tmp_path):
    b = Bundle("lines").worker("a", """
print("__MN_AGENT_BEACON__" + json.dumps({"status": "halfway", "message": "still here"}))
print("__MN_EVENT__" + json.dumps({"type": "found_it", "payload": {"n": 5}}), flush=True)
wait_file("go")
say(x=1)
""", beacon_enabled=True, output_message_type="done")
    b = b.ends("a").seed("a", {})
    process = served.start(b.write(tmp_path / "bundle"))

    def told():
        said = served.box.glia("job", "events", process.run_id, "--json", code=None).stdout
        return "found_it" in said and "halfway" in said
    wait_for("the event, while the worker runs", told)
    served.touch(process.run_id, "go")
    ran = served.finish(process)
    assert get(ran.one("found_it"), "n") == 5
    assert [e for e in ran.of("agent_beacon") if e["payload"]["status"] == "halfway"]
    stdout = ran.steps["a"]["output"]["sandbox"]["stdout"]
    assert json.loads(stdout) == {"x": 1}


@item("B-7.6-4")
def test_a_required_beacon_that_does_not_come(served, tmp_path):
    b = Bundle("mute").worker("a", "note('pid', os.getpid()); time.sleep(600)",
                                   beacon_enabled=True,
                                   beacon_interval_ms=200, beacon_timeout_ms=3000,
                                   agent_beacon_required=True).ends("a").seed("a", {})
    b.flow["steps"][0]["control"] = {"retry": {"max_attempts": 1}}
    ran = small(served, tmp_path, b, code=1)
    assert ran.of("agent_beacon_missed", agent_id="a"), ran
    assert ran.statuses == {"a": "failed"}
    wait_for("the worker to end", lambda: not os.path.exists(f"/proc/{ran.lines('pid')[0]}"))


# ---- leases ----

@item("B-10-2")
@pytest.mark.sqlite_only("nodes that share a store wait for one that has the pool")
@pytest.mark.parametrize("config, says", [({"pool_slots": 51}, "51"), ({"pool": "gpu"}, "gpu")])
def test_slots_that_cannot_be_had_fail_the_attempt(served, tmp_path, config, says):
    b = Bundle("slots").worker("a", "say(x=1)", **config).ends("a").seed("a", {})
    ran = small(served, tmp_path, b, code=1)
    assert says in json.dumps(ran.steps["a"]), ran
    assert ran.of("executor_lease_rejected", agent_id="a"), ran


@item("B-10-3", "B-2.2-15", "B-2.2-16")
def test_pools_of_the_environment_and_the_limit_of_their_queue(box, tmp_path):
    box.env["MN_EXECUTOR_POOL_CAPACITIES"] = "gpu=1,io=8"
    box.env["MN_EXECUTOR_MAX_CONCURRENCY"] = "3"
    runner = Runner(box)
    b = Bundle("pools").worker("a", "say(x=1)", pool="io", pool_slots=8)
    b.worker("b", "wait_file('timed-out')", ["a"], pool="gpu").worker(
        "c", "say(x=1)", ["a"], pool="gpu", lease_queue_timeout_ms=300,
        control={"required": False, "retry": {"max_attempts": 1}})
    b.worker("d", "note('timed-out', 1)", ["c"], rule="one_failed", pool_slots=3)
    b.edge("a", "b").edge("a", "c").sink().edge("b", "sink").seed("a", {})
    ran = small(runner, tmp_path, b)
    assert ran.statuses == {"a": "completed", "b": "completed", "c": "partial",
                            "d": "completed"}, ran
    assert ran.of("executor_lease_rejected", agent_id="c"), ran


# ---- python environments ----

@item("B-2.2-18")
def test_a_python_environment(served, tmp_path):
    b = Bundle("venv").worker("a", "note('where', [sys.prefix, os.environ.get('VIRTUAL_ENV'), "
                                        "os.environ.get('MN_PYTHON_ENV')])",
                                   python_environment={"packages": []},
                              output_message_type="done").ends("a")
    ran = small(served, tmp_path, b.seed("a", {}))
    prefix, virtual, named = ran.lines("where")[0]
    assert virtual and os.path.realpath(prefix) == os.path.realpath(virtual) and named


@item("B-2.2-18")
def test_a_package_that_is_not_there(served, tmp_path):
    b = Bundle("novenv").worker("a", "say(x=1)",
                                     python_environment={"packages": ["no-such-package==9.9"]})
    ran = small(served, tmp_path, b.ends("a").seed("a", {}), code=1)
    assert "no-such-package" in json.dumps(ran.steps["a"]), ran


@item("B-15-5")
def test_skills_of_the_payload_can_be_imported(served, tmp_path):
    b = Bundle("skills",
               skill_dependencies=[{"name": "greet", "source": "payload", "path": "skills/greet"}])
    b.worker("a", "import greeting\nnote('said', greeting.hello())", output_message_type="done")
    b.files["payloads/skills/greet/src/greeting.py"] = "def hello():\n    return 'hello'\n"
    ran = small(served, tmp_path, b.ends("a").seed("a", {}))
    assert ran.lines("said") == ["hello"]
