"""What a manifest may say, and how its mistakes are told: all at once, each with its place."""

import copy
import json
import os

import pytest

from bundlework import Bundle, item, validate
from patterns import PATTERNS

WORKER = {"runner_module": "MirrorNeuron.Runner.HostLocal", "command": ["true"]}
SINK = {"terminal_sink": True, "complete_run": True, "complete_on_message": True}


def node(name, kind="executor", **more):
    config = dict(WORKER) if kind == "executor" else {}
    return {"node_id": name, "agent_type": kind, "config": config, **more}


def good():
    """A catalog manifest in which nothing is wrong."""
    return {
        "apiVersion": "mn.workflow/v2", "kind": "Workflow", "id": "good", "job_name": "good",
        "manifest_version": "1.0",
        "workflow": {"workflow_id": "good", "mode": "static_dag", "entrypoint": "a", "source": "a",
                     "sink": "c",
                     "steps": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
                     "edges": [{"id": "ab", "from": "a", "to": "b"},
                               {"id": "bc", "from": "b", "to": "c"}]},
        "agents": {"nodes": [node("a"), node("b"), node("c"),
                             {"node_id": "end", "agent_type": "aggregator", "config": dict(SINK)}],
                   "edges": [{"edge_id": "m1", "from_node": "a", "to_node": "b",
                              "message_type": "x"},
                             {"edge_id": "m2", "from_node": "b", "to_node": "c",
                              "message_type": "x"},
                             {"edge_id": "m3", "from_node": "c", "to_node": "end",
                              "message_type": "*"}],
                   "entrypoints": ["a"]},
        "runtime": {"bindings": {}, "initial_inputs": {"a": [{}]}},
    }


def dynamic():
    m = good()
    m["workflow"]["mode"] = "dynamic_dag"
    m["agents"]["nodes"].append(node("extra"))
    m["workflow"]["dynamic"] = {
        "enabled": True, "apply_at": "between_steps",
        "templates": [{"id": "more", "agent_id": "extra"}],
        "regions": [{"id": "r", "strategy": "replace_path", "controller": "a", "exit": "b",
                     "templates": ["more"], "mutable_edges": ["ab"]}]}
    return m


def put(m, path, value):
    """Set what a path like workflow.steps[1].id leads to; `...` removes it."""
    words = path.replace("[", ".[").split(".")
    at = m
    for word in words[:-1]:
        at = at[int(word[1:-1])] if word.startswith("[") else at.setdefault(word, {})
    last = int(words[-1][1:-1]) if words[-1].startswith("[") else words[-1]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return m


def write(tmp_path, m):
    folder = tmp_path / "bundle"
    os.makedirs(folder / "payloads", exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(m, indent=1), encoding="utf-8")
    return folder


def refuse(box, tmp_path, m, *wanted):
    """Every (path, words) is among the errors."""
    valid, errors = validate(box, write(tmp_path, m))
    assert not valid
    for path, words in wanted:
        found = [e for e in errors if path in e[0] and words.lower() in e[1].lower()]
        assert found, f"no error at {path!r} with {words!r} in {errors}"
    return errors


def test_what_the_others_are_made_of_is_good(box, tmp_path):
    assert validate(box, write(tmp_path, good())) == (True, [])
    assert validate(box, write(tmp_path, dynamic())) == (True, [])


