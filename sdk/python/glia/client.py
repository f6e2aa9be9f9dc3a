"""The client of a node."""

from __future__ import annotations

import json
import os
import pwd
import secrets
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Type, Union
from urllib.parse import quote

from . import _address
from ._flows import Prepared, prepare, read
from ._follow import LATE_SECONDS, LogReader, POLL_SECONDS, Watch, job_path, query_of, timed_out
from ._transport import Deadline, Patience, Transport
from .errors import (ConflictError, GliaError, InvalidError, JobFailedError, NotANodeError,
                     NotFoundError, UnavailableError, from_document)
from .models import (Attempt, Document, Event, FileContent, Flow, HumanRequest, Job, JobRef,
                     LogLine, Submission, Step, Submitted, Why, reference)

CONTEXT = "/v1/contexts/default"
JOBS = f"{CONTEXT}/jobs"
BATCH_JOBS_MAX = 1000
BATCH_BYTES_MAX = 16 << 20
PAGE_ROWS = 1000
NO_KEYS = "request_key: there is no such field"
BEYOND = 1 << 53  # more events than any job has: waiting for this one is waiting for the end


def _user() -> str:
    name = os.environ.get("USER")
    if name:
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _new_key() -> str:
    return f"py-{secrets.token_hex(16)}"


def _without_none(**fields: Any) -> Document:
    return {name: value for name, value in fields.items() if value is not None}


