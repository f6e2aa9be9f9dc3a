"""glia serve, the node that stays: who gets the folder, how it ends, what its manager hears."""

import configparser
import ctypes
import json
import os
import signal
import socket
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import ROOT, wait_for  # noqa: E402
from stalls import Stalls  # noqa: E402

GOLDEN = golden.of(__file__)


def serve(box, *args):
    """A node that is ready."""
    process = box.start("serve", *args)
    wait_for("the node", lambda: "ready: process" in box.read(process.err)
             or process.poll() is not None)
    assert process.poll() is None, box.read(process.err)
    return process


def stop(box, process, code=0):
    process.send_signal(signal.SIGTERM)
    box.finish(process, code)


def holder(box):
    with open(f"{box.data}/lock", encoding="utf-8") as file:
        return int(file.readline() or 0)


def flow_of(box, name, mark=""):
    """begin, hold (waits for the file NAME.go), end; each start of a step leaves a line."""
    return box.write(f"{name}.yaml", f"""
name: {name}
steps:
  begin: {{sh: 'echo x >> {box.folder}/{name}.begin'}}
  hold:
    needs: begin
    {mark}
    sh: |
      echo x >> {box.folder}/{name}.hold
      until [ -e {box.folder}/{name}.go ]; do sleep 0.02; done
  end: {{sh: 'echo x >> {box.folder}/{name}.end', needs: hold}}
""")


def start_flow(box, name, mark=""):
    """A `glia run` whose job is in its middle step."""
    before = len(box.jobs())
    run = box.start("run", flow_of(box, name, mark))
    job = box.wait_job(before + 1)[0]
    wait_for("the step", lambda: box.has(f"{name}.hold"))
    return run, job


def assert_ran_once(box, *names):
    for name in names:
        for step in ("begin", "hold", "end"):
            assert box.read(f"{name}.{step}") == "x\n", (name, step)


def assert_first_attempts(box, job):
    steps = box.json("job", "status", job)["workflow_state"]["steps"]
    assert {s["attempt_count"] for s in steps.values()} == {1}


# ---- who gets the folder ----

def test_a_node_takes_jobs_until_it_is_told_to_stop(box):
    node = serve(box)
    for _ in range(3):
        box.glia("run", "--", "true")
    assert holder(box) == node.pid
    stop(box, node)
    said = box.read(node.err)
    GOLDEN.says("ready", golden.line_of(said, box.data), [node.pid, box.data])
    GOLDEN.says("stopping", golden.line_of(said, "stopping:"))
    assert not os.path.exists(box.socket)
    assert {j["status"] for j in box.jobs()} == {"completed"}


def test_a_folder_that_another_serve_holds_is_refused_with_its_holder(box):
    node = serve(box)
    with Stalls() as stalls:
        start = time.monotonic()
        done = box.glia("serve", code=5)
        took = time.monotonic() - start
        assert took < 9 + stalls.slack(start), "it waits 10 s only for a node that makes way"
    assert str(node.pid) in done.stderr and "glia serve" in done.stderr
    error = box.error("serve", code=5)
    assert (error["code"], error["reason"]) == ("unavailable", "folder_in_use")
    box.glia("run", "--", "true")
    stop(box, node)


def test_unfinished_jobs_are_picked_up(box):
    run, job = start_flow(box, "one", "unsafe: true")
    run.kill()
    run.wait()
    node = serve(box)
    box.write("one.go", "")
    wait_for("the job", lambda: box.jobs()[0]["status"] == "completed")
    assert_ran_once(box, "one")
    assert_first_attempts(box, job)
    stop(box, node)


@pytest.mark.parametrize("mark", ["", "unsafe: true"])
def test_a_run_makes_way_and_becomes_a_client(box, mark):
    run, job = start_flow(box, "one", mark)
    assert holder(box) == run.pid
    node = serve(box)
    assert GOLDEN.tells("takes over", box.read(node.err))
    assert holder(box) == node.pid
    assert run.poll() is None
    wait_for("the run's word", lambda: "'glia serve' takes over" in box.read(run.err))
    box.write("one.go", "")
    assert "completed" in box.finish(run)
    assert box.read(run.err).count("takes over") == 1
    assert_ran_once(box, "one")
    assert_first_attempts(box, job)
    stop(box, node)


