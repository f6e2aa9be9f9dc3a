"""The keeper's protocol, written a second time (see src/port/keeper_protocol.h), for tests."""
import os
import socket
import struct
import subprocess
import time

TYPES = dict(HELLO=1, WELCOME=2, REFUSED=3, START=4, ATTACH=5, STOP=6, ACK=7, LIST=8, PING=9,
             REPLY=10, INFO=11, ENDED=12, BEACON=13, BEGUN=14)
NAMES = {v: k for k, v in TYPES.items()}
STATES = ["running", "ended", "never", "lost"]
ENDS = ["exited", "signaled", "timeout", "stopped", "not_executed", "orphaned"]
ERRORS = {-2: "limit", -5: "invalid", -9: "unavailable", -11: "stale", -12: "state", -14: "version"}

# name: (tag, kind); kinds: n number, s text, t list of texts, f list of files
FIELDS = dict(
    req=(1, "n"), version_min=(2, "n"), version_max=(3, "n"), incarnation=(4, "n"),
    orphan_grace_ms=(5, "n"), features=(6, "n"), pid=(7, "n"), context=(8, "s"), job=(9, "s"),
    attempt=(10, "s"), token=(11, "n"), epoch=(12, "s"), start_by=(13, "n"), driver=(14, "s"),
    argv=(15, "t"), env=(16, "t"), cwd=(17, "s"), files=(18, "f"), input=(19, "s"),
    timeout_ms=(20, "n"), grace_ms=(21, "n"), beacon_ms=(22, "n"), status=(23, "n"),
    text=(24, "s"), state=(25, "n"), end=(26, "n"), exit_code=(27, "n"), signal=(28, "n"),
    started_at=(29, "n"), ended_at=(30, "n"), output=(31, "s"), error=(32, "s"),
    output_source=(33, "n"), boot=(34, "s"), ticks_min=(35, "n"), ticks_max=(36, "n"),
    mark=(37, "n"), clock_offset_ms=(38, "n"), secrets=(39, "t"),
    is_worker=(41, "n"), needs_session=(50, "n"), session_until=(51, "n"))
TAGS = {tag: (name, kind) for name, (tag, kind) in FIELDS.items()}


def raw(text):
    return text if isinstance(text, bytes) else text.encode()


def sized(text):
    return struct.pack("<I", len(raw(text))) + raw(text)


def encode(kind, **fields):
    out = bytes([TYPES[kind]])
    for name, value in fields.items():
        tag, how = FIELDS[name]
        if how == "n":
            content = struct.pack("<q", value)
        elif how == "s":
            content = raw(value)
        elif how == "t":
            content = b"".join(sized(v) for v in value)
        else:
            content = b"".join(bytes([x]) + sized(n) + sized(b) for n, b, x in value)
        out += bytes([tag]) + sized(content)
    return sized(out)


def decode(message):
    m = dict(type=NAMES[message[0]], status=0, state=0, end=0, exit_code=0, signal=0, token=0,
             output=b"", error="", text="", output_source=0)
    at = 1
    while at < len(message):
        tag, n = struct.unpack_from("<BI", message, at)
        content = message[at + 5:at + 5 + n]
        at += 5 + n
        name, kind = TAGS[tag]
        if kind == "n":
            m[name] = struct.unpack("<q", content)[0]
        elif kind == "s":
            m[name] = content if name == "output" else content.decode()
        else:
            m[name] = content
    m["state"] = STATES[m["state"]]
    m["end"] = ENDS[m["end"]]
    m["status"] = ERRORS.get(m["status"], m["status"])
    return m


