"""Choose the finalists: of every size and of many kinds."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

from hytas.race.size_classes import WEIGHTS, size_classes, size_of
from hytas.search import Evaluation
from hytas.spaces.genes import active, is_depth

Genes = tuple[tuple[str, Any], ...]

SINGLE_PIXELS = {"tokens": "pixel", "patch": 1}
"""Networks of single spectra: they win where neighbours tell little."""


def diverse(
    ranked: Sequence[Evaluation],
    count: int,
    known: Collection[Mapping[str, Any]] = (),
    weights: Sequence[int] = WEIGHTS,
) -> list[Evaluation]:
    """Choose `count` finalists of every size and of many kinds.

    Size classes have the shares `weights`. The next finalist is
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
    given = [rank for rank, item in enumerate(ranked) if item.architecture in known]
    chosen = given[:count]
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