def test_whoever_waits_does_not_snatch_the_folder_from_a_serve(box):
    names = ["one", "two", "three", "four"]
    runs = [start_flow(box, name)[0] for name in names]
    node = serve(box)
    assert holder(box) == node.pid
    for name, run in zip(names, runs):
        box.write(f"{name}.go", "")
        box.finish(run)
    assert_ran_once(box, *names)
    stop(box, node)


def test_when_a_serve_ends_a_run_becomes_the_node(box):
    node = serve(box)
    run, job = start_flow(box, "one")
    stop(box, node)
    box.write("one.go", "")
    box.finish(run)
    assert_ran_once(box, "one")
    assert_first_attempts(box, job)


def test_to_and_fro(box):
    run, job = start_flow(box, "one", "unsafe: true")
    for _ in range(3):
        node = serve(box)
        assert holder(box) == node.pid
        stop(box, node)
        wait_for("the run to be the node", lambda: holder(box) == run.pid)
    node = serve(box)
    box.write("one.go", "")
    box.finish(run)
    assert_ran_once(box, "one")
    assert_first_attempts(box, job)
    stop(box, node)


def test_nodes_come_and_go_and_no_command_notices(box):
    """Each command is a client, the node, or both in turn; each job runs once."""
    runs = [box.start("run", "--", "sh", "-c", f"echo {i} >> {box.folder}/ledger; sleep 0.{i % 10}")
            for i in range(12)]
    for end in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        node = serve(box)
        node.send_signal(end)
        box.finish(node)
    node = serve(box)
    for run in runs:
        box.finish(run)
    assert sorted(box.read("ledger").split(), key=int) == [str(i) for i in range(12)]
    assert len(box.jobs()) == 12
    stop(box, node)


def test_a_command_without_a_node_starts_nothing(box):
    """pause is heard, and the jobs of others stay as they are."""
    first, one = start_flow(box, "one")
    second, two = start_flow(box, "two")
    for run in (first, second):
        run.kill()
        run.wait()
    box.write("two.go", "")
    assert "paused" in box.glia("job", "pause", one).stdout
    assert not box.has("two.end"), "two was driven on"
    assert not os.path.exists(box.socket)
    box.write("one.go", "")
    node = serve(box)
    wait_for("two", lambda: box.has("two.end"))
    assert box.json("job", "status", one)["status"] == "paused"
    box.glia("job", "resume", one)
    stop(box, node)


def test_detaching_without_a_node_creates_nothing(box):
    flow = flow_of(box, "one")
    assert box.reason("run", "--detach", flow, code=5) == "node_not_found"
    assert not os.path.exists(box.data)


# ---- how it ends ----

def test_running_steps_are_left_to_the_keeper_at_once(box):
    node = serve(box, "--grace", "1h")  # counts only with --finish
    run, job = start_flow(box, "one", "unsafe: true")
    run.kill()
    stop(box, node)
    assert not box.has("one.end")
    box.write("one.go", "")
    node = serve(box)
    wait_for("the job", lambda: box.jobs()[0]["status"] == "completed")
    assert_ran_once(box, "one")
    assert_first_attempts(box, job)
    stop(box, node)


def test_with_finish_running_steps_may_end_and_nothing_new_starts(box):
    node = serve(box, "--finish")
    run, job = start_flow(box, "one")
    run.kill()
    node.send_signal(signal.SIGTERM)
    wait_for("its word", lambda: " 30s for 1 " in box.read(node.err))
    assert box.json("job", "status", job)["status"] == "running", "questions are answered"
    answer = box.ask("POST", "/v1/contexts/default/jobs",
                     {"flow": {"name": "late", "steps": {"a": {"sh": "true"}}}})
    assert answer.status == 503
    assert answer.json["error"]["code"] == "unavailable"
    box.write("one.go", "")
    box.finish(node)
    assert box.step(job, "hold")["status"] == "completed"
    assert not box.has("one.end")
    node = serve(box)
    wait_for("the job", lambda: box.jobs()[0]["status"] == "completed")
    assert_ran_once(box, "one")
    stop(box, node)


