"""From (seed, architecture) to the bits that every random draw of a score is made from."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def architecture_key(architecture: Mapping[str, Any]) -> str:
    """Canonical JSON of an architecture: sorted keys, no spaces; 3 and 3.0 are one value."""
    plain = {name: _plain(value) for name, value in architecture.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def is_depth(gene: str) -> bool:
    """Whether a gene counts layers: `depth`, `depth_1`, `band_depth` and the like."""
    return "depth" in gene.split("_")


def stable_hash(*parts: object) -> int:
    """64 bits that depend on the text of `parts` alone: the same on every machine and run."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool) or value is None:
        return value
    if hasattr(value, "__len__"):
        return [_plain(item) for item in value]
    number = float(value)
    return int(number) if number.is_integer() else number
