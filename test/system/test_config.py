"""Settings and where they come from; a node somewhere else; jobs that crash the node."""

import json
import os
import re
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import glianode  # noqa: E402
import golden  # noqa: E402
from glianode import ROOT, Box, wait_for  # noqa: E402

GOLDEN = golden.of(__file__)


def is_held(box, node, job):
    return any(job in line and "quarantine" in line for line in box.read(node.err).splitlines())


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    yield box
    box.close()


def serve(box, *args):
    process = box.start("serve", *args)
    wait_for("the node", lambda: "ready: process" in box.read(process.err)
             or process.poll() is not None)
    assert process.poll() is None, box.read(process.err)
    return process


def stop(box, process):
    process.send_signal(signal.SIGTERM)
    box.finish(process)


def settings(box, *args):
    return box.json("config", "show", *args)["settings"]


# ---- where settings come from ----

def test_each_setting_tells_its_origin(box):
    path = box.write("c.yaml", "grace: 5s\nkeep_jobs: 9\npools: {default: 2, gpu: 1}\n")
    box.env["GLIA_KEEP_JOBS"] = "10"
    shown = settings(box, "--config", path)
    assert shown["grace"] == {"value": "5s", "origin": f"file {path}:1",
                              "environment": "GLIA_GRACE"}
    assert shown["keep_jobs"]["value"] == "10"
    assert shown["keep_jobs"]["origin"] == "environment GLIA_KEEP_JOBS"
    assert shown["pools"]["value"] == "default=2,gpu=1"
    assert shown["data_dir"]["value"] == box.data
    assert shown["data_dir"]["origin"] == "environment GLIA_DATA_DIR"
    assert shown["listen"] == {"value": "", "origin": "default", "environment": "GLIA_LISTEN"}
    assert settings(box, "--data-dir", "/x")["data_dir"]["origin"] == "flag --data-dir"
    rows = [line.split("\t") for line in box.glia("config", "show").stdout.splitlines()]
    assert ["keep_jobs", "10", "environment GLIA_KEEP_JOBS"] in rows


def test_the_users_own_file_is_read(box):
    path = box.write("xdg/glia/config.yaml", f"data_dir: {box.folder}/elsewhere\n")
    del box.env["GLIA_DATA_DIR"]
    shown = settings(box)
    assert shown["data_dir"] == {"value": f"{box.folder}/elsewhere", "origin": f"file {path}:1",
                                 "environment": "GLIA_DATA_DIR"}
    box.data = f"{box.folder}/elsewhere"
    box.glia("run", "--", "true")
    assert os.path.exists(f"{box.folder}/elsewhere/node")


def test_what_is_wrong_with_a_file_is_told_at_once(box):
    path = box.write("c.yaml", "keep_fro: 3d\ngrace: soon\nlog: loud\n")
    for command in (["config", "show"], ["serve"], ["job", "list"], ["run", "--", "true"]):
        done = box.glia(*command[:1], "--config", path, *command[1:], code=2) \
            if len(command) == 1 else box.glia("--config", path, *command, code=2)
        GOLDEN.says("three mistakes", done.stderr, [path])
    assert not os.path.exists(box.data)


@pytest.mark.parametrize("name, text", [
    ("cut off", "grace: ["), ("array", "- grace\n"), ("twice", "grace: 1s\ngrace: 2s\n"),
    ("listen", "listen: example.org:80\n"), ("server", "server: somewhere\n"),
    ("pools", "pools: {gpu: many}\n"), ("data_dir", "data_dir: here\n"),
])
def test_bad_files(box, name, text):
    path = box.env["GLIA_CONFIG"] = box.write("c.yaml", text)
    done = box.glia("config", "show", code=2)
    GOLDEN.says(f"bad file, {name}", done.stderr,
                [path, re.compile(r"(?<=\(byte 8\): )[^;]*")])  # what libyaml says
    document = json.loads(box.glia("config", "show", "--json", code=2).stdout)
    assert document["error"]["code"] == "invalid"


def test_a_file_that_is_not_there_or_no_file(box):
    assert "cannot open" in box.glia("config", "show", "--config", "none.yaml", code=2).stderr
    assert box.reason("config", "show", "--config", ".", code=2) == "file_not_regular"
    box.glia("version", "--config", "none.yaml")


def test_the_pools_of_the_file_hold(box):
    box.env["GLIA_CONFIG"] = box.write("c.yaml", "pools: {default: 3, gpu: 2}\n")
    node = serve(box, "--pools", "default=5")
    assert box.ask("GET", "/v1/node").json["pools"] == {
        "default": {"slots": 5, "in_use": 0}, "executor.default": {"slots": 50, "in_use": 0}}
    stop(box, node)


