"""Claims: exclusive rights by name, with a lease. See docs/claims.md for their guarantees."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Type
from urllib.parse import quote

from ._follow import query_of
from .client import CONTEXT, PAGE_ROWS, Client
from .errors import ClaimBusyError, ClaimLostError, GliaError
from .models import Document, parse_time

__all__ = ["Claim", "Claims", "Held"]

PATH = f"{CONTEXT}/claims"
LEASE_SECONDS = 60.0
WAIT_SECONDS = 0.5  # polling interval while waiting for a claim
RETRY_SECONDS = 0.2
DETAIL_BYTES_MAX = 4096


def _number(doc: Mapping[str, Any], name: str) -> int:
    value = doc.get(name)
    return value if isinstance(value, int) else 0


@dataclass(frozen=True)
class Claim:
    """A claim as the node reported it: its owner, its lease, its attempt number."""

    key: str
    state: str  #: claimed, done, failed or expired
    owner: str
    fence: int  #: rises with every acquisition of the key
    attempt: int  #: 1, plus one for each acquisition since the work was last completed
    lease: float  #: in seconds
    lease_until: Optional[datetime]  #: by the store's clock
    remaining: Optional[float] = None  #: seconds of the lease left; None: unknown
    work_type: Optional[str] = None
    error_detail: Optional[str] = None
    raw: Document = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, doc: Document) -> "Claim":
        """Create a Claim from a document of the API."""
        left = doc.get("remaining_ms")
        return cls(key=str(doc["key"]), state=str(doc["state"]), owner=str(doc["owner"]),
                   fence=_number(doc, "fence"), attempt=_number(doc, "attempt"),
                   lease=_number(doc, "lease_ms") / 1000,
                   lease_until=parse_time(doc.get("lease_until")),
                   remaining=left / 1000 if isinstance(left, int) else None,
                   work_type=doc.get("work_type"), error_detail=doc.get("error_detail"), raw=doc)


class Held:
    """A held claim, as returned by `Claims.hold`.

    A thread renews it. `lost` is set when another owner has the claim, or when it could not be
    renewed in time: counted from when the last successful renewal was sent, and a fifth of the
    lease before its end. Leaving the `with` block completes the claim, or fails it if an exception
    passes through. If the claim was lost, it does neither and raises ClaimLostError."""

    def __init__(self, claims: "Claims", claim: Claim, sent_at: float,
                 on_lost: Optional[Callable[["Held"], None]]) -> None:
        self.claim = claim
        self.lost = threading.Event()  #: set when the work must stop
        self._claims = claims
        self._on_lost = on_lost
        self._lock = threading.RLock()
        self._ending = threading.Event()
        self._sent_at = sent_at
        self._due = sent_at + claim.lease / 3
        self._is_over = False
        self._thread: Optional[threading.Thread] = None

    @property
    def key(self) -> str:
        """The key of the claim."""
        return self.claim.key

    @property
    def fence(self) -> int:
        """The fencing number. Pass it to whatever the work changes, to refuse lower ones there."""
        return self.claim.fence

    @property
    def attempt(self) -> int:
        """The attempt number."""
        return self.claim.attempt

    @property
    def stop_at(self) -> float:
        """The `Claims.now()` at which the work must have stopped, unless a renewal succeeds."""
        return self._sent_at + self.claim.lease * 0.8

    @property
    def is_valid(self) -> bool:
        """Is it certain that no other owner holds the claim? Also checks the clock."""
        if not self._is_over and not self.lost.is_set() and self._claims.now() >= self.stop_at:
            self._lose()
        return not self._is_over and not self.lost.is_set()

    def check(self) -> None:
        """Call before an effect: renews the claim now, or raises ClaimLostError."""
        if not self.is_valid:
            raise ClaimLostError(f"the claim {self.key!r} is lost")
        with self._lock:
            try:
                self._renew()
            except ClaimLostError:
                self._lose()
                raise

    def _renew(self) -> None:
        sent_at = self._claims.now()
        timeout = max(self.stop_at - sent_at, 0.1)
        self.claim = self._claims.renew(self.claim, timeout=timeout)
        self._sent_at = sent_at
        self._due = sent_at + self.claim.lease / 3

    def _lose(self) -> None:
        with self._lock:
            is_news = not self.lost.is_set() and not self._is_over
            self.lost.set()
        if is_news and self._on_lost is not None:
            self._on_lost(self)

    def beat(self) -> float:
        """Renew the claim if due; returns the seconds until the next call. Called by the thread."""
        with self._lock:
            if not self.is_valid:
                return RETRY_SECONDS
            now = self._claims.now()
            if now >= self._due:
                try:
                    self._renew()
                except ClaimLostError:
                    self._lose()
                except GliaError:
                    self._due = self._claims.now() + RETRY_SECONDS  # is_valid checks the time
            return max(min(self._due, self.stop_at) - self._claims.now(), 0.0)

    def _run(self) -> None:
        pause = self.beat()
        while not self._ending.wait(pause) and not self.lost.is_set():
            pause = self.beat()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"glia claim {self.key}",
                                        daemon=True)
        self._thread.start()

    def _stop(self) -> None:
        self._ending.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._claims._let_go(self)

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._stop()
        if self._is_over:
            return
        if not self.is_valid:
            self._is_over = True
            if error is None:
                raise ClaimLostError(f"the claim {self.key!r} was lost")
            return
        self._is_over = True
        if error is None:
            self.claim = self._claims.complete(self.claim)
            return
        text = f"{type(error).__name__}: {error}"
        try:
            self.claim = self._claims.fail(self.claim, text)
        except GliaError:
            pass  # keep the first error; the lease expires by itself

    def complete(self) -> None:
        """Complete the claim; the rest of the `with` block runs without it."""
        self._stop()
        self.claim = self._claims.complete(self.claim)
        self._is_over = True

    def fail(self, error_detail: str = "") -> None:
        """Fail the claim; the rest of the `with` block runs without it."""
        self._stop()
        self.claim = self._claims.fail(self.claim, error_detail)
        self._is_over = True


class Claims:
    """Exclusive rights by name, on the store of a node.

    `owner` names this program in its claims; it need not be unique, since only the fence counts.
    `lease` is how long a claim is held without a renewal, in seconds.

        claims = glia.Claims()
        with claims.hold("nightly-report", wait=60) as claim:
            work(fence=claim.fence)

    `glia.testing.FakeClaims` does the same in memory, with a simulated clock, for your tests.
    """

    def __init__(self, client: Optional[Client] = None, *, owner: Optional[str] = None,
                 lease: float = LEASE_SECONDS) -> None:
        self._client: Optional[Client] = client
        self.owner = owner or f"{socket.gethostname()}:{os.getpid()}"
        self.lease = lease

    def now(self) -> float:
        """Seconds of a monotonic clock that also counts while the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def _rest(self, seconds: float) -> None:
        time.sleep(seconds)

    def _call(self, verb: str, body: Document, timeout: Optional[float] = None) -> Document:
        """One request; all of them are safe to retry."""
        client = self._the_client()
        answer = client._transport.request(
            "POST", f"{PATH}/{verb}", json.dumps(body, allow_nan=False).encode(),
            headers={"Content-Type": "application/json"}, repeatable=True, timeout=timeout)
        return client._document(answer.json())

    def _ask(self, path: str, **query: Any) -> Document:
        return self._the_client()._ask(PATH + path, **query)

    def _the_client(self) -> Client:
        if self._client is None:
            self._client = Client()
        return self._client

    @staticmethod
    def _span(seconds: float) -> str:
        return f"{round(seconds * 1000)}ms"

    # ---- one request each ----

    def acquire(self, key: str, *, owner: Optional[str] = None, lease: Optional[float] = None,
                work_type: Optional[str] = None, once: bool = False) -> Claim:
        """Acquire the claim. Raises ClaimBusyError if it is held, even by the same owner; with
        `once`, ClaimDoneError if it was completed."""
        body: Dict[str, Any] = {"key": key, "owner": owner or self.owner,
                                "lease": self._span(self.lease if lease is None else lease),
                                "nonce": uuid.uuid4().hex}
        if work_type:
            body["work_type"] = work_type
        if once:
            body["once"] = True
        return Claim.of(self._call("acquire", body))

    @staticmethod
    def _holder(claim: Claim) -> Dict[str, Any]:
        return {"key": claim.key, "owner": claim.owner, "fence": claim.fence}

    def renew(self, claim: Claim, *, lease: Optional[float] = None,
              timeout: Optional[float] = None) -> Claim:
        """Renew the lease. Raises ClaimLostError if the claim is not, or no longer, ours."""
        body = self._holder(claim)
        if lease is not None:
            body["lease"] = self._span(lease)
        return Claim.of(self._call("renew", body, timeout))

    def complete(self, claim: Claim) -> Claim:
        """Complete the claim. Raises ClaimLostError if it is not, or no longer, ours."""
        return Claim.of(self._call("complete", self._holder(claim)))

    def fail(self, claim: Claim, error_detail: str = "") -> Claim:
        """Fail the claim. Raises ClaimLostError if it is not, or no longer, ours."""
        text = error_detail.replace("\0", "").encode("utf-8", "replace")[:DETAIL_BYTES_MAX]
        body = self._holder(claim)
        if text:
            body["error_detail"] = text.decode("utf-8", "ignore")
        return Claim.of(self._call("fail", body))

    def reclaim(self, limit: int = 100) -> List[Claim]:
        """Mark claims with expired leases as expired; returns them."""
        return [Claim.of(one) for one in self._call("reclaim", {"limit": limit})["expired"]]

    # ---- looking ----

    def get(self, key: str) -> Claim:
        """The claim with this key. Raises NotFoundError if it was never acquired."""
        return Claim.of(self._ask("/" + quote(key, safe="")))

    def list(self, *, state: Optional[str] = None, prefix: str = "") -> Iterator[Claim]:
        """Iterate over claims by key; fetched page by page."""
        after: Optional[str] = None
        while True:
            page = self._ask("", state=state, prefix=prefix or None, after=after, limit=PAGE_ROWS)
            for one in page["claims"]:
                yield Claim.of(one)
            after = page.get("next")
            if not after:
                return

    # ---- holding ----

    def hold(self, key: str, *, owner: Optional[str] = None, lease: Optional[float] = None,
             work_type: Optional[str] = None, once: bool = False, wait: float = 0.0,
             on_lost: Optional[Callable[[Held], None]] = None) -> Held:
        """Acquire the claim, waiting up to `wait` seconds, and keep it until the `with` block is
        left. If it is lost, the renewing thread calls `on_lost`: the work must stop."""
        until = self.now() + wait
        while True:
            sent_at = self.now()
            try:
                claim = self.acquire(key, owner=owner, lease=lease, work_type=work_type,
                                     once=once)
            except ClaimBusyError as error:
                left = until - self.now()
                if left <= 0:
                    raise
                self._rest(max(min(error.remaining or WAIT_SECONDS, WAIT_SECONDS, left), 0.001))
                continue
            held = Held(self, claim, sent_at, on_lost)
            self._keep(held)
            return held

    def _keep(self, held: Held) -> None:
        held._start()

    def _let_go(self, held: Held) -> None:
        """Stop renewing it."""
