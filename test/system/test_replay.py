"""The flight recorder, `glia debug dump` and `glia replay`, with the real programs."""

import json
import os
import signal
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import GLIA, wait_for  # noqa: E402

GOLDEN = golden.of(__file__)
FLOW = """
name: demo
inputs:
  mode: prod
  token: {type: string, default: a-default-secret}
  hosts: {type: list, default: [secret-host-a, secret-host-b]}
steps:
  a:
    sh: 'echo "{\\"kind\\":\\"an-output-secret\\",\\"n\\":3}" > $GLIA_OUTPUT; echo a-command-secret'
    env: {VARIABLE_NAME: an-env-secret}
  b:
    needs: a
    when: '${steps.a.output.n} == 3 and ${inputs.mode} == "prod"'
    sh: 'test -f $FLAG || { touch $FLAG; exit 3; }'
    env: {FLAG: @FLAG@}
    retry: {attempts: 3, backoff: 50ms}
  c:
    needs: b
    foreach: ${inputs.hosts}
    run: [echo, "${job.item}"]
  skipped:
    needs: a
    when: '${steps.a.output.kind} == "something else"'
    sh: echo no
  d:
    needs: c
    approval: 'a-question-secret about ${inputs.token}'
  e:
    needs: d
    signal: go
  f:
    needs: e
    run: [sleep, "0.2"]
"""


def serve(box):
    process = box.start("serve")
    wait_for("ready", lambda: "ready: process" in box.read(process.err))
    return process


def live_through_a_lot(box):
    """Retries, a kill -9, a person, a signal. Gives back the job."""
    flow = box.write("flow.yaml", FLOW.replace("@FLAG@", os.path.join(box.folder, "flag")))
    first = serve(box)
    job = box.glia("run", "--detach", "--set", "token=a-given-secret", flow).stdout.strip()
    wait_for("the approval", lambda: box.step(job, "d")["status"] == "blocked")
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = serve(box)
    box.glia("human", "respond", job, "d", "--decision", "approve", "--reason", "a-reason-secret")
    box.glia("job", "signal", job, "go", "--data", '"a-signal-secret"')
    wait_for("the end", lambda: box.json("job", "status", job)["status"] == "completed")
    return job, second


def same(told):
    return GOLDEN.tells("same", told)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_bundle_without_values_is_decided_the_same(box):
    job, node = live_through_a_lot(box)
    done = box.glia("debug", "dump", "--output", "bundle")
    assert done.stdout == "bundle\n"
    assert "left in" in done.stderr
    path = os.path.join(box.folder, "bundle")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    text = box.read("bundle")
    assert "secret" not in text.replace("secrets", "")
    assert job in text and "VARIABLE_NAME=***" in text
    head = lines_of(path)[0]["bundle"]
    assert head["redacted"] and head["facts_left_in"] == []

    replayed = box.glia("replay", "bundle")
    assert same(replayed.stdout)
    events = int(replayed.stdout.split()[0])
    assert events > 20
    told = box.glia("replay", "bundle", "--job", job).stdout
    assert "step=b n=1 running->retry_wait" in told
    assert "step=skipped ready->skipped" in told
    assert "pending->running" in told and "running->completed" in told
    told = box.glia("replay", "bundle", "--until", "5").stdout
    assert told.startswith("5 events") and same(told)

    node.terminate()
    box.finish(node)
    box.glia("debug", "dump", "--output", "later")  # also without a node
    assert same(box.glia("replay", "later").stdout)