def test_the_pools_of_workers_are_set_by_the_names_bundles_know(box):
    box.env["MN_EXECUTOR_MAX_CONCURRENCY"] = "4"
    box.env["MN_EXECUTOR_POOL_CAPACITIES"] = "gpu=1,io=8"
    box.env["MN_RUNS_ROOT"] = "here/runs"
    shown = settings(box)
    assert shown["executor_slots"] == {"value": "4", "environment": "MN_EXECUTOR_MAX_CONCURRENCY",
                                       "origin": "environment MN_EXECUTOR_MAX_CONCURRENCY"}
    assert shown["runs_root"]["value"] == f"{box.folder}/here/runs"
    node = serve(box, "--pools", "default=5", "--executor-slots", "6")
    pools = box.ask("GET", "/v1/node").json["pools"]
    assert {name: pool["slots"] for name, pool in pools.items()} == {
        "default": 5, "executor.default": 6, "executor.gpu": 1, "executor.io": 8}
    stop(box, node)


def test_without_a_setting_runs_are_in_the_home_folder(box):
    box.env.pop("MN_RUNS_ROOT", None)
    box.env["HOME"] = f"{box.folder}/home"
    assert settings(box)["runs_root"] == {"value": f"{box.folder}/home/.mn/runs",
                                          "origin": "default", "environment": "MN_RUNS_ROOT"}


@pytest.mark.parametrize("name, value", [
    ("MN_EXECUTOR_MAX_CONCURRENCY", "0"), ("MN_EXECUTOR_MAX_CONCURRENCY", "many"),
    ("MN_EXECUTOR_MAX_CONCURRENCY", "100001"), ("MN_EXECUTOR_POOL_CAPACITIES", "gpu"),
    ("MN_EXECUTOR_POOL_CAPACITIES", "gpu=1,gpu=2"),
])
def test_what_is_wrong_with_the_pools_of_workers_is_told(box, name, value):
    box.env[name] = value
    GOLDEN.says(f"{name}={value}", box.glia("config", "show", code=2).stderr)


def test_every_setting_is_in_the_page_of_operations():
    with open(os.path.join(ROOT, "src/cli/settings.c"), encoding="utf-8") as file:
        table = file.read()
    with open(os.path.join(ROOT, "docs/operations.md"), encoding="utf-8") as file:
        page = file.read()
    names = re.findall(r"\.(?:name|env) = \"(\w+)\"", table)
    assert len(names) > 20
    for name in names:
        assert f"`{name}`" in page, name


# ---- a node somewhere else ----

def test_a_client_over_tcp_needs_the_token(box, tmp_path):
    node = serve(box, "--listen", "127.0.0.1:0")
    address = re.search(r"http://127\.0\.0\.1:\d+", box.read(node.err)).group(0)
    token = box.read("data/token").strip()
    client = Box(tmp_path / "client", GLIA_SERVER=address)
    os.makedirs(client.folder)
    try:
        assert "token" in client.glia("job", "list", code=4).stderr
        client.env["GLIA_TOKEN"] = "f" * 64
        client.glia("job", "list", code=4)
        client.env["GLIA_TOKEN"] = "x\r\nHost: y"
        assert "not allowed" in client.glia("job", "list", code=2).stderr
        del client.env["GLIA_TOKEN"]
        client.env["GLIA_TOKEN_FILE"] = client.write("nowhere/../tok", token + "\n", 0o600)
        flow = client.write("f.yaml", "name: far\nsteps:\n  a: {sh: 'echo hello'}\n")
        job = client.glia("run", flow).stdout.split("\t")[0]
        assert "hello" in client.glia("job", "logs", job).stdout
        assert [j["job_id"] for j in client.jobs()] == [job] == [j["job_id"] for j in box.jobs()]
        client.env["GLIA_TOKEN_FILE"] = "/nowhere"
        assert "cannot open /nowhere" in client.glia("job", "list", code=3).stderr
        assert not os.path.exists(client.data), "a client of a server has no folder"
    finally:
        client.close()
    stop(box, node)


def test_with_a_server_nothing_is_embedded(box):
    box.env["GLIA_SERVER"] = "http://127.0.0.1:1"
    for command in (["run", "--", "true"], ["job", "list"], ["job", "cancel", "0000000000"]):
        error = box.error(*command, code=5)
        assert error["reason"] == "node_not_found" and "http://127.0.0.1:1" in error["message"]
    assert not os.path.exists(box.data)
    box.env["GLIA_SERVER"] = f"unix:{box.folder}/nobody.sock"
    box.glia("job", "list", code=5)
    assert not os.path.exists(box.data)


