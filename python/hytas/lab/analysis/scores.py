"""Training-free scores of a table's networks: columns, and functions of genes."""

import numpy as np

from hytas.errors import InputError
from hytas.lab.analysis.tables import RankingTable
from hytas.proxies.no_pass import depth_and_width, draw_of
from hytas.types import Floats

LEAST = 20
"""Networks that a range must hold for a rank correlation to have a meaning."""


def scores_of(table: RankingTable) -> dict[str, Floats]:
    """Return name -> score (n,) of all training-free scores; larger is better."""
    return {**free_scores(table), **proxies_of(table)}


def proxies_of(table: RankingTable) -> dict[str, Floats]:
    """Return the table's own scores, but for those of size."""
    return {name: values for name, values in table.scores.items() if name not in ("params", "macs")}


def free_scores(table: RankingTable) -> dict[str, Floats]:
    """Return name -> score (n,) of what needs no network: costs, genes, and random numbers."""
    sizes = {name: table.scores[name] for name in ("params", "macs") if name in table.scores}
    if table.size is not None:
        sizes.setdefault("params", table.size.params)
        if table.size.macs is not None:
            sizes.setdefault("macs", table.size.macs)
    sizes |= _depths_and_widths(table)
    for name in ("mlp_ratio", "num_heads"):
        if all(name in item for item in table.architectures):
            sizes[name] = np.array([float(np.mean(item[name])) for item in table.architectures])
    sizes["random"] = np.array([draw_of(item, seed=0) for item in table.architectures])
    if table.size is not None:
        sizes["true params"] = table.size.params
    return sizes


def _depths_and_widths(table: RankingTable) -> dict[str, Floats]:
    """Return the baselines of depth and width; none where a network lacks such a gene."""
    try:
        sizes = [depth_and_width("depth-embed", item) for item in table.architectures]
    except InputError:
        return {}
    depth, width = np.array(sizes).T
    return {"depth": depth, "embed_dim": width, "depth-embed": depth * width}


def rank_last_if_failed(values: Floats) -> Floats:
    """Return mean ranks in 1..n; NaN ranks below all numbers."""
    from scipy.stats import rankdata

    ranks: Floats = rankdata(np.where(np.isfinite(values), values, -np.inf))
    return ranks


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