# (id, how the good manifest is spoilt, where the error is, what it says)
WRONG = [
    ("B-3-2", {"manifest_version": ...}, "manifest_version", ""),
    ("B-3-2", {"workflow.workflow_id": " "}, "workflow_id", ""),
    ("B-3-2", {"job_name": " "}, "job_name", ""),
    ("B-3-2", {"agents.nodes": []}, "nodes", ""),
    ("B-3-3", {"agents.nodes[1].node_id": ""}, "agents.nodes[1]", ""),
    ("B-3-3", {"agents.nodes[1].agent_type": "wizard"}, "agents.nodes[1].agent_type", "wizard"),
    ("B-3-3", {"agents.nodes[1].type": "pile"}, "agents.nodes[1].type", "pile"),
    ("B-3-3", {"agents.nodes[3].type": "stream"}, "agents.nodes[3].type", "aggregator"),
    ("B-2.1-3", {"agents.nodes[1].agent_type": "sensor", "agents.nodes[1].type": "map"},
     "agents.nodes[1].type", "sensor"),
    ("B-3-4", {"agents.edges[0].to_node": "nobody"}, "agents.edges[0].to_node", "nobody"),
    ("B-3-4", {"agents.edges[0].from_node": "nobody"}, "agents.edges[0].from_node", "nobody"),
    ("B-3-4", {"agents.edges[0].message_type": ""}, "agents.edges[0].message_type", ""),
    ("B-3-4", {"agents.edges[0].routing_mode": "best"}, "agents.edges[0].routing_mode", "best"),
    ("B-3-4", {"agents.edges[0].conditions": {"expr": "${payload.x} ~ 3"}},
     "agents.edges[0].conditions", ""),
    ("B-3-4", {"agents.edges[0].conditions": {"all": [{"what": 1}]}}, "agents.edges[0].conditions",
     ""),
    ("B-3-5", {"workflow.steps[1].id": ""}, "workflow.steps[1]", ""),
    ("B-3-5", {"workflow.steps[1].trigger_rule": "some_success"}, "workflow.steps[1].trigger_rule",
     "some_success"),
    ("B-3-6", {"workflow.steps[1].trigger_rule": {"rule": "quorum", "quorum": 2}},
     "workflow.steps[1].trigger_rule", ""),
    ("B-3-6", {"workflow.steps[1].trigger_rule": {"rule": "quorum", "quorum": 0}},
     "workflow.steps[1].trigger_rule", ""),
    ("B-3-6", {"workflow.steps[1].trigger_rule": {"rule": "quorum", "quorum": 1.5}},
     "workflow.steps[1].trigger_rule", ""),
    ("B-3-7", {"workflow.edges[1].to": "z"}, "workflow.edges[1].to", "z"),
    ("B-3-7", {"workflow.edges[1].to": "b"}, "workflow.edges[1]", ""),
    ("B-3-7", {"workflow.edges[0]": {"id": "x", "from": "c", "to": "b"}}, "workflow", "cycle"),
    ("B-3-8", {"agents.entrypoints": ["z"]}, "agents.entrypoints[0]", "z"),
    ("B-3-8", {"agents.entrypoints": []}, "entrypoints", ""),
    ("B-3-9", {"type": "cronjob"}, "type", "cronjob"),
    ("B-3-9", {"policies.recovery_mode": "hope"}, "policies.recovery_mode", "hope"),
    ("B-3-9", {"policies.job_type": "hobby"}, "policies.job_type", "hobby"),
    ("B-3-9", {"policies.restart.attempts": -1}, "policies.restart.attempts", ""),
    ("B-3-9", {"policies.restart.mode": "retry"}, "policies.restart.mode", "retry"),
    ("B-3-9", {"policies.restart.delay_function": "linear"}, "policies.restart.delay_function",
     "linear"),
    ("B-3-10", {"agents.nodes[1].config.complete_job": True}, "agents.nodes[1].config",
     "complete_job"),
    ("B-3-10", {"agents.nodes[1].config.x.y.complete_job?": 1}, "agents.nodes[1].config",
     "complete_job"),
    ("B-3-11", {"agents.nodes[1].config.complete_run": True}, "agents.nodes[1].config",
     "complete_run"),
    ("B-3-12", {"agents.nodes[3].config": {"complete_on_message": True}}, "agents.nodes[3].config",
     "output_message_type"),
    ("B-3-12", {"agents.nodes[3].config": {"complete_after": 2}}, "agents.nodes[3].config",
     "output_message_type"),
    ("B-3-13", {"agents.edges[0].from_node": "end"}, "", "terminal_sink"),
    ("B-3-14", {"workflow.mode": "dynamic_dag"}, "workflow", "dynamic"),
    ("B-3-14", {"workflow.dynamic": {"enabled": True}}, "workflow.dynamic.apply_at", "missing"),
    ("B-3-14", {"workflow.mode": "wild"}, "workflow.mode", "wild"),
    ("B-3-18", {"workflow.source": "b"}, "workflow.source", ""),
    ("B-3-18", {"workflow.sink": "z"}, "workflow.sink", "z"),
    ("B-3-18", {"workflow.edges[1]": {"id": "bc", "from": "a", "to": "b"}}, "workflow", "c"),
    ("B-3-19", {"workflow.edges[1].id": "ab"}, "workflow.edges[1].id", "ab"),
    ("B-3-19", {"runtime.bindings.zzz": {"workers": []}}, "runtime.bindings", "zzz"),
    ("B-3-19", {"workflow.edges[0].accepts": [1]}, "workflow.edges[0].accepts", ""),
    ("B-2.4-1", {"workflow.steps[1].id": "other", "workflow.edges[0].to": "other",
                 "workflow.edges[1].from": "other"}, "workflow.steps[1]", "other"),
    ("B-2.2-21", {"agents.nodes[1].config.runner_module": "X.Runner.DockerWorker"},
     "agents.nodes[1].config.runner_module", "DockerWorker"),
    ("B-2.2-22", {"agents.nodes[1].config.runner_module": "X.Runner.OpenShell"},
     "agents.nodes[1].config.runner_module", "OpenShell"),
    ("B-2.1-6", {"agents.nodes[1].agent_type": "step_join"}, "agents.nodes[1].agent_type",
     "step_join"),
    ("B-7.1-2", {"agents.nodes[1].config.upload_path": "../secrets"},
     "agents.nodes[1].config.upload_path", ""),
    ("B-7.1-2", {"agents.nodes[1].config.upload_path": "/etc/passwd"},
     "agents.nodes[1].config.upload_path", ""),
    ("B-7.1-2", {"agents.nodes[1].config.upload_paths": [{"source": ".", "target": "../out"}]},
     "agents.nodes[1].config.upload_paths[0].target", ""),
    ("B-7.1-2", {"agents.nodes[1].config.upload_path": "not-there"},
     "agents.nodes[1].config.upload_path", "not-there"),
    ("B-11-1", {"services": [{"name": "web"}]}, "services", "services"),
    ("B-11-1", {"agents.nodes[1].requires_services": ["web"]}, "agents.nodes[1].requires_services",
     ""),
    ("B-11-2", {"schedule": {"cron": "* * * * *"}}, "schedule", ""),
    ("B-11-2", {"triggers": [{"event": "x"}]}, "triggers", ""),
    ("B-11-3", {"deployment": {"key": "k"}}, "deployment", ""),
    ("B-11-4", {"agents.nodes[1].resources": {"devices": [{"kind": "gpu"}]}},
     "agents.nodes[1].resources", ""),
    ("B-11-4", {"agents.nodes[1].resources": {"ports": [{"label": "http"}]}},
     "agents.nodes[1].resources", ""),
    ("B-11-4", {"agents.nodes[1].resources": {"volumes": [{"name": "v"}]}},
     "agents.nodes[1].resources", ""),
    ("B-11-5", {"policies.job_type": "sysbatch"}, "policies.job_type", "sysbatch"),
    ("B-11-6", {"requiredContextEngine": True}, "requiredContextEngine", ""),
]

