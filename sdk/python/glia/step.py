"""For programs that run as a step of a job: their inputs and their output.

    from glia import step

    rows = step.output_of("fetch")["rows"]
    step.output({"total": sum(rows)})

Needs no node and no connection: everything comes from the environment. Outside a step, all
functions except is_step() raise NotAStepError.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from typing import Any, Dict, Optional

from .errors import GliaError
from .models import parse_time

__all__ = [
    "NotAStepError", "attempt", "deadline", "idempotency_key", "index", "input", "inputs",
    "is_step", "item", "job_id", "output", "output_of", "run_id", "seconds_left", "step_id",
]

OUTPUT_BYTES_MAX = 1 << 20


class NotAStepError(GliaError):
    """This program is not running as a step, or the step lacks what was requested."""

    default_code = "state"


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise NotAStepError(f"{name} is not set: this program does not run as a step")
    return value


def is_step() -> bool:
    """Is this program running as a step?"""
    return bool(os.environ.get("GLIA_ATTEMPT_ID"))


def input() -> Dict[str, Any]:  # noqa: A001 - the word of the documentation
    """The whole input document: job_id, step_id, attempt, inputs, steps, item, ..."""
    with open(_variable("GLIA_INPUT_FILE"), encoding="utf-8") as file:
        document = json.load(file)
    if not isinstance(document, dict):
        raise NotAStepError("the input file is not a JSON object")
    return document


def inputs() -> Dict[str, Any]:
    """The inputs of the job, with the defaults of the flow."""
    found = input().get("inputs", {})
    return dict(found)


def output_of(step: str) -> Any:
    """The output of a step that this one needs; None if it has none."""
    steps = input().get("steps", {})
    if step not in steps:
        raise NotAStepError(f"this step does not need {step!r}",
                            hint="name it in `needs`: " + (", ".join(steps) or "there are none"))
    return steps[step].get("output")


def item() -> Any:
    """With foreach: the list element of this instance."""
    document = input()
    if "item" not in document:
        raise NotAStepError("this step has no foreach")
    return document["item"]


def index() -> int:
    """With foreach: the number of this instance, from 0."""
    document = input()
    if "index" not in document:
        raise NotAStepError("this step has no foreach")
    return int(document["index"])


def output(value: Any) -> None:
    """Set the step's output: any JSON of at most 1 MiB. The last call counts."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    data = text.encode("utf-8")
    if len(data) > OUTPUT_BYTES_MAX:
        raise ValueError(f"the output has {len(data)} bytes; the limit is {OUTPUT_BYTES_MAX}: "
                         "write it to a file, and pass on its path")
    with open(_variable("GLIA_OUTPUT"), "wb") as file:
        file.write(data)


def job_id() -> str:
    """The id of the job."""
    return _variable("GLIA_JOB_ID")


def run_id() -> str:
    """The caller's name for the job; the job's id if none was given."""
    return _variable("GLIA_RUN_ID")


def step_id() -> str:
    """The id of the step; like `fetch[3]` for an instance of foreach."""
    return _variable("GLIA_STEP_ID")


def attempt() -> int:
    """The number of this attempt, from 1."""
    return int(_variable("GLIA_ATTEMPT"))


def idempotency_key() -> str:
    """The same in all attempts of this step in this job: an idempotency key for services."""
    return _variable("GLIA_IDEMPOTENCY_KEY")


def deadline() -> Optional[datetime]:
    """When this attempt will be stopped; None if it has no timeout."""
    _variable("GLIA_ATTEMPT_ID")
    return parse_time(os.environ.get("GLIA_DEADLINE_AT"))


def seconds_left() -> Optional[float]:
    """How long this attempt may still take; None if it has no timeout."""
    until = deadline()
    if until is None:
        return None
    return max(0.0, (until - datetime.now(timezone.utc)).total_seconds())
