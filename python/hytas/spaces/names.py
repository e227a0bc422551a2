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
"""The networks that are fitted in closed form, which race next to those of every space."""
MEAN_WITH = "mean_with"
"""Key of an architecture: the fits of the networks in closed form in its mean."""

FITS = ("lda", "softmax", "rbf")
"""How networks in closed form are fitted: shrinkage linear discriminant analysis, softmax
regression, and kernel logistic regression, which has one hidden layer."""
VALUE_FITS = ("ridge", "pls", "kernel")
"""The same for continuous targets: ridge regression, partial least squares, and kernel ridge
regression, which has one hidden layer."""
KERNEL_DIRECTIONS = {FITS[-1]: 8, VALUE_FITS[-1]: 16}
"""Fit with a hidden layer -> principal directions that its units read."""
SHARE_FITS = tuple(f"{fit}-shares" for fit in VALUE_FITS)
"""The same for shares that sum to one: values below zero are cut, and a softmax scales the rest."""
KERNEL_UNITS = 128
"""Gaussian units of a hidden layer."""
_OF_CLASSES = ("LDA", "softmax regression", "kernel logistic regression")
_OF_VALUES = ("ridge regression", "PLS", "kernel ridge regression")
_NAMES = (*_OF_CLASSES, *_OF_VALUES, *_OF_VALUES)
TITLES = dict(zip((*FITS, *VALUE_FITS, *SHARE_FITS), _NAMES, strict=True))
"""Fit of a network in closed form -> its title."""

PRETREATMENTS = {
    "snv": "standard normal variate",
    "first": "first derivative",
    "second": "second derivative",
}
"""Value of the gene `pretreatment` that does something -> its title."""


def space_of(architecture: Mapping[str, Any]) -> str:
    """Return the name of the space that an architecture belongs to."""
    return str(architecture.get("space", PAPER_SPACE))


def network_of(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """Return the architecture of the network in a mean (`MEAN_WITH`), or of a network alone."""
    return {name: value for name, value in architecture.items() if name != MEAN_WITH}


def linear_architecture(fit: str) -> dict[str, Any]:
    """Return the architecture of the network in closed form with this fit, of `FITS`."""
    return {"space": LINEAR_SPACE, "fit": fit, "patch": 1}
