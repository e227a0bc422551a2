"""Read and check an ONNX file before onnxruntime opens it."""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hytas.deploy.graph import Ends, GraphError, check_graph
from hytas.deploy.protobuf import Fields, Value
from hytas.errors import InputError
from hytas.model_card import CHECKSUM, FORMAT

MOST_BYTES = 2**29
"""Bytes of a model file; the largest networks of the spaces take a fiftieth of that."""
NEEDED = "an exported .onnx file, or the folder of a run with one is needed"
IN_A_RUN = "model.onnx"
"""The model in the folder of a run."""
OPSETS = range(18, 25)
"""ONNX operator sets that hytas writes and reads."""
_OPSET_IMPORT, _GRAPH, _METADATA, _TRAINING, _FUNCTION = 8, 7, 14, 20, 25


@dataclass(frozen=True)
class ModelFile:
    """The metadata, inputs and outputs of a model file.

    Attributes:
        checksum: SHA-256 of the file without its checksum entry, as hexadecimal digits.
    """

    properties: Mapping[str, str]
    ends: Ends
    checksum: str


class _Parts(NamedTuple):
    """The top level of a file; `entry` is the range of bytes of its checksum entry."""

    properties: dict[str, str]
    entry: tuple[int, int] | None
    opsets: list[tuple[bytes, int]]
    graphs: list[memoryview]
    foreign: str | None


def file_of_model(path: Path) -> Path:
    """Return the file of a model: the path, or the model in it if it is the folder of a run."""
    return path / IN_A_RUN if path.is_dir() else path


def read_model(path: Path) -> bytes:
    """Return the bytes of a model file, or of the model in the folder of a run."""
    path = file_of_model(path)
    if not path.exists():
        raise InputError("model", path, "no such file", NEEDED)
    with open(path, "rb", opener=_without_waiting) as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise InputError(
                "model", path, "is a device or a pipe; an exported .onnx file is needed"
            )
        if state.st_size > MOST_BYTES:
            raise InputError(
                "model", path, f"has {state.st_size} bytes; at most {MOST_BYTES} are allowed"
            )
        return file.read(MOST_BYTES)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe would block


def examine(content: bytes, path: Path) -> ModelFile:
    """Check the bytes of a file: checksum, operator set, graph and tensors.

    Args:
        path: the name of the file in messages.
    """
    fields = Fields()
    try:
        parts = _parts(fields, memoryview(content))
    except ValueError as error:
        hint = NEEDED if path.suffix.lower() != ".onnx" else ""
        raise InputError("model", path, f"is not an ONNX file ({error})", hint) from error
    checksum = _checked_sum(content, parts, path)
    _check_opsets(parts, path)
    try:
        ends = check_graph(fields, parts.graphs[0])
    except GraphError as error:
        raise InputError("model", path, str(error)) from error
    except ValueError as error:
        raise InputError("model", path, f"is not an ONNX file ({error})") from error
    return ModelFile(parts.properties, ends, checksum)


def checksum_of(content: bytes) -> str:
    """Return the SHA-256 of an ONNX file without its checksum entry, in hexadecimal digits.

    Raises:
        ValueError: the bytes are not a protobuf message, or have two such entries.
    """
    return _digest(content, _parts(Fields(), memoryview(content)).entry)


def _digest(content: bytes, entry: tuple[int, int] | None) -> str:
    first, behind = entry or (len(content), len(content))
    digest = hashlib.sha256(memoryview(content)[:first])
    digest.update(memoryview(content)[behind:])
    return digest.hexdigest()


def _parts(fields: Fields, content: memoryview) -> _Parts:
    parts, entry, foreign = _Parts({}, None, [], [], None), None, None
    for number, value, first, behind in fields.placed(content):
        if number == _GRAPH:
            parts.graphs.append(_message(number, value))
        elif number == _OPSET_IMPORT:
            parts.opsets.append(_opset(fields, _message(number, value)))
        elif number == _METADATA:
            key, text = _property(fields, _message(number, value))
            if key in parts.properties:
                raise ValueError(f"its metadata have {key!r} twice")
            parts.properties[key] = text
            entry = (first, behind) if key == CHECKSUM else entry
        elif number in (_TRAINING, _FUNCTION):
            foreign = "a training graph" if number == _TRAINING else "functions of its own"
    return parts._replace(entry=entry, foreign=foreign)


def _message(number: int, value: Value) -> memoryview:
    if isinstance(value, int):
        raise ValueError(f"protobuf field {number} is a number; a message is needed")
    return value


def _property(fields: Fields, message: memoryview) -> tuple[str, str]:
    parts = {number: _message(number, value) for number, value in fields.of(message)}
    try:
        key, text = (bytes(parts.get(number, b"")).decode() for number in (1, 2))
    except UnicodeDecodeError as error:
        raise ValueError(f"its metadata are not UTF-8: {error}") from None
    return key, text


def _opset(fields: Fields, message: memoryview) -> tuple[bytes, int]:
    domain, version = b"", 0
    for number, value in fields.of(message):
        if number == 1:
            domain = bytes(_message(number, value))
        elif number == 2 and isinstance(value, int):
            version = value
    return domain, version


def _checked_sum(content: bytes, parts: _Parts, path: Path) -> str:
    """Return the file's checksum, after a comparison with the one that it stores."""
    if "hytas.format" not in parts.properties and CHECKSUM not in parts.properties:
        raise InputError(
            "model", path, "has no hytas metadata: it was not written by `hytas export`"
        )
    digest = _digest(content, parts.entry)
    stored = parts.properties.get(CHECKSUM)
    if stored is not None and stored != digest:
        raise InputError(
            "model",
            path,
            f"is damaged or was changed: its SHA-256 is {digest[:12]}..., but its "
            f"metadata say {stored[:12]!r}...; write it again with `hytas export`",
        )
    if stored is None and parts.properties["hytas.format"] == FORMAT:
        raise InputError("model", path, "is damaged or was changed: it has lost its checksum")
    return digest  # the card refuses another format by name


def _check_opsets(parts: _Parts, path: Path) -> None:
    if len(parts.graphs) != 1:
        raise InputError("model", path, f"has {len(parts.graphs)} graphs; one is needed")
    if parts.foreign is not None:
        raise InputError("model", path, f"has {parts.foreign}, which hytas never writes")
    for domain, version in parts.opsets:
        if domain not in (b"", b"ai.onnx"):
            raise InputError(
                "model",
                path,
                f"needs operators of domain {bytes(domain[:60])!r}; hytas writes "
                "those of ONNX only",
            )
        if version not in OPSETS:
            raise InputError(
                "model", path, f"has operator set {version}; must be {OPSETS[0]} to {OPSETS[-1]}"
            )
    if not parts.opsets:
        raise InputError("model", path, "names no operator set")
