"""Agents and their messages: routing, aggregators, routers, sensors, sinks, pressure."""

import json
import os

import pytest

import golden
from bundlework import Bundle, get, item
from glianode import BUILD, wait_for

GOLDEN = golden.of(__file__)


def small(runner, tmp_path, bundle, *args, **options):
    return runner.run(bundle.write(tmp_path / "bundle"), *args, **options)


def body_of(message):
    return message.get("body", message)


def router(*edges, body=None, **config):
    """in -> whoever the edges lead to; a message for each that arrives, and the end."""
    b = Bundle("routes")
    b.worker("in", f"emit(('t', {body!r}))", step=False, output_message_type="over", **config)
    for name in ("left", "right", "both"):
        b.agent(name, "router", emit_type=name)
        b.edge(name, "sink", name)
    b.sink("sink", complete_on_message=False, complete_after=1 + sum(1 for e in edges if e[2]))
    for target, more, _ in edges:
        b.edge("in", target, "t", **more)
    return b.edge("in", "sink", "over").seed("in", {"text": "hi"})


def arrived(ran):
    found = [get(m.get("envelope", m), "type") or get(m, "type")
             for m in ran.result["output"]["messages"]]
    return sorted(t for t in found if t != "over")


CONDITIONS = [
    ({"expr": "${payload.n} == 5"}, True), ({"expr": "${payload.n} != 5"}, False),
    ({"expr": "${payload.n} > 4"}, True), ({"expr": "${payload.n} >= 6"}, False),
    ({"expr": "${payload.n} < 6"}, True), ({"expr": "${payload.n} <= 4"}, False),
    ({"expr": "${payload.list} contains 2"}, True),
              ({"expr": "${payload.name} contains 'nn'"}, True),
    ({"expr": "${payload.name} in [\"ann\", \"bob\"]"}, True),
              ({"expr": "${payload.name} in [\"bob\"]"}, False),
    ({"expr": "${payload.nothing} exists"}, False), ({"expr": "${payload.name} exists"}, True),
    ({"expr": "${payload.name} == ann"}, True), ({"expr": "${payload.name} == \"ann\""}, True),
    ({"expr": "${payload.nothing.deeper} == null"}, True),
    ({"path": "payload.name", "value": "ann"}, True),
              ({"path": "payload.n", "op": ">", "value": 10}, False),
    ({"path": "message.body.text", "value": "hi"}, True),
              ({"path": "message.type", "value": "init"}, True),
    ({"path": "message.from", "value": "runtime"}, True),
              ({"path": "message.class", "value": "command"}, True),
    ({"path": "state.mood", "value": "good"}, None),
              ({"path": "agent_state.n", "op": ">=", "value": 3}, None),
    ({"all": [{"path": "payload.n", "value": 5}, {"path": "payload.name", "value": "ann"}]}, True),
    ({"any": [{"path": "payload.n", "value": 6}, {"path": "payload.name", "value": "ann"}]}, True),
    ({"not": {"path": "payload.n", "value": 5}}, False), ({}, True),
]


@item("B-2.3-2", "B-2.3-3", "B-2.3-4", "B-2.3-5", "B-2.3-6", "B-5.3-1")
def test_conditions(served, tmp_path):
    """All in one job: an edge for each, and what arrives at a router of its own."""
    b = Bundle("conditions").worker(
        "in", "say(emit_messages=[{'type': 't', 'body': {'n': 5, 'name': 'ann', 'list': [1, 2]}}], "
              "next_state={'mood': 'good', 'n': 3})", step=False, output_message_type="over")
    expected = set()
    for number, (condition, holds) in enumerate(CONDITIONS):
        if holds is None:
            continue
        b.agent(f"r{number}", "router", emit_type=f"r{number}").edge(f"r{number}", "sink",
                                                                     f"r{number}")
        b.edge("in", f"r{number}", "t", conditions=condition)
        if holds:
            expected.add(f"r{number}")
    b.sink(complete_on_message=False, complete_after=len(expected) + 1)
    ran = small(served, tmp_path, b.edge("in", "sink", "over").seed("in", {"text": "hi"}))
    assert {get(e, "to") or get(e, "to_node")
            for e in ran.of("route_selected")} - {"sink"} == expected, ran


