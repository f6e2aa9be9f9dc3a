"""Requests to one node: persistent connections, timeouts and retries.

A request is retried only if that is safe: if it was never sent (nothing accepted it), or if its
caller says that it is idempotent. A node that has answered before and disappears is waited for: it
may be restarted, or another node may take over its folder.
"""

from __future__ import annotations

import collections
import errno
import http.client
import io
import json
import os
import random
import socket
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Deque, Dict, Iterator, List, Mapping, Optional, Tuple, Type

from ._address import Address
from .errors import (DeniedError, GliaError, NotANodeError, RequestTimeout, UnavailableError,
                     from_document)

CONNECTIONS_KEPT_MAX = 16
KEPT_SECONDS_MAX = 20.0  # a node closes connections idle for 30 s
UNIX_PATH_BYTES_MAX = 107
READ_BYTES = 1 << 16
LINE_BYTES_MAX = 64 << 20
FOREVER_SECONDS = 86400.0
ALIVE_SECONDS = 1.0  # an attempt that took longer before it failed has reached a node
REST_SECONDS_MIN, REST_SECONDS_MAX = 0.02, 0.5
DOUBT = {"code": "unknown", "hint": "it may have been done: check before retrying"}


class Absent(UnavailableError):
    """The request was not accepted: any kind of request may be sent again."""


class Crowded(Absent):
    """A node is listening, but its connection backlog is full."""


