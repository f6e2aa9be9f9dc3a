"""Bundles that mean no good: each has a clear outcome, and the node is none the worse."""

import json
import os
import subprocess
import time

import pytest

from bundlework import Bundle, Runner, item, validate
from glianode import Box, keepers, wait_for
from httpnode import serve

SOAK = bool(os.environ.get("GLIA_SOAK"))


def small(runner, tmp_path, bundle, *args, **options):
    return runner.run(bundle.write(tmp_path / "bundle"), *args, **options)


def raw(tmp_path, text):
    folder = tmp_path / "bundle"
    os.makedirs(folder / "payloads", exist_ok=True)
    with open(folder / "manifest.json", "wb") as file:
        file.write(text)
    return folder


def refused(box, folder, *words):
    done = box.glia("run", str(folder), code=2)
    for word in words:
        assert word in done.stderr, done.stderr
    assert box.glia("job", "list").stdout == ""


@item("B-H-1")
def test_a_manifest_of_100_mb(box, tmp_path):
    folder = raw(tmp_path, b'{"graph_id": "')
    with open(folder / "manifest.json", "r+b") as file:
        file.truncate(100_000_000)
    refused(box, folder, "manifest.json", "67108864 bytes")


@item("B-H-2")
def test_very_many_agents(tmp_path):
    """Chains of routers side by side: the sink needs a message through every single one."""
    side = 316 if SOAK else 100
    box = Box(tmp_path / "box")
    os.makedirs(box.folder)
    b = Bundle("many")
    b.sink(complete_on_message=False, complete_after=side).agent("in", "router").seed("in", {})
    for row in range(side):
        names = ["in", *(f"r{row}_{n}" for n in range(side)), "sink"]
        for name in names[1:-1]:
            b.agent(name, "router")
        b.chain(*names, kind="init")
    try:
        runner = Runner(box)
        process = runner.start(b.write(tmp_path / "bundle"), run_id="many")
        assert process.wait(900) == 0, box.read(process.err)
        begin = time.monotonic()
        assert box.json("job", "status", "many")["result"]["output"]["count"] == side
        print(f"{side * side} agents: the status takes {time.monotonic() - begin:.1f} s")
    finally:
        box.close()


@item("B-H-3")
@pytest.mark.parametrize("text, words", [
    (b'{"graph_id": "\xff\xfe", "nodes": []}', ["manifest.json:1:", "UTF-8"]),
    (b'{"nodes": ' + b"[" * 100000 + b"]" * 100000 + b"}", ["manifest.json:1:", "nest"]),
    (b'{"graph_id": "x",\n "nodes": [1, 2', ["manifest.json:2:"]),
    (b"\0\0\0\0", ["manifest.json:1:"]),
    (b"", ["manifest.json"]),
    (b"[]", ["manifest.json"]),
], ids=["utf8", "deep", "half", "nul", "empty", "list"])
def test_what_is_no_manifest(box, tmp_path, text, words):
    refused(box, raw(tmp_path, text), *words)


@item("B-H-3", "B-3-7")
def test_a_cycle_is_named(box, tmp_path):
    b = Bundle("cycle").worker("a", "", ["c"]).worker("b", "", ["a"]).worker("c", "", ["b"])
    b.seed("a")
    valid, errors = validate(box, b.write(tmp_path / "bundle"))
    assert not valid and any("cycle" in message for _, message in errors), errors


@item("B-H-4", "B-7.1-2")
def test_a_link_out_of_the_bundle(box, tmp_path):
    folder = Bundle("link").worker("a").seed("a").write(tmp_path / "bundle")
    os.symlink("/etc/passwd", f"{folder}/payloads/innocent.txt")
    refused(box, folder, "innocent.txt")
    os.remove(f"{folder}/payloads/innocent.txt")
    os.symlink("../../..", f"{folder}/payloads/up")
    refused(box, folder, "up")


@item("B-H-4")
def test_a_link_inside_the_bundle_is_a_file(alone, tmp_path):
    b = Bundle("inside").worker("a", "note('read', open('link.txt').read())", upload_path=".",
                                upload_as=".",
                                output_message_type="done").ends("a").seed("a")
    b.files["payloads/real.txt"] = "real"
    folder = b.write(tmp_path / "bundle")
    os.symlink("real.txt", f"{folder}/payloads/link.txt")
    assert alone.run(folder).lines("read") == ["real"]