def test_claims_without_their_names_are_decided_the_same(box):
    node = serve(box)
    won = box.json("claim", "acquire", "a-key-secret", "--owner", "an-owner-secret",
                   "--work-type", "a-type-secret", "--lease", "1h")
    box.glia("claim", "acquire", "a-key-secret", "--owner", "another-secret", code=75)
    again = box.json("claim", "renew", "a-key-secret", "--owner", "an-owner-secret",
                     "--fence", str(won["fence"]))
    assert again["fence"] == won["fence"]
    box.glia("claim", "renew", "a-key-secret", "--owner", "another-secret", "--fence", "1", code=76)
    box.glia("claim", "fail", "a-key-secret", "--owner", "an-owner-secret", "--fence", "1",
             "--error", "a-detail-secret")
    box.glia("claim", "acquire", "a-key-secret", "--owner", "another-secret", "--lease", "1s")
    wait_for("the end of the lease", lambda: box.json("claim", "reclaim")["expired"])

    box.glia("debug", "dump", "--output", "bundle")
    text = box.read("bundle")
    assert '"type":"claim"' in text and "secret" not in text.replace("secrets", "")
    box.glia("replay", "bundle")  # else it exits with 1
    box.glia("debug", "dump", "--no-redact", "--output", "all")
    assert "a-detail-secret" in box.read("all")
    box.glia("replay", "all")
    node.terminate()
    box.finish(node)


def test_everything_is_left_in_if_that_is_wanted(box):
    _, node = live_through_a_lot(box)
    done = box.glia("debug", "dump", "--no-redact", "--output", "all")
    GOLDEN.says("not redacted", golden.line_of(done.stderr, "share"))
    text = box.read("all")
    for value in ("an-env-secret", "a-given-secret", "a-signal-secret", "an-output-secret"):
        assert value in text
    assert same(box.glia("replay", "all").stdout)
    assert box.glia("debug", "dump", "--output", "all", code=None).returncode != 0  # it exists
    node.terminate()
    box.finish(node)


def test_what_is_read_by_a_condition_on_texts_is_named(box):
    flow = box.write("flow.yaml", """
name: looks
inputs: {text: hidden}
steps:
  s: {noop: true, when: '${inputs.text} contains "idd"'}
""")
    box.glia("run", flow)
    done = box.glia("debug", "dump", "--output", "bundle")
    assert "looks/s" in done.stderr
    assert lines_of(os.path.join(box.folder, "bundle"))[0]["bundle"]["facts_left_in"] == ["looks/s"]
    assert same(box.glia("replay", "bundle").stdout)


def facts_of(path):
    """What the node was told for the steps with references, in order."""
    events = [line["event"] for line in lines_of(path) if "event" in line]
    return [json.loads(e["facts"]) for e in events if e.get("facts")]


def test_only_what_a_step_reads_is_left_of_inputs_and_outputs(box):
    flow = box.write("flow.yaml", """
name: reads
inputs: {customer: {type: string, required: true}, note: hello, codes: {type: list, default: []},
         account: 4815162342, who: {type: object, default: {Mrs-Key: 1, town: Ulm-Hidden}}}
steps:
  a: {sh: "echo '{\\"n\\": 9, \\"iban\\": \\"DE0012345\\", \\"pin\\": 772299}'"}
  b: {needs: a, when: "${steps.a.output.n} > 5", noop: true}
  c: {needs: b, when: "${steps.a.output} and exists ${inputs.who}", noop: true}
  d: {needs: c, foreach: "${inputs.codes}", sh: "true",
      concurrency: {key: "k-${steps.a.output.n}", max: 1}}
  e: {needs: d, when: "${inputs.customer} contains 'Hunt' and ${inputs.note} != 'bye'", noop: true}
  f: {needs: e, when: "${inputs.note} contains 'Hunt'", noop: true}
""")
    box.glia("run", "--set", "customer=Mrs Hunter2", "--set", 'codes=[90210, {"Mrs-Key": 1}]', flow)
    done = box.glia("debug", "dump", "--output", "d5")
    path = os.path.join(box.folder, "d5")
    b, c, *others = facts_of(path)
    assert b["steps"]["a"]["output"] == {"n": 9}
    assert b["inputs"] == {"customer": "***", "note": "***", "codes": [], "account": 0, "who": {}}
    assert c["steps"]["a"]["output"] == {"***": "***"}
    assert others[0]["inputs"]["codes"] == [0, {}]
    looks = [facts for facts in others if facts["inputs"]["customer"] != "***"]
    assert [facts["inputs"]["customer"] for facts in looks] == ["Mrs Hunter2"]
    assert looks[0]["inputs"]["note"].startswith("***")
    text = box.read("d5")
    assert text.count("Hunter2") == 1
    for hidden in ("hello", "DE0012345", "772299", "90210", "4815162342", "Mrs-Key", "Ulm-Hidden"):
        assert hidden not in text, hidden
    assert "reads/e" in done.stderr
    assert lines_of(path)[0]["bundle"]["facts_left_in"] == ["reads/e"]
    assert same(box.glia("replay", "d5").stdout)


