"""Several commands on one data folder: one is the node, and when it goes another carries on."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import BUILD, Box, keepers, wait_for  # noqa: E402


# Whoever names a store asks the node first which one it has; this one answers one request.
ONE_ANSWER = pytest.mark.sqlite_only("a node that is played here cannot tell its store")


def start_flow(box, name, mark=""):
    """A job whose middle step waits for the file `name`.go; each start of a step leaves a line."""
    before = len(box.jobs())
    flow = box.write(f"{name}.yaml", f"""
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
    run = box.start("run", flow)
    job = box.wait_job(before + 1)[0]
    wait_for("the step", lambda: box.has(f"{name}.hold"))
    return run, job


def assert_ran_once(box, name):
    for step in ("begin", "hold", "end"):
        assert box.read(f"{name}.{step}") == "x\n", step


@pytest.mark.parametrize("mark", ["", "unsafe: true", "idempotent: true"])
def test_when_the_node_is_killed_a_waiting_command_becomes_the_node(box, mark):
    first, job1 = start_flow(box, "one", mark)
    second, job2 = start_flow(box, "two", mark)
    first.kill()
    first.wait()
    box.write("one.go", "")
    wait_for("the end of the first job", lambda: box.has("one.end"))
    assert second.poll() is None
    box.write("two.go", "")
    box.finish(second)
    # The keeper kept what ran: nothing was started twice.
    assert_ran_once(box, "one")
    assert_ran_once(box, "two")
    assert {j["job_id"]: j["status"] for j in box.jobs()} == {job1: "completed", job2: "completed"}


def test_when_the_nodes_own_job_is_done_the_others_carry_on(box):
    first, _ = start_flow(box, "one")
    others = [start_flow(box, f"o{i}")[0] for i in range(3)]
    box.write("one.go", "")
    box.finish(first)
    for i, run in enumerate(others):
        box.write(f"o{i}.go", "")
        box.finish(run)
    for name in ("one", "o0", "o1", "o2"):
        assert_ran_once(box, name)


@pytest.mark.every_store
def test_a_submission_survives_the_end_of_its_node(box):
    """Commands come and go at once; each is the node for a moment, and each gets its answer."""
    runs = [box.start("run", "--", "sh", "-c", f"echo x >> {box.folder}/many") for _ in range(12)]
    for run in runs:
        box.finish(run)
    assert box.read("many") == "x\n" * 12
    assert [j["status"] for j in box.jobs()] == ["completed"] * 12


def test_killing_nodes_again_and_again_loses_nothing(box):
    flow = box.write("chain.json", json.dumps({"steps": {
        f"s{i}": {"sh": f"echo {i} >> {box.folder}/ledger; sleep 0.05",
                  "needs": [f"s{i - 1}"] if i else []} for i in range(20)}}))
    run = box.start("run", flow)
    job = box.wait_job()[0]
    for _ in range(6):
        wait_for("progress", lambda n=len(box.started): box.has("ledger"))
        run.kill()
        run.wait()
        run = box.start("job", "resume", job)
        box.wait_node()
    box.finish(run)
    assert box.read("ledger") == "".join(f"{i}\n" for i in range(20))


def test_an_interrupted_client_leaves_its_job_to_the_node(box):
    first, _ = start_flow(box, "one")
    second, job2 = start_flow(box, "two")
    second.send_signal(signal.SIGINT)
    box.finish(second, 130)
    assert f"glia job status {job2}" in box.read(second.err)
    assert box.json("job", "status", job2)["status"] == "running"
    box.write("two.go", "")
    wait_for("the end of the second job", lambda: box.has("two.end"))
    box.write("one.go", "")
    box.finish(first)


def test_a_client_that_waits_is_told_when_its_job_is_paused(box):
    _, _ = start_flow(box, "one")
    second, job2 = start_flow(box, "two")
    box.glia("job", "pause", job2)
    box.finish(second, 6)


def test_after_the_node_the_folder_holds_no_socket_and_no_lock(box):
    box.glia("run", "--", "true")
    assert not os.path.exists(box.socket)
    subprocess.run(["flock", "-n", f"{box.data}/lock", "true"], check=True)
    # ... although the keeper is still there
    assert list(keepers(box.data))