@item("B-H-4")
def test_pipes_and_devices_are_refused(box, tmp_path):
    folder = Bundle("pipe").worker("a").seed("a").write(tmp_path / "bundle")
    os.mkfifo(f"{folder}/payloads/pipe")
    refused(box, folder, "pipe")


@item("B-H-4", "B-12-5")
def test_artifacts_do_not_leave_the_run(alone, tmp_path):
    b = Bundle("leak").worker("a", """
os.symlink("/etc/passwd", os.path.join(folder, "stolen"))
os.symlink("/etc", os.path.join(folder, "dir"))
note("fine", 1)
""",
                              output_message_type="done").ends("a").seed("a")
    ran = small(alone, tmp_path, b)
    listed = alone.box.json("job", "artifacts", ran.run_id)["artifacts"]
    paths = {a["path"]: a for a in listed}
    assert "fine" in paths and not any(p.startswith("dir/") for p in paths)
    with open("/etc/passwd", "rb") as file:
        import hashlib
        assert hashlib.sha256(file.read()).hexdigest() not in json.dumps(listed)


@item("B-H-4")
@pytest.mark.parametrize("run_id", ["../escape", "a/b", "..", "."])
def test_a_run_id_that_is_a_path(box, tmp_path, run_id):
    folder = Bundle("id").worker("a").seed("a").write(tmp_path / "bundle")
    Runner(box)
    box.glia("run", folder, "--run-id", run_id, code=2)
    assert not os.path.exists(os.path.join(box.folder, "escape"))


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) >> 10