def test_finish_ends_when_the_grace_period_does(box):
    node = serve(box, "--finish", "--grace", "1s")
    run, job = start_flow(box, "one")
    run.kill()
    start = time.monotonic()
    stop(box, node)
    assert time.monotonic() - start > 0.9
    GOLDEN.says("waiting", golden.line_of(box.read(node.err), " 1s for 1 "))
    assert GOLDEN.tells("left", box.read(node.err))
    box.write("one.go", "")
    node = serve(box)
    wait_for("the job", lambda: box.jobs()[0]["status"] == "completed")
    assert_first_attempts(box, job)
    stop(box, node)


def test_a_second_signal_is_an_end_at_once(box):
    node = serve(box, "--finish", "--grace", "1h")
    run, _ = start_flow(box, "one")
    run.kill()
    node.send_signal(signal.SIGTERM)
    wait_for("its word", lambda: " for 1 " in box.read(node.err))
    stop(box, node)
    box.write("one.go", "")


def test_a_hangup_changes_nothing(box):
    node = serve(box)
    node.send_signal(signal.SIGHUP)
    wait_for("its word", lambda: "SIGHUP is ignored" in box.read(node.err))
    box.glia("run", "--", "true")
    node.send_signal(signal.SIGINT)
    box.finish(node)


def test_after_kill_9_everything_goes_on(box):
    node = serve(box)
    jobs = [start_flow(box, name, "unsafe: true") for name in ("one", "two")]
    for run, _ in jobs:
        run.kill()
        run.wait()
    for _ in range(3):
        node.kill()
        node.wait()
        node = serve(box)
    for name in ("one", "two"):
        box.write(f"{name}.go", "")
    wait_for("the jobs", lambda: {j["status"] for j in box.jobs()} == {"completed"})
    assert_ran_once(box, "one", "two")
    for _, job in jobs:
        assert_first_attempts(box, job)
    stop(box, node)


def test_an_upgrade_under_200_running_steps(box):
    """The node is replaced while they run: all end once, in their first attempt."""
    steps = "\n".join(f"  s{i}: {{sh: 'echo {i} >> {box.folder}/ledger; "
                      f"until [ -e {box.folder}/go ]; do sleep 0.3; done; "
                      f"echo {i} >> {box.folder}/ends', unsafe: true}}" for i in range(200))
    flow = box.write("many.yaml", f"name: many\nsteps:\n{steps}\n")
    box.env["GLIA_POOLS"] = "default=200"
    node = serve(box)
    job = json.loads(box.glia("run", "--detach", "--json", flow).stdout)["job_id"]
    wait_for("200 steps", lambda: box.has("ledger") and len(box.read("ledger").split()) == 200, 60)
    for end in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        node.send_signal(end)
        node.wait(60)
        node = serve(box)
    wait_for("the steps to be known again", lambda: box.ask("GET", "/v1/node").json
             ["attempts_running"] == 200)
    box.write("go", "")
    wait_for("the job", lambda: box.jobs()[0]["status"] == "completed", 60)
    for name in ("ledger", "ends"):
        assert sorted(box.read(name).split(), key=int) == [str(i) for i in range(200)]
    assert_first_attempts(box, job)
    stop(box, node)


# ---- the manager ----

class Manager:
    """What systemd would be: a socket that hears."""

    def __init__(self, box, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name.replace("@", "\0", 1))
        self.socket.settimeout(60)
        box.env["NOTIFY_SOCKET"] = name

    def hear(self, wanted):
        """Wait for a message with this line."""
        while True:
            message = self.socket.recv(4096).decode()
            if wanted in message.split("\n"):
                return message

    def count(self, wanted, seconds):
        """How many messages with this line come in that time."""
        until, n = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            self.socket.settimeout(max(0.01, until - time.monotonic()))
            try:
                n += wanted in self.socket.recv(4096).decode().split("\n")
            except TimeoutError:
                pass
        self.socket.settimeout(60)
        return n


