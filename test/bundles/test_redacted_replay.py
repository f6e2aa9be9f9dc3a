"""A dump without values of a node that has run bundles is decided the same."""

import base64
import json
import os
import re

import pytest

from bundlework import Bundle, get
from httpnode import serve
from patterns import run

SECRETS = ("sesame-open-now", "melon-orchard", "zebra-crossing", "Grüße vom Geheimnis",
           "ledger-of-names", "a-value-of-the-seed", "config-of-an-agent", "variable-of-an-agent",
           "9876512345", "55512.75")

# (condition, whether it holds of the body below)
BODY = {"word": "zebra-crossing", "public": "left", "score": 55512.75, "account": 9876512345,
        "low": -3, "tags": ["melon-orchard", "blue"], "text": "melon-orchard has a left gate",
        "deep": {"who": "Grüße vom Geheimnis", "list": [{"n": 7}]}}
CONDITIONS = [
    ({"expr": "${payload.public} == left"}, True),
    ({"expr": "${payload.public} != left"}, False),
    ({"expr": "${payload.word} == left"}, False),
    ({"expr": "${payload.word} > 'left'"}, True),
    ({"expr": "${payload.word} < 'aardvark'"}, False),
    ({"expr": "${payload.word} >= 'zebra'"}, True),
    ({"path": "payload.score", "op": ">=", "value": 10}, True),
    ({"path": "payload.score", "op": "<", "value": 60000}, True),
    ({"path": "payload.account", "op": ">", "value": 60000}, True),
    ({"path": "payload.account", "op": "<", "value": 60001}, False),
    ({"path": "payload.low", "op": "<", "value": 0}, True),
    ({"path": "payload.low", "op": ">", "value": -2}, False),
    ({"expr": "${payload.text} contains gate"}, True),
    ({"expr": "${payload.word} contains gate"}, False),
    ({"expr": "${payload.tags} contains blue"}, True),
    ({"expr": "${payload.tags} contains red"}, False),
    ({"path": "payload.public", "op": "in", "value": ["left", "right"]}, True),
    ({"path": "payload.word", "op": "in", "value": ["left", "right"]}, False),
    ({"expr": "${payload.deep.who} exists"}, True),
    ({"expr": "${payload.deep.nobody} exists"}, False),
    ({"path": "payload.deep.list.0.n", "value": 7}, True),
    ({"all": [{"path": "payload.low", "op": "<=", "value": -3},
              {"not": {"path": "payload.public", "value": "right"}}]}, True),
]


def routed(name="routed"):
    """One that sends to as many routers as there are conditions."""
    b = Bundle(name).worker(
        "in", f"emit(('t', {BODY!r}))\nprint('ledger-of-names', file=sys.stderr)",
        environment={"PRIVATE": "variable-of-an-agent"}, own={"text": "config-of-an-agent"})
    b.seed("in", {"text": "a-value-of-the-seed"})
    for number, (condition, _) in enumerate(CONDITIONS):
        b.agent(f"r{number}", "router", emit_type="done")
        b.edge("in", f"r{number}", "t", conditions=condition)
        b.edge(f"r{number}", "gather", "done")
    b.agent("gather", "aggregator", complete_after=sum(holds for _, holds in CONDITIONS),
            output_message_type="all")
    b.sink().edge("gather", "sink", "all")
    return b


def pieces_of(text):
    """A text as it may be found in a file: as it is, escaped, in base64, its longer pieces."""
    found = {text, json.dumps(text)[1:-1]}
    for shift in range(3):
        coded = base64.b64encode(b" " * shift + text.encode()).decode()
        found.add(coded[4:-4])
    found |= {text[i:i + 8] for i in range(0, len(text) - 7)}
    return {f for f in found if len(f) >= 8}