class Client:
    """A client of one node.

    The node is found as the `glia` command finds it: `server` ("unix:/path/node.sock" or
    "http://HOST:PORT"), else the socket in `data_dir`, else GLIA_SERVER, else the socket in
    GLIA_DATA_DIR, else the socket in the default data folder. A server over HTTP needs a token:
    `token`, `token_file`, GLIA_TOKEN, GLIA_TOKEN_FILE, or the file `token` in the data folder. The
    settings file is not read.

    `timeout` limits every request including its retries, in seconds. `patience` is how long a node
    that has answered before may be unreachable, while it is restarted or another node takes over
    its folder, before an UnavailableError is raised. Meanwhile reads, submissions and retries are
    resent; other requests are resent only if they were never sent.

    A client keeps connections open and may be used by several threads, and in a child after a
    fork. Iterators returned by its methods belong to one thread. It connects with the first
    request, never becomes a node and never opens a store.
    """

    def __init__(self, server: Optional[str] = None, *,
                 data_dir: Optional[_address.PathText] = None, token: Optional[str] = None,
                 token_file: Optional[_address.PathText] = None, timeout: float = 30.0,
                 patience: float = 10.0, who: Optional[str] = None) -> None:
        address = _address.find(server, data_dir, token, token_file, os.environ)
        self._transport = Transport(address, timeout, patience)
        self._who = _user() if who is None else who
        self._is_keyless = False  # the node does not support request keys

    def __repr__(self) -> str:
        return f"<glia.Client of {self.server}>"

    @property
    def server(self) -> str:
        """The address of the node."""
        return self._transport.address.text

    def close(self) -> None:
        """Close idle connections. The client stays usable and opens new ones."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # ---- requests ----

    def _ask(self, path: str, **query: Any) -> Document:
        answer = self._transport.request("GET", path + query_of(**query), repeatable=True)
        return self._document(answer.json())

    def _post(self, path: str, body: Any, *, repeatable: bool = False,
              only_here: bool = False) -> Document:
        data = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
        answer = self._transport.request(
            "POST", path, data, headers={"Content-Type": "application/json"},
            repeatable=repeatable, only_here=only_here)
        return self._document(answer.json())

    def _post_keyed(self, path: str, body: Document) -> Document:
        """A submission. Its own request key makes it safe to resend until it is answered."""
        is_known = bool(body.get("run_id") or body.get("request_key"))
        if not body.get("request_key") and not self._is_keyless:
            try:
                return self._post(path, {**body, "request_key": _new_key()}, repeatable=True,
                                  only_here=not is_known)
            except InvalidError as error:
                self._note_keyless(error)
        return self._post(path, body, repeatable=is_known)

    def _note_keyless(self, error: GliaError) -> None:
        """A node of an earlier release rejects request keys, like all unknown fields."""
        if not str(error).startswith(NO_KEYS):
            raise error
        self._is_keyless = True

    @staticmethod
    def _document(value: Any) -> Document:
        if not isinstance(value, dict):
            raise NotANodeError("the response is not an object")
        return value

    # ---- submitting ----

    def submit(self, flow: Flow, *, inputs: Optional[Mapping[str, Any]] = None,
               files: Optional[Mapping[str, FileContent]] = None, run_id: Optional[str] = None,
               dedupe_key: Optional[str] = None,
               request_key: Optional[str] = None) -> Submitted:
        """Submit a job. It is committed when this returns.

        `flow` is a dict, JSON text, or the path (a pathlib.Path, not a str) of a JSON file. Files
        named in a JSON file are read from its folder; otherwise `files` gives their contents, by
        the path the flow uses. Only the `glia` command reads YAML.

        The path of a folder, or of a manifest.json, is a bundle. Its `inputs` work like `--set` of
        the command: they are merged over its configuration, and `inputs["inputs"]["payload"]` also
        over the messages that start it.

        A submission whose response was lost is resent, within `timeout` and `patience`, with a
        request key, so the node creates one job only. If it stays unanswered, UnavailableError is
        raised with the code unknown.

        With your own `run_id` or `request_key` it is also safe to call this again: the same content
        returns the same job, with `existing` set; different content raises ConflictError (code
        exists). A run id names the job; a request key names only the submission.
        """
        ready = prepare(flow, files)
        self._put(ready.contents)
        body = _without_none(**ready.fields, **ready.entry(inputs), run_id=run_id,
                             dedupe_key=dedupe_key, request_key=request_key)
        return Submitted.of(self._post_keyed(JOBS, body))

    def submit_many(self, submissions: Iterable[Submission], *, flow: Optional[Flow] = None,
                    files: Optional[Mapping[str, FileContent]] = None
                    ) -> List[Union[Submitted, GliaError]]:
        """Submit many jobs in few requests; jobs without a flow use `flow` and its `files`.

        Returns, in the same order, for each either the job or the error that refused it (not
        raised). If a whole request fails, its error is raised, and the jobs of earlier requests
        exist: with run ids or request keys, simply submit all again.
        """
        shared = prepare(flow, files) if flow is not None else None
        if shared is not None:
            self._put(shared.contents)
        results: List[Union[Submitted, GliaError]] = []
        entries: List[Document] = []
        held = 0
        for one in submissions:
            entry = self._entry(one, shared)
            size = len(json.dumps(entry, allow_nan=False))
            if entries and (len(entries) >= BATCH_JOBS_MAX or held + size > BATCH_BYTES_MAX):
                results += self._submit_batch(entries, shared)
                entries, held = [], 0
            entries.append(entry)
            held += size
        return results + (self._submit_batch(entries, shared) if entries else [])

    def _entry(self, one: Submission, shared: Optional[Prepared]) -> Document:
        own = prepare(one.flow, one.files) if one.flow is not None else None
        if own is not None:
            self._put(own.contents)
        ready = own or shared
        return _without_none(**(own.fields if own is not None else {}),
                             **(ready.entry(one.inputs) if ready is not None else {}),
                             run_id=one.run_id, dedupe_key=one.dedupe_key,
                             request_key=one.request_key)

    def _submit_batch(self, entries: Sequence[Document],
                      shared: Optional[Prepared]) -> List[Union[Submitted, GliaError]]:
        results: Dict[int, Union[Submitted, GliaError]] = {}
        keys = [entry.get("request_key") or _new_key() for entry in entries]
        open_ = list(range(len(entries)))
        patience = Patience(self._transport.patience, Deadline(None))
        while open_:
            answers = self._send_batch([entries[i] for i in open_], [keys[i] for i in open_],
                                       shared)
            results.update(zip(open_, answers))
            # Refused because the node is stopping: resend to its successor.
            open_ = [i for i in open_ if isinstance(results[i], UnavailableError)
                     and (not self._is_keyless or entries[i].get("run_id"))]
            if open_ and not patience.rest():
                break
        return [results[i] for i in range(len(entries))]

    def _send_batch(self, entries: Sequence[Document], keys: Sequence[str],
                    shared: Optional[Prepared]) -> List[Union[Submitted, GliaError]]:
        is_known = all(entry.get("run_id") or entry.get("request_key") for entry in entries)
        if not self._is_keyless:
            keyed = [{**entry, "request_key": key} for entry, key in zip(entries, keys)]
            results = self._post_batch(keyed, shared, repeatable=True, only_here=not is_known)
            if not (isinstance(results[0], InvalidError) and str(results[0]).startswith(NO_KEYS)):
                return results
            self._is_keyless = True
        return self._post_batch(entries, shared, repeatable=is_known)

    def _post_batch(self, entries: Sequence[Document], shared: Optional[Prepared], *,
                    repeatable: bool, only_here: bool = False
                    ) -> List[Union[Submitted, GliaError]]:
        body: Document = {"jobs": entries, **(shared.fields if shared is not None else {})}
        answers = self._post(f"{JOBS}:batch", body, repeatable=repeatable,
                             only_here=only_here).get("jobs")
        if not isinstance(answers, list) or len(answers) != len(entries):
            raise NotANodeError("a batch was answered with another number of jobs")
        return [from_document(one["error"]) if "error" in one else Submitted.of(one)
                for one in answers]

    def _put(self, contents: Mapping[str, Union[bytes, Path]]) -> None:
        for sha256, content in contents.items():
            self._transport.request("PUT", f"{CONTEXT}/blobs/{sha256}", read(content, sha256),
                                    headers={"Content-Type": "application/octet-stream"},
                                    repeatable=True)

    def run(self, flow: Flow, *, inputs: Optional[Mapping[str, Any]] = None,
            files: Optional[Mapping[str, FileContent]] = None, run_id: Optional[str] = None,
            timeout: Optional[float] = None) -> Job:
        """Submit a job and wait for it. Raises JobFailedError if it does not complete."""
        job = self.wait(self.submit(flow, inputs=inputs, files=files, run_id=run_id),
                        timeout=timeout)
        self._check(job)
        return job

    @staticmethod
    def _check(job: Job) -> None:
        if not job.completed:
            raise JobFailedError(
                f"job {job.job_id} {job.status}" + (f": {job.reason}" if job.reason else ""), job)

    # ---- reading ----

    def status(self, job: JobRef) -> Job:
        """A job with its steps; of a large job only 1000, failed and running ones first
        (check `Job.complete`). `Client.steps` returns all of them."""
        return Job.of(self._ask(job_path(reference(job))))

    def steps(self, job: JobRef) -> Iterator[Step]:
        """Iterate over all steps of a job, in the order of its flow; fetched page by page.

        The output of a step is None if it is larger than 64 KiB: `Client.output` fetches it."""
        found = self.status(job)
        if found.complete:
            yield from found.steps.values()
            return
        page: Optional[str] = found.raw["workflow_state"]["next"]
        while page:
            state = self._ask(job_path(found.job_id), page=page)["workflow_state"]
            for one in state["steps"].values():
                yield Step.of(one)
            page = state.get("next")

    def step(self, job: JobRef, step: str) -> Step:
        """One step with its whole output (up to 8 MiB for a step with foreach)."""
        return self._step(Job.of(self._ask(job_path(reference(job)), step=step)), step)

    @staticmethod
    def _step(job: Job, step: str) -> Step:
        one = job.steps.get(step)
        if one is None:
            raise NotFoundError(f"job {job.job_id} has no step {step!r}", field="step")
        return one

    def output(self, job: JobRef, step: Union[str, Step]) -> Any:
        """The output of a step, however large. Given a Step, fetches it only if missing."""
        one = step if isinstance(step, Step) else self.step(job, step)
        if one.output_bytes and isinstance(step, Step):
            one = self.step(job, one.step_id)
        if one.output_bytes:  # a foreach whose output is too large for one response
            return [self.output(job, f"{one.step_id}[{n}]") for n in range(one.raw["items_n"])]
        return one.output

    def jobs(self, *, status: Optional[str] = None, name: Optional[str] = None,
             limit: Optional[int] = None) -> Iterator[Job]:
        """Iterate over jobs, newest first, without their steps; fetched page by page."""
        after: Optional[str] = None
        left = limit
        while left is None or left > 0:
            rows = PAGE_ROWS if left is None else min(PAGE_ROWS, left)
            page = self._ask(JOBS, status=status, name=name, after=after, limit=rows)
            for one in page["jobs"]:
                yield Job.of(one)
            left = None if left is None else left - len(page["jobs"])
            after = page.get("next")
            if not after:
                return

    def wait(self, job: JobRef, *, timeout: Optional[float] = None) -> Job:
        """Wait until a job has ended, however it ends. Raises WaitTimeout after `timeout` seconds;
        the job continues. Also waits while the job is paused or waits for a person."""
        deadline = Deadline(timeout)
        found = self._ask_until(deadline, reference(job), job_path(reference(job)))
        while not Job.of(found).ended:
            ident = str(found["job_id"])
            if deadline.is_over:
                raise timed_out(ident)
            seconds = deadline.left(POLL_SECONDS)
            url = job_path(ident, "events") + query_of(**{"from": BEYOND},
                                                       wait_ms=int(seconds * 1000) + 1)
            page = self._ask_until(deadline, ident, url, seconds)
            if page["ended"]:
                found = self._ask_until(Deadline(None), ident, job_path(ident))
        return Job.of(found)

    def _ask_until(self, deadline: Deadline, job: str, url: str, seconds: float = 0.0) -> Document:
        """A long-polling request that may take this many seconds longer than others."""
        timeout = deadline.left(self._transport.timeout + seconds) + LATE_SECONDS
        try:
            answer = self._transport.request("GET", url, repeatable=True, timeout=timeout)
            return self._document(answer.json())
        except UnavailableError as error:
            if deadline.is_over:
                raise timed_out(job) from error
            raise

    def events(self, job: JobRef, *, after: int = 0) -> Iterator[Event]:
        """The events of a job so far, after the event with the number `after`."""
        following = after + 1
        while True:
            page = self._ask(job_path(reference(job), "events"), **{"from": following},
                             limit=PAGE_ROWS)
            for one in page["events"]:
                yield Event.of(one)
            if not page["events"]:
                return
            following = page["next_seq"]

    def watch(self, job: JobRef, *, after: int = 0,
              timeout: Optional[float] = None) -> Iterator[Event]:
        """Past and new events of a job, until it has ended. Each event is delivered once, even if
        the connection breaks or the node is replaced; to continue later in another process, pass
        the `seq` of the last event as `after`. Raises WaitTimeout after `timeout` seconds."""
        return iter(Watch(self._transport, reference(job), after, Deadline(timeout)))

    def logs(self, job: JobRef, step: Optional[str] = None, *, attempt: Optional[int] = None,
             follow: bool = False, timeout: Optional[float] = None) -> Iterator[LogLine]:
        """The log of a step: of its last attempt, or of the given one; without `step`, of the last
        attempt of every step.

        With `follow` (which needs a step) also new lines, of this attempt and the next ones, until
        the step has ended or its job is paused. Every line is delivered once, even if the
        connection breaks. Raises WaitTimeout after `timeout` seconds."""
        if step is None and (follow or attempt is not None):
            raise ValueError("follow and attempt need a step")
        if step is None:
            return self._all_logs(reference(job))
        def status(ref: JobRef) -> Job:
            return Job.of(self._ask(job_path(reference(ref)), step=step))

        reader = LogReader(self._transport, status, reference(job), step, attempt,
                           Deadline(timeout if follow else None))
        return reader.follow() if follow else reader.read()

    def _all_logs(self, job: str) -> Iterator[LogLine]:
        last: Dict[str, int] = {}
        for one in self.attempts(job):
            last[one.step_id] = max(one.attempt, last.get(one.step_id, 0))
        for step, attempt in last.items():
            yield from self.logs(job, step, attempt=attempt)

    def attempts(self, job: JobRef) -> List[Attempt]:
        """The attempts that have a log."""
        return [Attempt(one["step_id"], one["attempt"], one["bytes"], one["ended"])
                for one in self._ask(job_path(reference(job), "logs"))["attempts"]]

    def result(self, job: JobRef, step: Optional[str] = None) -> Any:
        """The output of a step; without `step`, a dict with the outputs of the last steps, or the
        result of a bundle's job.

        Raises ConflictError (code state) if the job or step has not ended, JobFailedError if it
        did not complete. Outputs of a failed job are in `Client.status(job).steps`."""
        if step is not None:
            return self._step_result(
                Job.of(self._ask(job_path(reference(job)), step=step)), step)
        found = self.status(job)
        if not found.ended:
            raise ConflictError(f"job {found.job_id} is {found.status}: it has no result yet",
                                code="state")
        self._check(found)
        if "bundle" in found.raw:
            return found.raw.get("result")
        steps = list(self.steps(found))
        needed = {name for one in steps for name in one.needs}
        # The output of a foreach is the list of its instances' outputs.
        return {one.step_id: self.output(found, one) for one in steps
                if one.step_id not in needed and "[" not in one.step_id}

    def _step_result(self, job: Job, step: str) -> Any:
        one = self._step(job, step)
        if one.outcome is None and not job.ended:
            raise ConflictError(f"step {step!r} is {one.status}: it has no result yet",
                                code="state")
        if one.outcome != "success":
            raise JobFailedError(f"step {step!r} of job {job.job_id} {one.status}"
                                 + (f": {one.reason}" if one.reason else ""), job)
        return self.output(job, one)

    def why(self, job: JobRef, step: Optional[str] = None) -> Why:
        """Explain the state of a job or step: what it waits for, what blocks it, until when."""
        return Why.of(self._ask(job_path(reference(job), "why"), step=step))

    # ---- control ----

    def _command(self, job: JobRef, verb: str, reason: Optional[str]) -> None:
        self._post(job_path(reference(job), verb), _without_none(who=self._who, reason=reason))

    def pause(self, job: JobRef, *, reason: Optional[str] = None) -> None:
        """Stop the running steps, to run them again later, and start nothing new."""
        self._command(job, "pause", reason)

    def resume(self, job: JobRef, *, reason: Optional[str] = None) -> None:
        """Resume a paused job."""
        self._command(job, "resume", reason)

    def cancel(self, job: JobRef, *, reason: Optional[str] = None) -> None:
        """Stop everything that is running and end the job."""
        self._command(job, "cancel", reason)

    def retry(self, job: JobRef, *, from_step: Optional[str] = None,
              run_id: Optional[str] = None, request_key: Optional[str] = None) -> Submitted:
        """Rerun an ended job as a new job that reuses its completed steps, except those from the
        step `from_step` on. `run_id` and `request_key` are as in `submit`."""
        body = _without_none(**{"from": from_step}, run_id=run_id, request_key=request_key)
        return Submitted.of(self._post_keyed(job_path(reference(job), "retry"), body))

    def remove(self, job: JobRef) -> int:
        """Remove an ended job and its files; returns the number of bytes freed."""
        path = job_path(reference(job))
        answer = self._transport.request("DELETE", path, repeatable=False)
        return int(self._document(answer.json()).get("freed_bytes", 0))

    def signal(self, job: JobRef, name: str, data: Any = None) -> None:
        """Send a signal to a job; the step that waits for it gets the data as its output."""
        path = job_path(reference(job), "signals", quote(name, safe=""))
        self._post(path + query_of(who=self._who), data)

    def human(self, *, limit: int = PAGE_ROWS) -> List[HumanRequest]:
        """The steps that wait for a person."""
        page = self._ask(f"{CONTEXT}/human", limit=limit)
        return [HumanRequest.of(one) for one in page["requests"]]

    def respond(self, job: JobRef, step: str, decision: str, *, output: Any = None,
                reason: Optional[str] = None) -> None:
        """Decide on a step that waits for a person: one of the decisions it offers, or, if its
        outcome is unknown, rerun, done or failed."""
        body = _without_none(decision=decision, output=output, who=self._who, reason=reason)
        self._post(job_path(reference(job), "steps", quote(step, safe=""), "respond"), body)

    # ---- the node ----

    # ---- bundles ----

    def _pages(self, job: JobRef, what: str, rows: str, **query: Any) -> Iterator[Document]:
        after: Optional[str] = None
        while True:
            page = self._ask(job_path(reference(job), what), after=after, limit=PAGE_ROWS, **query)
            yield from page[rows]
            after = page["next"]
            if after is None:
                return

    def agents(self, job: JobRef) -> Iterator[Document]:
        """The agents of a bundle's job: messages handled and waiting, and their state."""
        return self._pages(job, "agents", "agents")

    def messages(self, job: JobRef, *, agent: Optional[str] = None) -> Iterator[Document]:
        """Messages that wait for agents or are being handled."""
        return self._pages(job, "messages", "messages", agent=agent)

    def dead_letters(self, job: JobRef, *, agent: Optional[str] = None) -> Iterator[Document]:
        """Messages that could not be delivered, each with the reason."""
        return self._pages(job, "dead-letters", "dead_letters", agent=agent)

    def redrive(self, job: JobRef, number: Optional[int] = None) -> int:
        """Redeliver a dead letter, or all of them; returns their number."""
        which = "all" if number is None else str(number)
        answer = self._post(job_path(reference(job), "dead-letters", which, "redrive"),
                            {"who": self._who})
        return int(answer["redriven"])

    def send(self, job: JobRef, agent: str, body: Any = None, *,
             message_type: Optional[str] = None, priority: Optional[int] = None) -> None:
        """Send a message to an agent of a running job. A higher priority (0 to 1000, by default
        100) is handled sooner."""
        self._post(job_path(reference(job), "messages"),
                   _without_none(to=agent, type=message_type, body=body, priority=priority,
                                 who=self._who))

    def artifacts(self, job: JobRef) -> List[Document]:
        """The files that the workers of a job left in its run folder."""
        return list(self._ask(job_path(reference(job), "artifacts"))["artifacts"])

    def artifact(self, job: JobRef, path: str) -> bytes:
        """The content of one artifact."""
        url = job_path(reference(job), "artifacts") + query_of(path=path)
        return self._transport.request("GET", url, repeatable=True).body

    def node(self) -> Document:
        """Information about the node: name, session, running attempts, pools."""
        return self._ask("/v1/node")

    def is_ready(self) -> bool:
        """Is a node running that accepts work? Never waits for one."""
        try:
            self._transport.request("GET", "/readyz", repeatable=False)
            return True
        except UnavailableError:
            return False

    def metrics(self) -> str:
        """Metrics in the Prometheus text format."""
        return self._transport.request("GET", "/metrics", repeatable=True).body.decode()

    def trim(self, *, keep_for: Optional[str] = None,
             keep_jobs: Optional[int] = None) -> Document:
        """Remove ended jobs beyond the configured or given limits ("7d", 10000)."""
        return self._post(f"{CONTEXT}/trim", _without_none(keep_for=keep_for, keep_jobs=keep_jobs))
