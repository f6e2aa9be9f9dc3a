"""The snapshot of a bundle is not whole any more: nothing starts without what it needs, a person is
asked, and when the file is back the job goes on."""

import glob
import hashlib
import json
import os
import shutil

import golden
import pytest
from bundlework import Bundle, Ran, Runner, item
from cluster import Cluster
from glianode import wait_for
from golden import line_of
from records import open_records
from servers import RedisServer

GOLDEN = golden.of(__file__)


def blob_of(box, folder, name):
    """The path at which the node keeps a payload of this bundle."""
    with open(os.path.join(folder, "payloads", name), "rb") as file:
        sha = hashlib.sha256(file.read()).hexdigest()
    path, = glob.glob(f"{box.data}/contexts/default/blobs/{sha[:2]}/{sha}")
    return path


def spoil(path, how):
    if how == "gone":
        os.remove(path)
    elif how == "link":
        os.remove(path)
        os.symlink("/etc/hostname", path)
    else:
        with open(path, "r+b") as file:
            file.write(b"#")


def two(tmp_path, name, **config):
    """`b` follows `a`, which waits until it may end."""
    bundle = Bundle(name).worker("a", "note('a', 1); wait_file('go')", idempotent=True,
                                 output_message_type="to_b")
    bundle.worker("b", "note('b', 1)", ["a"], output_message_type="done", **config)
    bundle.edge("a", "b", "to_b").ends("b").seed("a", {})
    return bundle.write(tmp_path / "bundle")


def status_of(box, run_id, *wanted):
    def there():
        status = box.json("job", "status", run_id)
        return status if status["status"] in wanted else None
    return wait_for(f"{wanted} of {run_id}", there)


def lose(served, folder, run_id, how):
    """The program of `b` is spoiled while `a` runs; gives back what the status says then."""
    served.box.glia("run", folder, "--run-id", run_id, "--detach")
    served.wait_file(run_id, "a")
    path = blob_of(served.box, folder, "b.py")
    shutil.copy(path, f"{folder}/good")
    spoil(path, how)
    served.touch(run_id, "go")
    return path, status_of(served.box, run_id, "paused", "failed", "completed")


# On a shared store a node that has lost a file asks that for it: tests of its own, below.
ONE_COPY = pytest.mark.sqlite_only("a shared store has another copy of every file")


@item("B-9-8")
@ONE_COPY
@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_a_job_whose_bundle_is_not_whole_is_paused_for_review(served, tmp_path, how):
    box, run_id = served.box, f"whole-{how}"
    folder = two(tmp_path, run_id)
    path, status = lose(served, folder, run_id, how)
    assert status["status"] == "paused", status
    assert (status["hold"], status["recovery_status"]) == ("review", "paused_for_review")
    assert status["recovery_requires_review"] is True
    assert "'b.py'" in status["reason"] and path in status["reason"], status["reason"]
    GOLDEN.says(f"file {how}", status["reason"],
                [path, os.path.basename(path), status["job_id"]])
    why = box.glia("why", run_id).stdout
    assert "'b.py'" in why and f"glia job resume {status['job_id']}" in why, why
    ran = Ran(box, run_id)
    assert not ran.lines("b"), "nothing has run"
    assert ran.steps["a"]["status"] == "completed" and ran.steps["b"]["status"] == "running"

    said = box.glia("job", "resume", run_id, code=6).stderr  # too early: it is as it was
    assert "'b.py'" in said and f"glia job resume {status['job_id']}" in said, said
    assert not Ran(box, run_id).lines("b")
    shutil.copy(f"{folder}/good", path)
    box.glia("job", "resume", run_id)
    status_of(box, run_id, "completed")
    ran = Ran(box, run_id)
    assert len(ran.lines("b")) == 1 and ran.steps["b"]["attempt_count"] == 1, ran
    assert ran.status["recovery_requires_review"] is False
    assert len(ran.of("executor_lease_released", agent_id="b")) == 3, ran


@item("B-9-8")
@ONE_COPY
@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_the_same_bundle_submitted_once_more_makes_it_whole(served, tmp_path, how):
    box, run_id = served.box, f"again-{how}"
    folder = two(tmp_path, run_id)
    path, status = lose(served, folder, run_id, how)
    assert status["status"] == "paused", status
    other = f"{run_id}-2"
    served.touch(other, "go")
    box.glia("run", folder, "--run-id", other)
    with open(path, "rb") as file, open(f"{folder}/good", "rb") as good:
        assert file.read() == good.read()
    box.glia("job", "resume", run_id)
    status_of(box, run_id, "completed")