class Cut(UnavailableError):
    """The connection broke after the request was sent: its outcome is unknown."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise NotANodeError("the response is not JSON", status=self.status) from error


def _lower(response: http.client.HTTPResponse) -> Dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


class Deadline:
    """The time by which a call must return; None: no limit."""

    def __init__(self, seconds: Optional[float]) -> None:
        self.at = None if seconds is None else time.monotonic() + seconds

    def left(self, at_most: float) -> float:
        """The seconds left, at most this many; 0: expired."""
        if self.at is None:
            return at_most
        return min(at_most, max(0.0, self.at - time.monotonic()))

    @property
    def is_over(self) -> bool:
        return self.at is not None and time.monotonic() >= self.at


class Patience:
    """Growing pauses between attempts, until the patience is used up. It starts with the first
    failure, and again with a failure after a connection that lasted for a while: a node that was
    up for hours and disappears gets all of it."""

    def __init__(self, seconds: float, deadline: Deadline) -> None:
        self.seconds = seconds
        self.deadline = deadline
        self.rested_at: Optional[float] = None
        self.renew()

    def renew(self) -> None:
        self.until = Deadline(self.seconds)
        self.rest_seconds = REST_SECONDS_MIN

    def rest(self) -> bool:
        """Call after a failed attempt. False: no more attempts."""
        if self.rested_at is None or time.monotonic() - self.rested_at > ALIVE_SECONDS:
            self.renew()
        if self.until.is_over or self.deadline.is_over:
            return False
        # Jitter: not all clients should return to a restarted node at once.
        wanted = self.rest_seconds * random.uniform(0.5, 1.0)
        time.sleep(self.deadline.left(self.until.left(wanted)))
        self.rest_seconds = min(self.rest_seconds * 1.5, REST_SECONDS_MAX)
        self.rested_at = time.monotonic()
        return True


class _Socket(socket.socket):
    """A socket that sets its timeout before each read, so that a trickling answer cannot exceed the
    deadline."""

    deadline = Deadline(None)
    silence = FOREVER_SECONDS

    def allow(self, deadline: Deadline, silence: float = FOREVER_SECONDS) -> None:
        self.deadline, self.silence = deadline, silence
        self.settimeout(self._seconds())

    def _seconds(self) -> float:
        return max(self.deadline.left(self.silence), 0.001)  # 0 would make the socket non-blocking

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self._seconds())
        return super().recv_into(*args)


class _Reader(io.BufferedReader):
    """Detects a line without an end: http.client accepts truncated headers."""

    cut: Optional[bytes] = None

    def readline(self, size: Optional[int] = -1) -> bytes:
        line = super().readline(size)
        if not line.endswith(b"\n"):
            self.cut = line
        return line


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self._reader = _Reader(self.fp.detach())
        self.fp = self._reader

    def begin(self) -> None:
        try:
            super().begin()
        except http.client.BadStatusLine:
            if self._reader.cut is None or not b"HTTP/1.1 ".startswith(self._reader.cut[:9]):
                raise
        if self._reader.cut is not None:
            raise http.client.RemoteDisconnected("the response ends within its headers")


class _Connection(http.client.HTTPConnection):
    """A connection to a unix socket, or to a host and port."""

    response_class = _Response
    sock: _Socket

    def __init__(self, address: Address, timeout: float) -> None:
        host, port = address.tcp or ("glia", None)
        super().__init__(host, port, timeout=timeout)
        self._path = address.socket

    def connect(self) -> None:
        if self._path is not None:
            self.sock = self._connect_unix(self._path)
        else:
            found = socket.create_connection((self.host, self.port), self.timeout)
            self.sock = _Socket(fileno=found.detach())
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _connect_unix(self, path: str) -> _Socket:
        sock = _Socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self.timeout)
            if len(os.fsencode(path)) <= UNIX_PATH_BYTES_MAX:
                sock.connect(path)
                return sock
            # The kernel limits the length of the name it is given, not of the path it resolves to.
            folder = os.open(os.path.dirname(path), os.O_PATH | os.O_CLOEXEC)
            try:
                sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
            finally:
                os.close(folder)
            return sock
        except BaseException:
            sock.close()
            raise


def _is_alive(sock: socket.socket) -> bool:
    """An idle connection is readable only if the node has closed it."""
    try:
        sock.settimeout(0)
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


class _Pool:
    """Idle connections. Thread-safe without a lock, which a fork could leave locked."""

    def __init__(self) -> None:
        self._idle: Deque[Tuple[float, _Connection]] = collections.deque()
        self._pid = os.getpid()

    def take(self) -> Optional[_Connection]:
        if self._pid != os.getpid():
            # After a fork these belong to the parent, which still uses them.
            self._idle, self._pid = collections.deque(), os.getpid()
        while True:
            try:
                since, connection = self._idle.pop()
            except IndexError:
                return None
            if time.monotonic() - since < KEPT_SECONDS_MAX and _is_alive(connection.sock):
                return connection
            connection.close()

    def give(self, connection: _Connection) -> None:
        if self._pid == os.getpid() and len(self._idle) < CONNECTIONS_KEPT_MAX:
            self._idle.append((time.monotonic(), connection))
        else:
            connection.close()

    def close(self) -> None:
        while True:
            try:
                self._idle.pop()[1].close()
            except IndexError:
                return


class Stream:
    """A response that is read line by line, for as long as it lasts."""

    def __init__(self, connection: _Connection, sock: _Socket,
                 response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._sock = sock
        self._response = response

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._response.close()
        self._connection.close()

    def lines(self, silence: float, deadline: Deadline) -> Iterator[bytes]:
        """Complete lines without line ends. Raises Cut if the connection broke or was silent for
        `silence` seconds. Returns normally at the end of the response or at the deadline."""
        parts: List[bytes] = []
        held = 0
        while not self._response.isclosed() and not deadline.is_over:
            self._sock.allow(deadline, silence)
            try:
                more = self._response.read1(READ_BYTES)  # a stream has no length
            except socket.timeout:
                if deadline.is_over:
                    return
                raise Cut("the node stopped sending") from None
            except (OSError, http.client.HTTPException) as error:
                raise Cut("the connection to the node broke") from error
            if not more:
                return
            *whole, rest = more.split(b"\n")
            for line in whole:
                yield b"".join(parts) + line
                parts, held = [], 0
            parts.append(rest)
            held += len(rest)
            if held > LINE_BYTES_MAX:
                raise NotANodeError("a line of this stream is too long")


class Transport:
    """The connection to one node. Thread-safe."""

    def __init__(self, address: Address, timeout: float, patience: float) -> None:
        self.address = address
        self.timeout = timeout
        self.patience = patience
        self.has_met = False  # it has answered once: if it disappears, it may come back
        self._pool = _Pool()

    def close(self) -> None:
        self._pool.close()

    # ---- requests ----

    def request(self, method: str, path: str, body: Optional[bytes] = None, *,
                headers: Optional[Mapping[str, str]] = None, repeatable: bool,
                only_here: bool = False, timeout: Optional[float] = None) -> Answer:
        """One request with retries, all within the timeout. Error responses are raised.

        `only_here`: retries of this call are the same request, but a later call is a new one. If
        the call fails after an attempt that may have been carried out, the code is `unknown`."""
        deadline = Deadline(self.timeout if timeout is None else timeout)
        patience = Patience(self.patience, deadline)
        is_doubtful = False
        while True:
            try:
                return self._try(method, path, body, headers, deadline,
                                 repeatable and not only_here)
            except UnavailableError as error:
                is_doubtful = is_doubtful or error.code == "unknown"
                if isinstance(error, RequestTimeout) or not self.may_repeat(error, repeatable) \
                        or not patience.rest():
                    if is_doubtful:
                        error.code, error.hint = DOUBT["code"], DOUBT["hint"]
                    raise

    def may_repeat(self, error: UnavailableError, repeatable: bool) -> bool:
        if isinstance(error, Absent):
            return self.has_met or isinstance(error, Crowded)
        return repeatable

    def _try(self, method: str, path: str, body: Optional[bytes],
             headers: Optional[Mapping[str, str]], deadline: Deadline, repeatable: bool) -> Answer:
        connection = self._pool.take() or self._connect(deadline)
        is_kept = False
        try:
            _, response = self._send(connection, method, path, body, headers, deadline)
            answer = self._read(response)
            is_kept = not response.will_close
        except socket.timeout as error:
            raise self._late(repeatable) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error, repeatable) from error
        finally:
            if is_kept:
                self._pool.give(connection)
            else:
                connection.close()
        return self._judge(answer)

    def open_stream(self, path: str, headers: Mapping[str, str], deadline: Deadline) -> Stream:
        """One attempt to open a stream, on a connection of its own."""
        begin = Deadline(deadline.left(self.timeout))
        connection = self._connect(begin)
        try:
            sock, response = self._send(connection, "GET", path, None, headers, begin)
            if response.status >= 400:
                self._judge(self._read(response))
            self._judge(Answer(response.status, _lower(response), b""))
            return Stream(connection, sock, response)
        except BaseException as error:
            connection.close()
            if isinstance(error, socket.timeout):
                raise self._late(True) from error
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise self._broken(error, True) from error
            raise

    # ---- steps of a request ----

    def _connect(self, deadline: Deadline) -> _Connection:
        connection = _Connection(self.address, max(deadline.left(self.timeout), 0.001))
        try:
            connection.connect()
        except BlockingIOError as error:
            raise Crowded("the node has too many new connections at once") from error
        except PermissionError as error:
            raise DeniedError(f"not allowed to connect to {self.address.text}") from error
        except socket.gaierror as error:
            raise UnavailableError(f"cannot find {self.address.text}: {error.strerror}") from error
        except socket.timeout as error:
            raise RequestTimeout(f"no answer from {self.address.text} in time") from error
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                raise  # our own timeout, not the node's
            raise Absent(self.address.absent()) from error
        return connection

    def _send(self, connection: _Connection, method: str, path: str, body: Optional[bytes],
              headers: Optional[Mapping[str, str]],
              deadline: Deadline) -> Tuple[_Socket, http.client.HTTPResponse]:
        sock = connection.sock  # the connection drops it if it closes after the response
        all_headers: Dict[str, str] = dict(headers or {})
        if self.address.token is not None:
            all_headers["Authorization"] = f"Bearer {self.address.token}"
        sock.allow(deadline)
        try:
            connection.request(method, path, body=body, headers=all_headers)
        except (BrokenPipeError, ConnectionResetError):
            # A node that rejects a body responds without reading all of it.
            pass
        return sock, connection.getresponse()

    @staticmethod
    def _read(response: http.client.HTTPResponse) -> Answer:
        body = response.read()
        return Answer(response.status, _lower(response), body)

    def _judge(self, answer: Answer) -> Answer:
        request_id = answer.headers.get("glia-request-id")
        if request_id is None:
            raise NotANodeError(f"the server at {self.address.text} is not a node "
                                f"(HTTP status {answer.status})", status=answer.status)
        self.has_met = True
        if answer.status < 400:
            return answer
        document = answer.json()
        error = document.get("error") if isinstance(document, dict) else None
        raise from_document(error if isinstance(error, dict) else {}, status=answer.status,
                            request_id=request_id)

    # ---- failures ----

    def _late(self, repeatable: bool) -> RequestTimeout:
        return RequestTimeout(f"the node at {self.address.text} did not answer in time",
                              **self._doubt(repeatable))

    def _broken(self, error: Exception, repeatable: bool) -> GliaError:
        if isinstance(error, http.client.HTTPException) and not isinstance(
                error, (http.client.RemoteDisconnected, http.client.IncompleteRead)):
            return NotANodeError(f"the server at {self.address.text} does not speak HTTP")
        return Cut("the node closed the connection before it answered", **self._doubt(repeatable))

    @staticmethod
    def _doubt(repeatable: bool) -> Dict[str, Any]:
        """A read may be retried; anything else may have been carried out."""
        if repeatable:
            return {"code": "unavailable"}
        return DOUBT
