"""Rank candidates among those of their kind: a proxy says little about networks of two kinds."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from hytas.spaces.genes import active, is_depth


def kind_of(architecture: Mapping[str, Any]) -> str:
    """Return what kind of network an architecture is: its labels and its depths, by name."""
    genes = active(architecture).items()
    return str(sorted(pair for pair in genes if isinstance(pair[1], str) or is_depth(pair[0])))


def rank_in_kinds(values: NDArray[np.float64], kinds: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return the place of each candidate among those of its kind, as a share.

    Args:
        values: a score of each candidate (n,), larger is better; NaN where it failed.
        kinds: of each candidate.

    Returns:
        Shares (n,) between 0 and 1: the middle of n equal parts that its rank falls in, so that
        the only candidate of a kind has .5; NaN where the score failed.
    """
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int64)
    ranks = np.full(len(values), np.nan)
    scored = ~np.isnan(values)
    if not scored.any():
        return ranks
    codes, order = codes[scored], rankdata(values[scored], "dense")
    counts = np.bincount(codes, minlength=len(numbers))
    before = np.cumsum(counts) - counts  # candidates of kinds with a smaller code
    places = rankdata(codes * (len(order) + 1) + order) - before[codes]
    ranks[scored] = (places - 0.5) / counts[codes]
    return ranks
