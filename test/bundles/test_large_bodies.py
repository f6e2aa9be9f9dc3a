"""Bodies above 256 KiB: they are not in their message, which names them, and lie in the store in
pieces until the last message that has them is dealt with."""

import gzip
import hashlib
import json
import os

import golden
import pytest
from bundlework import Bundle, item
from glianode import BUILD, wait_for
from httpnode import serve
from records import open_records

GOLDEN = golden.of(__file__)
MIB = 1 << 20

# Leaves in the file `got` what its worker was given.
LOOK = """
import hashlib
def content(name):
    with open(os.environ[name], "rb") as file:
        return file.read()
message = load("MN_MESSAGE_FILE")
note("got", {"agent": os.environ["MN_AGENT_ID"],
             "input": hashlib.sha256(content("MN_INPUT_FILE")).hexdigest(),
             "body": hashlib.sha256(content("MN_BODY_FILE")).hexdigest(),
             "bytes": len(content("MN_INPUT_FILE")),
             "inside": message["body"], "artifacts": message["artifacts"]})
"""


def big(n=3 * MIB):
    """Python for a body of about this size that is no repetition of itself."""
    return f"{{'agent_id': 'a', 'text': ''.join('%07d,' % i for i in range({n} // 8))}}"


def text_of(n=3 * MIB, separators=None):
    value = {"agent_id": "a", "text": "".join("%07d," % i for i in range(n // 8))}
    return json.dumps(value, separators=separators).encode()


def sender(b, kind="big", n=3 * MIB, **config):
    return b.worker("a", f"emit(('{kind}', {big(n)}))", output_message_type=None,
                    **{"max_output_bytes": 8 * MIB, **config})


def small(runner, tmp_path, b, code=0):
    return runner.run(b.write(tmp_path / "bundle"), code=code)


def pieces(box, run_id):
    """Of one job."""
    job = box.json("job", "status", run_id)["job_id"]
    with open_records(box) as records:
        return sorted(i for i in records.ids("body") if i.startswith(job + "/"))


def kill(box):
    node = [p for p in box.started if p.poll() is None][-1]
    node.kill()
    node.wait()


@item("B-5.1-5")
def test_a_worker_has_it_in_its_files_and_its_message_names_it(served, tmp_path):
    b = sender(Bundle("named"))
    b.worker("b", LOOK + "emit(('done', {}))", ["a"], output_message_type=None)
    ran = small(served, tmp_path, b.ends("b").edge("a", "b", "big").seed("a", {}))
    [got] = ran.lines("got")
    digest = hashlib.sha256(text_of()).hexdigest()
    assert got["input"] == got["body"] == digest
    assert got["inside"] is None
    [named] = got["artifacts"]
    assert (named["name"], named["sha256"], named["bytes"]) == ("glia:body", digest, got["bytes"])
    assert pieces(served.box, ran.run_id) == []


def test_what_is_large_can_be_set(box, alone, tmp_path):
    box.env["GLIA_BODY_BYTES"] = "4K"
    b = Bundle("set").worker("a", "emit(('big', 'y' * 5000))", output_message_type=None)
    b.worker("b", LOOK + "emit(('done', {}))", ["a"], output_message_type=None)
    [got] = small(alone, tmp_path, b.ends("b").edge("a", "b", "big").seed("a", {})).lines("got")
    assert got["inside"] is None and got["bytes"] == 5002


def test_it_is_not_passed_off_as_another(served, tmp_path):
    """An answer does not inherit the body, and a worker cannot name one itself."""
    b = sender(Bundle("not"))
    b.worker("b", "say(emit_messages=[{'type': 'small', 'body': {'n': 1}, 'artifacts': "
                  "load('MN_MESSAGE_FILE')['artifacts'] + [{'name': 'mine'}]}])", ["a"],
             output_message_type=None)
    b.worker("c", LOOK + "emit(('done', {}))", ["b"], output_message_type=None)
    b.ends("c").edge("a", "b", "big").edge("b", "c", "small").seed("a", {})
    [got] = small(served, tmp_path, b).lines("got")
    assert got["inside"] == {"n": 1} and got["artifacts"] == [{"name": "mine"}]


def test_conditions_routers_and_aggregators_see_all_of_it(served, tmp_path):
    b = sender(Bundle("through"), n=MIB)
    b.agent("route", "router").agent("left", "router", emit_type="passed")
    b.agent("all", "aggregator", complete_after=2, output_message_type="all")
    b.worker("b", LOOK + """
assert body["count"] == 2 and [m["agent_id"] for m in body["messages"]] == ["a", "x"], body["count"]
note("texts", [len(m.get("text", "")) for m in body["messages"]])
emit(("done", {}))
""", step=False, output_message_type=None)
    b.edge("a", "route", "big").edge("route", "left", "big",
                                     conditions={"path": "payload.agent_id", "value": "a"})
    b.edge("route", "sink", "big", conditions={"path": "payload.agent_id", "value": "other"})
    b.edge("left", "all", "passed").edge("all", "b", "all").ends("b")
    b.worker("x", "emit(('passed', {'agent_id': 'x'}))", ["a"], output_message_type=None)
    b.edge("x", "all", "passed").seed("a", {})
    ran = small(served, tmp_path, b)
    assert ran.lines("texts") == [[MIB // 8 * 8, 0]]
    assert pieces(served.box, ran.run_id) == []


def test_many_receivers_share_one(served, tmp_path):
    names = ["b", "c", "d"]
    b = sender(Bundle("shared"), n=2 * MIB + 5)
    for name in names:
        b.worker(name, "note('here', 1)\nwait_file('go')\n" + LOOK + f"say(agent='{name}')", ["a"],
                 output_message_type="done")
        b.edge("a", name, "big").edge(name, "sink", "done")
    b.sink(complete_on_message=False, complete_after=len(names)).seed("a", {})
    process = served.start(b.write(tmp_path / "bundle"))
    box = served.box
    served.wait_file(process.run_id, "here")

    def running():
        status = box.json("job", "status", process.run_id)["workflow_state"]["steps"]
        return all(status.get(n, {}).get("status") == "running" for n in names)
    wait_for("the receivers", running)
    assert [p.split("/")[2] for p in pieces(box, process.run_id)] == ["0000", "0001", "0002"]
    served.touch(process.run_id, "go")
    got = served.finish(process).lines("got")
    digest = hashlib.sha256(text_of(2 * MIB + 5)).hexdigest()
    assert sorted(g["agent"] for g in got) == names
    assert {g["input"] for g in got} == {digest}
    assert pieces(box, process.run_id) == []


@item("B-5.1-4")
def test_other_types_and_packed_ones(served, tmp_path):
    b = Bundle("types").worker("a", """
import base64
text = ''.join('%07d ' % i for i in range(100000))
say(emit_messages=[
    {'type': 'plain', 'body': text, 'content_type': 'text/plain'},
    {'type': 'packed', 'body': {'t': text}, 'content_encoding': 'gzip'},
    {'type': 'bytes', 'body_base64': base64.b64encode(bytes(range(256)) * 2000).decode()}])
""", output_message_type=None, max_output_bytes=8 * MIB)
    b.worker("b", """
import hashlib
with open(os.environ["MN_BODY_FILE"], "rb") as file:
    raw = file.read()
message = load("MN_MESSAGE_FILE")
kind = message["envelope"]["type"]
with open(os.path.join(folder, kind + ".bin"), "wb") as file:
    file.write(raw)
note("kinds", [kind, message["body"]])
if kind == "bytes":
    say(complete_step=True, emit_messages=[{"type": "done", "body": {}}])
""", ["a"], output_message_type=None, workflow_complete_step=False)
    for kind in ("plain", "packed", "bytes"):
        b.edge("a", "b", kind)
    ran = small(served, tmp_path, b.ends("b").seed("a", {}))
    text = "".join("%07d " % i for i in range(100000))
    assert ran.lines("kinds") == [["plain", None], ["packed", None], ["bytes", None]]
    assert ran.read("plain.bin") == text

    def raw(name):
        with open(os.path.join(ran.folder, name), "rb") as file:
            return file.read()
    assert json.loads(gzip.decompress(raw("packed.bin"))) == {"t": text}
    assert raw("bytes.bin") == bytes(range(256)) * 2000
    assert pieces(served.box, ran.run_id) == []


def test_a_module_has_it_in_its_message(alone, tmp_path):
    alone.env["GLIA_MODULES_DIR"] = os.path.join(BUILD, "test", "modules")
    b = Bundle("module").worker(
        "a", "emit(('big', {'do': 'linger', 'ms': 1, 'text': 'y' * 600000}))",
        output_message_type=None).agent("m", "module", module="test.say")
    b.worker("b", LOOK + "emit(('done', {}))", step=False, output_message_type=None)
    b.edge("a", "m", "big").edge("m", "b", "lingered").ends("b").seed("a", {})
    [got] = small(alone, tmp_path, b).lines("got")
    assert got["bytes"] > 600000 and got["inside"] is None


def test_a_person_sends_one(served, tmp_path):
    b = Bundle("sent").worker("a", "note('ready', 1)", step=False, output_message_type=None)
    b.worker("b", LOOK + "emit(('done', {}))", step=False, output_message_type=None)
    b.manifest["policies"] = {"job_type": "service"}
    process = served.start(b.ends("b").seed("a", {}).write(tmp_path / "bundle"))
    served.wait_file(process.run_id, "ready")
    path = tmp_path / "body.json"
    path.write_bytes(text_of())
    served.box.glia("send", process.run_id, "b", "--body-file", str(path))
    [got] = served.finish(process).lines("got")
    compact = text_of(separators=(",", ":"))
    assert got["input"] == hashlib.sha256(compact).hexdigest()
    too_large = tmp_path / "too-large.json"
    too_large.write_text(json.dumps("y" * (17 * MIB)))
    done = served.box.glia("send", process.run_id, "b", "--body-file", str(too_large), code=None)
    assert done.returncode != 0 and "too-large.json" in done.stderr, done.stderr


def test_a_dead_letter_keeps_it_and_is_sent_again_with_it(served, tmp_path):
    b = Bundle("dead").worker("a", f"""
say(emit_messages=[{{'type': 'hold', 'body': {{}}}},
                   {{'type': 'big', 'body': {big()}, 'ttl_ms': 1}}])
""", output_message_type=None, max_output_bytes=8 * MIB)
    b.worker("b", LOOK + """
if body == {}:
    wait_file('go')
else:
    say(complete_step=True, emit_messages=[{"type": "done", "body": {}}])
""", ["a"], output_message_type=None, workflow_complete_step=False)
    b.edge("a", "b", "hold").edge("a", "b", "big").ends("b").seed("a", {})
    b.manifest["policies"] = {"job_type": "service"}
    process = served.start(b.write(tmp_path / "bundle"))
    box = served.box
    served.wait_file(process.run_id, "got")
    served.touch(process.run_id, "go")

    def dead():
        return box.json("job", "dead-letters", process.run_id)["dead_letters"]
    [found] = wait_for("the dead letter", dead)
    assert found["message"]["artifacts"][0]["name"] == "glia:body"
    assert len(pieces(box, process.run_id)) == 4  # three MiB and a little
    box.glia("job", "dead-letters", process.run_id, "--redrive", str(found["number"]))
    got = served.finish(process).lines("got")
    assert got[-1]["input"] == hashlib.sha256(text_of()).hexdigest()


@pytest.mark.parametrize("kind", ["worker", "relay"])
def test_a_node_that_is_killed_finds_it_again(box, alone, tmp_path, kind):
    b = sender(Bundle("killed"), idempotent=True)
    b.worker("b", LOOK + "wait_file('go')\nemit(('done', {}))",
             [] if kind == "relay" else ["a"], step=kind == "worker", idempotent=True,
             output_message_type=None)
    if kind == "relay":
        b.agent("r", "router").edge("a", "r", "big").edge("r", "b", "big")
    else:
        b.edge("a", "b", "big")
    b.ends("b").seed("a", {})
    serve(box)
    process = alone.start(b.write(tmp_path / "bundle"))
    alone.wait_file(process.run_id, "got")
    process.kill()
    process.wait()
    kill(box)
    serve(box)
    alone.touch(process.run_id, "go")

    def status():
        return box.json("job", "status", process.run_id)["status"] == "completed"
    wait_for("the end", status)
    with open(os.path.join(alone.folder_of(process.run_id), "got"), encoding="utf-8") as file:
        got = [json.loads(line) for line in file]
    assert {g["input"] for g in got} == {hashlib.sha256(text_of()).hexdigest()}
    assert pieces(box, process.run_id) == []


def held(kind, n=MIB):
    """`a` sends a large body and a message that holds up `b`; behind it waits the large one, or an
    aggregator that has got it waits for what `b` sends."""
    b = Bundle("harmed").worker("a", f"emit(('hold', {{}}), ('big', {big(n)}))",
                                output_message_type=None, max_output_bytes=8 * MIB)
    b.worker("b", LOOK + """
note('held', 1)
wait_file('go')
emit(('second', {'agent_id': 'b'}) if body == {} else ('done', {}))
""", step=False, idempotent=True, output_message_type=None)
    b.edge("a", "b", "hold").ends("b")
    if kind == "worker":
        b.edge("a", "b", "big")
    else:
        b.agent("all", "aggregator", complete_after=2, output_message_type="all")
        b.edge("a", "all", "big").edge("b", "all", "second").edge("all", "b", "all")
    return b.seed("a", {})


def spoil(box, run_id):
    """The first piece of it; gives back how to mend that."""
    piece = pieces(box, run_id)[0]
    kill(box)
    with open_records(box) as records:
        good = records.read("body", piece)
        bad = good[:-1] + (b"?" if isinstance(good, bytes) else "?")
        records.write("body", piece, bad)
    serve(box)

    def mend():
        kill(box)
        with open_records(box) as records:
            records.write("body", piece, good)
        serve(box)
    return mend


@item("B-9-8")
@pytest.mark.parametrize("kind", ["worker", "aggregator"])
def test_one_that_is_damaged_holds_its_job_until_it_is_mended(box, alone, tmp_path, kind):
    run_id = "r1"
    serve(box)
    box.glia("run", held(kind).write(tmp_path / "bundle"), "--run-id", run_id, "--detach")
    alone.wait_file(run_id, "held")
    mend = spoil(box, run_id)
    alone.touch(run_id, "go")

    def ended():
        status = box.json("job", "status", run_id)
        return status if status["status"] in ("paused", "failed", "completed") else None
    status = wait_for("the pause", ended)
    assert (status["status"], status["recovery_requires_review"]) == ("paused", True), status
    assert "body" in status["reason"] and "resume" in status["reason"], status
    mend()
    box.glia("job", "resume", run_id)
    wait_for("the end", lambda: box.json("job", "status", run_id)["status"] == "completed")


def test_a_message_whose_text_is_gone_holds_its_job(box, alone, tmp_path):
    """Above 2 KiB its text is a record of its own, of which the record "letter" has only a part."""
    serve(box)
    box.glia("run", held("worker", 8000).write(tmp_path / "bundle"), "--run-id", "r1", "--detach")
    alone.wait_file("r1", "held")
    kill(box)
    with open_records(box) as records:
        [name] = records.ids("message")
        records.remove("message", name)
    serve(box)
    alone.touch("r1", "go")

    def ended():
        status = box.json("job", "status", "r1")
        return status if status["status"] in ("paused", "failed", "completed") else None
    status = wait_for("the pause", ended)
    assert (status["status"], status["recovery_requires_review"]) == ("paused", True), status
    GOLDEN.says("missing", status["reason"])


def test_many_relays_do_not_read_it_at_once(box, alone, tmp_path):
    """Each has to look at it; the node has few of them in memory at a time."""
    b = sender(Bundle("wide"), n=4 * MIB)
    for n in range(24):
        b.agent(f"r{n}", "router").edge("a", f"r{n}", "big")
        b.edge(f"r{n}", "sink", "big", conditions={"path": "payload.agent_id", "value": "x"})
    serve(box)
    b.sink().seed("a", {}).write(tmp_path / "bundle")
    ran = alone.run(tmp_path / "bundle")
    assert len(ran.of("route_not_matched")) == 24
    with open(f"/proc/{box.started[0].pid}/status", encoding="ascii") as file:
        peak = [int(line.split()[1]) for line in file if line.startswith("VmHWM")][0]
    assert peak < 200 * 1024, f"{peak} KiB"
    assert pieces(box, ran.run_id) == []


def test_who_only_passes_it_on_does_not_read_it(served, tmp_path):
    b = sender(Bundle("blind")).agent("r", "router", emit_type="second")
    b.agent("s", "sensor", output_message_type="third")
    b.worker("b", LOOK + "emit(('done', {}))", step=False, output_message_type=None)
    b.edge("a", "r", "big").edge("r", "s", "second").edge("s", "b", "third").ends("b")
    ran = small(served, tmp_path, b.seed("a", {}))
    [got] = ran.lines("got")
    assert got["input"] == hashlib.sha256(text_of()).hexdigest()
    assert got["artifacts"][0]["letter"] == 2  # the one that came first
    assert pieces(served.box, ran.run_id) == []


def test_a_list_of_agents_leaves_large_states_out(alone, tmp_path):
    b, n = Bundle("states"), 12
    for i in range(n):
        size = 900_000 if i < 2 else 60_000
        b.worker(f"w{i}", f"say(next_state={{'x': 'y' * {size}}})", max_output_bytes=4 * MIB,
                 output_message_type="done").seed(f"w{i}", {})
    b.worker("last", needs=[f"w{i}" for i in range(n)], output_message_type="done")
    ran = small(alone, tmp_path, b.edge("w0", "last", "done").ends("last"))
    found = {a["agent_id"]: a for a in ran.box.json("job", "agents", ran.run_id)["agents"]}
    assert [found[f"w{i}"]["state_bytes"] > 900_000 for i in range(n)] == [True] * 2 + [False] * 10
    assert ["state" in found[f"w{i}"] for i in range(n)] == [False] * 2 + [True] * 10
    (one,) = ran.box.json("job", "agents", ran.run_id, "w1")["agents"]
    assert one["state"] == {"x": "y" * 900_000}
