"""Runs a program of the tests and shows what it says, until it ends or hangs.

A busy machine makes everything slower, so wall-clock time says little about a program. One hangs if
it prints nothing for SILENT_SECONDS and uses less than IDLE_CPU_SECONDS of CPU time meanwhile, or
uses SPIN_CPU_SECONDS or SILENT_SECONDS_MAX without printing anything. It is killed, with all
processes of its session, and the failure names those that were running."""

import collections
import contextlib
import os
import selectors
import signal
import subprocess
import time

SILENT_SECONDS = 900     # without a line, and
IDLE_CPU_SECONDS = 60    # with less CPU time: it waits for something that does not come
SPIN_CPU_SECONDS = 1800  # without a line: it computes without an end
SILENT_SECONDS_MAX = 3600
LOOK_SECONDS = 5         # between two looks at its processes
LINES_KEPT = 50000       # of what a program says, to find its failures in
TICKS = os.sysconf("SC_CLK_TCK")

LIVING = set()  # sessions that have been started and must not outlive this program


def processes(session):
    """{pid: (CPU seconds with those of its ended children, command line)} of a session."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read().rpartition(")")[2].split()
            if int(stat[3]) != session:
                continue
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                command = file.read().replace("\0", " ").strip()
            found[int(pid)] = sum(int(n) for n in stat[11:15]) / TICKS, command
    return found


# How the line begins that reports a program which was killed, and the two reasons in it.
HUNG = "FAILED: it hung"
WAITS = "nothing printed for"
SPINS = "nothing printed while it used"


class Watch:
    """Whether a program makes progress."""

    def __init__(self, session, seconds):
        self.session = session
        self.end = time.monotonic() + seconds if seconds else None
        self.cpu = 0
        self.progress()

    def progress(self):
        self.since, self.cpu_since = time.monotonic(), None

    def look(self):
        """Why the program must be ended, or None."""
        now = time.monotonic()
        if self.end and now > self.end:
            return "not at its end in time"
        cpu = sum(used for used, _ in processes(self.session).values())
        if self.cpu_since is None:
            self.cpu_since = cpu
        used = cpu - self.cpu_since
        if used > SPIN_CPU_SECONDS:
            return f"{SPINS} {used:.0f} s of CPU time"
        silent = now - self.since
        if silent > SILENT_SECONDS_MAX or silent > SILENT_SECONDS and used < IDLE_CPU_SECONDS:
            return f"{WAITS} {silent / 60:.0f} minutes, {used:.0f} s of CPU time used"
        return None


def follow(words, env, cwd, say=lambda line: None, seconds=None):
    """(its last lines, its exit code, the CPU time it took). After `seconds` (if any) it is ended
    even if it makes progress."""
    lines = collections.deque(maxlen=LINES_KEPT)
    try:
        child = subprocess.Popen(words, cwd=cwd, env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        return [f"{words[0]}: {error.strerror}"], 1, 0

    def hear(line):
        say(line)
        lines.append(line)

    LIVING.add(child.pid)
    with child:
        try:
            why = read_all(child, Watch(child.pid, seconds), hear)
            if why:
                running = processes(child.pid)
                hear(f"{HUNG}: {why}; still running:")
                for pid, (cpu, command) in sorted(running.items()):
                    hear(f"    {pid}, {cpu:.0f} s of CPU time: {command[:200]}")
                os.killpg(child.pid, signal.SIGKILL)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            LIVING.discard(child.pid)
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
    return lines, child.returncode, used.ru_utime + used.ru_stime


def read_all(child, watch, hear):
    """Pass on the lines of a program to its end; why it must be ended before, or None. Characters
    without the end of their line are progress, too: pytest prints one for each test."""
    rest, why = b"", None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        look_at = time.monotonic() + LOOK_SECONDS
        while why is None:
            if selector.select(LOOK_SECONDS):
                more = os.read(child.stdout.fileno(), 1 << 16)
                if not more:
                    break
                watch.progress()
                *whole, rest = (rest + more).split(b"\n")
                for line in whole:
                    hear(line.decode(errors="replace").rstrip("\r"))
            if time.monotonic() >= look_at:
                why, look_at = watch.look(), time.monotonic() + LOOK_SECONDS
    if rest:
        hear(rest.decode(errors="replace"))
    return why


def end_all():
    """What was started is in sessions of its own, and would go on."""
    for session in list(LIVING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)