class Link:
    """One connection to a keeper."""

    def __init__(self, data_dir, incarnation=1, hello=True, **fields):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        folder = os.open(os.path.join(data_dir, "keeper"), os.O_PATH)
        self.sock.connect("/proc/self/fd/%d/sock" % folder)
        os.close(folder)
        self.bytes = b""
        self.events = []
        self.req = 0
        if hello:
            fields.setdefault("version_max", 2)
            self.send("HELLO", version_min=1, incarnation=incarnation, **fields)
            self.welcome = self.receive()
            self.epoch = self.welcome.get("epoch", "")

    def send(self, kind, **fields):
        self.sock.sendall(encode(kind, **fields))

    def receive(self):
        """The next message; None at the end of the connection."""
        while True:
            if len(self.bytes) >= 4:
                n = struct.unpack_from("<I", self.bytes)[0]
                if len(self.bytes) >= 4 + n:
                    message, self.bytes = self.bytes[4:4 + n], self.bytes[4 + n:]
                    return decode(message)
            try:
                more = self.sock.recv(1 << 20)
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            self.bytes += more

    def ask(self, kind, **fields):
        """Send a request and wait for its reply; what else comes is kept in `events`."""
        self.req += 1
        self.send(kind, req=self.req, **fields)
        infos = []
        while True:
            m = self.receive()
            assert m is not None, "the keeper hung up"
            if m["type"] == "REPLY" and m["req"] == self.req:
                m["infos"] = infos
                return m
            (infos if m["type"] == "INFO" else self.events).append(m)

    def start(self, argv, job="J1", attempt="s:attempt:1", token=1, **fields):
        fields.setdefault("epoch", self.epoch)
        fields.setdefault("grace_ms", 500)
        return self.ask("START", context="default", job=job, attempt=attempt, token=token,
                        argv=argv, **fields)

    def event(self, kind="ENDED", job=None, attempt=None):
        """Wait for the next event of this kind."""
        while True:
            for i, m in enumerate(self.events):
                if m["type"] == kind and job in (None, m.get("job")) and \
                        attempt in (None, m.get("attempt")):
                    return self.events.pop(i)
            m = self.receive()
            assert m is not None, "the keeper hung up"
            self.events.append(m)

    def run(self, argv, **fields):
        r = self.start(argv, **fields)
        assert r["status"] == 0, r
        return self.event(job=fields.get("job", "J1"), attempt=fields.get("attempt"))

    def attach(self, job="J1", attempt="s:attempt:1", token=1, epoch=None):
        return self.ask("ATTACH", context="default", job=job, attempt=attempt, token=token,
                        epoch=self.epoch if epoch is None else epoch)

    def stop(self, job="J1", attempt="s:attempt:1", token=1):
        return self.ask("STOP", context="default", job=job, attempt=attempt, token=token)

    def ack(self, job="J1", attempt="s:attempt:1", token=1, **fields):
        self.send("ACK", context="default", job=job, attempt=attempt, token=token, **fields)

    def list(self):
        return self.ask("LIST")["infos"]

    def close(self):
        self.sock.close()


class Keeper:
    """A keeper of a folder, started as a node does it."""

    def __init__(self, binary, data_dir, idle_ms=10000, env=None, pass_fds=()):
        self.data_dir = str(data_dir)
        ready, write_end = os.pipe()
        os.set_inheritable(write_end, True)
        launcher = subprocess.Popen(
            [str(binary), "--data-dir", self.data_dir, "--idle-ms", str(idle_ms),
             "--ready-fd", str(write_end)],
            pass_fds=[write_end, *pass_fds], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, **(env or {})))
        os.close(write_end)
        with os.fdopen(ready) as f:
            self.said = f.read()
        launcher.wait()
        self.pid = 0
        if self.said == "ok":
            with open(os.path.join(self.data_dir, "keeper", "lock")) as f:
                self.pid = int(f.read())

    def alive(self):
        return alive(self.pid)

    def kill(self, sig=9):
        if self.pid:
            try:
                os.kill(self.pid, sig)
            except ProcessLookupError:
                pass
            wait_for(lambda: not self.alive())


def alive(pid):
    """Does this process run? A dead one nobody has waited for does not."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what, seconds=60):
    """Until `what()` gives something true; that is returned."""
    until = time.monotonic() + seconds
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < until, "waited for too long"
        time.sleep(0.01)
