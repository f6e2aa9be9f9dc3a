"""The ledger of a bundle's job: when a step may run, and what messages and events do to it."""

import concurrent.futures
import json
import os

import pytest

import golden
from bundlework import Bundle, Ran, get, item
from glianode import wait_for
from httpnode import JOBS

GOLDEN = golden.of(__file__)
OPTIONAL = {"required": False, "retry": {"max_attempts": 1}}
FAILS = "event('workflow_step_failed', reason='marker-7')"
WORKS = "say(x=1)"


def small(runner, tmp_path, bundle, *args, **options):
    return runner.run(bundle.write(tmp_path / "bundle"), *args, **options)


def after(rule, first, second, **edges):
    """start -> p, q -> c, with this rule; whatever became of them, `last` ends the job."""
    b = Bundle("rules").worker("start", WORKS, output_message_type="go")
    b.worker("p", first, ["start"], control=OPTIONAL, output_message_type="data")
    b.worker("q", second, ["start"], control=OPTIONAL, output_message_type="data")
    b.worker("c", "note('c', load('MN_MESSAGE_FILE'))", ["p", "q"], rule=rule)
    b.worker("last", WORKS, ["p", "q", "c"], rule="all_done", output_message_type="done")
    b.edge("start", "p", "go").edge("start", "q", "go").edge("p", "c", "data").edge("q", "c",
                                                                                    "data")
    b.edge("start", "last", "go").ends("last").seed("start", {})
    for edge in b.flow["graph"]["edges"]:
        edge.update(edges.get(edge["id"], {}))
    return b


@item("B-8.2-1", "B-8.2-2", "B-8.2-3", "B-8.2-4", "B-8.2-5", "B-8.2-6", "B-8.2-7", "B-8.2-8",
      "B-8.3-6")
@pytest.mark.parametrize("rule, first, second, ends", [
    ("all_success", WORKS, WORKS, "completed"),
    ("all_required", WORKS, FAILS, "skipped"),
    ("all_done", WORKS, FAILS, "completed"),
    ("all_done", FAILS, FAILS, "completed"),
    ("one_success", WORKS, FAILS, "completed"),
    ("any_success", FAILS, FAILS, "skipped"),
    ("one_done", FAILS, FAILS, "completed"),
    ("any_done", WORKS, WORKS, "completed"),
    ("one_failed", WORKS, FAILS, "completed"),
    ("any_failed", WORKS, WORKS, "skipped"),
    ("none_failed_min_one_success", WORKS, WORKS, "completed"),
    ("partial_success", WORKS, FAILS, "skipped"),
    ({"rule": "quorum_success", "quorum": 1}, WORKS, FAILS, "completed"),
    ({"rule": "quorum", "count": 2}, WORKS, FAILS, "skipped"),
])
def test_trigger_rules(served, tmp_path, rule, first, second, ends):
    ran = small(served, tmp_path, after(rule, first, second))
    assert ran.statuses["c"] == ends, ran
    assert ran.statuses["p"] == ("completed" if first == WORKS else "partial"), ran
    assert len(ran.lines("c")) == (1 if ends == "completed" else 0), ran
    if ends == "skipped":
        GOLDEN.says("skipped", ran.steps["c"]["terminal_reason"])


@item("B-8.2-9")
@pytest.mark.parametrize("rule, ends", [("all_success", "completed"), ("all_done", "completed"),
                                        ("one_success", "skipped"), ("one_failed", "skipped")])
def test_rules_without_parents(served, tmp_path, rule, ends):
    b = Bundle("orphan").worker("a", "note('a', 1)", rule=rule, output_message_type=None)
    b.worker("b", WORKS, output_message_type="done").ends("b")
    b.seed("a", {}).seed("b", {})
    ran = small(served, tmp_path, b)
    assert ran.statuses == {"a": ends, "b": "completed"}, ran
    assert ran.has("a") == (ends == "completed"), ran


