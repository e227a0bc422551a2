"""The names of search spaces that the code itself uses."""

from collections.abc import Mapping
from typing import Any

DEFAULT_SPACE = "hytas-wide"
"""The space of a search, and of `hytas space`, by default."""
IMAGE_SPACE = "autoformer-mini"
"""The same where the data are images."""
PAPER_SPACE = "hytas"
"""The space of an architecture that names none, as in the tables of HyTAS."""

LINEAR_SPACE = "linear"
"""The networks without a hidden layer, which race next to those of every space for scenes."""
MEAN_WITH = "mean_with"
"""Key of an architecture: the fits of the linear networks that its probabilities are averaged
with."""

TITLES = {"lda": "LDA", "softmax": "softmax regression"}
"""Fit of a linear network -> its title."""
FITS = tuple(TITLES)
"""How linear networks are fitted: shrinkage linear discriminant analysis, softmax regression."""


def space_of(architecture: Mapping[str, Any]) -> str:
    """Return the name of the space that an architecture belongs to."""
    return str(architecture.get("space", PAPER_SPACE))


def network_of(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """Return the architecture of the network in a mean (`MEAN_WITH`), or of a network alone."""
    return {name: value for name, value in architecture.items() if name != MEAN_WITH}


def linear_architecture(fit: str) -> dict[str, Any]:
    """Return the architecture of the linear network with this fit, of `FITS`."""
    return {"space": LINEAR_SPACE, "fit": fit, "patch": 1}
