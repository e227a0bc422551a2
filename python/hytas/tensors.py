"""Read and write tensors in a safetensors file that holds its own checksum."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hytas.errors import InputError, one_line
from hytas.files import atomic_write, parse_json

TENSOR_CHECKSUM = "sha256"
_ENTRY = "hytas"
_EMPTY = "0" * 64
# The facts are JSON inside the header's JSON, so their quotes are escaped.
_PLACE = re.compile(rb'\\"sha256\\": \\"([0-9a-f]{64})\\"')


def write_tensors(path: str | Path, tensors: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Write torch tensors and JSON facts as a safetensors file, completely or not at all.

    The file holds the SHA-256 of its bytes, computed with zeros in place of the checksum.
    """
    from safetensors.torch import save

    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # A single entry, because the order of several entries differs between processes.
    content = save(contiguous, {_ENTRY: json.dumps({**facts, TENSOR_CHECKSUM: _EMPTY})})
    place = _place(content)
    assert place is not None
    checksum = hashlib.sha256(content).hexdigest().encode()
    with atomic_write(path) as temporary:
        temporary.write_bytes(content[:place] + checksum + content[place + len(_EMPTY) :])


def read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts and the torch tensors of a file that `write_tensors` wrote."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    content = path.read_bytes()
    place = _place(content)
    if place is not None:
        stored = content[place : place + len(_EMPTY)]
        plain = content[:place] + _EMPTY.encode() + content[place + len(_EMPTY) :]
        if hashlib.sha256(plain).hexdigest().encode() != stored:
            raise InputError(
                path, rule="damaged or changed: its checksum is not that of its content"
            )
    facts = _facts(path, content)
    try:
        tensors = load(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise _incomplete(path, error) from None
    if place is None:
        raise InputError(path, rule="damaged or changed: it has lost its checksum")
    return facts, tensors


def read_facts(path: Path) -> dict[str, Any]:
    """Return the facts of a file that `write_tensors` wrote, without a look at its tensors."""
    with path.open("rb") as file:
        start = file.read(8)
        rest = path.stat().st_size - len(start)
        content = start + file.read(min(int.from_bytes(start, "little"), rest))
    return _facts(path, content)


def _facts(path: Path, content: bytes) -> dict[str, Any]:
    """Return the facts in the header at the beginning of a file."""
    try:
        header = parse_json(content[8 : 8 + _header_bytes(content)], "its header")
        facts = parse_json(header["__metadata__"][_ENTRY], "its header")
    except (KeyError, TypeError, ValueError) as error:
        raise _incomplete(path, error) from None
    if not isinstance(facts, dict):
        raise InputError(path, rule="its metadata must be a JSON object")
    return facts


def _incomplete(path: Path, error: Exception) -> InputError:
    return InputError(path, rule=f"not a complete safetensors file ({one_line(error)})")


def _header_bytes(content: bytes) -> int:
    return min(int.from_bytes(content[:8], "little"), len(content))


def _place(content: bytes) -> int | None:
    """Return the position of the checksum's digits in the header, if they occur once."""
    places = list(_PLACE.finditer(content, 8, 8 + _header_bytes(content)))
    return places[0].start(1) if len(places) == 1 else None