@item("B-2.4-1")
def test_the_agent_of_a_step(served, tmp_path):
    """agent_id before run before id; an agent of several steps belongs to the first."""
    b = Bundle("bound")
    for name in ("one", "two", "three"):
        b.worker(name,
                 "note('steps', [os.environ['MN_AGENT_ID'], os.environ['MN_WORKFLOW_STEP_ID']])",
                 step=False,
                 output_message_type="go")
    b.step("s1", agent_id="one", run="two").step("s2", ["s1"], run="two").step("three", ["s2"])
    b.edge("one", "two", "go").edge("two", "three", "go").sink().edge("three", "sink",
                                                                      "go").seed("one", {})
    ran = small(served, tmp_path, b)
    assert ran.lines("steps") == [["one", "s1"], ["two", "s2"], ["three", "three"]]


@item("B-2.5-1", "B-8.2-1", "B-15-4")
@pytest.mark.parametrize("accepts, ends",
                         [(["done", "partial"], "completed"), (["done"], "skipped")])
def test_what_an_edge_accepts(served, tmp_path, accepts, ends):
    b = after("all_success", WORKS, FAILS, q__c={"accepts": accepts})
    assert small(served, tmp_path, b).statuses["c"] == ends


@item("B-15-4")
def test_accepts_has_no_say_in_other_rules(served, tmp_path):
    b = after("all_done", WORKS, WORKS, p__c={"accepts": ["failed"]}, q__c={"accepts": ["skipped"]})
    assert small(served, tmp_path, b).statuses["c"] == "completed"


@item("B-8.3-6", "B-8.3-7")
def test_the_message_of_the_ledger(served, tmp_path):
    b = Bundle("trigger").worker("p", FAILS, control=OPTIONAL, output_message_type=None)
    b.worker("c", "note('c', load('MN_MESSAGE_FILE'))", ["p"], rule="one_failed",
             output_message_type="done")
    ran = small(served, tmp_path, b.ends("c").seed("p", {}))
    message, = ran.lines("c")
    envelope = message["envelope"]
    assert envelope["type"] == "workflow_trigger" and envelope["from"] == "workflow_ledger"
    assert envelope["class"] == "command" and envelope["to"] == "c"
    assert message["body"]["trigger_rule"] == "one_failed"
    parent, = message["body"]["parents"]
    assert (parent["step_id"], parent["status"], parent["outcome"]) == ("p", "partial", "failed")
    assert parent["edge_id"] == "p__c" and "output" in parent
    ran.one("workflow_step_triggered", step_id="c")


@item("B-8.3-6", "B-8.3-7")
def test_the_ledger_starts_a_step_that_nobody_writes_to(served, tmp_path):
    """Only when nothing is on its way any more: until then somebody might."""
    b = Bundle("unsent").worker("p", WORKS, output_message_type="data")
    b.worker("slow", "wait_file('go'); note('order', 'slow')", output_message_type=None)
    b.worker("c", "note('order', 'c'); note('c', load('MN_MESSAGE_FILE'))", ["p"],
             output_message_type="done")
    folder = b.ends("c").seed("p", {}).seed("slow", {}).write(tmp_path / "unsent")
    served.box.glia("run", folder, "--run-id", "unsent-1", "--detach")
    wait_for("the step before it", lambda: Ran(served.box, "unsent-1").statuses["p"] == "completed")
    assert Ran(served.box, "unsent-1").statuses["c"] == "ready"
    served.touch("unsent-1", "go")
    wait_for("the end", lambda: Ran(served.box, "unsent-1").status["status"] == "completed")
    ran = Ran(served.box, "unsent-1")
    assert ran.lines("order") == ["slow", "c"], ran
    message, = ran.lines("c")
    assert message["envelope"]["type"] == "workflow_trigger", message
    assert message["envelope"]["from"] == "workflow_ledger", message
    assert [p["step_id"] for p in message["body"]["parents"]] == ["p"], message
    ran.one("workflow_step_triggered", step_id="c")


@item("B-2.4-4", "B-8.1-1")
def test_failure_policy_skip(served, tmp_path):
    b = Bundle("skip").worker("p", FAILS, control={"failure_policy": "skip"},
                              output_message_type=None)
    b.worker("c", WORKS, ["p"], rule="all_done", output_message_type="done").ends("c")
    ran = small(served, tmp_path, b.seed("p", {}))
    assert ran.statuses == {"p": "skipped", "c": "completed"}, ran
    assert ran.steps["p"]["terminal_outcome"] == "failed"


