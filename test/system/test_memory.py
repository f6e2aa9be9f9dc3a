"""A node with retention on: what has been is forgotten, in memory and on disk.

GLIA_MEMORY_JOBS=1000000 makes it a soak (tools/soak)."""

import os
import statistics
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box, wait_for  # noqa: E402
from httpnode import JOBS, serve  # noqa: E402

TOTAL = int(os.environ.get("GLIA_MEMORY_JOBS", "30000"))
ROUND = 1000
KEPT = 1000
LOG_BYTES = 100_000  # what a busy machine makes a node say
WAL_BYTES = (16 + 4) << 20  # what SQLite may keep of it, and what comes between two checkpoints
FLOW = {"name": "passing", "inputs": {"n": {"type": "number"}}, "steps": {
    "a": {"noop": True}, "b": {"noop": True, "needs": ["a"], "when": "${inputs.n} >= 500"}}}


def metric(box, name):
    for line in box.ask("GET", "/metrics").body.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def resident_bytes(process):
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def folder_bytes(path):
    """Of the store and all other files, and of the write-ahead log alone; some may vanish while we
    look. The log has a bound of its own: it is as large as it ever had to be, because somebody read
    during a checkpoint. So has the flight recorder, which is left out: it reaches its bound when
    the node is idle enough for it."""
    total = wal = 0
    for at, _, names in os.walk(path):
        if os.path.basename(at) == "recorder":
            continue
        for name in names:
            try:
                size = os.lstat(os.path.join(at, name)).st_blocks * 512
            except FileNotFoundError:
                continue
            if name.endswith("-wal"):
                wal += size
            else:
                total += size
    return total, wal


def run_round(box, number):
    """A thousand jobs, each with a name and an input of its own, to their end."""
    jobs = [{"run_id": f"r-{number}-{i}", "inputs": {"n": i}} for i in range(ROUND)]
    answer = box.ask("POST", f"{JOBS}:batch", {"flow": FLOW, "jobs": jobs})
    refused = [j for j in answer.json["jobs"] if "job_id" not in j]
    assert answer.status == 200 and not refused, refused[:1]
    done = (number + 1) * ROUND
    wait_for("the jobs", lambda: metric(
        box, 'glia_jobs_ended_total{status="completed"}') >= done, seconds=60)


def kept(box):
    """How many jobs can still be listed, as far as one page and a bit tells."""
    first = box.ask("GET", f"{JOBS}?limit=1000").json
    if not first["next"]:
        return len(first["jobs"])
    more = box.ask("GET", f"{JOBS}?limit=1000&after={first['next']}").json
    return len(first["jobs"]) + len(more["jobs"])


def early_and_late(samples):
    fifth = max(len(samples) // 5, 1)
    return statistics.median(samples[fifth:2 * fifth]), statistics.median(samples[-fifth:])


@pytest.mark.slow
def test_memory_and_folder_stay_as_they_are_while_jobs_come_and_go(tmp_path):
    box = Box(tmp_path)
    serve(box, "--keep-jobs", str(KEPT), "--pools", "default=64")
    node = box.started[0]
    memory, folder, wal = [], [], []
    try:
        for number in range(TOTAL // ROUND):
            run_round(box, number)
            memory.append(resident_bytes(node))
            size, wal_size = folder_bytes(box.data)
            folder.append(size)
            wal.append(wal_size)
        # A few more than that are left to the pass of the next minute.
        wait_for("retention", lambda: kept(box) <= KEPT * 1.2, seconds=60)
    finally:
        box.close()
    # Caches fill and free lists grow in the beginning; from then on it is flat. Without retention
    # the folder would be three times as large at the end; a kilobyte that each job leaves in
    # memory would be seen, too. With the store elsewhere the folder has little but a log.
    early, late = early_and_late(memory)
    assert late < early * 1.25, memory
    early, late = early_and_late(folder)
    assert late < early * 1.5 + LOG_BYTES, folder
    assert wal[-1] <= WAL_BYTES, wal


def test_retention_does_not_touch_folders_of_live_jobs(tmp_path):
    """The keeper gives folders of ended jobs to new ones, and just these are removed meanwhile."""
    box = Box(tmp_path)
    serve(box, "--keep-jobs", "20", "--pools", "default=8")
    flow = {"name": "short", "steps": {"a": {"run": ["true"]}}}
    try:
        for number in range(8):
            jobs = [{"run_id": f"s-{number}-{i}"} for i in range(250)]
            answer = box.ask("POST", f"{JOBS}:batch", {"flow": flow, "jobs": jobs})
            assert answer.status == 200
            done = (number + 1) * 250
            wait_for("the jobs", lambda: metric(
                box, 'glia_jobs_ended_total{status="completed"}') + metric(
                box, 'glia_jobs_ended_total{status="failed"}') >= done)
        assert metric(box, 'glia_jobs_ended_total{status="failed"}') == 0
    finally:
        box.close()
