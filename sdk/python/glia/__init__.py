"""Client for a Glia node: submit, watch and control durable workflows.

    import glia

    with glia.Client() as client:
        job = client.run({"steps": {"hello": {"sh": "echo hello"}}})
        print(job.status)

`glia.Client` is the client, `glia.Claims` provides exclusive rights by name, `glia.step` is for
programs that run as steps, and `glia.testing` for your own tests. Every error is a
`glia.GliaError`. Only the standard library is required.
"""

from . import step
from .claims import Claim, Claims, Held
from .client import Client
from .errors import (ClaimBusyError, ClaimDoneError, ClaimLostError, ConflictError, DamagedError,
                     DeniedError, GliaError, InvalidError, JobFailedError, LimitError,
                     NotANodeError, NotFoundError, RequestTimeout, UnavailableError, WaitTimeout)
from .models import (ENDED, Attempt, Event, File, FileContent, Flow, HumanRequest, Job, JobRef,
                     LogLine, Step, Submission, Submitted, Why)

__version__ = "0.1.0"

__all__ = [
    "ENDED", "Attempt", "Claim", "ClaimBusyError", "ClaimDoneError", "ClaimLostError", "Claims",
    "Client", "ConflictError", "DamagedError", "DeniedError", "Event", "File", "FileContent",
    "Flow", "GliaError", "Held", "HumanRequest", "InvalidError", "Job", "JobFailedError", "JobRef",
    "LimitError", "LogLine", "NotANodeError", "NotFoundError", "RequestTimeout", "Step",
    "Submission", "Submitted", "UnavailableError", "WaitTimeout", "Why", "step",
]
