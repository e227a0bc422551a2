"""Keys: one text for one architecture, and the bits of every random draw made for it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any


def architecture_key(architecture: Mapping[str, Any]) -> str:
    """Return the canonical JSON of an architecture: sorted, no spaces; 3 and 3.0 are one value."""
    genes = {name: plain_gene(value) for name, value in architecture.items()}
    return json.dumps(genes, sort_keys=True, separators=(",", ":"))


def stable_hash(*parts: object) -> int:
    """Return 64 bits that depend on the text of `parts` alone, whatever machine and run."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def plain_gene(value: Any) -> Any:
    """Return a gene as Python's own kinds: lists, and numbers that are int where they are whole.

    A value that is neither a list nor a number stays as it is.
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain_gene(item) for item in value]
    if hasattr(value, "tolist"):  # an array, or a number of one
        return plain_gene(value.tolist())
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