@item("B-8.4-2", "B-9-5")
def test_a_required_step_that_fails_fails_the_job(served, tmp_path):
    b = Bundle("fail").worker("p", FAILS, output_message_type=None)
    b.worker("c", "note('c', 1)", ["p"], rule="one_failed").seed("p", {})
    ran = small(served, tmp_path, b, code=1)
    assert ran.status["status"] == "failed" and ran.statuses["p"] == "failed", ran
    assert not ran.has("c"), "the job ends first"
    assert ran.result["step_id"] == "p", ran.result
    assert "marker-7" in json.dumps(ran.result["error"]), ran.result
    error = ran.status["error"]
    assert error["schema_version"] == "mn.error.v1" and error["code"] and len(error["desc"]) <= 160
    assert error["details"]["step_id"] == "p"


@item("B-8.4-1", "B-2.4-6", "B-2.4-7", "B-8.3-3")
def test_the_next_attempt(served, tmp_path):
    b = Bundle("again").worker("a", """
message = load("MN_MESSAGE_FILE")
note("ran", [context["workflow"]["attempt"], os.environ["MN_WORKFLOW_ATTEMPT_ID"], time.time(),
             message["envelope"]["message_id"], body, context["workflow"]["idempotency_key"]])
if context["workflow"]["attempt"] < 3:
    sys.exit("no luck")
say(x=1)
""", control={"retry": {"max_attempts": 3, "backoff_seconds": 50, "backoff_multiplier": 3}},
                               retry_backoff_ms=100,
                              output_message_type="done")
    b.ends("a").seed("a", {"n": 1})
    ran = small(served, tmp_path, b)
    runs = ran.lines("ran")
    assert [run[:2] for run in runs] == [[n, f"a:attempt:{n}"] for n in (1, 2, 3)]
    assert len({run[3] for run in runs}) == 3, "each delivery has an id of its own"
    assert len({run[5] for run in runs}) == 3 and all(run[4] == {"n": 1} for run in runs)
    assert runs[1][2] - runs[0][2] >= 0.1 and runs[2][2] - runs[1][2] >= 0.3
    assert len(ran.of("workflow_step_attempt_retry_scheduled", step_id="a")) == 2
    assert ran.steps["a"]["attempt_count"] == 3


@item("B-8.4-3", "B-2.4-5")
def test_the_deadline_of_a_step(served, tmp_path):
    b = Bundle("late").worker("a", "note('pid', os.getpid()); time.sleep(600)",
                              control={"timeout_seconds": 3, "required": False,
                                       "retry": {"max_attempts": 1}})
    b.worker("c", WORKS, ["a"], rule="one_failed", output_message_type="done").ends("c")
    ran = small(served, tmp_path, b.seed("a", {}))
    ran.one("workflow_step_attempt_timed_out", step_id="a")
    wait_for("the worker to end", lambda: not os.path.exists(f"/proc/{ran.lines('pid')[0]}"))
    assert ran.statuses == {"a": "partial", "c": "completed"}


@item("B-8.3-1", "B-8.3-5")
def test_messages_to_a_step_that_has_ended_are_dropped(served, tmp_path):
    b = Bundle("drop").worker("a", "note('ran', body)", output_message_type="go")
    b.worker("b", "wait_file('ran'); say(x=1)", ["a"], output_message_type="done")
    b.edge("a", "b", "go").ends("b").seed("a", {"n": 1}, {"n": 2}, {"n": 3})
    ran = small(served, tmp_path, b)
    assert ran.lines("ran") == [{"n": 1}]
    assert len(ran.of("workflow_step_duplicate_message_ignored", step_id="a")) == 2, ran