def test_a_server_by_its_socket(box, tmp_path):
    node = serve(box)
    client = Box(tmp_path / "client", GLIA_SERVER=f"unix:{box.socket}")
    os.makedirs(client.folder)
    assert client.glia("run", "--", "echo", "hi").stdout == "hi\n"
    assert len(box.jobs()) == 1
    assert not os.path.exists(client.data)
    stop(box, node)


def test_a_run_waits_for_its_server_to_come_back(box, tmp_path):
    node = serve(box, "--listen", "127.0.0.1:0")
    address = re.search(r"http://(127\.0\.0\.1:\d+)", box.read(node.err)).group(1)
    client = Box(tmp_path / "client", GLIA_SERVER=f"http://{address}",
                 GLIA_TOKEN_FILE=f"{box.data}/token")
    os.makedirs(client.folder)
    flow = client.write("f.yaml", f"""
name: far
steps:
  hold: {{sh: 'until [ -e {box.folder}/go ]; do sleep 0.02; done', unsafe: true}}
""")
    run = client.start("run", flow)
    try:
        wait_for("the step", lambda: box.jobs() and "running" in
                 [s["status"] for s in box.json("job", "status", box.jobs()[0]["job_id"])
                  ["workflow_state"]["steps"].values()])
        stop(box, node)
        node = serve(box, "--listen", address)
        box.write("go", "")
        assert "completed" in client.finish(run)
    finally:
        client.close()
    stop(box, node)


def test_a_port_that_is_taken_is_told(box, tmp_path):
    node = serve(box, "--listen", "127.0.0.1:0")
    address = re.search(r"http://(127\.0\.0\.1:\d+)", box.read(node.err)).group(1)
    other = Box(tmp_path / "other")
    os.makedirs(other.folder)
    error = other.error("serve", "--listen", address, code=5)
    assert error["reason"] == "address_in_use" and address in error["message"]
    assert not os.path.exists(other.socket)
    stop(box, node)


# ---- jobs that crash the node ----

def test_a_job_that_crashes_the_node_three_times_is_quarantined(box, monkeypatch):
    build = os.environ.get("GLIA_BUILD_CLANG")
    assert build, "this test needs the build with failpoints: GLIA_BUILD_CLANG"
    monkeypatch.setattr(glianode, "GLIA", os.path.join(build, "glia"))
    flow = box.write("f.yaml", f"""
name: bad
steps:
  hold: {{sh: 'until [ -e {box.folder}/go ]; do sleep 0.02; done', unsafe: true}}
""")
    run = box.start("run", flow, "--run-id", "bad-1")
    job = box.wait_job()[0]
    wait_for("the step", lambda: box.step(job, "hold")["status"] == "running")
    run.kill()
    run.wait()
    for crashes in range(1, 4):
        box.env["GLIA_FAILPOINT"] = "daemon.handling"
        node = box.start("serve")
        assert node.wait(60) == -signal.SIGKILL
        del box.env["GLIA_FAILPOINT"]
        with open(f"{box.data}/crash.mark", "rb") as file:
            assert job.encode() in file.read()
    box.env["GLIA_FAILPOINT"] = "daemon.handling"
    node = serve(box)
    del box.env["GLIA_FAILPOINT"]
    assert is_held(box, node, job)
    with open(f"{box.data}/crash.json", encoding="utf-8") as file:
        suspects = json.load(file)["suspects"]
    assert [(s["job_id"], s["crashes"]) for s in suspects] == [(job, crashes)]
    assert "quarantine" in box.glia("why", job).stdout
    assert box.json("job", "status", job)["quarantined"] is True
    stop(box, node)
    node = serve(box)
    assert is_held(box, node, job), "it stays held over restarts"
    run = box.start("run", flow, "--run-id", "bad-1")
    wait_for("what holds it", lambda: f"glia job resume {job}" in box.read(run.err))
    stop(box, node)
    node = serve(box)
    other = box.glia("run", "--", "echo", "others")
    assert other.stdout == "others\n"
    box.write("go", "")
    assert "completed" in box.glia("job", "resume", job).stdout
    assert run.wait(20) == 0
    assert box.read(run.err).count("quarantine") == 1, "it is said once"
    assert "quarantined" not in box.json("job", "status", job)
    stop(box, node)
    node = serve(box)
    assert "quarantine" not in box.read(node.err)
    stop(box, node)