def size_of(folder):
    done = subprocess.run(["du", "-sm", folder], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


@item("B-H-5")
def test_a_worker_that_prints_without_end(tmp_path):
    """1 GiB, ten in a soak: memory and disk stay as they are."""
    box = Box(tmp_path / "box")
    os.makedirs(box.folder)
    runner = Runner(box)
    serve(box)
    try:
        small(runner, tmp_path / "warm",
              Bundle("warm").worker("a", output_message_type="done").ends("a").seed("a"))
        pids = [box.started[0].pid, *keepers(box.data)]
        before = [memory_of(pid) for pid in pids]
        gib = 10 if SOAK else 1
        b = Bundle("flood").worker("a", "block = (b'x' * 1023 + b'\\n') * 64\n"
                                   f"for n in range({gib} << 14):\n    os.write(1, block)",
                                   output_message_type="done", timeout_seconds=900)
        process = runner.start(b.ends("a").seed("a").write(tmp_path / "bundle"))
        assert process.wait(900) == 0, box.read(process.err)
        ran = runner.finish(process)
        assert ran.statuses == {"a": "completed"}
        assert "output" not in ran.steps["a"]  # too large for a status
        output = json.loads(box.glia("job", "result", ran.job_id, "a").stdout)
        assert 1 << 19 < len(output["sandbox"]["stdout"]) < (1 << 20) + 1000
        grown = [memory_of(pid) - was for pid, was in zip(pids, before)]
        assert len(pids) == 2 and max(grown) < 64, (before, grown)
        assert size_of(box.data) < 128, "a log has its limit"
    finally:
        box.close()


@item("B-H-6", "B-7.4-1")
def test_half_a_json(served, tmp_path):
    b = Bundle("half").worker("a",
                              "sys.stdout.write('{\"complete_step\": {\"n\": 1}, \"events\": [')",
                              output_message_type="done").ends("a").seed("a")
    ran = small(served, tmp_path, b)
    assert ran.steps["a"]["output"]["sandbox"]["stdout"].startswith('{"complete_step"'), ran


@item("B-H-7")
def test_a_worker_that_forks_and_leaves(served, tmp_path):
    b = Bundle("fork").worker("a", """
if os.fork() == 0:
    note("child", os.getpid())
    time.sleep(600)
wait_file("child")
say(x=1)
sys.stdout.flush()
os._exit(0)
""", output_message_type="done").ends("a").seed("a")
    ran = small(served, tmp_path, b)
    assert json.loads(ran.steps["a"]["output"]["sandbox"]["stdout"]) == {"x": 1}
    wait_for("the child to end", lambda: not os.path.exists(f"/proc/{ran.lines('child')[0]}"))


@item("B-H-7")
def test_a_worker_that_closes_stdout_and_goes_on(served, tmp_path):
    b = Bundle("close").worker("a", """
print('{"x": 1}', flush=True)
os.close(1)
os.close(2)
time.sleep(0.5)
note("after", 1)
os._exit(0)
""", output_message_type="done").ends("a").seed("a")
    ran = small(served, tmp_path, b)
    assert ran.lines("after") == [1] and ran.statuses == {"a": "completed"}
    assert json.loads(ran.steps["a"]["output"]["sandbox"]["stdout"]) == {"x": 1}


@item("B-H-8")
def test_a_worker_that_never_reads_its_input(served, tmp_path):
    b = Bundle("deaf").agent("a", "executor", runner_module="HostLocal", command=["true"],
                             output_message_type="done").step("a")
    ran = small(served, tmp_path,
                b.ends("a").seed("a", {"text": "z" * 200000}))
    assert ran.statuses == {"a": "completed"}


@item("B-H-6")
@pytest.mark.parametrize("said", [
    "print('[' * 100000)", "sys.stdout.buffer.write(bytes(range(256)) * 10)",
    "say(events=7, emit_messages={'a': 1}, next_state=None)",
    "say(emit_messages=[5, {}, {'type': 7}, {'type': 't', 'to': ''}])"])
def test_odd_things_on_stdout(served, tmp_path, said):
    """The job ends, one way or the other, and says so."""
    b = Bundle("odd").worker("a", said, output_message_type="done").ends("a").seed("a")
    ran = small(served, tmp_path, b, code=None)
    assert ran.status["status"] in ("completed", "failed"), ran


@item("B-H-5")
def test_a_state_above_its_limit_fails_the_attempt(served, tmp_path):
    b = Bundle("state").worker("a", "say(next_state={'x': 'y' * (3 << 20)})",
                               max_output_bytes=8 << 20)
    ran = small(served, tmp_path, b.sink().edge("a", "sink").seed("a"), code=1)
    assert ran.statuses == {"a": "failed"}, ran


@item("B-H-5")
def test_more_messages_than_one_may_cause(served, tmp_path):
    b = Bundle("storm").worker("a", "say(emit_messages=[{'type': 't', 'body': 1}] * 10001)",
                               max_output_bytes=8 << 20,
                               output_message_type=None).agent("r", "router").sink()
    ran = small(served, tmp_path, b.edge("a", "r", "t").edge("r", "sink", "t").seed("a"), code=1)
    assert ran.statuses == {"a": "failed"} and "10000" in json.dumps(ran.steps["a"]), ran


@item("B-5.3-6")
def test_messages_that_go_round_and_round_end_with_a_cancel(served, tmp_path):
    b = Bundle("round").agent("a", "router").agent("b", "router").chain("a", "b", "a", kind="*")
    b.seed("a", {})
    process = served.start(b.write(tmp_path / "bundle"))
    wait_for("the job", lambda: process.run_id in served.box.glia("job", "list").stdout)
    served.box.glia("job", "cancel", process.run_id)
    assert served.finish(process, code=1).status["status"] == "cancelled"


# Only root can mount.
if os.geteuid() == 0:

    @item("B-H-9")
    def test_a_worker_that_fills_the_disk(tmp_path):
        disk = str(tmp_path / "disk")
        os.makedirs(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "glia-test", disk],
                       check=True)
        box = Box(tmp_path / "box", data=os.path.join(disk, "data"))
        os.makedirs(box.folder)
        runner = Runner(box)
        try:
            serve(box)
            b = Bundle("fill").worker("a", """
with open("fat", "wb", buffering=0) as file:
    while True:
        file.write(b"x" * 65536)
""", max_attempts=1).sink().edge("a", "sink").seed("a")
            ran = small(runner, tmp_path / "fill", b, code=1)
            assert ran.statuses == {"a": "failed"}, ran
            assert "[Errno 28]" in ran.steps["a"]["terminal_reason"], ran
            fine = Bundle("fine").worker("a", output_message_type="done").ends("a").seed("a")
            small(runner, tmp_path / "fine", fine)
        finally:
            box.close()
            subprocess.run(["umount", "-l", disk], check=True)
