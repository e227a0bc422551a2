"""Read a model file, and compare it with its checksum."""

import hashlib
import os
import re
import stat
from pathlib import Path

from hytas.errors import InputError

MOST_MODEL_BYTES = 2**29
"""Bytes of a model file; the largest networks of the spaces take a fiftieth of that."""
NEEDED = "an exported .onnx file, or the folder of a run with one is needed"
IN_A_RUN = "model.onnx"
"""The model in the folder of a run."""
CHECKSUM_ENTRY = b"rP\n\x0chytas.sha256\x12@"
"""Begins the entry of the checksum in the metadata: field 14 of an ONNX model, and its key."""
_CHECKSUM = re.compile(re.escape(CHECKSUM_ENTRY) + rb"([0-9a-f]{64})")


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
            rule = "is a device or a pipe; an exported .onnx file is needed"
            raise InputError("model", path, rule)
        if state.st_size > MOST_MODEL_BYTES:
            rule = f"has {state.st_size} bytes; at most {MOST_MODEL_BYTES} are allowed"
            raise InputError("model", path, rule)
        return file.read(MOST_MODEL_BYTES)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe would block


def checksum_of(content: bytes) -> str:
    """Return the SHA-256 of an ONNX file without its checksum entry, in hexadecimal digits."""
    return hashlib.sha256(_CHECKSUM.sub(b"", content)).hexdigest()


def check_model(content: bytes, path: Path) -> str:
    """Compare a model file with the checksum that it stores, and return that checksum.

    Args:
        path: the name of the file in messages.
    """
    stored = _CHECKSUM.search(content)
    if stored is None:
        rule = "is not an ONNX file of `hytas export`, or is damaged: it has no checksum"
        raise InputError("model", path, rule, NEEDED)
    digest = checksum_of(content)
    if stored[1].decode() != digest:
        raise InputError(
            "model",
            path,
            f"is damaged or was changed: its SHA-256 is {digest[:12]}..., but its metadata say "
            f"{stored[1][:12].decode()}...",
            "write it again with `hytas export`",
        )
    return digest


def sealed(content: bytes) -> bytes:
    """Return a model file with the checksum of its content in place of the one that it stores."""
    stored = _CHECKSUM.search(content)
    if stored is None:
        return content
    return content[: stored.start(1)] + checksum_of(content).encode() + content[stored.end(1) :]
