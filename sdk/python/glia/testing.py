"""For users' tests: in-memory claims without a node, with a clock that the test controls."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Optional
from urllib.parse import unquote

from .claims import DETAIL_BYTES_MAX, Claim, Claims, Held
from .errors import from_document
from .models import Document

__all__ = ["FakeClaims"]

ID_BYTES_MAX = 128
KEY_BYTES_MAX = 512
LEASE_MS_MIN, LEASE_MS_DEFAULT, LEASE_MS_MAX = 1000, 60000, 86400000


def _time(ms: int) -> str:
    at = datetime.fromtimestamp(ms / 1000, tz=timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


class FakeClaims(Claims):
    """`glia.Claims` in memory: the same results and errors, by the same rules.

    Its clock stands still until `advance` moves it, which also renews held claims that are due,
    unless `away` is set to simulate an unreachable store. `waiting`, if given, is called with a
    number of seconds instead of `advance` when something must wait."""

    def __init__(self, *, owner: str = "fake", lease: float = 60.0,
                 waiting: Optional[Callable[[float], None]] = None) -> None:
        super().__init__(None, owner=owner, lease=lease)
        self.away = False  #: simulate an outage: UnavailableError
        self.calls: List[str] = []  #: the calls made, in order: "acquire", "renew", ...
        self._waiting = waiting
        self._ms = 1_800_000_000_000
        self._rows: Dict[str, Document] = {}
        self._held: List[Held] = []

    # ---- time ----

    def now(self) -> float:
        """The simulated clock, in seconds."""
        return self._ms / 1000

    def advance(self, seconds: float) -> None:
        """Advance the clock. Held claims are renewed on the way."""
        until = self._ms + round(seconds * 1000)
        while self._ms < until:
            pause = min([max(round(held.beat() * 1000), 1) for held in list(self._held)]
                        + [until - self._ms])
            self._ms = min(self._ms + pause, until)
        for held in list(self._held):
            held.beat()

    def _rest(self, seconds: float) -> None:
        (self._waiting or self.advance)(seconds)

    def _keep(self, held: Held) -> None:
        self._held.append(held)

    def _let_go(self, held: Held) -> None:
        self._held = [one for one in self._held if one is not held]

    def take(self, key: str, owner: str = "somebody else") -> Claim:
        """Give the claim to another owner, as if its lease had expired."""
        row = self._rows.get(key)
        if row is not None and row["state"] == "claimed":
            row["lease_until_ms"] = self._ms
        return self.acquire(key, owner=owner)

    # ---- the node's side ----

    def _call(self, verb: str, body: Document, timeout: Optional[float] = None) -> Document:
        self.calls.append(verb)
        if self.away:
            raise from_document({"code": "unavailable", "message": "the store is unreachable"})
        if verb == "reclaim":
            return self._reclaim(body)
        self._check(body, verb)
        row = self._rows.get(body["key"])
        made = dict(self._acquire(row, body) if verb == "acquire"
                    else self._change(row, body, verb))
        self._rows[body["key"]] = made
        return self._show(made, True)

    def _refuse(self, code: str, message: str, row: Optional[Document] = None) -> Exception:
        error: Document = {"code": code, "message": message}
        if row is not None:
            error["claim"] = self._show(row, True)
        return from_document(error)

    def _check(self, body: Document, verb: str) -> None:
        for name, most in (("key", KEY_BYTES_MAX), ("owner", ID_BYTES_MAX),
                           ("work_type", ID_BYTES_MAX)):
            text = body.get(name, "" if name == "work_type" else None)
            if not isinstance(text, str) or len(text.encode()) > most \
                    or (not text and name != "work_type") \
                    or any(ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0 for c in text):
                raise self._refuse("invalid", f"the {name} of a claim has 1 to {most} bytes of "
                                   "UTF-8 without control characters")
        if "lease" in body and not LEASE_MS_MIN <= self._lease(body, 0) <= LEASE_MS_MAX:
            raise self._refuse("invalid", "a lease lasts from 1 second to 1 day")
        if verb != "acquire" and body.get("fence", 0) < 1:
            raise self._refuse("invalid", "give the fence, too: the number that came with the "
                               "claim")
        if len(body.get("error_detail", "").encode()) > DETAIL_BYTES_MAX:
            raise self._refuse("invalid", "the error_detail of a claim has at most 4096 bytes")

    @staticmethod
    def _lease(body: Document, otherwise: int) -> int:
        return int(body["lease"][:-2]) if "lease" in body else otherwise

    def _acquire(self, row: Optional[Document], body: Document) -> Document:
        key = body["key"]
        if row is not None and row["state"] == "claimed" and row["lease_until_ms"] > self._ms:
            raise self._refuse("busy", f"'{key}' is claimed by '{row['owner']}'", row)
        if row is not None and row["state"] == "done" and body.get("once"):
            raise self._refuse("exists", f"'{key}' is done already, by '{row['owner']}'", row)
        lease = self._lease(body, LEASE_MS_DEFAULT)
        is_new = row is None or row["state"] == "done"
        return {"key": key, "state": "claimed", "owner": body["owner"],
                "lease_until_ms": self._ms + lease, "lease_ms": lease,
                "attempt": 1 if is_new or row is None else row["attempt"] + 1,
                "fence": 1 if row is None else row["fence"] + 1,
                "claimed_at_ms": self._ms, "last_heartbeat_at_ms": self._ms,
                "work_type": body.get("work_type")}

    def _change(self, row: Optional[Document], body: Document, verb: str) -> Document:
        end = {"complete": "done", "fail": "failed"}.get(verb)
        if row is None or (row["fence"], row["owner"]) != (body["fence"], body["owner"]) \
                or row["state"] not in ("claimed", end):
            raise self._refuse("not_owner", f"'{body['key']}' is not held by '{body['owner']}' "
                               f"with fence {body['fence']}", row)
        if row["state"] == end:
            return row
        if verb == "renew":
            lease = self._lease(body, row["lease_ms"])
            return {**row, "lease_ms": lease, "lease_until_ms": self._ms + lease,
                    "last_heartbeat_at_ms": self._ms}
        return {**row, "state": end, "finished_at_ms": self._ms,
                "error_detail": body.get("error_detail") if verb == "fail" else None}

    def _reclaim(self, body: Document) -> Document:
        over = sorted((row for row in self._rows.values() if row["state"] == "claimed"
                       and row["lease_until_ms"] <= self._ms),
                      key=lambda row: (row["lease_until_ms"], row["key"]))[:body["limit"]]
        for row in over:
            row.update(state="expired", finished_at_ms=self._ms)
        return {"expired": [self._show(row, True) for row in over],
                "more": len(over) == body["limit"]}

    def _show(self, row: Document, with_time: bool) -> Document:
        shown: Dict[str, Any] = {}
        for name, value in row.items():
            if value is not None:
                is_time = name.endswith("_ms") and name != "lease_ms"
                shown[name[:-3] if is_time else name] = _time(value) if is_time else value
        if with_time and row["state"] == "claimed":
            shown["remaining_ms"] = max(row["lease_until_ms"] - self._ms, 0)
        return dict(json.loads(json.dumps(shown)))

    def _ask(self, path: str, **query: Any) -> Document:
        if self.away:
            raise from_document({"code": "unavailable", "message": "the store is unreachable"})
        if path:
            row = self._rows.get(unquote(path[1:]))
            if row is None:
                raise self._refuse("not_found", "that key has never been claimed")
            return self._show(row, False)
        wanted = [row for key, row in sorted(self._rows.items())
                  if key.startswith(query.get("prefix") or "")
                  and query.get("state") in (None, row["state"])]
        return {"claims": [self._show(row, False) for row in wanted], "next": None}
