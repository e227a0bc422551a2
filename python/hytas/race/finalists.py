"""Which architectures race: the best by the proxy, of every kind."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hytas.search import Evaluation
from hytas.spaces.genes import active


def diverse(ranked: Sequence[Evaluation], count: int) -> list[Evaluation]:
    """Choose `count` finalists, so that each value of each gene has its share of them.

    The share of a value is the share of the candidates that have it. The embedding width does not
    count, which proxies rank well, nor do the genes of single layers. The next finalist has
    the values that are furthest below their shares so far. Of equals, it is the one of the best
    rank. Two finalists differ in a global gene as long as there are such candidates.

    Args:
        ranked: the best first.
        count: of the finalists; all of `ranked` if there are fewer.

    Returns:
        The finalists, the best first.
    """
    genes = [global_genes(item.architecture) for item in ranked]
    kinds = [_kinds(row) for row in genes]
    share = Counter(kind for row in kinds for kind in row)
    chosen: list[int] = []
    taken: Counter[Any] = Counter()
    while len(chosen) < min(count, len(ranked)):
        free = [place for place in range(len(ranked)) if place not in chosen]
        seen = {genes[place] for place in chosen}
        fresh = [place for place in free if genes[place] not in seen]
        best = min(
            fresh or free,
            key=lambda place: (sum(taken[k] / share[k] for k in kinds[place]), place),
        )
        chosen.append(best)
        taken.update(kinds[best])
    return [ranked[place] for place in sorted(chosen)]


def global_genes(architecture: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the genes that have one value, by name; lists, one value a layer, are left out."""
    return tuple((k, v) for k, v in sorted(architecture.items()) if not isinstance(v, list))


def describe_genes(architecture: dict[str, Any]) -> str:
    """Return the genes that have one value and do something, as text."""
    genes = active(architecture)
    return ", ".join(f"{name} {value}" for name, value in global_genes(genes) if name != "space")


def _kinds(genes: tuple[tuple[str, Any], ...]) -> list[tuple[str, Any]]:
    return [pair for pair in genes if pair[0] not in ("embed_dim", "space")]