WRONG_DYNAMIC = [
    ("B-3-14", {"workflow.dynamic.apply_at": "anytime"}, "workflow.dynamic.apply_at", ""),
    ("B-3-14", {"workflow.dynamic.enabled": False}, "workflow", "dynamic"),
    ("B-3-15", {"workflow.dynamic.templates": []}, "workflow.dynamic.templates", ""),
    ("B-3-15", {"workflow.dynamic.templates[0].id": "c"}, "workflow.dynamic.templates[0]", ""),
    ("B-3-15", {"workflow.dynamic.templates[0].agent_id": "nobody"},
     "workflow.dynamic.templates[0]", "nobody"),
    ("B-3-15", {"workflow.dynamic.regions": []}, "workflow.dynamic.regions", ""),
    ("B-3-15", {"workflow.dynamic.regions[0].strategy": "grow"},
     "workflow.dynamic.regions[0].strategy", "grow"),
    ("B-3-16", {"workflow.dynamic.regions[0].controller": "z"},
     "workflow.dynamic.regions[0].controller", "z"),
    ("B-3-16", {"workflow.dynamic.regions[0].exit": "z"}, "workflow.dynamic.regions[0].exit", "z"),
    ("B-3-16", {"workflow.dynamic.regions[0].templates": ["z"]},
     "workflow.dynamic.regions[0].templates", "z"),
    ("B-3-16", {"workflow.dynamic.regions[0].mutable_edges": ["zz"]},
     "workflow.dynamic.regions[0].mutable_edges", "zz"),
    ("B-3-16", {"workflow.dynamic.regions[0].mutable_edges": ["bc"]},
     "workflow.dynamic.regions[0].mutable_edges", ""),
    ("B-3-17", {"workflow.dynamic.regions[0].mutable_edges": []}, "workflow.dynamic.regions[0]",
     "mutable_edges"),
    ("B-3-17", {"workflow.dynamic.regions[0].strategy": "checkpoint_fanout"},
     "workflow.dynamic.regions[0]", "mutable_edges"),
    ("B-3-17", {"workflow.dynamic.limits": {"max_patches": 100001}}, "workflow.dynamic", "100000"),
    ("B-3-17", {"workflow.dynamic.limits": {"max_active_steps": 1001}}, "workflow.dynamic", "1000"),
    ("B-3-17", {"workflow.dynamic.limits": {"max_operations_per_patch": 257}}, "workflow.dynamic",
     "256"),
]


