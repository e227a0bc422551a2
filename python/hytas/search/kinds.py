"""Rank candidates among those of their kind: a proxy says little about networks of two kinds."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from hytas.spaces.genes import active, is_depth


def kind_of(architecture: Mapping[str, Any]) -> Hashable:
    """Return what kind of network an architecture is: its labels and its depths, by name."""
    genes = active(architecture).items()
    return tuple(sorted(pair for pair in genes if isinstance(pair[1], str) or is_depth(pair[0])))


def rank_in_kinds(
    values: NDArray[np.float64],
    architectures: Sequence[Mapping[str, Any]],
    size_classes: Sequence[int] = (),
) -> NDArray[np.float64]:
    """Return the place of each candidate among those of its kind, as a share.

    Args:
        values: a score of each candidate (n,), larger is better; NaN where it failed.
        architectures: their genes.
        size_classes: of each; those of another class are of another kind. Empty: all are of one.

    Returns:
        Shares (n,) between 0 and 1: the middle of n equal parts that its rank falls in, so that
        the only candidate of a kind has .5; NaN where the score failed.
    """
    ranks = np.full(len(values), np.nan)
    kinds: dict[Hashable, list[int]] = {}
    for place, architecture in enumerate(architectures):
        if not np.isnan(values[place]):
            size = size_classes[place] if size_classes else 0
            kinds.setdefault((kind_of(architecture), size), []).append(place)
    for places in kinds.values():
        ranks[places] = (rankdata(values[places]) - 0.5) / len(places)
    return ranks