@item("B-8.3-2", "B-8.3-3", "B-8.3-5")
def test_held_messages_come_in_order_when_the_rule_is_satisfied(served, tmp_path):
    b = Bundle("hold").worker("fast",
                              "emit(*[('d', {'n': n}) for n in range(5)])",
                              output_message_type=None)
    b.worker("slow", "wait_file('go')", output_message_type=None)
    b.worker("join", """
seen = state.get("seen", []) + [body["n"]]
note("seen", [body["n"], os.path.exists(os.path.join(folder, "go"))])
said = {"next_state": {"seen": seen}}
if len(seen) == 5:
    said |= {"complete_step": {"seen": seen}, "emit_messages": [{"type": "done", "body": {}}]}
say(**said)
""", ["fast", "slow"], workflow_complete_step=False, output_message_type=None)
    b.edge("fast", "join", "d").ends("join").seed("fast", {}).seed("slow",
                                                                                          {})
    process = served.start(b.write(tmp_path / "bundle"))
    wait_for("the step to hold its messages", lambda: served.box.glia(
        "job", "status", process.run_id, "--json", code=None).stdout.count('"blocked"') > 0)
    served.touch(process.run_id, "go")
    ran = served.finish(process)
    assert ran.lines("seen") == [[n, True] for n in range(5)]
    assert ran.of("workflow_step_blocked", step_id="join"), ran


@item("B-8.5-1", "B-8.5-2")
@pytest.mark.parametrize("key", ["step", "step_id", "workflow_step_id", "phase", "phase_id"])
def test_an_event_names_the_step_it_is_about(served, tmp_path, key):
    b = Bundle("named").worker("a", f"""
event("workflow_step_skipped", **{{"{key}": "b", "reason": "not needed"}})
""", output_message_type="done").worker("b", "note('b', 1)", ["a"], output_message_type=None)
    b.ends("a").edge("a", "b", "done").seed("a", {})
    ran = small(served, tmp_path, b)
    assert ran.statuses == {"a": "completed", "b": "skipped"} and not ran.has("b"), ran


@item("B-8.5-3", "B-8.5-4")
def test_a_name_that_is_no_step_is_a_matter_of_the_bundle(served, tmp_path):
    b = Bundle("trap").worker("a", """
say(events=[{"type": "progress", "payload": {"step": "b", "n": 1}},
            {"type": "workflow_step_completed", "payload": {"step": "measure the cake"}},
            {"type": "other", "payload": {"phase": 3}}])
""", output_message_type="go").worker("b", "say(x=1)", ["a"], output_message_type="done")
    b.edge("a", "b", "go").ends("b").seed("a", {})
    ran = small(served, tmp_path, b)
    assert ran.statuses == {"a": "completed", "b": "completed"}, ran
    assert get(ran.one("progress"), "n") == 1


@item("B-8.5-1")
@pytest.mark.parametrize("kind, ends", [("workflow_step_completed", "completed"),
                                        ("workflow_step_attempt_completed", "completed"),
                                        ("workflow_step_partial", "partial")])
def test_events_that_end_a_step(served, tmp_path, kind, ends):
    b = Bundle("ends").worker("a",
                              f"event('{kind}', output={{'n': 1}})",
                              workflow_complete_step=False, output_message_type="go")
    b.worker("b", "say(x=1)", ["a"], rule="all_done", output_message_type="done")
    b.edge("a", "b", "go").ends("b").seed("a", {})
    ran = small(served, tmp_path, b)
    assert ran.statuses == {"a": ends, "b": "completed"}, ran


@item("B-8.4-5", "B-8.4-6")
def test_what_is_said_of_a_step_that_has_ended(served, tmp_path):
    b = Bundle("stale").worker("a", "say(x=1)", output_message_type="go")
    b.worker("b",
             "event('workflow_step_failed', step='a', reason='r')", ["a"],
             output_message_type="done")
    b.edge("a", "b", "go").ends("b").seed("a", {})
    ran = small(served, tmp_path, b)
    assert ran.statuses == {"a": "completed", "b": "completed"}, ran
    assert ran.of("workflow_step_stale_event_ignored", step_id="a"), ran


@item("B-8.4-4")
def test_a_result_of_another_attempt_is_ignored(served, tmp_path):
    """The payload names an attempt that is not the current one."""
    b = Bundle("other").worker("a", """
said = {"events": [{"type": "workflow_step_completed", "payload": {
    "attempt_id": "a:attempt:7", "output": {"stale": True}}}]}
said["complete_step"] = {"fresh": True}
say(**said)
""", output_message_type="done").ends("a").seed("a", {})
    ran = small(served, tmp_path, b)
    assert ran.steps["a"]["output"] == {"fresh": True}, ran
    assert ran.of("workflow_step_stale_output_ignored", step_id="a"), ran


# ---- branch, skip, scatter ----