def named(rows):
    return [pytest.param(*row[1:], id=f"{row[0]} {list(row[1])[0]}") for row in rows]


@item("B-3-2", "B-3-3", "B-3-4", "B-3-5", "B-3-6", "B-3-7", "B-3-8", "B-3-9", "B-3-10", "B-3-11",
      "B-3-12",
      "B-3-13", "B-3-14", "B-3-18", "B-3-19", "B-2.1-3", "B-2.1-6", "B-2.2-21", "B-2.2-22",
      "B-7.1-2", "B-11-1",
      "B-11-2", "B-11-3", "B-11-4", "B-11-5", "B-11-6")
@pytest.mark.parametrize("spoil, path, words", named(WRONG))
def test_a_mistake_is_named(box, tmp_path, spoil, path, words):
    m = good()
    for where, value in spoil.items():
        put(m, where, value)
    refuse(box, tmp_path, m, (path, words))


@item("B-3-14", "B-3-15", "B-3-16", "B-3-17")
@pytest.mark.parametrize("spoil, path, words", named(WRONG_DYNAMIC))
def test_a_mistake_in_what_may_change_is_named(box, tmp_path, spoil, path, words):
    m = dynamic()
    for where, value in spoil.items():
        put(m, where, value)
    refuse(box, tmp_path, m, (path, words))


@item("B-3-1", "B-3-20")
def test_all_mistakes_at_once(box, tmp_path):
    m = good()
    put(m, "agents.nodes[1].agent_type", "excutor")
    put(m, "agents.edges[0].to_node", "bb")
    put(m, "workflow.steps[1].trigger_rule", "all_succes")
    put(m, "policies.recovery_mode", "local_restat")
    errors = refuse(box, tmp_path, m, ("agents.nodes[1].agent_type", "executor"),
                    ("agents.edges[0].to_node", "bb"),
                    ("workflow.steps[1].trigger_rule", "all_success"),
                    ("policies.recovery_mode", "local_restart"))
    assert len(errors) >= 4


@item("B-3-16")
def test_an_edge_belongs_to_one_region(box, tmp_path):
    m = dynamic()
    region = copy.deepcopy(m["workflow"]["dynamic"]["regions"][0])
    m["workflow"]["dynamic"]["regions"].append({**region, "id": "r2"})
    refuse(box, tmp_path, m, ("workflow.dynamic.regions[1]", ""))


@item("B-3-5", "B-3-3")
def test_a_step_or_an_agent_twice(box, tmp_path):
    m = Bundle().worker("a").worker("b").step("a").seed("a").manifest
    refuse(box, tmp_path, m, ("flow.steps[2]", "a"))