def assert_same(runner, *secrets):
    box = runner.box
    dump = os.path.join(box.folder, "dump")
    box.glia("debug", "dump", "--output", dump)
    text = box.read("dump")
    log = "\n".join(line for line in text.splitlines() if line.startswith('{"log"'))
    shown = "\n".join(line for line in text.splitlines() if not line.startswith('{"log"'))
    for secret in secrets:
        for piece in pieces_of(secret):
            at = shown.find(piece)
            assert at < 0, (secret, piece, shown[max(0, at - 300):at + 100])
            assert piece not in log
    replayed = box.glia("replay", dump, code=None)
    assert replayed.returncode == 0, replayed.stdout[-3000:] + replayed.stderr[-3000:]
    assert re.search(r"^[1-9]\d* events,", replayed.stdout, re.M), replayed.stdout
    os.remove(dump)
    return shown


def test_conditions_come_out_the_same(own, tmp_path):
    ran = own.run(routed().write(tmp_path / "bundle"))
    reached = {get(e, "to") or get(e, "to_node") for e in ran.of("route_selected")}
    assert reached - {"gather", "sink"} == {f"r{number}" for number, (_, holds)
                                            in enumerate(CONDITIONS) if holds}, ran
    assert "left" in assert_same(own, *SECRETS)  # a literal of the manifest


def test_states_retries_and_large_bodies_are_decided_the_same(own, tmp_path):
    b = Bundle("states").worker("a", """
n = state.get("n", 0) + 1
if n == 1 and int(context.get("attempt", 1)) < 2 and not os.path.exists(os.path.join(folder, "x")):
    note("x", 1)
    sys.exit("connection reset by sesame-open-now")
say(next_state={"n": n, "word": "zebra-crossing"},
    emit_messages=[{"type": "big", "body": {"text": "melon-orchard " * 400}},
                   {"type": "huge", "body": {"text": "melon-orchard " * 30000}}])
""", max_attempts=3, backoff_ms=10)
    b.agent("gather", "aggregator", complete_after=2, output_message_type="all").sink()
    b.edge("a", "gather", "big").edge("a", "gather", "huge").edge("gather", "sink", "all")
    own.run(b.seed("a", {"text": "a-value-of-the-seed"}).write(tmp_path / "bundle"))
    assert_same(own, *SECRETS)


def test_large_numbers_under_the_keys_of_counts_are_hidden(own, tmp_path):
    """The number of a card is no count, and a pension no limit."""
    b = Bundle("cards").worker("a", """
emit(('t', {"card": {"number": 4111222233334444}, "max_pension": 87654321098, "count": 3}))
""")
    b.agent("gather", "aggregator", complete_after=1, output_message_type="all").sink()
    b.edge("a", "gather", "t").edge("gather", "sink", "all")
    own.run(b.seed("a", {}).write(tmp_path / "bundle"))
    assert_same(own, "4111222233334444", "87654321098")


@pytest.mark.parametrize("name", [
    "linear", "fork-join", "scatter-gather", "branch", "fallback", "quorum", "approval", "retry",
    "checkpoint", "stream", "trace", "pool", "older", "bindings", "submitted", "dynamic",
    "dynamic/fixed"])
def test_the_examples_are_decided_the_same(own, name):
    run(own, name)
    assert_same(own)


def test_a_job_that_outlives_its_node_is_decided_the_same(own, tmp_path):
    b = Bundle("outlives").worker("a", "emit(('t', {'word': 'zebra-crossing', 'public': 'left'}))")
    b.worker("b", "note('b', 1); wait_file('go'); say(word='melon-orchard')", needs=["a"],
             output_message_type="done")
    b.edge("a", "b", "t", conditions={"path": "payload.public", "value": "left"})
    b.ends("b").seed("a", {"text": "a-value-of-the-seed"})
    process = own.start(b.write(tmp_path / "bundle"))
    own.wait_file(process.run_id, "b")
    node = own.box.started[0]
    node.kill()
    node.wait()
    serve(own.box)
    own.touch(process.run_id, "go")
    own.finish(process)
    assert_same(own, *SECRETS)
