"""Native modules in bundles: their states, their crashes, and where they run."""

import os
import signal

import golden
import pytest
from bundlework import Bundle
from glianode import BUILD, wait_for

GOLDEN = golden.of(__file__)
MESSAGES = 40


@pytest.fixture(autouse=True)
def modules(box):
    folders = [os.path.join(BUILD, folder, "modules") for folder in ("examples", "test")]
    box.env["GLIA_MODULES_DIR"] = ":".join(folders)


def counted(messages=MESSAGES):
    """An agent that counts what it gets; the message that makes it full ends the job."""
    b = Bundle("counted").agent("count", "module", module="example.counter", limit=messages)
    b.sink(complete_on_message=False, complete_after=messages)
    b.edge("count", "sink", "counted")
    return b.seed("count", *({"n": n} for n in range(messages)))


def serve(box):
    process = box.start("serve")
    wait_for("the node", lambda: "ready: process" in box.read(process.err))
    return process


def handled(box, run_id):
    """How many messages the sink has: asked for without a process, as the job goes on meanwhile."""
    rows = box.ask("GET", f"/v1/contexts/default/jobs/{run_id}/agents?agent=sink").json
    return sum(row["processed"] for row in rows.get("agents", []))


def totals(ran):
    return [m.get("body", m)["total"] for m in ran.result["output"]["messages"]]


@pytest.mark.parametrize("trusted", ["", "example.counter"])
def test_each_message_is_counted_once(alone, tmp_path, trusted):
    alone.env["GLIA_TRUSTED_MODULES"] = trusted
    ran = alone.run(counted().write(tmp_path / "bundle"))
    assert totals(ran) == list(range(1, MESSAGES + 1))
    ran.one("limit_reached", agent_id="count")


@pytest.mark.parametrize("trusted", ["", "test.say,example.counter"])
def test_each_message_is_counted_once_although_the_node_is_killed(box, alone, tmp_path, trusted):
    alone.env["GLIA_TRUSTED_MODULES"] = trusted
    many = 200
    b = counted(many)  # one agent more, which takes its time, so that there is work to be killed
    b.manifest["entrypoints"], b.manifest["initial_inputs"] = [], {}
    b.agent("slow", "module", module="test.say").edge("slow", "count", "lingered")
    b.seed("slow", *({"do": "linger", "ms": 10, "n": n} for n in range(many)))
    node = serve(box)
    process = alone.start(b.write(tmp_path / "bundle"))
    # A node that dies three times in a trusted call holds its job: here it mostly is in one.
    for part in (1, 2) if trusted else (1, 2, 3):
        wait_for(f"part {part}", lambda at=part * many // 5: handled(box, process.run_id) >= at)
        assert handled(box, process.run_id) < many, "it is over before the node is killed"
        node.kill()
        node.wait()
        node = serve(box)
    ran = alone.finish(process)
    assert totals(ran) == list(range(1, many + 1))


def test_a_crash_fails_the_step_and_not_the_node(box, alone, tmp_path):
    node = serve(box)
    b = Bundle("crash").agent("bad", "module", module="test.say").step("bad")
    ran = alone.run(b.seed("bad", {"do": "crash"}).write(tmp_path / "bad"), code=1)
    assert ran.statuses["bad"] == "failed", ran
    GOLDEN.says("died", ran.steps["bad"]["terminal_reason"])
    assert node.poll() is None
    b = Bundle("good").agent("good", "module", module="test.say").step("good").sink()
    b.edge("good", "sink", "first")
    ran = alone.run(b.seed("good", {"do": "all"}).write(tmp_path / "good"))
    assert ran.statuses["good"] == "completed", ran


def test_a_loop_times_out(alone, tmp_path):
    b = Bundle("loop").agent("slow", "module", module="test.say", timeout_seconds=1).step("slow")
    ran = alone.run(b.seed("slow", {"do": "loop"}).write(tmp_path / "bundle"), code=1)
    assert ran.statuses["slow"] == "failed", ran


def test_a_trusted_module_that_ends_the_node_again_and_again_holds_its_job(box, alone, tmp_path):
    alone.env["GLIA_TRUSTED_MODULES"] = "test.say"
    b = Bundle("deadly").agent("bad", "module", module="test.say").sink().edge("bad", "sink", "x")
    node = serve(box)
    # A client that waits would become the node when that dies.
    alone.start(b.seed("bad", {"do": "crash"}).write(tmp_path / "bundle"), "--detach",
                run_id="deadly")
    for _ in range(3):
        assert node.wait(60) == -signal.SIGSEGV, box.read(node.err)
        node = box.start("serve")
    wait_for("the node", lambda: "ready: process" in box.read(node.err))
    assert box.why_code("deadly") == "quarantined"
    GOLDEN.says("quarantine", golden.line_of(box.read(node.err), "quarantine"),
                [box.json("job", "status", "deadly")["job_id"]])
    assert node.poll() is None