@item("B-1.2-2", "B-1.2-4")
def test_of_what_stands_twice_the_later_counts(box, tmp_path):
    m = good()
    del m["job_name"]
    m["agents"]["nodes"].insert(0, node("a", kind="router"))
    m["agents"]["edges"].insert(0,
                                {"edge_id": "m1", "from_node": "a", "to_node": "c",
                                 "message_type": "q"})
    assert validate(box, write(tmp_path, m)) == (True, [])


@item("B-1.5-1", "B-1.5-2")
@pytest.mark.parametrize("form", ["mn.workflow.source/v2", "blueprint/v1"])
def test_a_form_that_needs_a_compiler_is_refused_by_name(box, tmp_path, form):
    errors = refuse(box, tmp_path, {"apiVersion": form, "kind": "Workflow", "id": "x"}, ("", form))
    assert len(errors) == 1, errors


@item("B-2.6-1", "B-2.4-8", "B-2.1-5", "B-1.1-5")
def test_advice_is_taken_and_changes_nothing(box, tmp_path):
    m = good()
    m["workflow"]["execution"] = {"strategy": "any", "max_parallel_steps": 1}
    m["runtime"] |= {"workflow_control": {"x": 1}, "store": {"type": "redis", "path": "/x"},
                     "state": {}}
    m["policies"] = {"backpressure": {"max": 1}}
    m |= {"contract": {"a": 1}, "metadata": {"b": 2}, "requirements": {"memory_mb": 1},
          "license": "MIT",
          "term": {}, "input_validation": {"rules": []}}
    m["workflow"]["steps"][0] |= {"label": "L", "goal": "G", "kind": "task", "action": "x",
                                  "emits": ["y"]}
    m["agents"]["nodes"][0] |= {"alias": "A", "display_name": "D", "role": "worker"}
    folder = write(tmp_path, m)
    (folder / "LICENSE").write_text("free")
    (folder / "SPEC.md").write_text("what")
    assert validate(box, folder) == (True, [])


@item("B-2.1-4", "B-3-8")
def test_agents_with_the_role_root_are_entrypoints(box, tmp_path):
    m = good()
    del m["agents"]["entrypoints"]
    refuse(box, tmp_path, m, ("entrypoints", ""))
    m["agents"]["nodes"][0]["role"] = "root_coordinator"
    assert validate(box, write(tmp_path, m)) == (True, [])


@item("B-2.1-2", "B-2.1-3")
@pytest.mark.parametrize("kind, template", [
    ("executor", "stream"), ("executor", "batch"), ("sandbox_worker", "map"),
                                            ("aggregator", "accumulator"),
    ("collector", "reduce"), ("router", "map"), ("relay", "generic"), ("sensor", "generic")])
def test_kinds_and_templates(box, tmp_path, kind, template):
    m = good()
    m["agents"]["nodes"].append({"id": "x", "agentType": kind, "kind": template,
                                 "config": dict(WORKER) if kind in ("executor",
                                                                    "sandbox_worker") else {}})
    assert validate(box, write(tmp_path, m)) == (True, [])


@item("B-2.4-2")
@pytest.mark.parametrize("where, rule", [
    ("trigger_rule", "all_done"), ("trigger_rule", {"type": "any_done"}),
                                         ("trigger_rule", {"mode": "all_required"}),
    ("control", {"trigger_rule": "one_success"}), ("join", {"trigger_rule": "any_failed"}),
    ("join", {"rule": "partial_success"}), ("join", {"mode": "any_success"}),
    ("trigger_rule", {"rule": "quorum", "count": 1}),
                                         ("trigger_rule",
                                          {"rule": "quorum_success", "minimum": 1})])
def test_where_a_rule_may_stand(box, tmp_path, where, rule):
    m = good()
    m["workflow"]["steps"][1][where] = rule
    assert validate(box, write(tmp_path, m)) == (True, [])
    if isinstance(rule, str):
        m["workflow"]["steps"][1][where] = "nonsense"
    else:
        key = next(k for k in rule if k in ("rule", "type", "mode", "trigger_rule"))
        m["workflow"]["steps"][1][where] = {**rule, key: "nonsense"}
    refuse(box, tmp_path, m, ("workflow.steps[1]", "nonsense"))


def test_the_bundles_of_the_tests_are_good(box):
    for pattern in PATTERNS.values():
        assert validate(box, pattern.path) == (True, []), pattern.name
