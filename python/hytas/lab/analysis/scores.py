"""Training-free scores of a table's networks: columns, functions of genes, and rank means."""

from collections.abc import Sequence

import numpy as np

from hytas.errors import InputError
from hytas.lab.analysis.tables import RankingTable
from hytas.proxies.no_pass import depth_and_width, draw_of
from hytas.proxies.table import rank_mean
from hytas.search.ranks import kendall, spearman
from hytas.types import Floats, Mask

RANK_FIGURES = ("spearman", "kendall", "top1_gain", "top10_gain")
LEAST = 20
"""Networks that a range must hold for a rank correlation to have a meaning."""


def training_free_scores(
    table: RankingTable, rank_means: Sequence[Sequence[str]] = ()
) -> dict[str, tuple[str, Floats]]:
    """Return name -> kind ("baseline", "proxy", "rank-mean") and score (n,); larger is better.

    A rank mean is left out if the table lacks one of its members.
    """
    free = {
        **_depths_and_widths(table),
        **{
            name: np.array([float(np.mean(item[name])) for item in table.architectures])
            for name in ("mlp_ratio", "num_heads")
            if all(name in item for item in table.architectures)
        },
        "random": np.array([draw_of(item, seed=0) for item in table.architectures]),
    }
    if table.size is not None:
        free["true params"] = table.size.params
    baselines = {name: table.scores[name] for name in ("params", "macs") if name in table.scores}
    if table.size is not None:
        baselines.setdefault("params", table.size.params)
        if table.size.macs is not None:
            baselines.setdefault("macs", table.size.macs)
    scores = {name: ("baseline", values) for name, values in {**baselines, **free}.items()}
    for name, values in table.scores.items():
        scores.setdefault(name, ("proxy", values))
    for members in rank_means:
        if all(name in scores for name in members):
            mean = rank_mean(
                [np.where(np.isfinite(v := scores[name][1]), v, np.nan) for name in members]
            )
            scores[f"rank-mean({','.join(members)})"] = ("rank-mean", mean)
    return scores


def _depths_and_widths(table: RankingTable) -> dict[str, Floats]:
    """Return the baselines of depth and width; none where a network lacks such a gene."""
    try:
        sizes = [depth_and_width("depth-embed", item) for item in table.architectures]
    except InputError:
        return {}
    depth, width = np.array(sizes).T
    return {"depth": depth, "embed_dim": width, "depth-embed": depth * width}


def scores_of(table: RankingTable) -> dict[str, Floats]:
    """Return name -> score (n,) of all training-free scores, without means of ranks."""
    return {name: values for name, (_, values) in training_free_scores(table, ()).items()}


def parse_rank_means(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names in texts such as `a,b` or `rank-mean(a,b)`."""
    parsed = []
    for text in texts:
        inside = text.strip().removeprefix("rank-mean(").removesuffix(")")
        names = tuple(part.strip() for part in inside.split(",") if part.strip())
        if len(names) < 2:
            raise InputError("rank_mean", text, "must name two scores or more, such as snip,dss")
        parsed.append(names)
    return parsed


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


def rank_figures(
    values: Floats, accuracy: Floats, mask: Mask, of_all: bool, seeds: int
) -> dict[str, float | None]:
    """Return `RANK_FIGURES` of a score (n,) among the networks of a mask; None where these are few.

    Args:
        of_all: whether the mask is that of all networks, not of a range of sizes.
        seeds: random orders of equals.
    """
    if mask.sum() < (2 if of_all else LEAST) or not np.isfinite(values[mask]).any():
        return dict.fromkeys(RANK_FIGURES)
    ranks, reached = rank_last_if_failed(values[mask]), accuracy[mask]
    random = expected_best(reached, 10)
    top1, top10 = (top_accuracies(ranks, reached, count, seeds) for count in (1, 10))
    return {
        "spearman": spearman(ranks, reached),
        "kendall": kendall(ranks, reached),
        "top1_gain": None if random is None else top1 - random,
        "top10_gain": None if random is None else top10 - random,
    }
