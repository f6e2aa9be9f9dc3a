"""How late this machine is: for tests that something is done in time.

    with Stalls() as stalls:
        ...
        assert took < promised + stalls.slack(since)

What is promised is promised of a machine that runs what it is told to. One with much else to do
stands still now and then, and a disk may take seconds to sync a page. So the test does meanwhile,
again and again, what takes no time on an idle machine: it sleeps for a moment, starts a process and
syncs a file. The longest delay it has seen is what the bound must allow; hardly anything where
nothing else is going on. Where very many tests run at once, one that only sleeps costs less:
Stalls(is_light=True)."""

import os
import subprocess
import tempfile
import threading
import time

NAP_S = 0.1


class Stalls:
    """Measures from now on."""

    def __init__(self, is_light=False):
        self.is_light = is_light
        self.seen = []  # (when it was over, seconds too late)
        self.begun = time.monotonic()
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join(60)

    def run(self):
        with tempfile.TemporaryFile() as file:
            while not self.is_over.wait(NAP_S):
                if not self.is_light:
                    subprocess.run(["true"], check=True)
                    file.seek(0)
                    file.write(os.urandom(64))
                    file.flush()
                    os.fsync(file.fileno())
                now = time.monotonic()
                self.seen.append((now, now - self.begun - NAP_S))
                self.begun = now

    def slack(self, since=0.0):
        """The longest delay since then, by the monotonic clock, in seconds."""
        under_way = time.monotonic() - self.begun - NAP_S
        return max([under_way, 0.0] + [late for when, late in self.seen if when >= since])
