"""Nodes, keepers, steps and whole machines die at random, and the power fails: nothing that was
accepted is lost, no step is done twice. Every round prints its seed; GLIA_CRASH_SEED=n replays one.

GLIA_CRASH_ROUNDS says how many rounds each test makes; GLIA_SOAK=1 takes new seeds, and makes fifty
if nothing is said."""

import json
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from crashworld import BUILD, World, attack  # noqa: E402
from crashflow import fan, small  # noqa: E402
from crashseeds import rounds, seeds  # noqa: E402
from glianode import BUILD as RELEASE, wait_for  # noqa: E402
from smalldisk import SmallDisk  # noqa: E402

GOLDEN = golden.of(__file__)
ROUNDS = rounds(usual=6, soak=50)
AT_ONCE = 6
JOBS = "/v1/contexts/default/jobs"

# name: what dies, with which weight; how many deaths; the disk
ATTACKS = {
    "nodes": ({"node": 4, "client": 1}, 10, None),
    "steps_and_nodes": ({"node": 2, "step": 3}, 8, None),
    "keepers_and_nodes": ({"node": 2, "keeper": 3}, 6, None),
    "machines": ({"node": 1, "machine": 3}, 5, None),
    "nodes_of_paused_jobs": ({"node": 2, "pause": 3}, 8, None),
    "everything": (
        {"node": 4, "client": 1, "step": 2, "keeper": 1, "machine": 1, "pause": 1}, 12, None),
    "the_power": ({"node": 1, "machine": 2}, 5, "cut"),
    "the_power_in_the_middle_of_a_sync": ({"node": 2, "machine": 1, "step": 1}, 6, "tear"),
}