@ONE_COPY
def test_once_it_is_cancelled_nobody_must_decide_any_more(served, tmp_path):
    box, folder = served.box, two(tmp_path, "given-up")
    _, status = lose(served, folder, "given-up", "gone")
    assert status["recovery_requires_review"] is True, status
    box.glia("job", "cancel", "given-up")
    assert status_of(box, "given-up", "cancelled")["recovery_requires_review"] is False


@ONE_COPY
def test_what_runs_meanwhile_ends_before_the_job_is_paused(served, tmp_path):
    bundle = Bundle("both").worker("a", "note('a', 1); wait_file('go')", idempotent=True,
                                   output_message_type="done")
    bundle.worker("b", "say(x=1)", output_message_type=None).ends("a").seed("a", {})
    bundle.worker("c", "note('c', 1); wait_file('end')", output_message_type=None)
    bundle.edge("c", "b", "x").seed("c", {})
    folder = bundle.write(tmp_path / "bundle")
    box, run_id = served.box, "both-1"
    box.glia("run", folder, "--run-id", run_id, "--detach")
    served.wait_file(run_id, "a")
    served.wait_file(run_id, "c")
    path = blob_of(box, folder, "b.py")
    good = shutil.copy(path, f"{folder}/good")
    os.remove(path)
    box.glia("send", run_id, "b", "--type", "x", "--body", "{}")
    assert "'b.py'" in status_of(box, run_id, "pausing")["reason"]
    served.touch(run_id, "end")
    served.touch(run_id, "go")
    assert status_of(box, run_id, "paused")["hold"] == "review"
    assert Ran(box, run_id).statuses["a"] == "completed"
    shutil.copy(good, path)
    box.glia("job", "resume", run_id)
    status_of(box, run_id, "completed")


@ONE_COPY
def test_it_is_paused_after_the_death_of_its_node_too(alone, tmp_path):
    box, folder = alone.box, two(tmp_path, "alone")
    run = alone.start(folder, run_id="alone-1")
    alone.wait_file("alone-1", "a")
    path = blob_of(box, folder, "b.py")
    good = shutil.copy(path, f"{folder}/good")
    os.remove(path)
    run.kill()
    run.wait()
    alone.touch("alone-1", "go")
    said = box.glia("job", "resume", "alone-1", code=6).stderr
    assert "'b.py'" in said and "job resume" in said, said
    assert box.json("job", "status", "alone-1")["recovery_requires_review"] is True
    shutil.copy(good, path)
    box.glia("job", "resume", "alone-1")
    assert box.json("job", "status", "alone-1")["status"] == "completed"


@pytest.fixture(name="shared")
def make_shared():
    """A node on a store that is shared: the files of bundles are there, too."""
    with RedisServer() as server, Cluster(server.url, count=1) as cluster:
        runner = Runner(cluster.nodes[0])
        cluster.nodes[0].kill()
        cluster.nodes[0].restart()  # which knows the folder of the runs now
        yield runner, server


def test_a_shared_store_gives_back_what_a_node_has_lost(shared, tmp_path):
    runner, _ = shared
    box = runner.box
    folder = two(tmp_path, "shared")
    _, status = lose(runner, folder, "shared-1", "gone")
    assert status["status"] == "completed", status
    _, status = lose(runner, folder, "shared-2", "damaged")  # which is seen when it is copied
    assert status["status"] == "completed", status
    assert len(Ran(box, "shared-2").lines("b")) == 1
    # Again, a moment later: something is wrong with that disk.
    _, status = lose(runner, folder, "shared-3", "damaged")
    assert status["status"] == "paused" and status["recovery_requires_review"], status
    box.glia("job", "resume", "shared-3")
    assert status_of(box, "shared-3", "completed", "paused")["status"] == "completed"


