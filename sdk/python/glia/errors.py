"""Exceptions: one class for each family of the API's error codes.

All derive from GliaError. `code` is the node's error code (docs/api.md lists them), `message` a
sentence, `hint` what to do about it, `field` the part of the request it concerns, `details` the
individual errors in a flow, and `request_id` the id to search for in the node's log. Errors raised
by the client itself (no connection, a timeout) have the same attributes without a request id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Tuple, Type

if TYPE_CHECKING:
    from .models import Job

__all__ = [
    "ClaimBusyError", "ClaimDoneError", "ClaimLostError", "ConflictError", "DamagedError",
    "DeniedError", "GliaError", "InvalidError", "JobFailedError", "LimitError", "NotANodeError",
    "NotFoundError", "RequestTimeout", "UnavailableError", "WaitTimeout",
]


class GliaError(Exception):
    """The base of all errors of this package."""

    default_code = "failed"

    def __init__(self, message: str, *, code: Optional[str] = None, field: Optional[str] = None,
                 hint: Optional[str] = None, details: Sequence[Mapping[str, Any]] = (),
                 request_id: Optional[str] = None, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.field = field
        self.hint = hint
        self.details: Tuple[Mapping[str, Any], ...] = tuple(details)
        self.request_id = request_id
        self.status = status  # of the HTTP response, if there was one

    def __str__(self) -> str:
        text = self.message
        for one in self.details:
            text += f"\n  {one.get('path', '')}: {one.get('message', '')}"
        return f"{text} ({self.hint})" if self.hint else text


class InvalidError(GliaError):
    """The request is invalid: a flow with errors, a wrong type, a bad address."""

    default_code = "invalid"


class DeniedError(GliaError):
    """Not allowed: a missing or wrong token, or another user's socket."""

    default_code = "denied"


class NotFoundError(GliaError):
    """No such job, step, attempt or path."""

    default_code = "not_found"


class ConflictError(GliaError):
    """Not possible in the current state. Codes: exists, conflict, state, stale."""

    default_code = "conflict"


class LimitError(GliaError):
    """Too large, or too much at once."""

    default_code = "limit"


class UnavailableError(GliaError):
    """No node answers, or it cannot work now. Codes unavailable, busy, gone: nothing was done. Code
    unknown: the request may have been carried out; check before retrying."""

    default_code = "unavailable"


class RequestTimeout(UnavailableError, TimeoutError):
    """The node did not answer in time."""


class DamagedError(GliaError):
    """The stored data cannot be used. Codes: damaged, version, io."""

    default_code = "damaged"


class NotANodeError(GliaError):
    """Something answers at this address, but it is not a Glia node."""

    default_code = "not_a_node"


class WaitTimeout(GliaError, TimeoutError):
    """The timeout expired before the job ended. The job continues."""

    default_code = "timeout"


class JobFailedError(GliaError):
    """The job or the requested step did not complete. `job` has its final state."""

    default_code = "failed"

    def __init__(self, message: str, job: Job) -> None:
        super().__init__(message)
        self.job = job


class ClaimError(ConflictError):
    """A claim prevents this: `claim` is what the node reported about it, if anything."""

    def __init__(self, message: str, *, claim: Optional[Mapping[str, Any]] = None,
                 **more: Any) -> None:
        super().__init__(message, **more)
        self.claim: Mapping[str, Any] = claim or {}


class ClaimBusyError(ClaimError):
    """The claim is held by another owner, or by an earlier acquisition of the same owner."""

    default_code = "busy"

    @property
    def owner(self) -> str:
        """The owner of the claim."""
        return str(self.claim.get("owner", ""))

    @property
    def remaining(self) -> float:
        """Seconds until its lease expires, unless it is renewed."""
        return float(self.claim.get("remaining_ms", 0)) / 1000


class ClaimLostError(ClaimError):
    """The claim is not, or no longer, ours: the work must stop. Nothing was changed."""

    default_code = "not_owner"


class ClaimDoneError(ClaimError):
    """The claim was requested with `once` and is already completed."""

    default_code = "exists"


CLAIMS: Dict[str, Type[ClaimError]] = {
    "busy": ClaimBusyError, "not_owner": ClaimLostError, "exists": ClaimDoneError,
}

FAMILIES: Dict[str, Type[GliaError]] = {
    "invalid": InvalidError,
    "denied": DeniedError,
    "not_found": NotFoundError,
    "exists": ConflictError, "conflict": ConflictError, "state": ConflictError,
    "stale": ConflictError,
    "limit": LimitError,
    "unavailable": UnavailableError, "unknown": UnavailableError, "busy": UnavailableError,
    "gone": UnavailableError,
    "damaged": DamagedError, "version": DamagedError, "io": DamagedError,
}


def from_document(error: Mapping[str, Any], *, status: Optional[int] = None,
                  request_id: Optional[str] = None) -> GliaError:
    """The exception for the `error` object of a response, a batch entry or a stream."""
    code = str(error.get("code", "failed"))
    details = error.get("details")
    message = str(error.get("message", "the node refused the request without a reason"))
    common: Dict[str, Any] = {
        "code": code, "field": error.get("field"), "hint": error.get("hint"),
        "details": details if isinstance(details, list) else (),
        "request_id": error.get("request_id", request_id), "status": status}
    if code in CLAIMS and (code == "not_owner" or isinstance(error.get("claim"), dict)):
        return CLAIMS[code](message, claim=error.get("claim"), **common)
    return FAMILIES.get(code, GliaError)(message, **common)
