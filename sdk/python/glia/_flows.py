"""Prepares flows with their files, and bundles, for a submission."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Dict, Iterator, Mapping, Optional, Union

from ._bundles import Bundle
from .errors import InvalidError
from .models import Document, File, FileContent, Flow

YAML_HINT = ("the API takes flows as JSON; for a YAML file use the command: "
             "glia run FILE --detach --json")


@dataclass(frozen=True)
class Prepared:
    """A flow or a bundle in the format of the API. Upload `contents` first, by hash."""

    fields: Document  # common to all jobs of it
    contents: Mapping[str, Union[bytes, Path]]
    bundle: Optional[Bundle] = None

    def entry(self, inputs: Optional[Mapping[str, Any]]) -> Document:
        """The fields of one job with these inputs."""
        if self.bundle is not None:
            return {"bundle": self.bundle.body(inputs)}
        return {} if inputs is None else {"inputs": inputs}


def _parse(text: str, what: str) -> Mapping[str, Any]:
    try:
        flow = json.loads(text)
    except ValueError as error:
        raise InvalidError(f"{what} is not JSON: {error}", field="flow", hint=YAML_HINT) from error
    if not isinstance(flow, dict):
        raise InvalidError(f"{what} is not a JSON object", field="flow")
    return flow


def _read(path: Path) -> Mapping[str, Any]:
    if path.suffix in (".yaml", ".yml"):
        raise InvalidError(f"{path} is YAML", field="flow", hint=YAML_HINT)
    try:
        return _parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"cannot read the flow: {error}", field="flow") from error


def _steps(flow: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    steps = flow.get("steps")
    for step in steps.values() if isinstance(steps, dict) else steps or ():
        if isinstance(step, dict):
            yield step


def named_files(flow: Mapping[str, Any]) -> Iterator[str]:
    """The paths that steps name. The node reports what is wrong with a flow."""
    for step in _steps(flow):
        files = step.get("files", ())
        for name in (step.get("script"), *(files.values() if isinstance(files, dict) else files)):
            if isinstance(name, str):
                yield name


def _is_beside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _load(name: str, given: FileContent) -> File:
    if isinstance(given, File):
        return given
    if isinstance(given, str):
        return File(given.encode("utf-8"))
    if isinstance(given, bytes):
        return File(given)
    try:
        return File.read(given)
    except OSError as error:
        raise InvalidError(f"cannot read the file {name!r}: {error}", field="files") from error


def read(content: Union[bytes, Path], sha256: str) -> bytes:
    """Files of a bundle are read when they are sent, since there may be many."""
    if isinstance(content, bytes):
        return content
    try:
        found = content.read_bytes()
    except OSError as error:
        raise InvalidError(f"cannot read the file {content}: {error}", field="bundle") from error
    if hashlib.sha256(found).hexdigest() != sha256:
        raise InvalidError(f"{content} changed while it was read: try again", field="bundle")
    return found


def _prepare_bundle(path: Path, files: Optional[Mapping[str, FileContent]]) -> Prepared:
    if files:
        raise InvalidError("a bundle has its files in payloads/", field="files")
    bundle = Bundle(path if path.is_dir() else path.parent)
    return Prepared({}, bundle.contents, bundle)


def prepare(flow: Flow, files: Optional[Mapping[str, FileContent]]) -> Prepared:
    given: Dict[str, FileContent] = dict(files or {})
    if isinstance(flow, str):
        flow = _parse(flow, "the text of the flow")
    elif isinstance(flow, os.PathLike):
        path = Path(flow)
        if path.is_dir() or path.name == "manifest.json":
            return _prepare_bundle(path, files)
        flow = _read(path)
        for name in named_files(flow):
            if name not in given and _is_beside(name):
                given[name] = path.parent / name
    loaded = {name: _load(name, one) for name, one in given.items()}
    hashes = {name: hashlib.sha256(file.content).hexdigest() for name, file in loaded.items()}
    fields: Document = {"flow": flow}
    if loaded:
        fields["files"] = {name: {"sha256": hashes[name], "executable": file.executable}
                           for name, file in loaded.items()}
    return Prepared(fields, {hashes[name]: file.content for name, file in loaded.items()})
