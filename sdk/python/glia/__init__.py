"""Client of a Glia node: submit, watch and steer durable workflows.

    import glia

    with glia.Client() as client:
        job = client.run({"steps": {"hello": {"sh": "echo hello"}}})
        print(job.status)

`glia.Client` is the client, `glia.step` is for programs that run as steps. Every error is a
`glia.GliaError`. The standard library is all this needs.
"""

from . import step
from .client import Client
from .errors import (ConflictError, DamagedError, DeniedError, GliaError, InvalidError,
                     JobFailedError, LimitError, NotANodeError, NotFoundError, RequestTimeout,
                     UnavailableError, WaitTimeout)
from .models import (ENDED, Attempt, Event, File, FileContent, Flow, HumanRequest, Job, JobRef,
                     LogLine, Step, Submission, Submitted, Why)

__version__ = "0.1.0"

__all__ = [
    "ENDED", "Attempt", "Client", "ConflictError", "DamagedError", "DeniedError", "Event", "File",
    "FileContent", "Flow", "GliaError", "HumanRequest", "InvalidError", "Job", "JobFailedError",
    "JobRef", "LimitError", "LogLine", "NotANodeError", "NotFoundError", "RequestTimeout", "Step",
    "Submission", "Submitted", "UnavailableError", "WaitTimeout", "Why", "step",
]
