"""Which architectures race: the best by the proxy, of every size and kind."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from hytas.race.ladder import WEIGHTS, size_classes, size_of
from hytas.search import Evaluation
from hytas.spaces.genes import active, is_depth


def diverse(ranked: Sequence[Evaluation], count: int) -> list[Evaluation]:
    """Choose `count` finalists, so that sizes, values of genes and pairs of values have a share.

    Size classes have fixed shares (`hytas.race.ladder`). The next finalist is of the class that is
    furthest below its own. The share of a value or a pair is the share of the candidates that have
    it. So kinds of networks that the search draws often are among the finalists, and rare ones too.
    Genes of size do not count (embedding width, depth, and those of single layers): within a size
    class the rank decides. Nor do genes that do nothing in an architecture. The next finalist of a
    class is the one whose values and pairs are, in their mean, furthest below their shares so far.
    Of equals, it is the one of the best rank. Two finalists differ in a global gene as long as
    there are such candidates.

    Args:
        ranked: the best first.
        count: of the finalists; all of `ranked` if there are fewer.

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
    while len(chosen) < min(count, len(ranked)):
        free = [place for place in range(len(ranked)) if place not in chosen]
        size = min({classes[place] for place in free}, key=lambda at: (sizes[at] / WEIGHTS[at], at))
        free = [place for place in free if classes[place] == size]
        seen = {genes[place] for place in chosen}
        fresh = [place for place in free if genes[place] not in seen]
        best = min(
            fresh or free,
            key=lambda place: (_mean([taken[k] / share[k] for k in kinds[place]]), place),
        )
        chosen.append(best)
        taken.update(kinds[best])
        sizes[size] += 1
    return [ranked[place] for place in sorted(chosen)]


def global_genes(architecture: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the genes that have one value, by name; lists, one value a layer, are left out."""
    return tuple((k, v) for k, v in sorted(architecture.items()) if not isinstance(v, list))


def describe_genes(architecture: dict[str, Any]) -> str:
    """Return the genes that have one value and do something, as text."""
    genes = active(architecture)
    return ", ".join(f"{name} {value}" for name, value in global_genes(genes) if name != "space")


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def _values_and_pairs(architecture: dict[str, Any]) -> list[Any]:
    """Return the values of genes that do something, and each two of them, by name."""
    genes = global_genes(active(architecture))
    sizes = ("embed_dim", "space")
    values = [gene for gene in genes if gene[0] not in sizes and not is_depth(gene[0])]
    return [*values, *combinations(values, 2)]
