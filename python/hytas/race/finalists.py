"""Choose the finalists: diverse candidates first, then relatives of those that lead."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from hytas.race.size_classes import WEIGHTS, size_classes, size_of
from hytas.search import Evaluation
from hytas.spaces.genes import active, is_depth

Genes = tuple[tuple[str, Any], ...]

RELATIVES = 3
"""One of so many finalists is chosen when the others have ended their first training."""
LEADERS = 3
"""Finalists whose relatives join."""


def diverse(
    ranked: Sequence[Evaluation], count: int, weights: Sequence[int] = WEIGHTS
) -> list[Evaluation]:
    """Choose `count` finalists, so that sizes, values of genes and pairs of values have a share.

    Size classes have fixed shares (`hytas.race.size_classes`). The next finalist is of the class
    that is furthest below its share. The share of a value or a pair is its share among the
    candidates: kinds of networks that the search samples often are among the finalists, and rare
    ones too. Embedding width, depth and genes of single layers do not count: within a size class
    the rank decides. Inactive genes do not count either. Within a class, the next finalist is the
    candidate whose values and pairs are, in their mean, furthest below their shares so far; of
    equals, that of the best rank. Two finalists differ in a global gene as long as there are such
    candidates.

    Args:
        ranked: the best first.
        count: of the finalists; all of `ranked` if there are fewer.
        weights: finalists of each size class, relative to the others, the largest class first. A
            class beyond them has some only if the others have no more candidates.

    Returns:
        The finalists, the best first.
    """
    genes = [global_genes(item.architecture) for item in ranked]
    kinds = [_values_and_pairs(item.architecture) for item in ranked]
    share = Counter(kind for row in kinds for kind in row)
    classes = size_classes([size_of(item) for item in ranked])
    chosen: list[int] = []
    taken: Counter[Any] = Counter()
    sizes: Counter[int] = Counter()

    def filled(size: int) -> tuple[float, int]:
        return (sizes[size] / weights[size] if size < len(weights) else math.inf), size

    while len(chosen) < min(count, len(ranked)):
        free = [rank for rank in range(len(ranked)) if rank not in chosen]
        size = min({classes[rank] for rank in free}, key=filled)
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


def relatives(
    leaders: Sequence[Evaluation],
    racing: Collection[int],
    ranked: Sequence[Evaluation],
    count: int,
) -> list[Evaluation]:
    """Choose `count` candidates that are like the leaders of a first rung, of every size.

    Size classes have fixed shares (`hytas.race.size_classes`). Each of the first `LEADERS` leaders
    gives a relative in turn: the candidate that differs least from it, in one global gene at most
    next to sizes and heads; of equals, that of the best rank.

    Args:
        leaders: the finalists so far that did not fail, the best first.
        racing: the numbers of all finalists so far.
        ranked: candidates of the search, the best first.
        count: of the relatives. Where there are fewer, other candidates follow by rank.
    """
    classes = size_classes([size_of(item) for item in ranked])
    structures = [structure(item.architecture) for item in ranked]
    raced = {
        (of, size)
        for item, of, size in zip(ranked, structures, classes, strict=True)
        if item.id in racing
    }
    leading = [structure(item.architecture) for item in leaders[:LEADERS]]
    chosen: list[Evaluation] = []
    sizes: Counter[int] = Counter()
    while len(chosen) < count:
        near = [
            (place, len(set(structures[rank]) ^ set(leading[place])), rank)
            for place in range(len(leading))
            for rank in range(len(ranked))
            if (structures[rank], classes[rank]) not in raced
            and len(set(structures[rank]) ^ set(leading[place])) <= 2
        ]
        if not near:
            break
        size = min({classes[rank] for *_, rank in near}, key=lambda k: (sizes[k] / WEIGHTS[k], k))
        turn = sizes[size] % len(leading)
        _, _, best = min(
            (one for one in near if classes[one[2]] == size),
            key=lambda one: ((one[0] - turn) % len(leading), *one[1:]),
        )
        chosen.append(ranked[best])
        raced.add((structures[best], size))
        sizes[size] += 1
    taken = {*racing, *(one.id for one in chosen)}
    others = [one for one in ranked if one.id not in taken]
    return [*chosen, *others[: count - len(chosen)]]


def global_genes(architecture: Mapping[str, Any]) -> Genes:
    """Return the genes with one value for the whole network, by name."""
    return tuple((k, v) for k, v in sorted(architecture.items()) if not isinstance(v, list))


def describe_genes(architecture: dict[str, Any]) -> str:
    """Return the active genes with one value for the whole network, as text."""
    genes = active(architecture)
    return ", ".join(f"{name} {value}" for name, value in global_genes(genes) if name != "space")


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def kinds_of(candidates: Iterable[Evaluation]) -> dict[int, Genes]:
    """Return the structure of each candidate, by its number."""
    return {one.id: structure(one.architecture) for one in candidates}


def structure(architecture: Mapping[str, Any]) -> Genes:
    """Return the active global genes but sizes and numbers of heads, by name."""
    return tuple(one for one in _values(architecture) if not one[0].endswith("heads"))


def _values(architecture: Mapping[str, Any]) -> Genes:
    """Return the active global genes but the sizes, by name."""
    genes = global_genes(active(architecture))
    sizes = ("embed_dim", "space")
    return tuple(gene for gene in genes if gene[0] not in sizes and not is_depth(gene[0]))


def _values_and_pairs(architecture: Mapping[str, Any]) -> list[Any]:
    """Return the values of active global genes, and all pairs of them, by name."""
    values = _values(architecture)
    return [*values, *combinations(values, 2)]
