"""Retention: ended jobs go by age, number and size, on request, and with all they left behind."""

import os
import signal
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import wait_for  # noqa: E402
from records import open_records  # noqa: E402

CONTEXT = "contexts/default"


def serve(box, *args):
    process = box.start("serve", *args)
    wait_for("the node", lambda: "ready: process" in box.read(process.err)
             or process.poll() is not None)
    assert process.poll() is None, box.read(process.err)
    return process


def stop(box, process):
    process.send_signal(signal.SIGTERM)
    box.finish(process)


def job_count(box):
    with open_records(box) as store:
        return len(store.ids("job"))


def run_ids(box):
    return sorted(os.listdir(f"{box.data}/{CONTEXT}/runs"))


def size_of(folder):
    """Without the write-ahead log, which has a bound of its own."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(("-wal", "-shm")):
                continue
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except OSError:
                pass
    return total


def submit_noops(box, count, flow=None):
    """So many short jobs, in batches; all have ended when this returns."""
    flow = flow or {"name": "load", "steps": {"one": {"noop": True}}}
    for done in range(0, count, 100):
        answer = box.ask("POST", "/v1/contexts/default/jobs:batch",
                         {"jobs": [{"flow": flow}] * min(100, count - done)})
        assert answer.status < 300, answer.body
    wait_for("the end of all", lambda: not box.json("job", "list", "--status", "running")["jobs"])


def test_a_trim_removes_ended_jobs_with_all_they_left(box):
    script = box.write("hello.sh", "echo hello\n")
    flow = box.write("f.yaml", f"name: f\nsteps:\n  a:\n    script: {script}\n")
    box.glia("run", flow)
    box.glia("run", "--run-id", "mine", "--", "/bin/sh", "-c", "echo two")
    box.glia("run", "--", "/bin/sh", "-c", "echo three; exit 1", code=1)
    assert len(run_ids(box)) == 3
    newest = box.jobs()[0]["job_id"]
    got = box.json("store", "trim", "--keep-jobs", "1")
    assert got["removed_jobs"] == 2
    assert box.lent or got["removed_flows"] == 2  # on a shared store that is for the leader
    assert got["freed_bytes"] > 0
    assert [job["job_id"] for job in box.jobs()] == [newest]
    assert run_ids(box) == [newest]
    with open_records(box) as store:
        for kind in ("job", "step"):
            assert len(store.ids(kind)) == 1, kind
        assert not store.ids("run")
        assert store.logs() == [newest]
        assert store.index("ended") == [newest]
    box.glia("job", "status", "mine", code=3)


@pytest.mark.sqlite_only("a shared store has the files of flows, too (test_shared_files.py)")
def test_a_file_that_no_flow_names_goes_when_it_is_old(box):
    script = box.write("hello.sh", "echo hello\n")
    box.glia("run", box.write("f.yaml", f"name: f\nsteps:\n  a:\n    script: {script}\n"))
    assert box.json("store", "trim", "--keep-jobs", "0")["removed_blobs"] == 0
    blobs = [os.path.join(path, name) for path, _, names in os.walk(f"{box.data}/{CONTEXT}/blobs")
             for name in names]
    assert len(blobs) == 1
    os.utime(blobs[0], (time.time() - 7200,) * 2)
    assert box.json("store", "trim")["removed_blobs"] == 1
    assert not os.path.exists(blobs[0])


def test_a_trim_by_age_leaves_younger_jobs(box):
    for gap_s in (3, 12, 48):
        box.glia("run", "--", "/bin/true")
        ended = time.time()
        time.sleep(gap_s)
        box.glia("run", "--", "/bin/echo")
        assert box.json("store", "trim", "--keep-for", "1h")["removed_jobs"] == 0
        asked = time.time()
        age_ms = int((asked - ended) * 1000)
        removed = box.json("store", "trim", "--keep-for", f"{age_ms}ms")["removed_jobs"]
        if time.time() - asked < gap_s:
            break  # the younger job cannot have reached that age
        box.glia("store", "trim", "--keep-jobs", "0")  # the command was too slow to show anything
    assert removed == 1
    assert "echo" in box.glia("job", "list").stdout
    done = box.glia("store", "trim", "--keep-for", "soon", code=2)
    assert "--keep-for" in done.stderr
    box.glia("store", "trim", "--keep-jobs", "-1", code=2)


def test_without_a_node_nothing_is_started_by_a_trim(box):
    mark = f"{box.folder}/mark"
    node = serve(box)
    box.glia("run", "--detach", "--", "/bin/sh", "-c", f"sleep 0.5; echo x >> {mark}; sleep 100")
    wait_for("the step", lambda: os.path.exists(mark))
    node.kill()
    node.wait()
    assert box.json("store", "trim", "--keep-jobs", "0")["removed_jobs"] == 0
    assert len(box.jobs()) == 1
    assert box.read("mark") == "x\n"


def test_a_running_job_cannot_be_removed(box):
    node = serve(box)
    job = box.glia("run", "--detach", "--", "/bin/sleep", "100").stdout.strip()
    answer = box.ask("DELETE", f"/v1/contexts/default/jobs/{job}")
    assert answer.status == 409
    assert answer.json["error"]["reason"] == "job_not_ended"
    box.glia("job", "cancel", job, code=None)
    wait_for("the end", lambda: box.jobs()[0]["status"] == "cancelled")
    answer = box.ask("DELETE", f"/v1/contexts/default/jobs/{job}")
    assert answer.status == 200, answer.body
    assert answer.json["removed"] is True
    assert box.jobs() == []
    assert box.ask("DELETE", f"/v1/contexts/default/jobs/{job}").status == 404
    stop(box, node)


def test_the_node_keeps_to_its_bounds_by_itself(box):
    node = serve(box, "--keep-jobs", "20")
    for i in range(12):
        box.glia("run", "--", "/bin/sh", "-c", f"echo {i}")
    submit_noops(box, 300)
    wait_for("few jobs", lambda: job_count(box) <= 20 * 1.1 + 50, 90)
    assert len(run_ids(box)) < 12
    stop(box, node)


def test_files_of_jobs_that_are_gone_are_found_at_the_next_start(box):
    box.glia("run", "--", "/bin/sh", "-c", "echo one")
    orphan = f"{box.data}/{CONTEXT}/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV/a:attempt:1"
    os.makedirs(orphan)
    node = serve(box)
    wait_for("the orphan to go", lambda: not os.path.exists(os.path.dirname(orphan)))
    assert len(run_ids(box)) == 1
    stop(box, node)


def test_working_folders_of_failed_steps_go_before_their_logs(box):
    box.glia("run", "--", "/bin/true")
    flow = box.write("f.yaml", "name: f\nsteps:\n  a: {sh: 'echo said; echo x > left; exit 1'}\n")
    box.glia("run", flow, code=1)
    job = box.jobs()[0]["job_id"]
    attempt = f"{box.data}/{CONTEXT}/runs/{job}/a:attempt:1"
    assert os.path.exists(f"{attempt}/work/left")
    node = serve(box)
    assert box.json("store", "trim")["removed_workspaces"] == 0
    old = time.time() - 4 * 24 * 3600
    for name in ("work/left", "work", "log", "input.json", "env", "."):
        if os.path.exists(f"{attempt}/{name}"):
            os.utime(f"{attempt}/{name}", (old, old))
    assert box.json("store", "trim")["removed_workspaces"] == 1
    assert not os.path.exists(f"{attempt}/work")
    assert "said" in box.glia("job", "logs", job).stdout
    stop(box, node)


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["jobs", "bytes"])
def test_under_load_the_folder_keeps_its_size(box, bound):
    """Thousands of jobs with retention on: after a while the folder does not grow any more."""
    args = ["--keep-jobs", "200"] if bound == "jobs" else ["--keep-bytes", "3M"]
    node = serve(box, *args)
    flow = {"name": "load", "steps": {f"s{i}": {"noop": True} for i in range(3)}}
    sizes = []
    for _ in range(6):
        submit_noops(box, 1000, flow)
        box.json("store", "trim")
        sizes.append(size_of(f"{box.data}/{CONTEXT}"))
    assert job_count(box) <= 1000
    assert max(sizes[2:]) <= sizes[1] * 1.2, sizes
    assert size_of(f"{box.data}/{CONTEXT}") < 8 << 20
    stop(box, node)
