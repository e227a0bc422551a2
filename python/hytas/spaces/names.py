"""The names of search spaces that the code itself uses."""

from collections.abc import Mapping
from typing import Any

DEFAULT_SPACE = "hytas-wide"
"""The space of a search, and of `hytas space`, by default."""
IMAGE_SPACE = "autoformer-mini"
"""The same where the data are images."""
PAPER_SPACE = "hytas"
"""The space of an architecture that names none, as in the tables of HyTAS."""


def space_of(architecture: Mapping[str, Any]) -> str:
    """Return the name of the space that an architecture belongs to."""
    return str(architecture.get("space", PAPER_SPACE))
