"""Which architectures race: the proxy's best of every kind, and what a predictor adds."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hytas.proxies.keys import is_depth
from hytas.run.rounds import RoundResult
from hytas.search import Evaluation
from hytas.search.predictor import ArchitecturePredictor, cross_validated_rank_correlation

FIRST_SHARE = 0.5
"""Of the finalists, in the first wave: the proxy's choice, where no earlier run taught anything."""
LEAST_TO_LEARN = 3
"""Trained architectures; fewer teach a predictor nothing."""


@dataclass(frozen=True)
class Trained:
    """An architecture, its scores, and what it reached in units of its own race.

    Attributes:
        architecture: its genes.
        scores: proxy -> score.
        target: merit on validation pixels in this race's first round, or the place in an earlier
            race, less their mean and divided by their deviation, so that races on different scenes
            can be read together.
    """

    architecture: dict[str, Any]
    scores: dict[str, float]
    target: float


def global_genes(architecture: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Genes with one value, by name; the lists, one value a layer, are left out."""
    return tuple((k, v) for k, v in sorted(architecture.items()) if not isinstance(v, list))


def diverse(
    ranked: Sequence[Evaluation], count: int, before: Sequence[Evaluation] = ()
) -> list[Evaluation]:
    """The `count` best, so that each value of each gene that is no size has its share of them.

    Each next one has the values that were chosen least so far (kinds of tokens, patch sizes,
    pooling and such weigh alike), and of those the best rank; two differ in a global gene, until
    there are no more such.

    Args:
        ranked: the best first.
        before: chosen earlier; their values count as chosen.
    """
    genes = [global_genes(item.architecture) for item in ranked]
    kinds = [_kinds(row) for row in genes]
    chosen: list[int] = []
    earlier = [global_genes(item.architecture) for item in before]
    taken: Counter[Any] = Counter(kind for row in earlier for kind in _kinds(row))
    while len(chosen) < min(count, len(ranked)):
        free = [place for place in range(len(ranked)) if place not in chosen]
        seen = {*earlier, *(genes[place] for place in chosen)}
        fresh = [place for place in free if genes[place] not in seen]
        best = min(fresh or free, key=lambda place: (sum(taken[k] for k in kinds[place]), place))
        chosen.append(best)
        taken.update(kinds[best])
    return [ranked[place] for place in sorted(chosen)]


def _kinds(genes: tuple[tuple[str, Any], ...]) -> list[tuple[str, Any]]:
    return [pair for pair in genes if not _is_size(pair[0])]


def _is_size(gene: str) -> bool:
    return gene in ("embed_dim", "space") or is_depth(gene)


def waves(count: int) -> list[int]:
    """How many finalists are chosen at a time: half at once, then by quarters of them."""
    sizes = [math.ceil(FIRST_SHARE * count)]
    while sum(sizes) < count:
        sizes.append(min(max(1, count // 4), count - sum(sizes)))
    return sizes


class Proposals:
    """Finalists, chosen in waves: the proxy's diverse best until there is enough to learn from
    (earlier runs may have taught it), then the predictor's.

    The predictor proposes what it believes best of those scored and not yet trained, by the mean of
    its trees plus their deviation: what it knows little of deserves a try.

    Args:
        ranked: evaluations of the search, the best first.
        earlier: trainings of earlier runs in the same space.
        seed: of the trees.
    """

    def __init__(self, ranked: Sequence[Evaluation], earlier: Sequence[Trained], seed: int) -> None:
        self.left = list(ranked)
        self.earlier = list(earlier)
        self.seed = seed
        self.raced: list[Evaluation] = []
        self.merits: list[float] = []
        self.proposed = 0

    def next(self, count: int) -> list[Evaluation]:
        """The next `count` to train, or all that are left."""
        rows = self._rows()
        if len(rows) < LEAST_TO_LEARN or len(self.left) <= count:
            chosen = diverse(self.left, count, self.raced)
        else:
            predictor = ArchitecturePredictor(seed=self.seed).fit(
                [row.architecture for row in rows],
                [row.scores for row in rows],
                [row.target for row in rows],
            )
            predicted = predictor.predict(
                [item.architecture for item in self.left], [_with_size(item) for item in self.left]
            )
            order = np.argsort(-(predicted.mean + predicted.spread), kind="stable")
            likely = [self.left[place] for place in order[: 4 * count]]
            chosen = diverse(likely, count, self.raced)
            self.proposed += len(chosen)
        self.left = [item for item in self.left if item not in chosen]
        return chosen

    def learn(self, raced: Sequence[Evaluation], results: Sequence[RoundResult]) -> None:
        """What the finalists of a wave reached in the first round."""
        self.raced += raced
        self.merits += [result.merit for result in results]

    def report(self) -> dict[str, Any]:
        """Cross-validated rank correlations of the predictor, beside what it must beat."""
        rows = self._rows()
        told: dict[str, Any] = {
            "raced": len(self.raced),
            "failed": len(self.raced) - (len(rows) - len(self.earlier)),
            "trained": len(rows) - len(self.earlier),
            "earlier": len(self.earlier),
            "proposed": self.proposed,
            "spearman": None,
        }
        if len(rows) < LEAST_TO_LEARN:
            return told
        told["spearman"] = cross_validated_rank_correlation(
            [row.architecture for row in rows],
            [row.scores for row in rows],
            [row.target for row in rows],
            params=[row.scores.get("params", math.nan) for row in rows],
            seed=self.seed,
        )
        return told

    def _rows(self) -> list[Trained]:
        # A training that failed has no merit to learn from.
        learnt = [pair for pair in zip(self.raced, self.merits, strict=True) if pair[1] > -math.inf]
        return self.earlier + standardised([one for one, _ in learnt], [pair[1] for pair in learnt])


def standardised(items: Sequence[Evaluation], merits: Sequence[float]) -> list[Trained]:
    """The trained of one race, in units of that race; their true size is a score of theirs."""
    if not items:
        return []
    values = np.asarray(merits, dtype=np.float64)
    targets = (values - values.mean()) / max(float(values.std()), 1e-9)
    return [
        Trained(item.architecture, _with_size(item), float(target))
        for item, target in zip(items, targets, strict=True)
    ]


def _with_size(item: Evaluation) -> dict[str, float]:
    return {**item.scores, "params": float(item.costs.get("params", math.nan))}


def describe_predictor(found: dict[str, Any]) -> str:
    """One line with the rank correlations."""
    rows = found["trained"] + found["earlier"]
    if found["spearman"] is None:
        return f"predictor: proposed none; {rows} trained networks are too few to learn from"
    parts = [
        f"{name} {'-' if value is None else f'{value:.2f}'}"
        for name, value in found["spearman"].items()
    ]
    failed = f", {found['failed']} failed" if found["failed"] else ""
    return (
        f"predictor: proposed {found['proposed'] or 'none'} of {found['raced']} finalists{failed}; "
        f"rank correlation over {rows} trained networks, cross-validated: {', '.join(parts)}"
    )