@item("B-8.6-1")
def test_a_branch_skips_what_depends_only_on_the_others(served, tmp_path):
    b = Bundle("branch").worker("a",
                                "event('workflow_step_branch', branches=['b'])",
                                output_message_type="go")
    b.worker("b", WORKS, ["a"], output_message_type="on").worker("c", WORKS, ["a"]).worker("d",
                                                                                           WORKS,
                                                                                           ["c"])
    b.worker("e", WORKS, ["b", "d"], rule="all_done", output_message_type="done")
    b.edge("a", "b", "go").edge("a", "c", "go").edge("c", "d").edge("b", "e", "on")
    ran = small(served, tmp_path, b.ends("e").seed("a", {}))
    assert ran.statuses == {"a": "completed", "b": "completed", "c": "skipped", "d": "skipped",
                            "e": "completed"}, ran
    told = ran.one("workflow_branch_selected")
    assert get(told, "selected") == ["b"] and "c" in get(told, "skipped")


@item("B-8.6-2")
def test_skipping_with_all_that_follows(served, tmp_path):
    b = Bundle("down").worker("a", "say(events=[{'type': 'workflow_step_skipped', 'payload': "
                                   "{'skip_downstream': True, 'reason': 'nothing to do'}}])",
                              output_message_type="done")
    b.worker("b", WORKS, ["a"], rule="all_done").worker("c", WORKS, ["b"], rule="one_done")
    ran = small(served, tmp_path,
                b.ends("a").edge("a", "b", "done").seed("a", {}))
    assert ran.statuses == {"a": "skipped", "b": "skipped", "c": "skipped"}, ran


def scatter(payload, needs=("work",)):
    b = Bundle("scatter").worker("plan",
                                 f"event('workflow_step_scatter', **{payload})",
                                 output_message_type="go")
    b.worker("work", "note('work', load('MN_MESSAGE_FILE'))", ["plan"], control=OPTIONAL)
    b.worker("other", "note('other', load('MN_MESSAGE_FILE'))", ["plan"], control=OPTIONAL)
    b.worker("end", "headers = load('MN_MESSAGE_FILE')['headers']\n"
                    "note('source', headers.get('mn.workflow.source_step_id'))\n" + WORKS,
             ["work", "other"], rule="all_done", output_message_type="done")
    b.edge("work", "end").edge("other", "end").edge("plan", "work", "go").edge("plan", "other",
                                                                               "go")
    return b.ends("end").seed("plan", {})


@item("B-8.6-3", "B-8.6-5", "B-8.6-4")
def test_several_targets_take_turns(served, tmp_path):
    ran = small(served, tmp_path, scatter("{'targets': ['work', 'other'], 'items': [10, 11, 12]}"))
    assert {s for s in ran.steps if "[" in s} == {"work[0]", "other[1]", "work[2]"}, ran
    work = [(m["body"]["item"], m["body"]["map_index"], m["envelope"]["type"])
            for m in ran.lines("work")]
    assert work == [(10, 0, "workflow_scatter_item"), (12, 2, "workflow_scatter_item")]
    told = ran.one("workflow_step_scattered")
    assert get(told, "count") == 3 and sorted(get(told, "targets")) == ["other", "work"]
    assert get(told, "instance_ids") == ["work[0]", "other[1]", "work[2]"]
    assert ran.lines("source")[0] in ("work[0]", "other[1]", "work[2]")


@item("B-8.6-6")
def test_a_scatter_of_nothing_leaves_the_target(served, tmp_path):
    ran = small(served, tmp_path, scatter("{'target': 'work', 'items': []}"))
    assert ran.statuses["work"] == "completed" and not [s for s in ran.steps if "[" in s], ran
    assert get(ran.one("workflow_step_scattered"), "count") == 0


@item("B-8.6-7")
@pytest.mark.parametrize("payload",
                         ["{'target': 'nothing', 'items': [1]}", "{'target': 'work', 'items': 5}",
                                     "{'items': [1]}",
                          "{'target': 'work', 'items': [1, 2, 3], 'max_items': 2}",
                                     "{'target': 'plan', 'items': [1]}"])
def test_a_scatter_that_is_refused(served, tmp_path, payload):
    ran = small(served, tmp_path, scatter(payload), code=None)
    assert ran.of("workflow_step_scatter_rejected"), ran
    assert not [s for s in ran.steps if "[" in s], ran


