"""Compare the first choices of a ranking with random choices."""

import numpy as np

from hytas.types import Floats


def expected_best(accuracy: Floats, count: int) -> float | None:
    """Return the expected maximum of `count` networks drawn without replacement, or None.

    The k-th smallest of n is the maximum of C(k - 1, count - 1) of the C(n, count) draws.
    """
    total = len(accuracy)
    if total < count:
        return None
    chance = np.zeros(total)
    chance[-1] = count / total
    for place in range(total - 1, count - 1, -1):  # C(k - 1, c - 1) / C(n, c), downwards from k = n
        chance[place - 1] = chance[place] * (place - count + 1) / place
    return float(np.sort(accuracy) @ chance)


def top_accuracies(ranks: Floats, accuracy: Floats, count: int, seeds: int) -> float:
    """Return the best accuracy among the `count` first, with equals in `seeds` random orders."""
    best = []
    for seed in range(seeds):
        luck = np.random.default_rng(seed).permutation(len(ranks))
        best.append(accuracy[np.lexsort((luck, -ranks))[:count]].max())
    return float(np.mean(best))
