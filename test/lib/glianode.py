"""A data folder and the real `glia` in it, for tests of whole programs."""

import contextlib
import glob
import http.client
import json
import os
import signal
import socket
import subprocess
import time

from failures import DEFECT

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("GLIA_BUILD_RELEASE", os.path.join(ROOT, "build"))
GLIA = os.path.join(BUILD, "glia")
SECONDS_MAX = 60

# What takes no longer than this was not waited for: in tests of things that must not wait for
# something which would take longer. Machines that run tests stand still for seconds.
AT_ONCE_S = 15


def wait_for(what, condition, seconds=SECONDS_MAX):
    """Ask until the condition gives something true, and give that back. The time is no promise of
    ours: it is for machines that have much else to do."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket, of any path length."""

    def __init__(self, path, timeout=SECONDS_MAX):
        super().__init__("glia", timeout=timeout)
        self.socket_path = path

    def connect(self):
        folder = os.open(os.path.dirname(self.socket_path), os.O_PATH)
        try:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            self.sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(self.socket_path)}")
        finally:
            os.close(folder)


class Answer:
    """What a node said: status, headers, body, and the body as JSON."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Box:
    """One data folder, and the processes a test has started in it."""

    lender = None  # of stores, if not SQLite is tested (teststore.py)

    def __init__(self, folder, data=None, **env):
        self.folder = str(folder)
        self.data = data or os.path.join(self.folder, "data")
        self.started = []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("GLIA_")}
        self.env.update(GLIA_DATA_DIR=self.data, USER="tester", LC_ALL="C.UTF-8", **env)
        self.lent = None
        if self.lender is not None and not {"GLIA_STORE", "GLIA_SERVER"} & set(env):
            self.lent = self.env["GLIA_STORE"] = self.lender.take()

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def has(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def glia(self, *args, code=0, **options):
        """Run a command to its end, and insist on its exit code."""
        done = subprocess.run([GLIA, *args], cwd=self.folder, env=self.env, text=True,
                              capture_output=True, timeout=SECONDS_MAX, check=False, **options)
        if code is not None:
            assert done.returncode == code, f"{args}: {done.returncode}\n{done.stderr}"
        return done

    def start(self, *args):
        """Start a command; its output goes to files with its number in their names."""
        number = len(self.started)
        with open(f"{self.folder}/out{number}", "wb") as out, \
                open(f"{self.folder}/err{number}", "wb") as err:
            process = subprocess.Popen([GLIA, *args], cwd=self.folder, env=self.env, stdout=out,
                                       stderr=err, stdin=subprocess.DEVNULL)
        process.out, process.err = f"out{number}", f"err{number}"
        self.started.append(process)
        return process

    def finish(self, process, code=0):
        """Wait for the end of a started command; gives back what it wrote to stdout."""
        returned = process.wait(SECONDS_MAX)
        assert returned == code, f"{returned}: {self.read(process.err)}"
        return self.read(process.out)

    def json(self, *args, code=0):
        at = args.index("--") if "--" in args else len(args)
        return json.loads(self.glia(*args[:at], "--json", *args[at:], code=code).stdout)

    def error(self, *args, code):
        """What --json says of a command that fails: code, message and reason."""
        return self.json(*args, code=code)["error"]

    def reason(self, *args, code):
        """The stable word of the error with which a command fails (docs/reasons.md)."""
        return self.error(*args, code=code).get("reason")

    def why_code(self, job, step=None):
        """Why a job, or one of its steps, is in its state."""
        if step is None:
            return self.json("why", job)["why_code"]
        return self.json("why", job, step)["steps"][step]["why_code"]

    def why_codes(self, job):
        """All that is said of why a job is in its state."""
        why = self.json("why", job)
        return [why["why_code"], *why.get("why_also", [])]

    def jobs(self):
        return self.json("job", "list")["jobs"]

    def step(self, job, step):
        return self.json("job", "status", job)["workflow_state"]["steps"][step]

    def wait_job(self, count=1):
        """The ids of the jobs, newest first, once there are so many."""
        return wait_for("jobs", lambda: [j["job_id"] for j in self.jobs()]
                        if len(self.jobs()) >= count else None)

    @property
    def socket(self):
        return os.path.join(self.data, "node.sock")

    def is_heard(self):
        """Does anybody listen at the socket? That it exists is not enough."""
        try:
            connection = self.connect()
            connection.connect()
            connection.close()
        except OSError:
            return False
        return True

    def wait_node(self):
        wait_for("the node", self.is_heard)

    def connect(self):
        return Connection(self.socket)

    def ask(self, method, path, body=None, headers=None):
        """One request on a connection of its own."""
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection = self.connect()
        try:
            connection.request(method, path, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def print_crashes(self):
        """pytest shows this if the test fails, and tools/test does not call such a test flaky."""
        said = [f"{p.args} ended with {p.returncode}" for p in self.started if p.poll() is not None]
        for path in [*glob.glob(f"{self.folder}/err*"), os.path.join(self.data, "keeper", "log")]:
            with contextlib.suppress(OSError), open(path, "rb") as log:
                said += log.read().decode(errors="replace").splitlines()
        for line in filter(DEFECT.search, said):
            print(line)

    def close(self):
        """End everything: the nodes first, then the keeper, which ends the steps."""
        self.print_crashes()
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for pid in keepers(self.data):
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                os.kill(pid, signal.SIGKILL)
        if self.lent is not None:
            self.lender.give_back(self.lent)
            self.lent = None


def keepers(data):
    """The processes that are keepers of this data folder."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"glia-keeper") and data.encode() in words:
                yield int(name)