def hash_of(data):
    """As gl_str_hash does it."""
    mask = 2**64 - 1
    h = 0x9E3779B97F4A7C15 ^ (len(data) * 0xFF51AFD7ED558CCD & mask)
    for i in range(0, len(data), 8):
        h = (h ^ int.from_bytes(data[i:i + 8], "little")) * 0xD6E8FEB86659FD93 & mask
        h ^= h >> 32
    h ^= h >> 29
    h = h * 0xC4CEB9FE1A85EC53 & mask
    return h ^ (h >> 32)


def with_new_checks(lines):
    """The lines of a bundle, with checks that are right for them."""
    out, piece, after = [], "", ""
    for line in lines:
        kind = next(iter(json.loads(line)))
        if kind == "check":
            check = f"{hash_of(piece.encode()):016x}"
            if after:
                check = f"{hash_of((check + after).encode()):016x}"
            line = '{"check":"%s"%s}' % (check, ',"after":"%s"' % after if after else "")
            piece, after = "", check
        elif kind in ("bundle", "setting", "log", "segment"):
            piece = ""
        else:
            piece += line + "\n"
        out.append(line)
    return "\n".join(out) + "\n"


def test_another_decision_and_damage_are_told_apart(box):
    for _ in range(2):  # each life leaves a check at least: one is left when the last line is cut
        box.glia("run", "--", "true")
    box.glia("debug", "dump", "--output", "bundle")
    lines = box.read("bundle").splitlines()
    ended = next(i for i, line in enumerate(lines) if '"type":"ended"' in line)
    assert '"decided"' in next(line for line in lines[ended + 1:] if '"check"' not in line)
    event = json.loads(lines[ended])["event"]
    beacon = {name: event[name] for name in ("now", "job", "attempt", "token")}
    lines[ended] = json.dumps({"event": {**beacon, "type": "beacon"}}, separators=(",", ":"))
    box.write("changed", "\n".join(lines) + "\n")
    done = box.glia("replay", "changed", code=2)
    assert GOLDEN.tells("changed", done.stderr), done.stderr
    # With checks that are right for it, it is a recording of something else.
    box.write("other", with_new_checks(box.read("changed").splitlines()))
    done = box.glia("replay", "other", code=1)
    assert "different: event" in done.stdout and "beacon" in done.stdout
    # Without any, nothing says that it was written by a node.
    unchecked = [line for line in box.read("changed").splitlines() if '"check"' not in line]
    box.write("unchecked", "\n".join(unchecked) + "\n")
    assert "no check" in box.glia("replay", "unchecked", code=2).stderr

    box.write("cut", box.read("bundle")[:-30])
    assert GOLDEN.tells("cut", box.glia("replay", "cut").stdout)
    for name, content in (("empty", ""), ("flow.yaml", FLOW), ("json", "{}\n")):
        box.write(name, content)
        assert "a recording" in box.glia("replay", name, code=2).stderr
    assert "cannot read" in box.glia("replay", "not-there", code=2).stderr


def segments(box, lives=3, words=("--", "true")):
    """The files of a recorder after some lives of a node; each leaves at least one."""
    for _ in range(lives):
        box.glia("run", *words)
    folder = os.path.join(box.data, "recorder")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)


def dump_and_replay(box, code):
    done = box.glia("debug", "dump", "--no-redact", "--output", "bundle")
    replayed = box.glia("replay", "bundle", code=code)
    text = box.read("bundle")
    os.unlink(os.path.join(box.folder, "bundle"))
    return done.stderr, replayed.stdout + replayed.stderr, text