# ---- patches ----

def patched(*patches, strategy="replace_path", code=None):
    """a -> b with a region between them; a sends these patches."""
    b = Bundle("patch")
    events = [{"type": "workflow_graph_patch", "payload": patch} for patch in patches]
    b.worker("a",
             code
             or f"say(events=json.loads({json.dumps(json.dumps(events))}), complete_step=True)",
             output_message_type=None)
    b.worker("b", "note('b', body)", ["a"], output_message_type="done")
    b.worker("extra",
             "note('extra', [os.environ.get('MN_WORKFLOW_STEP_ID'), context['workflow'], body])",
             step=False, output_message_type=None)
    region = {"id": "r", "strategy": strategy, "controller": "a", "exit": "b", "templates": ["t"],
              "mutable_edges": ["a__b"]}
    b.flow |= {"mode": "dynamic_dag", "dynamic": {
        "enabled": True, "apply_at": "between_steps",
                                                  "templates": [{"id": "t", "agent_id": "extra"}],
        "regions": [region], "limits": {"max_operations_per_patch": 6}}}
    return b.ends("b").seed("a", {})


def patch(operations, **more):
    return {"patch_id": "p1", "base_revision": 0, "region_id": "r", "operations": operations,
            **more}


ADD = [{"op": "remove_edge", "id": "a__b"},
       {"op": "add_step", "id": "x", "template": "t", "with": {"n": 1}},
       {"op": "add_edge", "id": "ax", "from": "a", "to": "x"},
       {"op": "add_edge", "id": "xb", "from": "x", "to": "b"}]


@item("B-8.7-1", "B-8.7-2", "B-7.2-5")
def test_a_patch(served, tmp_path):
    ran = small(served, tmp_path, patched(patch(ADD)))
    assert ran.statuses == {"a": "completed", "x": "completed", "b": "completed"}, ran
    name, workflow, body = ran.lines("extra")[0]
    assert name == "x" and workflow["template_id"] == "t" and workflow["region_id"] == "r"
    assert workflow["graph_revision"] == 1 and body["step_input"] == {"n": 1}


@item("B-8.7-3")
def test_the_same_patch_again(served, tmp_path):
    ran = small(served, tmp_path, patched(patch(ADD), patch(ADD)))
    assert ran.statuses["x"] == "completed"
    ran.one("workflow_graph_patch_applied")
    ran.one("workflow_graph_patch_replayed")


@item("B-8.7-1", "B-8.7-2")
def test_a_patch_takes_away_what_an_earlier_one_has_added(served, tmp_path):
    back = [{"op": "remove_edge", "id": "ax"}, {"op": "remove_edge", "id": "xb"},
            {"op": "remove_step", "id": "x"},
            {"op": "add_edge", "id": "ab", "from": "a", "to": "b"}]
    ran = small(served, tmp_path,
                patched(patch(ADD), patch(back, patch_id="p2", base_revision=1)))
    assert ran.statuses == {"a": "completed", "b": "completed"}, ran
    assert not ran.has("extra"), ran


def test_a_page_that_begins_where_a_step_was_is_answered(served, tmp_path):
    back = [{"op": "remove_edge", "id": "ax"}, {"op": "remove_edge", "id": "xb"},
            {"op": "remove_step", "id": "x"},
            {"op": "add_edge", "id": "ab", "from": "a", "to": "b"}]
    ran = small(served, tmp_path,
                patched(patch(ADD), patch(back, patch_id="p2", base_revision=1)))
    found = {}
    for number in range(12):  # agents come first: their positions are no pages
        answer = served.box.ask("GET", f"{JOBS}/{ran.job_id}?page={number}.-1")
        if answer.status == 200:
            state = answer.json["workflow_state"]
            found[number] = list(state["steps"]), state["next"]
    assert [steps for steps, _ in found.values()] == [["a", "b"], ["b"], []], found
    assert all(following is None for _, following in found.values()), found