@item("B-5.3-2", "B-5.3-3")
def test_the_first_match_only(served, tmp_path):
    b = router(("left",
                {"conditions": {"path": "payload.n", "value": 2}, "routing_mode": "first_match"},
                False),
               ("right", {"routing_mode": "first_match"}, True), ("both", {}, False), body={"n": 1})
    ran = small(served, tmp_path, b)
    selected = [get(e, "to") or get(e, "to_node") for e in ran.of("route_selected")
                if "in" in (get(e, "from"), get(e, "from_node"), get(e, "agent_id"))]
    assert "right" in selected and "left" not in selected and "both" not in selected, ran
    assert len(ran.of("route_evaluated")) >= 2


@item("B-5.3-3")
def test_no_route_matches(served, tmp_path):
    b = router(("left", {"conditions": {"path": "payload.n", "value": 2}}, False), body={"n": 1})
    ran = small(served, tmp_path, b)
    assert ran.of("route_not_matched"), ran


@item("B-5.3-1", "B-2.3-1")
def test_all_edges_of_a_type(served, tmp_path):
    b = router(("left", {}, True), ("right", {"routing_mode": "all_match"}, True),
               ("both", {"message_type": "other"}, False), body={"n": 1})
    ran = small(served, tmp_path, b)
    selected = {get(e, "to") or get(e, "to_node") for e in ran.of("route_selected")}
    assert {"left", "right"} <= selected and "both" not in selected, ran


@item("B-5.3-6")
def test_agents_work_at_once_and_each_on_one_message(served, tmp_path):
    meet = "note(context['agent_id'], 1)\nwait_file('one')\nwait_file('two')"
    b = Bundle("meet").worker("one", meet, step=False).worker("two", meet, step=False)
    b.sink(complete_on_message=False, complete_after=2).edge("one", "sink").edge("two", "sink")
    small(served, tmp_path, b.seed("one", {}).seed("two", {}))


@item("B-6-1", "B-6-2", "B-6-3", "B-6-4")
def test_an_aggregator(served, tmp_path):
    b = Bundle("collect").worker("a", "emit(*[('d', {'agent_id': i}) for i in 'xyxz'])",
                                 output_message_type=None)
    b.agent("join", "aggregator", complete_after=3, output_message_type="all").step("join", ["a"])
    b.edge("a", "join", "d").sink().edge("join", "sink", "all").seed("a", {})
    ran = small(served, tmp_path, b)
    assert [get(e, "count") for e in ran.of("aggregator_received", agent_id="join")] == [1, 2,
                                                                                         3], ran
    ran.one("aggregator_duplicate_ignored", agent_id="join")
    output = ran.steps["join"]["output"]
    assert output["count"] == 3 and len(output["messages"]) == 3
    assert body_of(output["last_message"])["agent_id"] == "z"
    assert ran.result["agent_id"] == "sink" and ran.result["output"]["count"] == 1


@item("B-6-5", "B-6-6")
def test_routers_and_sensors(served, tmp_path):
    b = Bundle("pass").agent("r1", "router").agent("r2", "router", emit_type="renamed")
    b.agent("s1", "sensor").agent("s2", "sensor", output_message_type="seen").sink()
    b.edge("r1", "r2", "init").edge("r2", "s1", "renamed").edge("s1", "s2",
                                                                "sensor_ready").edge("s2", "sink",
                                                                                     "seen")
    ran = small(served, tmp_path, b.seed("r1", {"body": {"n": 1}, "headers": {"h": "1"}}))
    assert body_of(ran.result["output"]["last_message"]) == {"n": 1}, ran.result
    assert [get(e, "count") for e in ran.of("sensor_observed", agent_id="s1")] == [1]
    ran.one("sensor_observed", agent_id="s2")


@item("B-9-1", "B-9-2", "B-7.4-6")
def test_a_run_is_not_complete_before_its_steps_are(served, tmp_path):
    b = Bundle("defer").worker("quick", "say(x=1)", output_message_type="done")
    b.worker("slow", "wait_file('go')", output_message_type=None).ends("quick")
    process = served.start(b.seed("quick", {}).seed("slow", {}).write(tmp_path / "bundle"))
    wait_for("the sink", lambda: "workflow_completion_deferred" in served.box.glia(
        "job", "events", process.run_id, "--json", code=None).stdout)
    served.touch(process.run_id, "go")
    ran = served.finish(process)
    kinds = ("workflow_completion_deferred", "workflow_completion_resumed", "job_completed")
    assert ran.order(*kinds) == list(kinds), ran
    assert ran.result["agent_id"] == "sink"