def test_a_folder_with_a_long_path_works(tmp_path):
    data = str(tmp_path / ("d" * 100) / ("e" * 100))
    box = Box(tmp_path, data)
    try:
        run, job = start_flow(box, "one")
        assert box.json("job", "status", job)["status"] == "running"
        assert box.ask("GET", "/healthz").status == 200
        box.write("one.go", "")
        box.finish(run)
    finally:
        box.close()


@pytest.mark.slow
def test_a_lock_that_never_answers_is_told(box):
    """Someone holds the lock and is no node."""
    os.makedirs(box.data)
    holder = subprocess.Popen(["flock", f"{box.data}/lock", "sleep", "60"])
    try:
        wait_for("the lock", lambda: os.path.exists(f"{box.data}/lock"))
        assert box.reason("run", "--", "true", code=5) == "folder_in_use"
    finally:
        holder.kill()
        holder.wait()


def copy_build(to):
    """The programs, where any user can run them."""
    os.makedirs(to, mode=0o755)
    for name in ("glia", "glia-keeper"):
        shutil.copy(os.path.join(BUILD, name), to)
    return os.path.join(to, "glia")


PLAIN_REQUEST = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"GET /v1/contexts/default/jobs HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
while data := s.recv(65536):
    sys.stdout.write(data.decode())
"""


def as_nobody(box, *command):
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           *command], capture_output=True, text=True, timeout=60, check=False,
                          cwd="/", env=box.env)


# Only root can be somebody else.
if os.geteuid() == 0:

    def test_another_user_is_refused(box, tmp_path):
        shared = tempfile.mkdtemp(prefix="glia-test.", dir="/tmp")
        try:
            os.chmod(shared, 0o755)
            glia = copy_build(f"{shared}/bin")
            box.data = f"{shared}/data"
            box.env["GLIA_DATA_DIR"] = box.data
            run, job = start_flow(box, "one")
            here = ["--data-dir", box.data]
            for command in (["job", "list", *here], ["job", "cancel", job, *here],
                            ["run", *here, "--", "true"]):
                done = as_nobody(box, glia, *command)
                assert done.returncode == 4, (command, done.stderr)
            # Even if the folder and the socket were open to all, the node looks who is there.
            for path in (box.data, box.socket):
                os.chmod(path, 0o777)
            done = as_nobody(box, "/usr/bin/python3", "-c", PLAIN_REQUEST, box.socket)
            assert done.stdout.startswith("HTTP/1.1 403 ") and '"code":"denied"' in done.stdout
            os.chmod(box.data, 0o700)
            box.write("one.go", "")
            box.finish(run)
        finally:
            box.close()
            shutil.rmtree(shared)

    def test_root_may_look_at_the_node_of_another_user(tmp_path):
        shared = tempfile.mkdtemp(prefix="glia-test.", dir="/tmp")
        try:
            os.chmod(shared, 0o777)
            glia = copy_build(f"{shared}/bin")
            box = Box(tmp_path, f"{shared}/data")
            done = as_nobody(box, glia, "run", "--", "id", "-u")
            assert done.stdout == "65534\n", done.stderr
            assert [j["status"] for j in box.jobs()] == ["completed"]
            assert box.reason("run", "--", "true", code=4) == "folder_other_user"
            box.close()
        finally:
            shutil.rmtree(shared)


class OneAnswer(threading.Thread):
    """In the place of a node: it says yes to one request, and is gone."""

    def __init__(self, box):
        super().__init__()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(box.socket)
        self.listener.listen(1)
        self.listener.settimeout(20)
        self.path, self.asked = box.socket, b""

    def run(self):
        connection, _ = self.listener.accept()
        while b"}" not in self.asked:
            self.asked += connection.recv(4096)
        os.remove(self.path)
        self.listener.close()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"job_id\":1}\n")
        connection.close()


@ONE_ANSWER
@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_who_stops_a_job_that_was_resumed_meanwhile_does_not_stay_as_a_node(box, verb):
    """The node has taken the command, somebody has taken it back, and then the node was killed:
    the command must not hold the folder, waiting for what will never be."""
    run, job = start_flow(box, "one")
    run.kill()
    run.wait()
    os.remove(box.socket)
    node = OneAnswer(box)
    node.start()
    out = box.glia("job", verb, job).stdout
    node.join()
    assert f"/{verb}".encode() in node.asked
    assert out == f"{job}\t\trunning\n"
