"""Steps that run on other nodes than the owner of their job, on a cluster in which nobody is given
up: they end like those that run at home, with all that a flow can say of a step.

The tests share a cluster. Pool `one` has one slot on each node: a step that holds the owner's sends
all others of that pool elsewhere. Pool `last` is on the last node only. What happens when somebody
dies is in test_elsewhere_deaths.py.

An offer that is not taken in time is withdrawn. It counts as an attempt that never started, so on a
busy machine the numbers of attempts have gaps."""

import os
import signal
import sys
import time
from datetime import datetime

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from cluster import Cluster  # noqa: E402
from elsewhere import (STORES, gate, open_gate, starts_of, steps_of, store_of,  # noqa: E402
                       submit, submit_file, tally, wait_forgotten, work)
from glianode import wait_for  # noqa: E402
from servers import SOAK, make_server  # noqa: E402

NODES, SLOTS = 4, 4
STEPS = 200
WAVES = STEPS // (NODES * SLOTS) + 1
LIMIT_S = 20  # for all of them, a second each, on an idle machine; one node would need 50
TTL_S = 9  # a third of it passes until a node hears of another one
LONG_TTL = "60s"  # of the node that is away for a while and is not to be given up
HEARTBEAT_S = 3


@pytest.fixture(name="cluster", scope="module",
                params=STORES if SOAK else [store_of()])
def make_cluster(request):
    with make_server(request.param) as server:
        pools = f"default={SLOTS},one=1"
        made = Cluster(server.url, NODES, TTL_S, 60, ("--pools", pools), server)
        made.nodes[-1].args = ("--pools", f"{pools},last=1", "--session-ttl", LONG_TTL)
        with made as cluster:
            wait_acquainted(cluster)
            yield cluster
            cluster.wait_ends()
            cluster.judge()


@pytest.fixture(autouse=True)
def nothing_is_left(cluster):
    """Whatever a test has done: when its jobs have ended, the store has forgotten where they
    ran."""
    yield
    wait_forgotten(cluster.server)


def wait_acquainted(cluster):
    """The first node has heard of the slots of all others."""
    opens = gate(cluster, "acquainted")
    job = submit(cluster, cluster.nodes[0], {
        f"s{i}": work(cluster, gate=opens) for i in range(NODES * SLOTS)})
    wait_for("all slots to be used", lambda: len(starts_of(cluster, job)) == NODES * SLOTS)
    open_gate(opens)
    cluster.wait_ends(jobs=[job])


def held(cluster, name):
    """The step that has the owner's slot of pool `one`, and what opens it."""
    opens = gate(cluster, name)
    return work(cluster, gate=opens, pool="one", priority=1000), opens


def wait_ended(cluster, job, count):
    """Until so many steps of the job have ended."""
    try:
        wait_for(f"{count} steps to end", lambda: len(
            [1 for d in steps_of(cluster, job).values() if d.get("ended_at")]) >= count)
    except AssertionError as error:
        raise AssertionError(f"{error}: {cluster.tell([job])}") from None