@item("B-9-1", "B-7.4-6")
def test_a_sink_that_is_an_executor(served, tmp_path):
    b = Bundle("own").worker("a", "say(x=1)", output_message_type="go")
    b.worker("end", "say(complete_run={'v': 3})", step=False, terminal_sink=True, complete_run=True,
             output_message_type=None)
    ran = small(served, tmp_path, b.edge("a", "end", "go").seed("a", {}))
    assert ran.result == {"agent_id": "end", "output": {"v": 3}}, ran


@item("B-9-3")
def test_who_may_not_complete_a_run(served, tmp_path):
    b = Bundle("pushy").worker("a", "say(complete_run={'v': 1})", step=False,
                               output_message_type="go")
    b.worker("b", "say(x=1)", output_message_type="done")
    b.edge("a", "b", "go").ends("b").seed("a", {})
    ran = small(served, tmp_path, b)
    assert ran.of("workflow_completion_ignored", agent_id="a"), ran
    assert ran.result["agent_id"] == "sink"


@item("B-9-3")
def test_a_step_may_not_complete_the_run(served, tmp_path):
    b = Bundle("pushy").worker("a", "say(complete_run={'v': 1})", output_message_type=None)
    ran = small(served, tmp_path, b.sink().edge("a", "sink").seed("a", {}), code=1)
    assert ran.of("workflow_run_completion_rejected"), ran
    assert ran.statuses == {"a": "failed"}


@item("B-5.3-7")
def test_a_message_with_a_higher_priority_overtakes(served, tmp_path):
    """What an agent sends while another is busy, and what comes from outside."""
    b = Bundle("urgent").worker("a", """
note("got", body)
if body["n"] == 0:
    wait_file("go")
if body["n"] == 6:
    say(emit_messages=[{"type": "done", "body": {}}])
""", step=False, output_message_type=None)
    b.worker("sender", """
wait_file("got")
say(emit_messages=[{"to": "a", "type": "t", "body": {"n": n}, "priority": priority}
                   for n, priority in enumerate([50, 100, 900, 100, 5000, -3], 1)])
""", step=False, output_message_type=None)
    b.ends("a").seed("a", {"n": 0}).seed("sender", {})
    process = served.start(b.write(tmp_path / "bundle"))
    send = ("send", process.run_id, "a", "--type", "t", "--body", '{"n": 7}', "--priority")
    served.wait_file(process.run_id, "got")
    served.box.glia(*send, "1001", code=2)
    served.box.glia(*send, "950")

    def waiting():
        found = served.box.json("job", "messages", process.run_id, "--agent", "a")["messages"]
        return len(found) == 8 and found
    found = wait_for("the messages", waiting)
    priorities = {m["message"]["body"]["n"]: m["priority"] for m in found}
    assert priorities == {0: 100, 1: 50, 2: 100, 3: 900, 4: 100, 5: 1000, 6: 0, 7: 950}
    served.touch(process.run_id, "go")
    ran = served.finish(process)
    assert [got["n"] for got in ran.lines("got")] == [0, 5, 7, 3, 2, 4, 1, 6]


@item("B-5.4-3", "B-5.4-2")
def test_a_message_from_outside_under_pressure(served, tmp_path):
    b = Bundle("press").worker("a", """
note("got", body)
if body.get("n") == 0:
    wait_file("go")
if body.get("last"):
    say(emit_messages=[{"type": "done", "body": {}}])
""", step=False, output_message_type=None,
                               backpressure={"max_queue_depth": 4, "high_watermark": 3,
                                             "low_watermark": 1})
    b.ends("a").seed("a", *[{"n": n} for n in range(6)])
    process = served.start(b.write(tmp_path / "bundle"))
    served.wait_file(process.run_id, "got")
    assert served.box.reason("send", process.run_id, "a", "--type", "t", "--body", '{"n": 9}',
                             code=5) == "inbox_full"
    served.touch(process.run_id, "go")

    def send():
        done = served.box.glia("send", process.run_id, "a", "--type", "t", "--body",
                               '{"last": true}', code=None)
        return done.returncode == 0
    wait_for("the pressure to go", send)
    ran = served.finish(process)
    assert ran.lines("got") == [{"n": n} for n in range(6)] + [{"last": True}]
    assert ran.of("backpressure_state", agent_id="a"), ran