def memory_mb(node, name):
    with open(f"/proc/{node.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":")) / 1024


def test_readers_of_a_large_bundle_that_was_patched_take_the_memory_of_one(own, tmp_path):
    b = patched(patch(ADD))
    for n in range(20000):
        b.agent(f"r{n}", "router", emit_type="x")
    node, ran = own.box.started[0], small(own, tmp_path, b)
    idle = memory_mb(node, "VmRSS")
    with open(f"/proc/{node.pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak is counted from here

    def read(_):
        for _ in range(4):
            answer = own.box.ask("GET", f"{JOBS}/{ran.job_id}")
            assert answer.json["graph_revision"] == 1

    with concurrent.futures.ThreadPoolExecutor(10) as readers:
        list(readers.map(read, range(10)))
    assert memory_mb(node, "VmHWM") - idle < 100


@item("B-8.7-3", "B-8.7-4", "B-8.7-5")
@pytest.mark.parametrize("patches", [
    [patch(ADD), patch(ADD[:3])],
    [patch(ADD, base_revision=4)],
    [patch(ADD, region_id="nowhere")],
    [patch(ADD, patch_id="no id")],
    [patch(ADD[1:2])],
    [patch(ADD[:2])],
    [patch(ADD + [{"op": "add_edge", "id": "sx", "from": "sink", "to": "x"}])],
    [patch(ADD + [{"op": "add_edge", "id": "xx", "from": "x", "to": "x"}])],
    [patch(ADD + [{"op": "remove_step", "id": "a"}])],
    [patch(ADD + ADD[2:])],
    [patch([{"op": "add_step", "id": "x", "template": "unknown"}])],
    [patch([{"op": "explode", "id": "x"}])],
    [patch("nothing")],
    [patch(ADD + [{"op": "add_step", "id": f"y{n}", "template": "t"} for n in range(9)])],
], ids=["other-content", "revision", "region", "id", "no-path", "no-exit", "outside", "cycle",
        "started", "twice",
        "template", "operation", "form", "limit"])
def test_a_patch_that_is_refused_fails_the_attempt(served, tmp_path, patches):
    ran = small(served, tmp_path, patched(*patches), code=1)
    assert ran.of("workflow_graph_patch_rejected"), ran
    assert ran.statuses["a"] == "failed" and not ran.has("extra"), ran


@item("B-8.7-4")
def test_who_may_send_a_patch(served, tmp_path):
    b = patched(code="say(x=1)")
    payload = json.dumps(json.dumps(patch(ADD)))
    b.worker("c",
             f"say(events=[{{'type': 'workflow_graph_patch', 'payload': json.loads({payload})}}])",
             control=OPTIONAL, output_message_type=None).seed("c", {})
    ran = small(served, tmp_path, b)
    assert ran.of("workflow_graph_patch_rejected"), ran
    assert "x" not in ran.steps, ran


@item("B-8.7-6", "B-8.5-1")
def test_checkpoint_fanout(served, tmp_path):
    b = patched(strategy="checkpoint_fanout", code="""
turn = state.get("turn", 0) + 1
note("turns", [turn, context["workflow"]["attempt"]])
if turn == 1:
    operations = [{"op": "add_step", "id": f"x{n}", "template": "t", "with": {"n": n}}
                  for n in (1, 2)]
    say(next_state={"turn": turn}, events=[
        {"type": "workflow_graph_patch", "payload": {
            "patch_id": "p1", "region_id": "r", "operations": operations,
            "base_revision": context["workflow"].get("graph_revision", 0)}},
        {"type": "workflow_controller_checkpoint", "payload": {"reason": "work is out"}}])
else:
    say(next_state={"turn": turn}, complete_step={"turns": turn})
""")
    region = b.flow["dynamic"]["regions"][0]
    del region["mutable_edges"], region["exit"]
    for node in b.flow["nodes"]:
        if node["node_id"] == "a":
            node["config"] |= {"workflow_complete_step": False, "output_message_type": "go"}
        if node["node_id"] == "extra":
            node["config"] |= {"output_message_type": "report"}
    b.edge("extra", "a", "report").edge("a", "b", "go")
    ran = small(served, tmp_path, b)
    assert ran.of("workflow_controller_checkpointed"), ran
    assert [x[0] for x in ran.lines("extra")] == ["x1", "x2"], ran
    assert ran.statuses["a"] == "completed", ran
    assert ran.of("workflow_dynamic_steps_retired"), ran
