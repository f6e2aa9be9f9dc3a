"""The Python client: its page, its types, and what it does with a node that is well."""

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import ROOT, Box, wait_for  # noqa: E402
from httpnode import serve, token  # noqa: E402

GOLDEN = golden.of(__file__)
SDK = os.path.join(ROOT, "sdk", "python")
sys.path.insert(0, SDK)
import glia  # noqa: E402

NOOP = {"steps": {"a": {"noop": True}}}


@pytest.fixture(name="box")
def make_box(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GLIA_")]:
        monkeypatch.delenv(name)
    box = Box(tmp_path)
    box.address = serve(box, "--listen", "127.0.0.1:0")
    yield box
    box.close()


@pytest.fixture(name="client")
def make_client(box):
    with glia.Client(data_dir=box.data) as client:
        yield client


def hold(box, name="go"):
    return f"until [ -e {box.folder}/{name} ]; do sleep 0.02; done"


# ---- the page and the types ----


def examples():
    """(line, program, what it prints) for each example of the page."""
    with open(os.path.join(SDK, "README.md"), encoding="utf-8") as file:
        page = file.read()
    for found in re.finditer(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", page, re.S):
        yield page.count("\n", 0, found.start()) + 2, found.group(1), found.group(2) or ""


def test_the_examples_of_the_page_print_what_it_says(box, monkeypatch):
    monkeypatch.setenv("GLIA_DATA_DIR", box.data)
    monkeypatch.chdir(box.folder)
    names = {}
    done = 0
    for line, program, wanted in examples():
        code = compile("\n" * (line - 1) + program, "sdk/python/README.md", "exec")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(code, names)  # pylint: disable=exec-used
        assert said.getvalue() == wanted, f"sdk/python/README.md:{line}"
        done += 1
    assert done >= 15


def test_the_package_is_typed_strictly(tmp_path):
    found = subprocess.run(["mypy", "--strict", "--python-version", "3.9", "--cache-dir",
                            str(tmp_path), "glia"], cwd=SDK, capture_output=True, text=True,
                           timeout=300, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def sources():
    folder = os.path.join(SDK, "glia")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                yield name, file.read()


def test_the_package_needs_nothing_but_the_standard_library():
    for name, text in sources():
        for node in ast.walk(ast.parse(text, feature_version=(3, 9))):
            modules = [one.name for one in node.names] if isinstance(node, ast.Import) else \
                [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for module in modules:
                assert module.split(".")[0] in sys.stdlib_module_names, (name, module)


def test_everything_public_says_what_it_is():
    for name, text in sources():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and node.name == "Client":
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                        assert ast.get_docstring(method), method.name
    for word in glia.__all__:
        assert hasattr(glia, word), word
    with open(os.path.join(SDK, "README.md"), encoding="utf-8") as file:
        page = file.read()
    for word in glia.step.__all__:
        assert word == "NotAStepError" or f"{word}(" in page, word
    for word in vars(glia.errors)["__all__"]:
        assert word == "GliaError" or f"| `{word}` |" in page, word


def test_the_version_is_that_of_the_project():
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
        version = re.search(r"version: '([^']+)'", file.read()).group(1)
    with open(os.path.join(SDK, "pyproject.toml"), encoding="utf-8") as file:
        assert f'version = "{version}"' in file.read()
    assert glia.__version__ == version


# ---- the way to the node ----


def test_a_node_is_reached_over_tcp_with_its_token(box, monkeypatch):
    server = f"http://{box.address}"
    with glia.Client(server, token=token(box)) as client:
        assert client.run(NOOP, timeout=30).completed
    with glia.Client(server, token_file=os.path.join(box.data, "token")) as client:
        assert client.node()["ready"]
    monkeypatch.setenv("GLIA_SERVER", server)
    monkeypatch.setenv("GLIA_DATA_DIR", box.data)
    assert glia.Client().server == server
    assert glia.Client().is_ready()  # with the token of the folder
    monkeypatch.setenv("GLIA_TOKEN_FILE", os.path.join(box.data, "token"))
    monkeypatch.delenv("GLIA_DATA_DIR")
    assert glia.Client().is_ready()
    monkeypatch.setenv("GLIA_TOKEN", "0" * 64)  # goes before the file
    with pytest.raises(glia.DeniedError):
        glia.Client().node()


def test_a_wrong_token_is_denied_and_never_shown(box):
    server = f"http://{box.address}"
    for wrong in ("0" * 64, token(box)[:-1], ""):
        client = glia.Client(server, token=wrong, data_dir=box.folder)
        with pytest.raises(glia.DeniedError) as caught:
            client.submit(NOOP)
        assert caught.value.code == "denied" and caught.value.status == 401
        assert caught.value.hint and caught.value.request_id
        assert not wrong or wrong not in repr(vars(client)) + str(caught.value) + repr(client)
    with pytest.raises(glia.InvalidError):
        glia.Client(server, token="a\r\nX-Evil: 1")


def test_a_socket_with_a_long_path_is_reached(tmp_path):
    box = Box(tmp_path, data=str(tmp_path / ("d" * 100) / ("e" * 100)))
    os.makedirs(os.path.dirname(box.data))
    try:
        serve(box)
        assert glia.Client(data_dir=box.data).run(NOOP, timeout=30).completed
    finally:
        box.close()


def test_addresses_that_are_none_are_refused():
    for bad in ("", "http://", "http://host", "https://host:1", "ftp://host:1", "unix:relative",
                "http://host:99999", "http://host:1/path", "http://u@host:1", "http://host:x"):
        with pytest.raises(glia.InvalidError) as caught:
            glia.Client(bad)
        assert caught.value.field == "server"


def sockets_of(pid):
    """How many sockets a process has open; files come and go by themselves."""
    return sum("socket:" in line for line in
               subprocess.run(["ls", "-l", f"/proc/{pid}/fd"], check=False, text=True,
                              capture_output=True).stdout.splitlines())


def test_one_connection_serves_many_requests(box, client):
    client.node()
    before = sockets_of(box.started[0].pid)
    for _ in range(200):
        client.is_ready()
    assert sockets_of(box.started[0].pid) <= before


def test_many_threads_share_a_client(client):
    failures = []

    def work(number):
        try:
            for i in range(5):
                run_id = f"t{number}-{i}"
                job = client.run({"inputs": {"n": 0}, "steps": {"a": {
                    "sh": "echo '{\"n\": '\"${inputs.n}\"'}'"}}}, inputs={"n": number},
                    run_id=run_id, timeout=60)
                assert job.run_id == run_id and client.result(job) == {"a": {"n": number}}
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures


def test_a_child_after_a_fork_has_connections_of_its_own(client):
    mine = client.submit(NOOP).job_id
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, client.submit(NOOP).job_id.encode())
        finally:
            os._exit(0)
    os.close(writer)
    for _ in range(20):
        assert client.status(mine).job_id == mine
    os.waitpid(pid, 0)
    theirs = os.read(reader, 100).decode()
    os.close(reader)
    assert theirs and theirs != mine and client.wait(theirs, timeout=30).completed


# ---- jobs ----


def test_a_thousand_jobs_are_submitted_in_a_batch_and_all_complete(client):
    flow = {"name": "thousand", "inputs": {"n": 0}, "steps": {"a": {"noop": True}}}
    wanted = [glia.Submission(run_id=f"b-{n}", inputs={"n": n}) for n in range(1000)]
    answers = client.submit_many(wanted, flow=flow)
    assert [one.run_id for one in answers] == [one.run_id for one in wanted]
    again = client.submit_many(wanted, flow=flow)
    assert [one.job_id for one in again] == [one.job_id for one in answers]
    assert all(one.existing for one in again)
    for one in answers:
        assert client.wait(one, timeout=60).completed
    assert len({job.job_id for job in client.jobs(name="thousand")}) == 1000
    assert len(list(client.jobs(name="thousand", limit=7))) == 7


def test_a_batch_is_split_where_it_becomes_too_large(client):
    wanted = [glia.Submission(flow={"steps": {"a": {"noop": True}}}, run_id=f"s-{n}")
              for n in range(2500)]
    wanted[1700] = glia.Submission(flow={"steps": {}}, run_id="bad")
    answers = client.submit_many(wanted)
    assert len(answers) == 2500
    assert [n for n, one in enumerate(answers) if isinstance(one, glia.GliaError)] == [1700]
    assert isinstance(answers[1700], glia.InvalidError) and answers[1700].details
    assert [one.run_id for one in answers[1701:]] == [one.run_id for one in wanted[1701:]]
    assert client.submit_many([]) == []


@pytest.mark.slow
def test_huge_outputs_arrive_whole(client):
    size = 1000000
    flow = {"steps": {f"s{n}": {
        "python": "import json, os\n"
                  f"json.dump('{n}' * {size // len(str(n))}, open(os.environ['GLIA_OUTPUT'], 'w'))"}
        for n in range(40)}}
    job = client.run(flow, timeout=120)
    result = client.result(job)
    assert len(result) == 40
    for n in range(40):
        assert result[f"s{n}"] == str(n) * (size // len(str(n)))


@pytest.mark.slow
def test_a_long_log_comes_whole_and_what_was_dropped_is_told(client):
    job = client.run({"steps": {"a": {"sh": "seq 60000"}, "b": {"sh": "seq 700000"}}},
                     timeout=120)
    for follow in (False, True):
        lines = [line.text for line in client.logs(job, "a", follow=follow)]
        assert lines == [str(n) for n in range(1, 60001)]
        long = list(client.logs(job, "b", follow=follow))
        marks = [line for line in long if line.stream == "dropped"]
        assert len(marks) == 1 and marks[0].time is None
        numbers = [int(line.text) for line in long if line.stream == "stdout"]
        assert numbers == sorted(set(numbers)) and numbers[0] == 1 and numbers[-1] == 700000


def test_a_log_is_followed_through_all_attempts(box, client):
    job = client.submit({"steps": {
        "first": {"sh": hold(box)},
        "a": {"needs": "first", "retry": {"attempts": 3, "backoff": "50ms"},
              "sh": f"echo one $GLIA_ATTEMPT; {hold(box, 'more')}; echo two $GLIA_ATTEMPT >&2; "
                    "[ $GLIA_ATTEMPT = 3 ]"}}})
    seen = []

    def follow():
        for line in client.logs(job, "a", follow=True, timeout=60):
            seen.append((line.attempt, line.stream, line.text))

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.2)
    assert not seen
    box.write("go", "")
    wait_for("the first line", lambda: seen)
    box.write("more", "")
    thread.join(60)
    assert seen == [(n, stream, f"{word} {n}") for n in (1, 2, 3)
                    for stream, word in (("stdout", "one"), ("stderr", "two"))]


def test_every_verb_does_what_it_says(box, client):
    job = client.submit({"steps": {"a": {"sh": hold(box)}, "b": {"needs": "a", "noop": True}}},
                        run_id="verbs")
    with pytest.raises(glia.ConflictError) as caught:
        client.result(job)
    assert caught.value.code == "state"
    client.pause(job, reason="lunch")
    wait_for("the pause", lambda: client.status(job).status == "paused")
    assert "lunch" in client.why("verbs").why
    client.resume(job)
    wait_for("the step", lambda: client.status(job).steps["a"].status == "running")
    assert client.why(job, "b").steps["b"]
    client.cancel(job, reason="enough")
    assert client.wait(job, timeout=30).status == "cancelled"
    with pytest.raises(glia.ConflictError):
        client.cancel(job)
    with pytest.raises(glia.JobFailedError) as failed:
        client.result(job)
    assert failed.value.job.status == "cancelled"
    box.write("go", "")
    second = client.retry(job, run_id="verbs-2")
    assert client.wait(second, timeout=30).retry_of == job.job_id
    assert client.result(second, "b") is None
    with pytest.raises(glia.NotFoundError):
        client.result(second, "nobody")
    assert client.remove(job) >= 0
    with pytest.raises(glia.NotFoundError):
        client.status(job)
    assert "glia_" in client.metrics()
    assert client.trim(keep_jobs=1)["removed_jobs"] == 0


def test_words_with_odd_characters_stay_words(client):
    odd = "a/b?c=d&e %25 #\u00fc"
    job = client.submit({"name": odd, **NOOP})
    assert [one.job_id for one in client.jobs(name=odd)] == [job.job_id]
    assert list(client.jobs(name="a/b?c=d")) == []
    for ask in (client.status, client.wait, client.why, client.attempts,
                lambda job: list(client.watch(job)), lambda job: list(client.logs(job, "a"))):
        for word in (odd, "../../node", "jobs:batch"):
            with pytest.raises(glia.NotFoundError):
                ask(word)
    for word in (odd, "a/../b"):
        with pytest.raises((glia.InvalidError, glia.NotFoundError)):
            client.signal(job, word)
        with pytest.raises(glia.NotFoundError):
            list(client.logs(job, word))


def test_a_run_id_with_other_content_is_a_conflict(client):
    client.submit(NOOP, run_id="same")
    with pytest.raises(glia.ConflictError) as caught:
        client.submit({"steps": {"b": {"noop": True}}}, run_id="same")
    assert caught.value.code == "exists"


def test_flows_that_are_none_are_refused_with_a_sentence(box, client):
    import pathlib  # pylint: disable=import-outside-toplevel
    yaml = pathlib.Path(box.write("flow.yaml", "steps: {a: {noop: true}}"))
    for bad in ("steps: {a: {noop: true}}", yaml):
        with pytest.raises(glia.InvalidError) as caught:
            client.submit(bad)
        assert "glia run" in caught.value.hint
    for bad in ("[]", pathlib.Path(box.folder, "nobody.json")):
        with pytest.raises(glia.InvalidError):
            client.submit(bad)
    with pytest.raises(glia.InvalidError) as caught:
        client.submit({"steps": {"a": {"script": "x.sh"}}})
    assert caught.value.details[0]["path"] == "steps.a.script"
    with pytest.raises(ValueError):
        client.submit({"steps": {"a": {"noop": float("nan")}}})
    assert client.submit(json.dumps(NOOP)).job_id


def test_files_that_are_executable_stay_so(box, client):
    import pathlib  # pylint: disable=import-outside-toplevel
    box.write("tool", "#!/bin/sh\necho \"tool $0\"\n", mode=0o755)
    box.write("f.json", json.dumps({"steps": {
        "a": {"script": "tool"}, "b": {"sh": "./t; cat d/x", "files": {"t": "tool", "d/x": "x"}}}}))
    box.write("x", "marker-7\n")
    job = client.run(pathlib.Path(box.folder, "f.json"), timeout=30)
    assert [line.text for line in client.logs(job)] == ["tool ./tool", "tool ./t", "marker-7"]
    # A path that leads elsewhere is left to the node, which refuses it.
    box.write("g.json", json.dumps({"steps": {"a": {"script": "../secret"}}}))
    with pytest.raises(glia.InvalidError):
        client.submit(pathlib.Path(box.folder, "g.json"))


# ---- inside a step ----


# ---- bundles ----

TOLD = """
import json, os, sys
print(json.dumps({"complete_run": {
    "config": json.loads(os.environ["MN_BLUEPRINT_CONFIG_JSON"]),
    "files": sorted(os.path.relpath(os.path.join(at, name)) for at, _, names in os.walk(".")
                    for name in names),
    "runs": os.access("tool", os.X_OK), "message": json.load(open(os.environ["MN_INPUT_FILE"]))}}))
"""


@pytest.fixture(name="bundle")
def make_bundle(tmp_path):
    folder = tmp_path / "a bundle"
    files = folder / "payloads" / "files"
    (files / "empty").mkdir(parents=True)
    (files / "main.py").write_text(TOLD)
    (files / "tool").write_text("#!/bin/sh\n")
    (files / "tool").chmod(0o755)
    (folder / "config").mkdir()
    (folder / "config" / "default.json").write_text('{"a": {"b": 1, "c": 1, "d": 1}, "e": [1]}')
    (folder / "config" / "overwrite.json").write_text('{"a": {"c": 2, "d": 2}, "e": [2]}')
    node = {"node_id": "tell", "agent_type": "executor",
            "config": {"upload_path": "files", "workdir": "/sandbox/job/files",
                       "command": ["python3", "main.py"], "terminal_sink": True,
                       "complete_run": True}}
    (folder / "manifest.json").write_text(json.dumps({
        "manifest_version": "1.0", "graph_id": "told", "job_name": "told", "nodes": [node],
        "edges": [], "entrypoints": ["tell"], "initial_inputs": {"tell": [{"n": 1, "m": 1}]}}))
    return folder


def test_a_bundle_goes_as_the_command_sends_it(box, client, bundle):
    inputs = {"a": {"d": 3}, "inputs": {"payload": {"m": 2}}}
    told = client.result(client.run(bundle, inputs=inputs, timeout=60))["output"]
    assert told["config"]["a"] == {"b": 1, "c": 2, "d": 3} and told["config"]["e"] == [2]
    assert {"main.py", "tool"} <= set(told["files"])
    assert told["runs"]
    assert told["message"] == {"n": 1, "m": 2}
    box.glia("run", str(bundle), "--set", "a.d=3", "--set", "inputs.payload.m=2", "--run-id", "it")
    client.run(bundle / "manifest.json", inputs=inputs, run_id="me", timeout=60)
    mine, theirs = (client.result(one)["output"] for one in ("me", "it"))
    assert [one["config"].pop("identity")["run_id"] for one in (mine, theirs)] == ["me", "it"]
    assert mine == theirs


def test_bundles_go_in_a_batch_each_with_its_inputs(client, bundle):
    many = [glia.Submission(run_id=f"b-{n}", inputs={"a": {"d": n}}) for n in range(3)]
    answers = client.submit_many([*many, glia.Submission(flow=NOOP)], flow=bundle)
    results = [client.result(client.wait(one, timeout=60))["output"] for one in answers[:3]]
    assert [one["config"]["a"]["d"] for one in results] == [0, 1, 2]
    assert client.wait(answers[3], timeout=60).name == "flow"
    assert all(one.existing for one in client.submit_many(many, flow=bundle))


@pytest.mark.parametrize("name, make", [
    ("link out", lambda b: (b / "payloads" / "out").symlink_to("/etc/passwd")),
    ("loop", lambda b: (b / "payloads" / "round").symlink_to(".")),
    ("pipe", lambda b: os.mkfifo(b / "payloads" / "pipe")),
    ("no manifest", lambda b: (b / "manifest.json").unlink()),
    ("broken manifest", lambda b: (b / "manifest.json").write_text("{")),
    ("list as config", lambda b: (b / "config" / "default.json").write_text("[]")),
    ("name twice", lambda b: (b / "scenario.json").write_text('{"a": 1, "a": 2}')),
    ("NaN", lambda b: (b / "scenario.json").write_text('[NaN]')),
    ("1e999", lambda b: (b / "scenario.json").write_text('[1e999]')),
    ("deep", lambda b: (b / "scenario.json").write_text("[" * 100000)),
    ("pipe as scenario", lambda b: os.mkfifo(b / "scenario.json")),
    ("large", lambda b: os.truncate(b / "payloads" / "files" / "tool", 4 << 30)),
    ("dangling link", lambda b: (b / "payloads" / "gone").symlink_to("nowhere")),
    ("name", lambda b: open(os.fsencode(b / "payloads") + b"/\xff", "w",
                            encoding="utf-8").close()),
])
def test_folders_that_are_no_bundle_are_refused_with_a_sentence(client, bundle, name, make):
    make(bundle)
    with pytest.raises(glia.InvalidError) as refused:
        client.submit(bundle)
    python = re.compile(r"Expecting .*|'utf-8' codec .*")  # its own words
    GOLDEN.says(f"bundle, {name}", str(refused.value), [bundle, python])
    assert not list(client.jobs())


def test_a_step_reads_its_input_and_leaves_its_output(client):
    program = """
from glia import step
assert step.is_step() and step.job_id() and step.run_id() and step.idempotency_key()
assert 0 < step.seconds_left() <= 60 and step.deadline() is not None
step.output("not this")
step.output([step.step_id(), step.index(), step.item(), step.output_of("list"), step.attempt()])
"""
    job = client.run({"steps": {
        "list": {"sh": "echo '{\"list\": [\"x\", null, \"ü\"]}'"},
        "each": {"needs": "list", "foreach": "${steps.list.output.list}", "python": program,
                 "timeout": "60s", "env": {"PYTHONPATH": SDK}}}}, timeout=60)
    whole = {"list": ["x", None, "ü"]}
    assert client.result(job, "each") == [
        [f"each[{n}]", n, item, whole, 1] for n, item in enumerate(whole["list"])]


def test_what_a_step_lacks_is_told(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GLIA_")]:
        monkeypatch.delenv(name)
    assert not glia.step.is_step()
    for ask in (glia.step.input, glia.step.item, glia.step.job_id, glia.step.deadline,
                lambda: glia.step.output(1), lambda: glia.step.output_of("a")):
        with pytest.raises(glia.step.NotAStepError):
            ask()
    (tmp_path / "in").write_text('{"steps": {"a": {"output": 1}}}')
    monkeypatch.setenv("GLIA_INPUT_FILE", str(tmp_path / "in"))
    monkeypatch.setenv("GLIA_OUTPUT", str(tmp_path / "out"))
    monkeypatch.setenv("GLIA_ATTEMPT_ID", "a:attempt:1")
    assert glia.step.output_of("a") == 1
    assert glia.step.seconds_left() is None
    for ask in (glia.step.item, glia.step.index, lambda: glia.step.output_of("b")):
        with pytest.raises(glia.step.NotAStepError):
            ask()
    with pytest.raises(ValueError):
        glia.step.output("x" * (1 << 20))
    assert not (tmp_path / "out").exists()