def test_a_segment_that_is_missing_in_the_middle_is_reported(box):
    paths = segments(box)
    assert len(paths) == 3
    os.unlink(paths[1])
    dumped, replayed, _ = dump_and_replay(box, code=2)
    assert "segment 2 is missing" in dumped
    assert "segment 2 is missing" in replayed
    assert same(replayed), "what is there is replayed nevertheless"
    # The oldest make room: those are not missed.
    os.unlink(paths[0])
    dumped, replayed, _ = dump_and_replay(box, code=0)
    assert "missing" not in dumped + replayed


def test_a_flipped_bit_is_reported_with_its_segment(box):
    # Two steps, so that there are several pieces: lines are gathered for 20 ms.
    flow = box.write("flow.json", json.dumps({"steps": {
        "a": {"sh": "sleep 0.3"}, "b": {"sh": "sleep 0.3", "needs": "a"}}}))
    paths = segments(box, words=(flow,))
    whole = bytes_of(paths[1])
    assert whole.count(b'{"check"') > 1, "two steps were written in one piece"
    digit = whole.rindex(b'{"check":"') + len(b'{"check":"')
    while whole[digit] in b"af":  # another bit would make it no digit, and this no check: see below
        digit += 1
    for at in (whole.index(b'"type":"ended"') + 9, whole.index(b'{"check"') + 4, digit,
               len(whole) // 2, 3):
        put(paths[1], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        dumped, replayed, _ = dump_and_replay(box, code=2)
        assert "segment 2 " in dumped and "damaged" in dumped
        assert "segment 2 " in replayed and "damaged" in replayed
        assert "damaged" in box.glia("replay", paths[1], code=2).stderr
    # The last check is no longer one: that looks like a torn end, and is told as one.
    at = whole.rindex(b'{"check"') + 4
    put(paths[1], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
    dumped, replayed, _ = dump_and_replay(box, code=0)
    GOLDEN.says("torn, dumped", golden.line_of(dumped, "segment 2"))
    GOLDEN.says("torn, replayed", golden.line_of(replayed, " 1 "))
    assert "skipped" in box.glia("replay", paths[1]).stdout


def test_lines_without_a_check_are_not_believed(box):
    paths = segments(box)
    event = b'{"event":{"type":"beacon","now":9999999999999}}\n'
    put(paths[-1], bytes_of(paths[-1]) + event)
    dumped, replayed, text = dump_and_replay(box, code=0)
    assert "9999999999999" not in text
    assert "segment 3" in dumped and "left out" in dumped
    alone = box.glia("replay", paths[-1], "--trace").stdout
    assert "skipped" in alone and " beacon" not in alone.splitlines()[-3]


def test_a_piece_that_is_missing_in_a_segment_is_reported(box):
    # Steps that begin when what came before them has been written: lines are gathered for 20 ms.
    chain = {f"s{n}": {"sh": "sleep 0.3", "needs": [f"s{n - 1}"] if n else []} for n in range(8)}
    flow = box.write("flow.json", json.dumps({"steps": chain}))
    paths = segments(box, words=(flow,))
    lines = bytes_of(paths[1]).splitlines(keepends=True)
    checks = [i for i, line in enumerate(lines) if line.startswith(b'{"check"')]
    assert len(checks) >= 3, "eight steps were written in one piece"
    put(paths[1], b"".join(lines[:checks[0] + 1] + lines[checks[1] + 1:]))
    dumped, replayed, _ = dump_and_replay(box, code=2)
    assert "segment 2 is damaged" in dumped and "segment 2 is damaged" in replayed
    assert "missing" in box.glia("replay", paths[1], code=2).stderr


def test_a_torn_end_is_fine(box):
    paths = segments(box)
    whole = bytes_of(paths[1])
    put(paths[1], whole[:-5])
    dumped, replayed, _ = dump_and_replay(box, code=0)
    assert "segment 2" in dumped and "left out" in dumped
    assert same(replayed)
    put(paths[1], b"")  # it had just been made
    assert same(dump_and_replay(box, code=0)[1])


def test_the_lost_end_of_a_segment_is_reported_by_the_next(box):
    box.env["GLIA_RECORD_BYTES"] = "1M"
    flow = box.write("flow.yaml", "steps:\n  s: {noop: true, foreach: %s}\n"
                     % json.dumps([{"text": "x" * 100}] * 100))
    folder = os.path.join(box.data, "recorder")
    node = serve(box)
    while len(os.listdir(folder)) < 3:
        box.glia("run", flow)
    node.terminate()
    box.finish(node)
    path = os.path.join(folder, sorted(os.listdir(folder))[1])
    lines = bytes_of(path).splitlines(keepends=True)
    checks = [i for i, line in enumerate(lines) if line.startswith(b'{"check"')]
    put(path, b"".join(lines[:checks[-2] + 1]))  # to the end of a piece: by itself it looks whole
    dumped, replayed, _ = dump_and_replay(box, code=2)
    number = int(os.path.basename(path).split(".")[0])
    for told in (dumped, replayed):
        assert "missing" in golden.line_of(told, f"segment {number} ")


def test_what_is_removed_is_decided_the_same(box):
    flow = box.write("flow.yaml", "steps:\n  s: {noop: true, foreach: %s}\n"
                     % json.dumps(list(range(300))))
    node = serve(box)
    for number in range(4):
        box.glia("run", "--run-id", f"run{number}", "--", "sh", "-c", f"echo {number}")
    box.glia("run", "--run-id", "large", flow)
    box.glia("job", "rm", "run1")
    assert box.reason("job", "rm", "run1", code=3) == "no_such_job"
    removed = box.json("store", "trim", "--keep-jobs", "1")
    assert removed["removed_jobs"] == 3 and removed["removed_flows"] >= 3
    box.glia("job", "rm", "large")
    node.terminate()  # its last events are written at the latest now
    box.finish(node)
    box.glia("debug", "dump", "--no-redact", "--output", "whole")
    box.glia("debug", "dump", "--output", "hidden")
    for bundle in ("whole", "hidden"):
        box.glia("replay", bundle)  # 1, if one were decided differently
    kinds = [line["event"]["type"] for line in lines_of(os.path.join(box.folder, "whole"))
             if "event" in line]
    assert kinds.count("clean") == 4


def test_the_ring_is_bounded_and_private(box):
    box.env["GLIA_RECORD_BYTES"] = "1M"
    folder = os.path.join(box.data, "recorder")
    flow = box.write("flow.yaml", "steps:\n  s: {noop: true, foreach: %s}\n"
                     % json.dumps([{"text": "x" * 100}] * 100))
    node = serve(box)
    for _ in range(30):
        box.glia("run", flow)
    names = sorted(os.listdir(folder))
    sizes = [os.stat(os.path.join(folder, name)) for name in names]
    assert sum(s.st_size for s in sizes) < 1.3 * 2**20
    assert all(stat.S_IMODE(s.st_mode) == 0o600 for s in sizes)
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert int(names[-1].split(".")[0]) > len(names), "the first ones should have gone"
    box.glia("debug", "dump", "--output", "bundle")
    assert same(box.glia("replay", "bundle").stdout)
    node.terminate()
    box.finish(node)


def test_nothing_is_recorded_if_that_is_wanted(box):
    box.env["GLIA_RECORD_BYTES"] = "0"
    box.glia("run", "--", "true")
    assert not os.path.exists(os.path.join(box.data, "recorder"))
    assert box.reason("debug", "dump", code=3) == "nothing_recorded"


def test_a_bundle_can_go_through_a_pipe(box):
    box.glia("run", "--", "true")
    dump = subprocess.run([GLIA, "debug", "dump", "--output", "-"], env=box.env, cwd=box.folder,
                          capture_output=True, check=True, timeout=60)
    done = subprocess.run([GLIA, "replay", "-"], env=box.env, cwd=box.folder, input=dump.stdout,
                          capture_output=True, check=True, timeout=60)
    assert same(done.stdout.decode())
