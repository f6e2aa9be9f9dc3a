"""glia run: where a flow comes from, what it is given, and leaving it to a node."""

import json
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import wait_for  # noqa: E402


GOLDEN = golden.of(__file__)
GIVEN = """
name: given
inputs:
  who: world
  n: {type: integer, required: true}
  db: {type: object, default: {host: here, port: 1}}
  list: {type: list, default: []}
steps:
  tell:
    run: [sh, -c, 'printf "%s|" "$@"', sh, "${inputs.who}", "${inputs.n}", "${inputs.db}",
          "${inputs.list}"]
"""


def told(box, *args, **options):
    """What the flow above was given, as its step saw it."""
    job = json.loads(box.glia("run", box.write("given.yaml", GIVEN), "--json", *args,
                              **options).stdout)["job_id"]
    return box.glia("job", "logs", job).stdout.rstrip("|\n").split("|")


def start_node(box):
    node = box.start("serve")
    wait_for("the node", lambda: "ready: process" in box.read(node.err))
    return node


# ---- inputs ----


@pytest.mark.parametrize("args, seen", [
    (["--set", "n=3"], ["world", "3", '{"host":"here","port":1}', "[]"]),
    (["--set=n=3", "--set", "who=a b"], ["a b", "3", '{"host":"here","port":1}', "[]"]),
    (["--set", "n=3", "--set", "who=x=y"], ["x=y", "3", '{"host":"here","port":1}', "[]"]),
    (["--set", "n=3", "--set", "who="], ["", "3", '{"host":"here","port":1}', "[]"]),
    (["--set", 'who="7"', "--set", "n=3"], ['"7"', "3", '{"host":"here","port":1}', "[]"]),
    (["--set", "who=1.10", "--set", "n= 3 "], ["1.10", "3", '{"host":"here","port":1}', "[]"]),
    (["--set", "who= null ", "--set", "n=3"], [" null ", "3", '{"host":"here","port":1}', "[]"]),
    (["--set", "n=3", "--set", 'db.host="7"', "--set", "db.port=1.10"],
     ["world", "3", '{"host":"7","port":1.10}', "[]"]),
    (["--set", "n=3", "--set", "n=4"], ["world", "4", '{"host":"here","port":1}', "[]"]),
    (["--set", "n=3", "--set", "db.host=there", "--set", "db.deep.er=[1]"],
     ["world", "3", '{"host":"there","port":1,"deep":{"er":[1]}}', "[]"]),
    (["--set", "n=3", "--set", "db.port.low=2"],
     ["world", "3", '{"host":"here","port":{"low":2}}', "[]"]),
    (["--set", "n=3", "--set", 'db={"a": 1}', "--set", "db.b=2"],
     ["world", "3", '{"a":1,"b":2}', "[]"]),
    (["--set", "n=3", "--set", "db.b=2", "--set", "db={}"], ["world", "3", "{}", "[]"]),
    (["--set", "n=3", "--set", 'list=["a", 1]'],
     ["world", "3", '{"host":"here","port":1}', '["a",1]']),
    (["--set", "n=3", "--set", "who=$(touch bad) `touch bad` ; touch bad"],
     ["$(touch bad) `touch bad` ; touch bad", "3", '{"host":"here","port":1}', "[]"]),
])
def test_inputs_are_set_on_the_command_line(box, args, seen):
    got = told(box, *args)
    assert [got[0], got[1]] == seen[:2]
    assert [json.loads(x) for x in got[2:]] == [json.loads(x) for x in seen[2:]]
    assert not box.has("bad")


@pytest.mark.parametrize("name, text", [
    ("in.yaml", "n: 5\nwho: filed\ndb:\n  host: far\n  port: 9\n"),
    ("in.json", '{"n": 5, "who": "filed", "db": {"host": "far", "port": 9}}'),
])
def test_inputs_come_from_a_file_and_set_wins(box, name, text):
    path = box.write(name, text)
    assert told(box, "--input-file", path)[:2] == ["filed", "5"]
    got = told(box, "--set", "db.port=10", "--set", "who=me", "--input-file", path)
    assert got[:2] == ["me", "5"] and json.loads(got[2]) == {"host": "far", "port": 10}
    got = told(box, "--input-file", "-", input=text)
    assert got[:2] == ["filed", "5"]


def test_an_object_in_a_file_replaces_the_default_and_dots_reach_into_it(box):
    path = box.write("part.yaml", "n: 5\ndb: {name: x}\n")
    assert json.loads(told(box, "--input-file", path)[2]) == {"name": "x"}
    got = told(box, "--input-file", path, "--set", "db.port=10")
    assert json.loads(got[2]) == {"name": "x", "port": 10}


@pytest.mark.parametrize("args, says", [
    ([], "n"),
    (["--set", "n=x"], "n"),
    (["--set", "n=1", "--set", "whom=x"], "whom"),
    (["--set", "n=1", "--set", "whom.x=x"], "whom"),
    (["--set", "n=1", "--set", "list.x=x"], "list"),
    (["--set", "n"], "KEY=VALUE"),
    (["--set", ".n=1"], "--set .n:"),
    (["--set", "n.=1"], "--set n.:"),
    (["--set", "=1"], "--set :"),
    (["--input-file", "nowhere.yaml"], "nowhere.yaml"),
    (["--input-file", "list.yaml"], "list.yaml"),
    (["--input-file", "broken.json"], "broken.json"),
])
def test_wrong_inputs_make_no_job(box, args, says):
    box.write("list.yaml", "[1]\n")
    box.write("broken.json", "{")
    done = box.glia("run", box.write("given.yaml", GIVEN), *args, code=2)
    assert says in done.stderr, done.stderr
    assert box.jobs() == []


