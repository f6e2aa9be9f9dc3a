"""Follows a job's events and the logs of its steps, across broken connections and restarted nodes.
Every event and every line is delivered once."""

from __future__ import annotations

import json
import re
import time
from typing import Callable, Iterator, List, Optional
from urllib.parse import quote, urlencode

from ._sse import messages
from ._transport import Answer, Deadline, Patience, Transport
from .errors import NotANodeError, UnavailableError, WaitTimeout, from_document
from .models import Document, Event, Job, LogLine, time_of_ms

JOBS = "/v1/contexts/default/jobs"
SILENCE_SECONDS = 45.0  # a stream of events sends something every 15 s
LOG_SILENCE_SECONDS = 60.0  # a log may be silent: poll again
POLL_SECONDS = 20.0
LATE_SECONDS = 0.5  # an answer may be this late after its wait is over
DROPPED = re.compile(rb"-- (\d+) bytes dropped --")


def job_path(job: str, *more: str) -> str:
    return "/".join([JOBS, quote(job, safe=""), *more])


def query_of(**arguments: object) -> str:
    """The query after the path. Slashes stay as they are, since a node would not decode them."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return "?" + urlencode(given, safe="/") if given else ""


def timed_out(job: str) -> WaitTimeout:
    return WaitTimeout(f"timeout: job {job} has not ended",
                       hint="the job continues")


# ---- events ----


def _parse(text: str) -> Document:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise NotANodeError("invalid event in the stream: not JSON") from error
    if not isinstance(document, dict):
        raise NotANodeError("invalid event in the stream: not an object")
    return document


class Watch:
    """The events of a job after a number, as they come."""

    def __init__(self, transport: Transport, job: str, after: int, deadline: Deadline) -> None:
        self.transport = transport
        self.job = job
        self.last = after
        self.deadline = deadline
        self.patience = Patience(transport.patience, deadline)
        self.has_ended = False

    def __iter__(self) -> Iterator[Event]:
        while True:
            try:
                yield from self._stream()
            except UnavailableError as error:
                if self.deadline.is_over:
                    raise timed_out(self.job) from error
                if not self.transport.may_repeat(error, True) or not self.patience.rest():
                    raise
                continue
            if self.has_ended:
                return
            if self.deadline.is_over:
                raise timed_out(self.job)
            if not self.patience.rest():
                raise UnavailableError("the node closes event streams at once")

    def _stream(self) -> Iterator[Event]:
        """One connection. Events seen before are skipped if a node repeats them."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(self.last)}
        path = job_path(self.job, "events")
        with self.transport.open_stream(path, headers, self.deadline) as stream:
            for message in messages(stream.lines(SILENCE_SECONDS, self.deadline)):
                document = _parse(message.data)
                if message.event == "end":
                    self.has_ended = True
                    return
                if message.event == "error":
                    raise from_document(document)
                event = Event.of(document)
                if event.seq > self.last:
                    self.patience.renew()
                    # Use the full id from now on: a prefix may become ambiguous.
                    self.last, self.job = event.seq, event.job_id
                    yield event


# ---- logs ----


class LogReader:
    """The log of one step, attempt by attempt."""

    def __init__(self, transport: Transport, status: Callable[[str], Job], job: str, step: str,
                 attempt: Optional[int], deadline: Deadline) -> None:
        self.transport = transport
        self.status = status
        self.job = job
        self.step = step
        self.wanted = attempt
        self.attempt = attempt or 0  # 0: no attempt has begun
        self.offset = 0
        self.has_ended = False  # the attempt
        self.deadline = deadline

    def _path(self, **more: str) -> str:
        return job_path(self.job, "logs") + query_of(
            step=self.step, offset=self.offset, attempt=self.attempt or None, **more)

    def _line(self, line: bytes) -> LogLine:
        when, _, rest = line.partition(b" ")
        stream, _, text = rest.partition(b" ")
        if not when.isdigit():
            return LogLine(self.step, self.attempt, "dropped", line.decode(errors="replace"), None)
        return LogLine(self.step, self.attempt, "stderr" if stream == b"e" else "stdout",
                       text.decode("utf-8", errors="replace"), time_of_ms(int(when)))

    def _get(self, path: str, seconds: float) -> Answer:
        try:
            return self.transport.request("GET", path, repeatable=True,
                                          timeout=self.deadline.left(seconds) + LATE_SECONDS)
        except UnavailableError as error:
            if self.deadline.is_over:
                raise timed_out(self.job) from error
            raise

    def read(self) -> Iterator[LogLine]:
        """What exists now, page by page."""
        while True:
            answer = self._get(self._path(), self.transport.timeout)
            try:
                self.attempt = int(answer.headers["glia-attempt"])
                following = int(answer.headers["glia-next-offset"])
            except (KeyError, ValueError) as error:
                raise NotANodeError("a page of a log lacks its headers") from error
            self.has_ended = answer.headers.get("glia-ended") == "true"
            lines: List[bytes] = answer.body.split(b"\n")[:-1]
            self.offset = following
            yield from map(self._line, lines)
            if not lines:
                return

    def follow(self) -> Iterator[LogLine]:
        """What exists and what comes, until the step (or the requested attempt) has ended. A stream
        may end early: only a page says that nothing will follow."""
        while True:
            yield from self.read()
            if self.deadline.is_over:
                raise timed_out(self.job)
            if self.attempt and not self.has_ended:
                before = self.offset
                yield from self._stream()
                if self.offset == before:
                    time.sleep(self.deadline.left(0.05))  # it may be about to end or to be paused
            elif self.wanted is not None or not self._next_attempt():
                return

    def _stream(self) -> Iterator[LogLine]:
        """One connection. Offsets count as in the node: a "dropped" line counts for the bytes it
        replaces."""
        try:
            with self.transport.open_stream(self._path(follow="true"), {},
                                            self.deadline) as stream:
                for line in stream.lines(LOG_SILENCE_SECONDS, self.deadline):
                    dropped = DROPPED.fullmatch(line)
                    self.offset += int(dropped.group(1)) if dropped else len(line) + 1
                    yield self._line(line)
        except UnavailableError:
            pass  # the next page request finds out why, with retries

    def _next_attempt(self) -> bool:
        """Wait for the attempt after this one. False: there will be none."""
        while True:
            job = self.status(self.job)
            self.job = job.job_id
            step = job.steps.get(self.step)
            if step is not None and step.attempts > self.attempt:
                self.attempt, self.offset = self.attempt + 1, 0
                return True
            if job.ended or job.status == "paused" or (step is not None and step.outcome):
                return False
            if self.deadline.is_over:
                raise timed_out(self.job)
            self._wait_for_news(job)

    def _wait_for_news(self, job: Job) -> None:
        """Wait for an event about the step or the job as a whole."""
        following = job.last_seq + 1
        while not self.deadline.is_over:
            seconds = self.deadline.left(POLL_SECONDS)
            query = query_of(**{"from": following}, wait_ms=int(seconds * 1000), limit=1000)
            page = self._get(job_path(self.job, "events") + query,
                             seconds + self.transport.timeout).json()
            events = [Event.of(one) for one in page["events"]]
            if page["ended"] or any(e.step_id in (None, self.step) for e in events):
                return
            following = page["next_seq"]