def test_a_file_that_cannot_be_put_back_is_told_and_tried_again(shared, tmp_path):
    runner, _ = shared
    box, folder = runner.box, two(tmp_path, "shared")
    box.glia("run", folder, "--run-id", "stuck", "--detach")
    runner.wait_file("stuck", "a")
    path = blob_of(box, folder, "b.py")
    os.remove(path)
    os.mkdir(path)
    runner.touch("stuck", "go")
    wait_for("a reason", lambda: "cannot_start" in [
        step["why_code"] for step in box.json("why", "stuck")["steps"].values()])
    assert "attempt 1 " in box.glia("why", "stuck").stdout
    assert "'b.py'" in box.glia("why", "stuck").stdout
    job = Ran(box, "stuck").job_id
    with open(f"{box.data}/node.log", encoding="utf-8") as file:
        assert [line for line in file if "'@b'" in line and job in line]
    os.rmdir(path)
    status_of(box, "stuck", "completed")
    assert box.why_codes("stuck") == ["completed"]


def test_files_of_flows_come_back_too(shared, tmp_path):
    runner, _ = shared
    box = runner.box
    folder = tmp_path / "flow"
    (folder / "payloads").mkdir(parents=True)
    (folder / "payloads" / "b.sh").write_text("echo again\n")
    wait = f"until [ -e {folder}/go ]; do sleep 0.05; done"
    (folder / "flow.json").write_text(json.dumps({"steps": {
        "a": {"sh": wait}, "b": {"needs": "a", "script": "payloads/b.sh"}}}))
    box.glia("run", str(folder / "flow.json"), "--run-id", "flow", "--detach")
    wait_for("the wait", lambda: box.step("flow", "a")["status"] == "running")
    spoil(blob_of(box, folder, "b.sh"), "link")
    (folder / "go").write_text("")
    assert status_of(box, "flow", "completed", "failed")["status"] == "completed"
    assert box.glia("job", "logs", "flow", "b").stdout == "again\n"
    assert box.step("flow", "b")["attempt_count"] == 2  # the first was never executed


def test_what_is_lost_in_the_shared_store_too_pauses_the_job(shared, tmp_path):
    runner, server = shared
    box, folder = runner.box, two(tmp_path, "shared")
    box.glia("run", folder, "--run-id", "shared-3", "--detach")
    runner.wait_file("shared-3", "a")
    path = blob_of(box, folder, "b.py")
    os.remove(path)
    key = next(k for k in server.ask("KEYS", "*")
               if k.endswith(os.path.basename(path).encode() + b"/0"))
    server.ask("HSET", key, "v", "something else")
    runner.touch("shared-3", "go")
    status = status_of(box, "shared-3", "paused", "failed")
    assert (status["status"], status["recovery_requires_review"]) == ("paused", True), status
    GOLDEN.says("damaged in the store", status["reason"],
                [os.path.basename(path), status["job_id"]])
    runner.touch("shared-4", "go")
    box.glia("run", folder, "--run-id", "shared-4")
    box.glia("job", "resume", "shared-3")
    status_of(box, "shared-3", "completed")


# ---- a record that contradicts itself ----

@ONE_COPY
@pytest.mark.parametrize("wrong", [{"items_at": 4000000000}, {"items_n": 4000000000},
                                   {"items_made": 7}])
def test_a_damaged_counter_of_a_scattered_step_holds_the_job(alone, tmp_path, wrong):
    """The first number of a step's instances says where they are in memory."""
    b = Bundle("scattered").worker("plan", "event('workflow_step_scatter', target='work', "
                                           "items=[1, 2, 3])", output_message_type="go")
    b.worker("work", "note('runs', 1)\nwait_file('go')", ["plan"])
    b.worker("end", "say(x=1)", ["work"], rule="all_done", output_message_type="done")
    b.edge("work", "end").edge("plan", "work", "go").ends("end").seed("plan", {})
    run = alone.start(b.write(tmp_path / "scattered"), run_id="scattered-1")
    alone.wait_file("scattered-1", "runs")
    run.kill()
    run.wait()
    job = alone.box.json("job", "status", "scattered-1")["job_id"]
    with open_records(alone.box) as records:
        step = json.loads(records.read("step", f"{job}/work"))
        assert step["items_n"] == 3, step
        records.write("step", f"{job}/work", json.dumps(step | wrong))
    alone.box.glia("job", "resume", "scattered-1", code=None)
    assert alone.box.json("job", "status", "scattered-1")["damaged"]