@pytest.mark.parametrize("args", [
    ["--set", "who=x"], ["--set", "n=x"], ["--set", "n=1", "--set", "whom=x"],
    ["--set", "n=1", "--set", "qqq=x"], ["--set", "n"], ["--input-file", "nowhere.yaml"],
    ["--input-file", "list.yaml"],
])
def test_validate_refuses_inputs_as_run_does(box, args):
    flow = box.write("given.yaml", GIVEN)
    box.write("list.yaml", "[1]\n")
    checked, run = (box.glia(command, flow, *args, code=2) for command in ("validate", "run"))
    wanted, told = ([line for line in done.stderr.splitlines()
                     if not line.startswith(("usage: ", "Try "))] for done in (run, checked))
    assert told == wanted and told and checked.stdout == ""
    errors = [box.error(command, flow, *args, code=2) for command in ("validate", "run")]
    assert errors[0]["code"] == errors[1]["code"]
    assert errors[0]["message"] == errors[1]["message"]


def test_validate_accepts_inputs_and_needs_none(box):
    flow = box.write("given.yaml", GIVEN)
    path = box.write("in.yaml", "n: 5\n")
    for args in ([], ["--set", "n=3"], ["--input-file", path, "--set", "db.host=there"]):
        assert "is valid" in box.glia("validate", flow, *args).stderr


def test_how_a_missing_input_is_given_is_said(box):
    flow = box.write("f.yaml", """
inputs: {who: {type: string, required: true}, n: {type: integer, required: true}}
steps: {a: {noop: true}}
""")
    GOLDEN.says("two missing", golden.line_of(box.glia("run", flow, code=2).stderr, "--set"))
    said = box.glia("run", flow, "--set", "who=x", code=2).stderr
    GOLDEN.says("one missing", golden.line_of(said, "--set"))
    assert "--set" not in box.glia("run", flow, "--set", "who=x", "--set", "n=x", code=2).stderr


def test_a_command_has_arguments_not_inputs(box):
    assert "for flows" in box.glia("run", "--set", "a=1", "--", "true", code=2).stderr


# ---- where the flow comes from ----


@pytest.mark.parametrize("name", ["flow.yaml", "flow.yml", "flow.json"])
def test_a_folder_stands_for_the_flow_in_it(box, name):
    box.write(f"it/{name}", '{"name": "inside", "steps": {"a": {"script": "x.sh"}}}')
    box.write("it/x.sh", "#!/bin/sh\necho marker-7\n", 0o755)
    job = box.json("run", "it")["job_id"]
    assert box.glia("job", "logs", job).stdout == "marker-7\n"
    assert box.glia("run", "it/").stdout.endswith("completed\n")
    box.glia("validate", "it")


def test_a_folder_without_a_flow_and_an_empty_bundle_are_refused_by_name(box):
    box.write("empty/x", "")
    error = box.error("run", "empty", code=2)
    assert error["reason"] == "no_flow_in_folder" and "empty" in error["message"]
    box.write("bundle/manifest.json", "{}")
    box.write("bundle/flow.yaml", "steps: {a: {noop: true}}")
    assert "bundle/manifest.json:1:1: graph_id: " in box.glia("run", "bundle", code=2).stderr
    assert not os.path.exists(box.data)


def test_a_flow_comes_from_standard_input(box):
    box.write("x.sh", "#!/bin/sh\necho beside us\n", 0o755)
    done = box.glia("run", "-", "--json", input="steps: {a: {script: x.sh}}\n")
    assert box.glia("job", "logs", json.loads(done.stdout)["job_id"]).stdout == "beside us\n"
    assert "-:1:8: steps" in box.glia("run", "-", code=2, input="steps: 7\n").stderr


# ---- leaving it to a node ----


def test_without_a_node_nothing_is_detached_and_nothing_made(box):
    flow = box.write("f.yaml", "steps: {a: {script: x.sh}}\n")
    box.write("x.sh", "#!/bin/sh\n", 0o755)
    for args in ([flow, "--detach"], ["--detached", flow], ["--detach", "--", "true"]):
        assert box.reason("run", *args, code=5) == "node_not_found"
    assert not os.path.exists(box.data)
    assert box.json("run", flow, "--detach", code=5)["error"]["code"] == "unavailable"


def test_a_detached_job_is_the_nodes(box):
    start_node(box)
    flow = box.write("f.yaml", "steps: {a: {script: x.sh}}\n")
    box.write("x.sh", "#!/bin/sh\necho did it\n", 0o755)
    job = box.glia("run", flow, "--detach", "--run-id", "mine").stdout.strip()
    wait_for("its end", lambda: box.json("job", "status", job)["status"] == "completed")
    assert box.glia("job", "logs", "mine").stdout == "did it\n"
    again = box.glia("run", flow, "--detached", "--run-id", "mine")
    assert again.stdout.strip() == job and f"job {job}" in again.stderr
    doc = box.json("run", "--detach", "--", "true")
    assert set(doc) >= {"job_id", "run_id", "status"}


def test_leaving_a_node_that_stays_leaves_the_job(box):
    start_node(box)
    flow = "steps: {a: {sh: 'until [ -e %s/go ]; do sleep 0.02; done'}}\n" % box.folder
    run = box.start("run", box.write("f.yaml", flow))
    job = box.wait_job()[0]
    wait_for("the step", lambda: box.step(job, "a")["status"] == "running")
    run.send_signal(signal.SIGINT)
    box.finish(run, 130)
    assert f"glia job status {job}" in box.read(run.err)
    box.write("go", "")
    wait_for("its end", lambda: box.json("job", "status", job)["status"] == "completed")
