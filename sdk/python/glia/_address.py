"""Finds the node: the caller's arguments, else the environment, as for the `glia` command.

The settings file is YAML, which the standard library cannot read, so it is ignored."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple, Union
from urllib.parse import urlsplit

from .errors import InvalidError

TOKEN_BYTES_MAX = 4096
PathText = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Address:
    """A unix socket, or a host and port with a token."""

    text: str  # for messages
    socket: Optional[str] = None
    tcp: Optional[Tuple[str, int]] = None
    token: Optional[str] = field(default=None, repr=False)
    folder: Optional[str] = None  # the data folder of the socket

    def absent(self) -> str:
        if self.folder is not None:
            return f"no node is running in {self.folder}; start one with 'glia serve'"
        return f"no node answers at {self.text}"


def data_folder(given: Optional[PathText], env: Mapping[str, str]) -> str:
    chosen = os.fspath(given) if given is not None else env.get("GLIA_DATA_DIR", "")
    if given is not None and not chosen:
        raise InvalidError("data_dir must not be empty", field="data_dir")
    if chosen:
        return os.path.abspath(chosen)
    if os.geteuid() == 0:
        return "/var/lib/glia"
    if env.get("XDG_DATA_HOME", "").startswith("/"):
        return os.path.join(env["XDG_DATA_HOME"], "glia")
    if env.get("HOME"):
        return os.path.abspath(os.path.join(env["HOME"], ".local/share/glia"))
    raise InvalidError("no data folder: HOME is not set; give data_dir or set GLIA_DATA_DIR",
                       field="data_dir")


def read_token(named: Optional[PathText], folder: Optional[str]) -> Optional[str]:
    """Read the token from the given file, which must exist; else from the data folder's file, which
    may be unreadable: then the request is sent without a token, and the node decides."""
    path = named if named is not None else os.path.join(folder, "token") if folder else None
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(TOKEN_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        if named is None:
            return None
        raise InvalidError(f"cannot read the token: {error}", field="token_file") from error


def check_token(token: Optional[str]) -> Optional[str]:
    # A line break in it could inject a header.
    if token is not None and not all("!" <= c <= "~" for c in token):
        raise InvalidError("the token contains invalid characters", field="token")
    return token or None


def split_http(server: str) -> Tuple[str, int]:
    try:
        parts = urlsplit(server)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or parts.path not in ("", "/") or "@" in parts.netloc \
            or parts.query or parts.fragment:
        raise InvalidError(f"{server!r} is not a node address", field="server",
                           hint="write unix:/path/node.sock or http://HOST:PORT")
    return host, port


def find(server: Optional[str], data_dir: Optional[PathText], token: Optional[str],
         token_file: Optional[PathText], env: Mapping[str, str]) -> Address:
    # An explicit folder means the node of that folder, whatever the environment says.
    if server is None and data_dir is None:
        server = env.get("GLIA_SERVER") or None
    if server is None:
        folder = data_folder(data_dir, env)
        path = os.path.join(folder, "node.sock")
        return Address(f"unix:{path}", socket=path, folder=folder)
    if server.startswith("unix:/"):
        return Address(server, socket=server[len("unix:"):])
    if not server.startswith("http://"):
        raise InvalidError(f"{server!r} is not a node address", field="server",
                           hint="write unix:/path/node.sock or http://HOST:PORT")
    tcp = split_http(server)
    if token is None and token_file is None:
        token = env.get("GLIA_TOKEN") or None
        token_file = env.get("GLIA_TOKEN_FILE") or None
    if token is None:
        try:
            folder_or_none: Optional[str] = data_folder(data_dir, env)
        except InvalidError:
            folder_or_none = None
        token = read_token(token_file, folder_or_none)
    return Address(server, tcp=tcp, token=check_token(token))