@item("B-4-5")
@pytest.mark.parametrize("seeds, bodies",
                         [([{"n": 1}, {"n": 2}], [{"n": 1}, {"n": 2}]), ({"n": 3}, [{"n": 3}]),
                                           (None, [{}])])
def test_seeds(served, tmp_path, seeds, bodies):
    b = Bundle("seeds").worker("a", "note('got', body)", step=False)
    b.sink(complete_on_message=False, complete_after=len(bodies)).seed("a")
    for node in b.flow["nodes"]:
        if node["node_id"] == "a":
            node["config"]["output_message_type"] = None
    b.files["payloads/a.py"] += "say(emit_messages=[{'type': 'done', 'body': {'b': body}}])\n"
    b.edge("a", "sink", "done")
    if seeds is not None:
        b.manifest["initial_inputs"]["a"] = seeds
    assert small(served, tmp_path, b).lines("got") == bodies


@item("B-4-8")
def test_set_reaches_every_seed(served, tmp_path):
    b = Bundle("overlay").worker("a",
                                 "note('got', body)\nemit(('done', {}))", step=False,
                                 output_message_type=None)
    b.sink(complete_on_message=False, complete_after=2).edge("a", "sink", "done")
    b.seed("a", {"n": 1, "deep": {"x": 1, "y": 2}}, {"body": {"n": 2}})
    ran = small(served, tmp_path, b, "--set", "inputs.payload.n=7", "--set",
                "inputs.payload.deep.x=5")
    one, two = ran.lines("got")
    assert one == {"n": 7, "deep": {"x": 5, "y": 2}} and two["n"] == 7


@item("B-9-6")
def test_restart_policies_of_a_job(served, tmp_path):
    b = Bundle("policy", policies={"recovery_mode": "local_restart",
                                   "restart": {"attempts": 2, "interval_ms": 60000,
                                               "delay_ms": 100}})
    b.worker("a", "say(x=1)", step=False).sink().edge("a", "sink").seed("a", {})
    ran = small(served, tmp_path, b)
    assert "policy_state" in ran.status, ran.status
    assert "recovery_requires_review" in ran.status or "recovery_status" in ran.status, ran.status


@item("B-5.3-5")
def test_a_dead_letter_that_nobody_can_take_stays(served, tmp_path):
    """Nobody is there to take it: that is said, and it stays where it is."""
    b = Bundle("redrive").worker("a",
                                 "say(emit_messages=[{'to': 'nobody', 'type': 't', 'body': {}}])",
                                 step=False,
                                 output_message_type=None)
    b.worker("w", "wait_file('go')", step=False, output_message_type="done")
    b.ends("w").seed("a", {}).seed("w", {})
    process = served.start(b.write(tmp_path / "bundle"))
    wait_for("the dead letter", lambda: "nobody" in served.box.glia(
        "job", "dead-letters", process.run_id, "--json", code=None).stdout)
    error = served.box.error("job", "dead-letters", process.run_id, "--redrive", "all", code=3)
    assert error["reason"] == "no_such_agent" and "'nobody'" in error["message"]
    assert "nobody" in served.box.glia("job", "dead-letters", process.run_id, "--json").stdout
    served.touch(process.run_id, "go")
    served.finish(process)


@item("B-2.2-24", "B-6-7")
def test_a_native_module(alone, tmp_path):
    """The manifest brings Elixir source; a native module of the same name does its work."""
    alone.env["GLIA_MODULES_DIR"] = os.path.join(BUILD, "examples", "modules")
    b = Bundle("native").agent("signal", "module", module="MnBlueprints.NativeSignalAgent",
                               module_source="native_signal_agent.ex", emit_type="signals")
    b.files["payloads/native_signal_agent.ex"] = "defmodule MnBlueprints.NativeSignalAgent\n"
    ran = small(alone, tmp_path,
                b.step("signal").sink().edge("signal", "sink", "signals").seed("signal", {}))
    body = body_of(ran.result["output"]["last_message"])
    assert body["runner"] == "beam_native" and body["signals"] == [12, 71, 38]
    assert body["classes"] == ["normal", "alert", "normal"], body
    ran.one("native_signal_classified", agent_id="signal")
    assert ran.statuses == {"signal": "completed"}