def side_by_side(one, all_of_them):
    """Run some at once; all of them, even if the first fails."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(one, x) for x in all_of_them]
    errors = [str(f.exception()) for f in futures if f.exception()]
    assert not errors, "\n\n".join(errors)
    return [f.result() for f in futures]


def attacks():
    for name, (_, _, power) in ATTACKS.items():
        mark = pytest.mark.sqlite_only("cuts the power of SQLite's disk")
        yield pytest.param(name, marks=[mark] if power else [])


@pytest.mark.parametrize("name", attacks())
def test_everything_ends_right_though_the_world_is_attacked(name):
    weights, kills, power = ATTACKS[name]

    def one(seed):
        print(f"{name}: GLIA_CRASH_SEED={seed}", flush=True)
        return attack(seed, weights, kills, power)

    judged = side_by_side(one, seeds(name, ROUNDS))
    assert sum(map(len, judged)) > 0


@pytest.mark.sqlite_only("runs no node")
def test_the_release_has_no_failpoints_and_no_test_disk():
    def names(build, program):
        out = subprocess.check_output(["nm", os.path.join(build, program)], text=True)
        return [line.split()[-1] for line in out.splitlines()
                if "failpoint" in line or "vfs_cut" in line]

    for program in ("glia", "glia-keeper"):
        assert names(BUILD, program)  # so that nm would have found them
        assert not names(RELEASE, program)
        with open(os.path.join(RELEASE, program), "rb") as file:
            content = file.read()
        assert b"GLIA_FAILPOINT" not in content
        assert b"GLIA_TEST_VFS" not in content


@pytest.mark.sqlite_only("cuts the power of SQLite's disk")
def test_the_power_of_a_real_node_can_fail_at_a_chosen_sync():
    """The disk of the tests is really under the node: it dies at the sync, and not before."""
    with World() as world:
        for number in (1, 3, 8):
            run = world.submit(small(f"cut{number}"), GLIA_TEST_VFS=f"cut:tear={number}:7")
            assert run.wait(60) == -9, world.read(run.err)
        run = world.submit(small("whole"), GLIA_TEST_VFS="cut:tear=100000:7")
        assert run.wait(60) == 0
        world.finish(random.Random(1))
        assert world.judge(losses=[])


# ---- the disk is full ----

# Only root can mount. The store's own tests fill a disk for everybody (sqlite_faults).
if os.geteuid() == 0:

    @pytest.fixture(name="disk_world")
    def make_disk_world():
        with World() as world:
            disk = SmallDisk(world.folder, 16)
            world.data = os.path.join(disk.path, "data")
            world.env["GLIA_DATA_DIR"] = world.data
            os.symlink(world.data, os.path.join(world.folder, "data"))
            world.disk = disk
            try:
                yield world
            finally:
                world.close()
                disk.close()

    @pytest.mark.sqlite_only("fills the disk of the store")
    def test_a_full_disk_stops_everything_and_loses_nothing(disk_world):
        world = disk_world
        run = world.submit(fan("full", 12, 150), GLIA_POOLS="default=3")
        wait_for("steps that run", lambda: world.has("ledger"))
        world.disk.fill()
        flow = {"flow": {"steps": {"a": {"noop": True}}}}
        refused = wait_for("a refusal", lambda: (
            lambda a: a if a.status == 503 else None)(world.ask("POST", JOBS, flow)))
        assert refused.json["error"]["code"] == "unavailable", refused.body
        told = world.ask("GET", "/readyz")
        assert told.status == 503 and told.json["error"]["reason"] == "store_read_only", told.body
        assert run.poll() is None
        wait_for("a line", lambda: GOLDEN.tells("no commits", world.read("data/node.log")))
        world.disk.free()
        assert run.wait(60) == 0, world.read(run.err)
        world.finish(random.Random(1))
        assert world.judge(losses=[])

    def test_doctor_names_a_disk_that_is_read_only(disk_world):
        path = disk_world.disk.path
        subprocess.run(["mount", "-o", "remount,ro", path], check=True)
        doctor = disk_world.start("doctor")
        assert doctor.wait(60) == 1
        GOLDEN.says("read-only", golden.line_of(disk_world.read(doctor.out), "read-only"), [path])

    @pytest.mark.sqlite_only("fills the disk of the store")
    @pytest.mark.parametrize("follows_log", [True, False])
    def test_who_waits_for_a_job_is_told_that_there_is_no_room(disk_world, follows_log):
        world = disk_world
        script = (f"echo > {world.folder}/began; "
                  f"until [ -e {world.folder}/go ]; do sleep 0.05; done")
        world.write("f.json", json.dumps({"steps": {"a": {"sh": script}}}))
        run = world.start("run", *(["--", "sh", "-c", script] if follows_log else ["f.json"]))
        # A run that the full store refuses exits at once: only an accepted job is waited for.
        wait_for("the step", lambda: world.has("began"))
        world.disk.fill()
        flow = {"flow": {"steps": {"a": {"noop": True}}}}
        wait_for("a refusal", lambda: world.ask("POST", JOBS, flow).status == 503)
        wait_for("its word", lambda: "; waiting" in world.read(run.err))
        assert re.search(r" since 20\d\d-.*; waiting", world.read(run.err)), world.read(run.err)
        world.disk.free()
        wait_for("its end", lambda: GOLDEN.tells("again", world.read(run.err)))
        world.write("go", "")
        assert run.wait(60) == 0, world.read(run.err)

    def test_a_disk_that_is_full_again_and_again_fails_no_step(disk_world):
        world, rng = disk_world, random.Random(5)
        runs = [world.submit(fan(f"full{i}", 12, 40), GLIA_POOLS="default=4") for i in range(2)]
        wait_for("steps that run", lambda: world.has("ledger"))
        for _ in range(5):
            time.sleep(rng.random() * 0.15)
            world.disk.fill()
            time.sleep(rng.random() * 0.3)
            world.disk.free()
        for run in runs:
            assert run.wait(60) == 0, world.read(run.err)
        world.finish(rng)
        assert world.judge(losses=[])

    @pytest.mark.sqlite_only("fills the disk of the store")
    def test_who_is_left_without_a_node_while_the_disk_is_full_waits_and_becomes_it(disk_world):
        """Found by a busy machine: the node had ended just then, and who waited for a job gave up
        although there was space again a moment later."""
        world = disk_world
        hold = f"until [ -e {world.folder}/go ]; do sleep 0.05; done"
        node = world.start("run", "--", "sh", "-c", hold)
        wait_for("the node", world.node_pid)
        other = world.start("run", "--run-id", "other", "--", "sh", "-c", f"echo here; {hold}")
        wait_for("the other", lambda: "here" in world.read(other.out))
        world.disk.fill()
        world.kill_process(node)
        wait_for("its word", lambda: "; waiting" in world.read(other.err) or other.poll())
        assert other.poll() is None, world.read(other.err)
        world.disk.free()
        world.write("go", "")
        assert other.wait(60) == 0, world.read(other.err)
        assert world.read(other.err).count("disk full") <= 2, "it is said once"

    @pytest.mark.sqlite_only("fills the disk of the store")
    def test_a_machine_that_dies_with_a_full_disk_goes_on_when_there_is_space(disk_world):
        world, rng = disk_world, random.Random(6)
        world.submit(fan("full", 12, 150), GLIA_POOLS="default=3")
        wait_for("steps that run", lambda: world.has("ledger") and world.accepted())
        job = sorted(world.accepted())[0]
        world.disk.fill()
        world.kill_machine()
        told = world.glia("job", "resume", job, code=5).stderr
        assert "store unavailable" in told and "disk full" in told, told
        # What is there can be looked at.
        assert job in world.glia("job", "list").stdout
        world.kill_machine()
        world.disk.free()
        world.finish(rng)
        assert world.judge()

    def test_a_read_only_disk_is_told_and_harms_nothing(disk_world):
        world, rng = disk_world, random.Random(7)
        world.submit(fan("before", 3, 50))
        wait_for("steps that run", lambda: world.has("ledger") and world.accepted())
        world.kill_machine()
        remount = ["mount", "-o", "remount,ro", world.disk.path]
        wait_for("files to be closed", lambda: subprocess.run(remount, check=False,
                 stderr=subprocess.DEVNULL).returncode == 0)  # the dead may take a moment
        told = world.glia("run", "--", "true", code=5).stderr
        assert "Read-only file system" in told, told
        subprocess.run(["mount", "-o", "remount,rw", world.disk.path], check=True)
        world.finish(rng)
        assert world.judge()