@pytest.mark.parametrize("abstract", [False, True])
def test_the_manager_hears_when_it_is_ready_and_when_it_stops(box, abstract):
    name = f"@glia-test-{os.getpid()}" if abstract else f"{box.folder}/notify"
    manager = Manager(box, name)
    node = serve(box)
    assert "STATUS=Serving" in manager.hear("READY=1")
    stop(box, node)
    manager.hear("STOPPING=1")


def test_nothing_is_ready_before_it_is(box):
    """A folder that is held: the manager hears nothing of the one that is refused."""
    node = serve(box)
    manager = Manager(box, f"{box.folder}/notify")
    box.glia("serve", code=5)
    assert manager.count("READY=1", 0.2) == 0
    stop(box, node)


def control_thread(pid):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
            if file.read().strip() == "glia-control":
                return int(tid)
    raise AssertionError("there is no control thread")


class Held:
    """Stops one thread of another process, as a debugger does."""

    ATTACH, DETACH = 16, 17

    def __init__(self, tid):
        self.tid = tid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def __enter__(self):
        assert self.libc.ptrace(self.ATTACH, self.tid, None, None) == 0, ctypes.get_errno()
        os.waitpid(self.tid, 0x40000000)  # __WALL: threads, too

    def __exit__(self, *_):
        assert self.libc.ptrace(self.DETACH, self.tid, None, None) == 0, ctypes.get_errno()


def test_the_watchdog_is_fed_only_while_the_control_thread_works(box):
    manager = Manager(box, f"{box.folder}/notify")
    box.env["WATCHDOG_USEC"] = "400000"
    node = serve(box)
    manager.hear("READY=1")
    assert 3 <= manager.count("WATCHDOG=1", 2) <= 20
    with Held(control_thread(node.pid)):
        manager.count("WATCHDOG=1", 0.5)  # one may be on its way
        assert manager.count("WATCHDOG=1", 1.5) == 0
    manager.hear("WATCHDOG=1")
    stop(box, node)
    manager.hear("STOPPING=1")


def test_the_watchdog_of_another_process_is_none_of_its_business(box):
    manager = Manager(box, f"{box.folder}/notify")
    box.env.update(WATCHDOG_USEC="100000", WATCHDOG_PID="1")
    node = serve(box)
    assert manager.count("WATCHDOG=1", 1) == 0
    stop(box, node)


def test_the_unit_file_keeps_the_steps_alive():
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str
    unit.read(os.path.join(ROOT, "dist/glia.service"))
    service = unit["Service"]
    assert service["KillMode"] == "process"
    assert service["Type"] == "notify"
    assert service["OOMPolicy"] == "continue"
    with open(os.path.join(ROOT, "docs/operations.md"), encoding="utf-8") as file:
        page = file.read()
    for line in ("Type", "KillMode", "WatchdogSec", "Restart", "StateDirectory", "OOMPolicy"):
        assert f"`{line}={service[line]}`" in page, line


def test_a_pause_that_waits_for_an_unsafe_step_makes_way(box):
    """Without a node it is the node itself, until what may not be stopped has ended."""
    run, job = start_flow(box, "one", "unsafe: true")
    run.kill()
    run.wait()
    pause = box.start("job", "pause", job)
    wait_for("the pause", lambda: box.json("job", "status", job)["status"] == "pausing")
    node = serve(box)
    assert box.finish(pause) == f"{job}\t\tpausing\n"
    box.write("one.go", "")
    wait_for("the end of the step", lambda: box.step(job, "hold")["status"] == "completed")
    assert box.json("job", "status", job)["status"] == "paused"
    box.glia("job", "resume", job)
    assert_ran_once(box, "one")
    stop(box, node)