def milliseconds(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


def ended(cluster, job, status="completed"):
    cluster.wait_ends(jobs=[job])
    assert cluster.ended[job] == status, cluster.tell([job])
    return steps_of(cluster, job)


def test_the_steps_of_one_job_use_all_nodes_evenly(cluster):
    begin = time.monotonic()
    job = submit(cluster, cluster.nodes[0], {
        f"s{i}": work(cluster, 1000) for i in range(STEPS)})
    steps = ended(cluster, job)
    took = max(e["t"] for e in cluster.lines("end", job=job)) - begin
    slack = cluster.stalls.slack(begin)
    starts = starts_of(cluster, job)
    share = {n.name: len([e for e in starts if e["node"] == n.name]) for n in cluster.nodes}
    print(f"elsewhere, {STEPS} steps of 1 s, {NODES} nodes with {SLOTS} slots: {took:.2f} s, by "
          f"node {list(share.values())}, the machine at most {slack:.2f} s late")
    assert len(starts) == STEPS and set(tally(cluster, job).values()) == {1}
    assert all(steps[e["step"]]["node"] == e["node"] for e in starts)
    assert min(share.values()) >= STEPS / NODES / 2, share
    assert took < LIMIT_S + WAVES * slack


def test_a_step_elsewhere_can_do_what_it_can_do_at_home(cluster):
    owner = cluster.nodes[0]
    hold, opens = held(cluster, "able")
    here = {"pool": "one"}
    steps = {
        "hold": hold,
        "says": {"sh": 'echo "{\\"rows\\": 3, \\"list\\": [\\"a\\", \\"b\\", \\"c\\"]}"', **here},
        "reads": {"sh": 'test "${steps.says.output.rows}" = 3; cp "$GLIA_INPUT_FILE" '
                        '"$GLIA_OUTPUT"', "needs": "says", **here},
        # Each waits for another one: of this pool no node runs two.
        "each": {"foreach": "${steps.says.output.list}", "needs": "says", **here,
                 "env": {"MET": os.path.join(cluster.folder, "met"), "IT": "${job.item}"},
                 "sh": 'echo "$IT" >>"$MET"; until test "$(wc -l <"$MET")" -ge 2; do sleep 0.05; '
                       'done; echo "{\\"it\\": \\"$IT\\"}"'},
        "again": {"sh": 'echo x >>"$TRIES"; test "$(wc -l <"$TRIES")" = 3 || exit 7',
                  "env": {"TRIES": os.path.join(cluster.folder, "tries")},
                  "retry": {"attempts": 3, "backoff": "100ms"}, **here},
        "never": {"sh": "exit 9", "on_failure": "continue", **here},
        "late": {"sh": "sleep 600", "timeout": "300ms", "on_failure": "continue", **here},
        "large": {"python": "import json, os\n"
                            "json.dump({'text': 1000000 * 'x'}, "
                            "open(os.environ['GLIA_OUTPUT'], 'w'))\n", **here},
        "counts": {"python": "import json, os\n"
                             "read = json.load(open(os.environ['GLIA_INPUT_FILE']))\n"
                             "text = read['steps']['large']['output']['text']\n"
                             "print(json.dumps({'count': len(text)}))\n",
                   "needs": "large", **here},
        "absent": {"run": ["/no/such/program"], "on_failure": "continue", **here},
        "files": {"python": "import json, os\n"
                            "text = open('sub/data.txt').read() + str(${steps.says.output.rows})\n"
                            "json.dump({'text': text}, open(os.environ['GLIA_OUTPUT'], 'w'))\n",
                  "files": {"sub/data.txt": "data.txt"}, "needs": "says", **here},
        "script": {"script": "work.sh", "env": {"WORD": "given"}, **here},
        "after": {"sh": 'test "${steps.files.output.text}" = "of a file3"', **here,
                  "needs": ["reads", "each", "again", "never", "late", "counts", "absent", "files",
                            "script"]},
    }
    job = submit_file(cluster, owner, steps, **{
        "data.txt": "of a file", "work.sh": 'echo "{\\"word\\": \\"$WORD\\"}"\n'})
    wait_for("the last step", lambda: steps_of(cluster, job)["after"].get("ended_at"))
    open_gate(opens)
    steps = ended(cluster, job)
    assert [s for s, d in steps.items() if d["node"] == owner.name] == ["hold"]
    assert {s: d["status"] for s, d in steps.items() if d["status"] != "completed"} == {
        "never": "partial", "late": "partial", "absent": "partial"}
    read = steps["reads"]["output"]
    assert (read["job_id"], read["step_id"], read["attempt"]) == (
        job, "reads", steps["reads"]["attempt_count"])
    assert read["steps"]["says"]["output"]["list"] == ["a", "b", "c"]
    assert steps["each"]["output"] == [{"it": "a"}, {"it": "b"}, {"it": "c"}]
    assert len({steps[f"each[{i}]"]["node"] for i in range(3)}) > 1
    assert steps["again"]["counted"] == 3
    assert steps["never"]["exit_code"] == 9
    assert steps["counts"]["output"] == {"count": 1000000}
    assert steps["script"]["output"] == {"word": "given"}
    kinds = [(e["type"], e.get("step_id")) for e in owner.events(job) if e.get("counted", True)]
    assert kinds.count(("workflow_step_attempt_timed_out", "late")) == 1
    assert kinds.count(("workflow_step_attempt_retry_scheduled", "again")) == 2


def test_limits_hold_across_nodes(cluster):
    """Two owners, and steps of theirs on the other two nodes, under the same key and rate."""
    key = {"key": "both", "max": 1}
    rate = {"limit": 4, "per": "1s", "key": "both"}
    jobs = []
    for node in cluster.nodes[:2]:
        hold, opens = held(cluster, f"limits-{node.name}")
        steps = {"hold": hold, "go": {"signal": "go"}}
        steps |= {f"seat{i}": work(cluster, 150, pool="one", concurrency=key, needs="go")
                  for i in range(4)}
        steps |= {f"rate{i}": work(cluster, 0, pool="one", rate=rate, needs="go")
                  for i in range(4)}
        job = submit(cluster, node, steps)
        assert cluster.wait_start(job, step="hold")["node"] == node.name
        jobs.append((node, job, opens))
    for node, job, _ in jobs:
        cluster.command(node, job, "signal", step="go")
    for _, job, opens in jobs:
        wait_ended(cluster, job, 9)
        open_gate(opens)
    decided, runs = [], []
    for node, job, _ in jobs:
        for step, d in ended(cluster, job).items():
            if step != "go":
                assert (d["node"] == node.name) == (step == "hold"), (step, d["node"])
            if step.startswith("rate"):
                decided.append(milliseconds(d["attempt_at"]))
            elif step.startswith("seat"):
                (begin,), (end,) = [cluster.lines(w, job=job, step=step) for w in ("start", "end")]
                runs.append((begin["t"], end["t"]))
    runs.sort()
    assert all(a[1] <= b[0] for a, b in zip(runs, runs[1:])), runs
    decided.sort()
    assert min(b - a for a, b in zip(decided, decided[1:])) >= 249, decided


def test_pause_and_cancel_reach_the_processes_elsewhere(cluster):
    owner, second, third = cluster.nodes[:3]
    count = NODES * SLOTS
    opens = gate(cluster, "pause")
    job = submit(cluster, owner, {f"s{i}": work(cluster, gate=opens) for i in range(count)})
    wait_for("all to run", lambda: len(starts_of(cluster, job)) == count)
    assert len({e["node"] for e in starts_of(cluster, job)}) == NODES
    cluster.command(second, job, "pause")
    wait_for("all to be stopped", lambda: len(cluster.lines("stopped", job=job)) == count)
    wait_for("the job to be paused", lambda: cluster.status(job) == "paused")
    assert len(starts_of(cluster, job)) == count
    cluster.command(third, job, "resume")
    wait_for("all to run again", lambda: len(starts_of(cluster, job)) == 2 * count)
    cluster.command(second, job, "cancel")
    wait_for("all to be stopped", lambda: len(cluster.lines("stopped", job=job)) == 2 * count)
    ended(cluster, job, "cancelled")
    assert not any(os.path.exists(f"/proc/{e['pid']}") for e in starts_of(cluster, job))


def test_a_failed_step_ends_those_elsewhere_and_unsafe_ones_finish(cluster):
    opens, fails = gate(cluster, "unsafe"), gate(cluster, "fails")
    steps = {f"s{i}": work(cluster, 600000) for i in range(8)}
    steps |= {f"u{i}": work(cluster, gate=opens, unsafe=True) for i in range(6)}
    steps["bad"] = {"sh": 'until test -e "$FAILS"; do sleep 0.05; done; exit 1',
                    "env": {"FAILS": fails}}
    job = submit(cluster, cluster.nodes[0], steps)
    wait_for("all to run", lambda: len(starts_of(cluster, job)) == 14)
    open_gate(fails)
    wait_for("the end of the others", lambda: len(cluster.lines("stopped", job=job)) == 8)
    assert all(e["step"].startswith("s") for e in cluster.lines("stopped", job=job))
    open_gate(opens)
    done = ended(cluster, job, "failed")
    assert {done[f"u{i}"]["status"] for i in range(6)} == {"completed"}
    assert set(tally(cluster, job).values()) == {1}


def silence(cluster, node):
    """The keeper stands still for longer than a heartbeat."""
    keepers, begin = node.keeper_pids(), time.monotonic()
    for pid in keepers:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_for("the deadline", lambda: time.monotonic() >
                 begin + HEARTBEAT_S + 1 + cluster.stalls.slack(begin))
    finally:
        for pid in keepers:
            os.kill(pid, signal.SIGCONT)


def test_a_step_elsewhere_that_gives_no_sign_of_life_is_run_again(cluster):
    """Also if its node has taken it up after a restart."""
    owner, victim = cluster.nodes[0], cluster.nodes[-1]
    opens = gate(cluster, "silent")
    job = submit(cluster, owner, {
        "work": work(cluster, gate=opens, pool="last", heartbeat=f"{HEARTBEAT_S}s",
                     retry={"attempts": 9, "backoff": "100ms"})})
    cluster.wait_start(job)
    for restarts in (False, True):
        if restarts:
            victim.kill()
            victim.restart()
        count = len(starts_of(cluster, job))
        silence(cluster, victim)
        wait_for("another attempt", lambda n=count: len(starts_of(cluster, job)) > n)
    open_gate(opens)
    ended(cluster, job)
    events = [e["type"] for e in owner.events(job)]
    assert events.count("workflow_step_attempt_timed_out") == len(starts_of(cluster, job)) - 1
    assert len(cluster.lines("stopped", job=job)) == len(starts_of(cluster, job)) - 1


def test_a_node_that_restarts_takes_up_what_it_ran_for_others(cluster):
    """And the logs of what ran there can be read while it is away."""
    owner, victim = cluster.nodes[0], cluster.nodes[-1]
    gates = [gate(cluster, f"restart-{i}") for i in range(2)]
    steps = {"prints": {"sh": "echo printed elsewhere", "pool": "last"}}
    steps |= {f"s{i}": work(cluster, gate=gates[i % 2], needs="prints", unsafe=i % 3 == 0)
              for i in range(NODES * SLOTS)}
    job = submit(cluster, owner, steps)
    wait_for("all to run", lambda: len(starts_of(cluster, job)) == NODES * SLOTS)
    assert steps_of(cluster, job)["prints"]["node"] == victim.name

    def is_read():
        return "printed elsewhere" in owner.glia("job", "logs", job, "prints", code=None).stdout

    wait_for("the copy of the log", is_read)
    victim.kill()
    assert is_read()
    mine = [e["step"] for e in starts_of(cluster, job) if e["node"] == victim.name]
    assert len(mine) == SLOTS
    early = {s for s in mine if int(s[1:]) % 2 == 0}
    open_gate(gates[0])
    wait_for("what ends while it is away",
             lambda: early <= {e["step"] for e in cluster.lines("end", job=job)})
    victim.restart()
    open_gate(gates[1])
    steps = ended(cluster, job)
    assert set(tally(cluster, job).values()) == {1}
    assert {steps[s]["node"] for s in mine} == {victim.name}
