"""What a node offers: cores, memory, disk and labels, as commands, the API and metrics show it."""

import json
import os
import re
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from clusterbox import CALM, make_boxes, make_redis, nodes, serve, stop  # noqa: E402, F401
from glianode import wait_for  # noqa: E402


def metrics(box):
    body = box.ask("GET", "/metrics").body.decode()
    return {name: float(value) for name, value in re.findall(r"(?m)^(glia_\S+) (\S+)$", body)}


def record(box, *args):
    return dict(line.split("\t", 1) for line in box.glia(*args).stdout.splitlines())


def test_a_node_shows_what_it_offers(box):
    box.env["GLIA_LABELS"] = "zone=a"
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # inherited
    try:
        node = serve(box, "--labels", "zone=b, example.org/disk=ssd")
    finally:
        os.sched_setaffinity(0, before)
    disk = os.statvfs(box.data)
    labels = {"zone": "b", "example.org/disk": "ssd"}
    for document in (box.json("node", "list")["nodes"][0], box.json("node", "status"),
                     box.ask("GET", "/v1/nodes").json["nodes"][0], box.ask("GET", "/v1/node").json):
        offers = document["capacity"]
        assert document["labels"] == labels
        assert 0 < offers["cores"] <= 1
        assert 1 << 20 < offers["memory_bytes"] <= os.sysconf("SC_PAGE_SIZE") * os.sysconf(
            "SC_PHYS_PAGES") + (1 << 30)
        assert offers["disk_bytes"] == disk.f_blocks * disk.f_frsize
        assert 0 < offers["disk_free_bytes"] <= offers["disk_bytes"]
    told = metrics(box)
    assert told["glia_node_cores"] == offers["cores"]
    assert told["glia_node_memory_bytes"] == offers["memory_bytes"]
    assert told["glia_node_disk_bytes"] == offers["disk_bytes"]
    assert 0 < told["glia_node_disk_free_bytes"] <= offers["disk_bytes"]
    assert told['glia_slots{pool="default"}'] > 0
    shown = record(box, "node", "status")
    assert (shown["cores"], shown["labels"]) == ("1", "zone=b,example.org/disk=ssd")
    assert re.fullmatch(r"\d+\.\d [KMGT]iB", shown["memory"])
    assert re.fullmatch(r"\d+\.\d [KMGT]iB of \d+\.\d [KMGT]iB", shown["disk free"])
    row = box.glia("node", "list").stdout.rstrip("\n").split("\t")
    assert row[8:12] == [shown["cores"], shown["memory"], shown["disk free"], shown["labels"]]
    stop(box, node)


def test_slots_in_use_are_shown(box):
    node = serve(box, "--pools", "default=3")
    run = box.start("run", "--", "sh", "-c", f"until [ -e {box.folder}/go ]; do sleep 0.05; done")
    wait_for("the step", lambda: metrics(box)['glia_slots_in_use{pool="default"}'] == 1)
    assert metrics(box)['glia_slots{pool="default"}'] == 3

    def pool():
        return box.json("node", "list")["nodes"][0]["pools"][0]

    wait_for("the next heartbeat", lambda: pool()["in_use"] == 1)
    assert pool()["slots"] == 3 and "default 1 of 3" in box.glia("node", "list").stdout
    box.write("go", "")
    box.finish(run)
    stop(box, node)


def test_the_longest_labels_are_published(box):
    longest = "x" * 62
    labels = {f"{i:02}{longest}": f"{i:02}{longest}" for i in range(32)}
    pools = {f"{i:02}" + "p" * 100: 1 for i in range(61)}
    box.env["GLIA_CONFIG"] = box.write("c.yaml", json.dumps({"labels": labels, "pools": pools}))
    node = serve(box)
    assert box.json("node", "status")["labels"] == labels
    stop(box, node)


@pytest.mark.parametrize("labels", [
    "zone", "zone=a,zone=b", "zone=a b", "=a", "zone=" + "x" * 65,
    ",".join(f"k{i}=v" for i in range(33))])
def test_bad_labels_change_nothing(box, labels):
    for args, env in ((["--labels", labels], {}), ([], {"GLIA_LABELS": labels})):
        box.env.update(env)
        assert box.reason("serve", *args, code=2) == "setting_invalid"
    assert not os.path.exists(box.data)


# ---- several nodes ----

@pytest.mark.sqlite_only("chooses its stores itself")
def test_nodes_see_what_others_offer(boxes, redis):
    a, b, outside = boxes("a", **CALM), boxes("b", **CALM), boxes("outside", **CALM)
    serve(a, "--labels", "zone=a")
    node = serve(b)
    for box in (a, b, outside):
        seen = nodes(box)
        assert seen["a"]["labels"] == {"zone": "a"} and seen["b"]["labels"] == {}
        assert seen["a"]["capacity"]["cores"] == seen["b"]["capacity"]["cores"] > 0
        assert seen["b"]["capacity"]["disk_free_bytes"] > 0
    assert a.ask("GET", "/v1/nodes/b").json["capacity"] == nodes(b)["b"]["capacity"]
    assert record(a, "node", "status", "b")["memory"] == record(b, "node", "status")["memory"]
    # From here on another release renews b's session, or somebody who can write to the store.
    node.send_signal(signal.SIGSTOP)
    key = f"glia:.session:{nodes(a)['b']['session']}"
    about = json.loads(redis.ask("HGET", key, "about"))
    assert about["capacity"]["cores"] > 0
    del about["capacity"], about["labels"]
    for change in ({}, {"labels": {"zone": "\x1b[31mred"}, "capacity": [1]},
                   {"labels": ["zone"], "capacity": {"cores": -3, "memory_bytes": "lots",
                                                     "disk_bytes": 1, "disk_free_bytes": 2}},
                   {"labels": {f"k{i}": "v" for i in range(40)}, "capacity": None}):
        redis.ask("HSET", key, "about", json.dumps({**about, **change}))
        seen = nodes(a)["b"]
        assert seen["labels"] is None and seen["pools"] == about["pools"]
        assert not any((seen["capacity"] or {}).values())
        shown = record(a, "node", "status", "b")
        assert {shown[what] for what in ("cores", "memory", "disk free", "labels")} == {"unknown"}
        rows = [line.split("\t") for line in a.glia("node", "list").stdout.splitlines()]
        assert [row[8:12] for row in rows if row[0].startswith("b.")] == [["unknown"] * 4]
        a.glia("run", "--", "true")
    node.send_signal(signal.SIGCONT)
    wait_for("b to publish again", lambda: nodes(a)["b"]["labels"] == {})
    stop(b, node)