@item("B-2.2-24")
def test_a_module_that_is_not_there(alone, tmp_path):
    alone.env["GLIA_MODULES_DIR"] = os.path.join(BUILD, "examples", "modules")
    b = Bundle("nomodule").agent("m", "module", module="No.Such.Module").step("m")
    ran = small(alone, tmp_path, b.ends("m").seed("m", {}), code=1)
    assert "No.Such.Module" in json.dumps(ran.steps["m"]), ran


@item("B-4-10")
def test_the_configuration_reaches_into_the_manifest(served, tmp_path):
    b = Bundle("bind").worker("a", "note('got', [os.environ['GREETING'], body])", step=False,
                              environment={"GREETING": "none"})
    b.files["config/default.json"] = json.dumps({
        "text": "hello", "count": 3,
        "manifest_config_bindings": [
            {"config_path": "text", "manifest_path": "flow.nodes.0.config.environment.GREETING"},
            {"config_path": "count", "manifest_path": "initial_inputs.a.0.count"}]})
    ran = small(served, tmp_path, b.sink().edge("a", "sink").seed("a", {"count": 1}), "--set",
                "count=5")
    assert ran.lines("got") == [["hello", {"count": 5}]]


@pytest.mark.slow
def test_messages_that_nobody_can_take_end_the_job(served, tmp_path):
    """Two routers that send each message back ten times: what does not fit an inbox is a dead
    letter, and there is an end to those, too."""
    b = Bundle("echo").agent("a", "router").agent("b", "router")
    for n in range(10):
        b.edge("a", "b", "*", edge_id=f"ab{n}").edge("b", "a", "*", edge_id=f"ba{n}")
    ran = small(served, tmp_path, b.seed("a", {}), code=1)
    assert ran.status["status"] == "failed" and ran.status["dead_n"] > 10000, ran.status
    GOLDEN.says("too many dead letters", ran.status["reason"])


def test_more_first_messages_than_are_sent_ahead(served, tmp_path):
    """What an aggregator has got goes on waiting, and does not hold up the rest."""
    b = Bundle("many").agent("all", "aggregator", complete_after=2500, terminal_sink=True,
                             complete_run=True)
    ran = small(served, tmp_path, b.seed("all", *({"n": n} for n in range(2500))))
    assert ran.result["output"]["count"] == 2500


def test_a_retry_of_a_bundle_runs_all_of_it_again(served, tmp_path):
    b = Bundle("again").worker("a", "note('a', 1)").sink()
    b.worker("b", "note('b', 1)\nif not os.path.exists(" + repr(str(tmp_path / "go")) + "):\n"
             "    sys.exit(3)", ["a"]).edge("a", "b").edge("b", "sink").seed("a", {})
    ran = small(served, tmp_path, b, code=1)
    (tmp_path / "go").write_text("")
    again = served.box.glia("job", "retry", ran.status["job_id"], "--json")
    job = served.box.json("job", "status", json.loads(again.stdout)["job_id"])
    assert (job["status"], job["completed_n"], job["retry_of"]) == (
        "completed", 2, ran.status["job_id"]), job


def test_a_dead_letter_that_is_sent_again_is_handled(served, tmp_path):
    b = Bundle("late", policies={"job_type": "service"})
    b.worker("slow", "note('seen', body['n'])\ntime.sleep(0.5 if body['n'] == 1 else 0)",
             step=False).seed("slow", {"n": 1}, {"body": {"n": 2}, "ttl_ms": 50})
    box, run = served.box, f"late-{tmp_path.name}"
    box.glia("run", b.write(tmp_path / "bundle"), "--run-id", run, "--detach")

    def dead():
        return box.json("job", "dead-letters", run)["dead_letters"]
    wait_for("a dead letter", dead)
    GOLDEN.says("expired", dead()[0]["reason"])
    box.glia("job", "dead-letters", run, "--redrive", "all")

    def processed():
        return box.json("job", "agents", run)["agents"][0]["processed"] == 2
    wait_for("the message", processed)
    assert dead() == []
    box.glia("job", "cancel", run)
