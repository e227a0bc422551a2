"""Choose the finalists: some of kinds that won before, the others diverse."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

from hytas.race.size_classes import WEIGHTS, size_classes, size_of
from hytas.search import Evaluation
from hytas.spaces.genes import active, is_depth

Genes = tuple[tuple[str, Any], ...]

PORTFOLIO = tuple(
    {"tokens": "pixel", "pixel_mixer": mixer, "pixel_gate": "yes", "pooling": "mean"}
    for mixer in ("conv3", "conv5", "none", "attention")
)
"""Kinds of networks of `hytas-wide` that won most races: notes/decisions.md."""
PATCHES = 2
"""Values of the gene `patch`, the largest first, that each kind of the portfolio has."""
SINGLE_PIXELS = {"tokens": "pixel", "patch": 1}
"""Networks of single spectra: they win where neighbours tell little."""
PORTFOLIO_SHARE = 3
"""One of so many finalists is of the portfolio and of the largest size class, at most."""


def diverse(
    ranked: Sequence[Evaluation],
    count: int,
    portfolio: bool = False,
    known: Collection[Mapping[str, Any]] = (),
    weights: Sequence[int] = WEIGHTS,
) -> list[Evaluation]:
    """Choose `count` finalists of every size and of many kinds.

    With `portfolio`, a third at most are of kinds that won races before: of each the candidate of
    the largest size class with the fewest layers, and of these that of the best rank (Feurer et
    al., Auto-Sklearn 2.0, JMLR 2022). So are the finalists of smaller size classes, up to the share
    of each class: kinds that win with a smaller budget also race with a larger one.

    For the others, size classes have the shares `weights`. The next finalist is
    of the class that is furthest below its share. The share of a value or a pair of values is its
    share among the candidates: kinds of networks that the search samples often are among the
    finalists, and rare ones too. Embedding width, depth and genes of single layers do not count:
    within a size class the rank decides. Inactive genes do not count either. Within a class, the
    next finalist is the candidate whose values and pairs are, in their mean, furthest below their
    shares so far; of equals, that of the best rank. Two finalists differ in a global gene as long
    as there are such candidates.

    Args:
        ranked: the best first.
        count: of the finalists; all of `ranked` if there are fewer.
        portfolio: whether kinds that won before come first, in each size class.
        known: architectures that race before all others; of more than `count` those of best rank.
        weights: finalists of each size class (`hytas.race.size_classes`), relative to the others.

    Returns:
        The finalists, the best first.
    """
    genes = [global_genes(item.architecture) for item in ranked]
    kinds = [_values_and_pairs(item.architecture) for item in ranked]
    share = Counter(kind for row in kinds for kind in row)
    classes = size_classes([size_of(item) for item in ranked])
    count = min(count, len(ranked))
    shares = [math.floor(count * weight / sum(weights) + 0.5) for weight in weights[1:]]
    most = [count // PORTFOLIO_SHARE, *shares] if portfolio else []
    given = [rank for rank, item in enumerate(ranked) if item.architecture in known]
    won = [rank for size, n in enumerate(most) for rank in _portfolio(ranked, classes, size, n)]
    chosen = list(dict.fromkeys([*given, *won]))[:count]
    taken: Counter[Any] = Counter(kind for rank in chosen for kind in kinds[rank])
    sizes: Counter[int] = Counter(classes[rank] for rank in chosen)
    while len(chosen) < count:
        free = [rank for rank in range(len(ranked)) if rank not in chosen]
        size = min({classes[rank] for rank in free}, key=lambda k: (sizes[k] / weights[k], k))
        free = [rank for rank in free if classes[rank] == size]
        seen = {genes[rank] for rank in chosen}
        fresh = [rank for rank in free if genes[rank] not in seen]
        best = min(
            fresh or free,
            key=lambda rank: (_mean([taken[k] / share[k] for k in kinds[rank]]), rank),
        )
        chosen.append(best)
        taken.update(kinds[best])
        sizes[size] += 1
    return [ranked[rank] for rank in sorted(chosen)]


def sees_single_spectra(architecture: Mapping[str, Any]) -> bool:
    """Return whether a network sees no neighbours of a pixel, as an SVM or a random forest."""
    return SINGLE_PIXELS.items() <= architecture.items()


def _portfolio(
    ranked: Sequence[Evaluation], classes: Sequence[int], size: int, count: int
) -> list[int]:
    """Return the ranks of `count` candidates of a size class at most, large patches first."""
    genes = [dict(global_genes(item.architecture)) for item in ranked]
    fitting = _fewest_layers(ranked, classes, size, PORTFOLIO)
    patches = sorted({genes[rank].get("patch", 0) for rank in fitting}, reverse=True)
    wanted = [{**kind, "patch": patch} for patch in patches[:PATCHES] for kind in PORTFOLIO]
    firsts = (
        next((rank for rank in fitting if kind.items() <= genes[rank].items()), None)
        for kind in wanted
    )
    return [rank for rank in firsts if rank is not None][:count]


def _fewest_layers(
    ranked: Sequence[Evaluation],
    classes: Sequence[int],
    size: int,
    kinds: Sequence[Mapping[str, Any]],
) -> list[int]:
    """Return the ranks of the candidates of a size class and of some kinds, few layers first."""
    genes = [dict(global_genes(item.architecture)) for item in ranked]
    fitting = [
        rank
        for rank, own in enumerate(classes)
        if own == size and any(kind.items() <= genes[rank].items() for kind in kinds)
    ]
    return sorted(
        fitting, key=lambda rank: sum(v for name, v in genes[rank].items() if is_depth(name))
    )


def global_genes(architecture: Mapping[str, Any]) -> Genes:
    """Return the genes with one value for the whole network, by name."""
    return tuple((k, v) for k, v in sorted(architecture.items()) if not isinstance(v, list))


def describe_genes(architecture: dict[str, Any]) -> str:
    """Return the active genes with one value for the whole network, as text."""
    genes = active(architecture)
    return ", ".join(f"{name} {value}" for name, value in global_genes(genes) if name != "space")


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def _values(architecture: Mapping[str, Any]) -> Genes:
    """Return the active global genes but the sizes, by name."""
    genes = global_genes(active(architecture))
    sizes = ("embed_dim", "space")
    return tuple(gene for gene in genes if gene[0] not in sizes and not is_depth(gene[0]))


def _values_and_pairs(architecture: Mapping[str, Any]) -> list[Any]:
    """Return the values of active global genes, and all pairs of them, by name."""
    values = _values(architecture)
    return [*values, *combinations(values, 2)]
