"""Immutable values that a node returns. `raw` is always the whole document, including fields that
have no attribute here; docs/api.md lists them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple, Union

__all__ = [
    "ENDED", "Attempt", "Event", "File", "FileContent", "Flow", "HumanRequest", "Job", "JobRef",
    "LogLine", "Step", "Submission", "Submitted", "Why",
]

#: The statuses of a job that has ended.
ENDED = frozenset({"completed", "failed", "cancelled"})

Document = Dict[str, Any]

#: A flow: as a dict, as JSON text, or as the path (not a str) of a JSON file.
Flow = Union[Mapping[str, Any], str, "os.PathLike[str]"]


def parse_time(text: Any) -> Optional[datetime]:
    """RFC 3339 in UTC, as the node writes it; None for what is absent."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        return None


def time_of_ms(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=timezone.utc)


def _number(doc: Mapping[str, Any], name: str) -> int:
    value = doc.get(name)
    return value if isinstance(value, int) else 0


def _text(doc: Mapping[str, Any], name: str) -> str:
    value = doc.get(name)
    return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class File:
    """The content of a file that a flow names in `script` or `files`."""

    content: bytes
    executable: bool = False

    @classmethod
    def read(cls, path: "Union[str, os.PathLike[str]]") -> "File":
        return cls(Path(path).read_bytes(), os.access(path, os.X_OK))


#: A file: its bytes, its text, the path (not a str) to read it from, or a File.
FileContent = Union[bytes, str, "os.PathLike[str]", File]


@dataclass(frozen=True)
class Submission:
    """One job of a batch. Without a flow it uses the batch's."""

    run_id: Optional[str] = None
    inputs: Optional[Mapping[str, Any]] = None
    flow: Optional[Flow] = None
    files: Optional[Mapping[str, FileContent]] = None
    dedupe_key: Optional[str] = None
    request_key: Optional[str] = None


@dataclass(frozen=True)
class Submitted:
    """A job that the node has accepted and committed."""

    job_id: str
    run_id: str
    status: str
    existing: bool = False  #: it existed already, with the same run id or request key and content

    @classmethod
    def of(cls, doc: Mapping[str, Any]) -> "Submitted":
        return cls(_text(doc, "job_id"), _text(doc, "run_id"), _text(doc, "status"),
                   bool(doc.get("existing", False)))


@dataclass(frozen=True)
class Step:
    """A step of a job, or one instance of a step with foreach (with an id like `fetch[3]`)."""

    step_id: str
    status: str
    outcome: Optional[str]  #: success, failed, skipped, partial; None: not ended
    attempts: int
    output: Any  #: None if there is none, or if it is large: see output_bytes
    started_at: Optional[datetime]
    ended_at: Optional[datetime]
    exit_code: Optional[int]
    reason: Optional[str]
    why: Optional[str]
    needs: Tuple[str, ...]
    raw: Document = field(repr=False, compare=False)

    @property
    def output_bytes(self) -> int:
        """The size of an output not included here (use `Client.output`). 0: it is included."""
        return _number(self.raw, "output_bytes")

    @classmethod
    def of(cls, doc: Document) -> "Step":
        return cls(
            _text(doc, "step_id"), _text(doc, "status"), doc.get("terminal_outcome"),
            _number(doc, "attempt_count"), doc.get("output"), parse_time(doc.get("started_at")),
            parse_time(doc.get("ended_at")), doc.get("exit_code"), doc.get("terminal_reason"),
            doc.get("why"), tuple(doc.get("needs", ())), doc)


@dataclass(frozen=True)
class Job:
    """A job. Jobs from a list have no steps; `Client.status` returns them."""

    job_id: str
    run_id: str
    name: str
    status: str
    reason: Optional[str]
    why: Optional[str]
    failed_step: Optional[str]
    retry_of: Optional[str]
    submitted_at: Optional[datetime]
    started_at: Optional[datetime]
    ended_at: Optional[datetime]
    last_seq: int
    steps: Dict[str, Step]
    raw: Document = field(repr=False, compare=False)

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def completed(self) -> bool:
        return self.status == "completed"

    @property
    def complete(self) -> bool:
        """Are these all of its steps?"""
        return bool(self.raw.get("workflow_state", {}).get("complete", True))

    @classmethod
    def of(cls, doc: Document) -> "Job":
        state = doc.get("workflow_state", {})
        return cls(
            _text(doc, "job_id"), _text(doc, "run_id"), _text(doc, "name"), _text(doc, "status"),
            doc.get("reason"), doc.get("why"), doc.get("failed_step"), doc.get("retry_of"),
            parse_time(doc.get("submitted_at")), parse_time(doc.get("started_at")),
            parse_time(doc.get("ended_at")), _number(doc, "last_seq"),
            {name: Step.of(step) for name, step in state.get("steps", {}).items()}, doc)


#: Identifies a job: its id, a prefix of it, a run id, or a value returned by another call.
JobRef = Union[str, Job, Submitted]


def reference(job: JobRef) -> str:
    return job if isinstance(job, str) else job.job_id


@dataclass(frozen=True)
class Event:
    """An event of a job. Numbers rise without gaps."""

    seq: int
    type: str
    job_id: str
    timestamp: Optional[datetime]
    step_id: Optional[str]
    status: Optional[str]
    attempt: Optional[int]
    reason: Optional[str]
    raw: Document = field(repr=False, compare=False)

    @classmethod
    def of(cls, doc: Document) -> "Event":
        return cls(
            _number(doc, "seq"), _text(doc, "type"), _text(doc, "job_id"),
            parse_time(doc.get("timestamp")), doc.get("step_id"), doc.get("status"),
            doc.get("attempt"), doc.get("reason"), doc)


@dataclass(frozen=True)
class LogLine:
    """A line that a step has written. `stream` is stdout or stderr, or `dropped` for a line that
    says how many bytes were not kept: that one has no time."""

    step_id: str
    attempt: int
    stream: str
    text: str
    time: Optional[datetime]


@dataclass(frozen=True)
class Attempt:
    """An attempt of a step that has a log."""

    step_id: str
    attempt: int
    bytes: int
    ended: bool


@dataclass(frozen=True)
class HumanRequest:
    """A step that waits for a person, and the possible decisions."""

    job_id: str
    run_id: str
    step_id: str
    kind: str
    reason: Optional[str]
    decisions: Tuple[str, ...]
    raw: Document = field(repr=False, compare=False)

    @classmethod
    def of(cls, doc: Document) -> "HumanRequest":
        return cls(_text(doc, "job_id"), _text(doc, "run_id"), _text(doc, "step_id"),
                   _text(doc, "kind"), doc.get("reason"), tuple(doc.get("decisions", ())), doc)


@dataclass(frozen=True)
class Why:
    """Explains the state of a job, with one sentence for each step that has not ended."""

    job_id: str
    status: str
    why: str
    steps: Dict[str, str]
    raw: Document = field(repr=False, compare=False)

    @classmethod
    def of(cls, doc: Document) -> "Why":
        steps = {_text(one, "step_id"): _text(one, "why") for one in doc.get("steps", ())}
        return cls(_text(doc, "job_id"), _text(doc, "status"), _text(doc, "why"), steps, doc)
