"""Parses server-sent events: lines in, messages out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Iterator, List, Optional


@dataclass(frozen=True)
class Message:
    id: Optional[str]
    event: str
    data: str


def messages(lines: Iterable[bytes]) -> Iterator[Message]:
    """Messages completed by an empty line; an incomplete one at the end is discarded."""
    ident: Optional[str] = None
    event = ""
    data: List[str] = []
    for raw in lines:
        line = raw.rstrip(b"\r").decode("utf-8", errors="replace")
        if not line:
            if data:
                yield Message(ident, event or "message", "\n".join(data))
            ident, event, data = None, "", []
            continue
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            data.append(value)
        elif name == "event":
            event = value
        elif name == "id":
            ident = value
        # "" is a comment (a keep-alive). Other fields are unknown: ignore them.
