"""Reads the folder of a bundle for a submission, as `glia run DIR` does."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from .errors import InvalidError
from .models import Document

DEPTH_MAX = 32  # of folders below payloads/
READ_BYTES = 1 << 20
FILE_BYTES_MAX = 64 << 20  # the node's limit


def _wrong(text: str, hint: Optional[str] = None) -> InvalidError:
    return InvalidError(text, field="bundle", hint=hint)


def _members(pairs: List[Tuple[str, Any]]) -> Document:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} appears twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError(f"{text} is not a JSON number")
    return number


def _parse(text: str) -> Any:
    """As strict as the node."""
    return json.loads(text, object_pairs_hook=_members, parse_constant=_finite,
                      parse_float=_finite)


def lay(under: Any, over: Any) -> Any:
    """Objects merge, anything else replaces."""
    if not isinstance(under, Mapping) or not isinstance(over, Mapping):
        return over
    merged = dict(under)
    for key, value in over.items():
        merged[key] = lay(under[key], value) if key in under else value
    return merged


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for part in iter(lambda: file.read(READ_BYTES), b""):
            digest.update(part)
    return digest.hexdigest()


class Bundle:
    """A folder with manifest.json, and with payloads/, config/ and scenario.json if it has them.
    The node validates the manifest; this class ensures that nothing leads out of the folder."""

    def __init__(self, root: Path):
        self.root = root
        self.payloads: List[Document] = []
        self.folders: List[str] = []
        self.contents: Dict[str, Path] = {}
        self._around: Set[Path] = set()
        try:
            self._inside = root.resolve(strict=True)
            self._read()
        except (OSError, UnicodeError, RuntimeError) as error:  # RuntimeError: a loop of links
            raise _wrong(f"cannot read the bundle {root}: {error}") from error

    def _read(self) -> None:
        self.manifest = self._json("manifest.json", must_be=dict)
        if self.manifest is None:
            raise _wrong(f"{self.root} has no manifest.json")
        self.config = lay(lay({}, self._json("config/default.json", must_be=dict) or {}),
                          self._json("config/overwrite.json", must_be=dict) or {})
        self.scenario = self._json("scenario.json")
        payloads = self.root / "payloads"
        if os.path.lexists(payloads):
            self._stay(payloads, self._inside)
            self._inside = payloads.resolve(strict=True)
            self._list(payloads, "")
        self.payloads.sort(key=lambda one: str(one["path"]))

    @staticmethod
    def _stay(path: Path, inside: Path) -> Path:
        real = path.resolve(strict=True)
        if real != inside and inside not in real.parents:
            raise _wrong(f"{path} is a link out of the bundle",
                         hint="put the file itself there")
        return real

    def _json(self, name: str, must_be: type = object) -> Any:
        path = self.root / name
        if not os.path.lexists(path):
            return None
        if not self._stay(path, self._inside).is_file():
            raise _wrong(f"{path} is not a file")
        try:
            value = _parse(path.read_text(encoding="utf-8"))
        except RecursionError as error:
            raise _wrong(f"{path} is nested too deep") from error
        except ValueError as error:
            raise _wrong(f"{path} is not JSON: {error}") from error
        if not isinstance(value, must_be):
            raise _wrong(f"{path} is not a JSON object")
        return value

    def _list(self, folder: Path, prefix: str) -> None:
        real = self._stay(folder, self._inside)
        if real in self._around or prefix.count("/") > DEPTH_MAX:
            raise _wrong(f"{folder}: folders are nested more than {DEPTH_MAX} deep, or a link "
                         "forms a loop")
        self._around.add(real)
        names = sorted(os.listdir(folder))
        for name in names:
            self._take(folder / name, prefix + name)
        if not names and prefix:
            self.folders.append(prefix[:-1])
        self._around.discard(real)

    def _take(self, path: Path, name: str) -> None:
        try:
            name.encode("utf-8")
            self._stay(path, self._inside)
        except (OSError, UnicodeError, RuntimeError) as error:
            raise _wrong(f"{path!r} cannot be sent: {error}") from error
        found = path.stat()
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            self._list(path, name + "/")
        elif stat.S_ISREG(mode) and found.st_size > FILE_BYTES_MAX:
            raise _wrong(f"{path} is larger than 64 MiB")
        elif stat.S_ISREG(mode):
            sha256 = _hash(path)
            self.contents[sha256] = path
            self.payloads.append({"path": name, "sha256": sha256,
                                  **({"executable": True} if mode & stat.S_IXUSR else {})})
        else:
            raise _wrong(f"{path} is neither a file nor a folder")

    def body(self, inputs: Optional[Mapping[str, Any]]) -> Document:
        """`inputs` has the values that `--set` takes."""
        body: Document = {"manifest": self.manifest, "payloads": self.payloads,
                          "config": lay(self.config, inputs or {})}
        message = (inputs or {}).get("inputs")
        overlay = message.get("payload") if isinstance(message, Mapping) else None
        if overlay is not None:
            body["overlay"] = overlay
        if self.folders:
            body["folders"] = self.folders
        if self.scenario is not None:
            body["scenario"] = self.scenario
        return body
