"""Size classes: small and large networks race together, so a larger budget loses no accuracy.

A budget is an upper limit, and only a race shows whether a larger network is better. So the best
networks of smaller budgets take part.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hytas.metrics import compare_predictions
from hytas.race.results import RungResult, TrialKey
from hytas.search import Evaluation
from hytas.types import Array

SIZE_SHARES = (1.0, 0.5, 0.25, 0.1)
"""Upper end of each size class, as a share of the largest candidate."""
WEIGHTS = (5, 1, 1, 1)
"""Finalists of each size class, relative to the others."""


def size_of(candidate: Evaluation) -> float:
    """Return the parameters of a candidate; 0 where its space does not count them."""
    return candidate.costs.get("params", 0)


def size_classes(sizes: Sequence[float]) -> list[int]:
    """Return the size class of each size: its index in `SIZE_SHARES`, 0 for the largest sizes."""
    largest = max(sizes, default=0)
    limits = np.array(SIZE_SHARES)[None, :] * largest
    return [int(within) - 1 for within in (np.asarray(sizes)[:, None] <= limits).sum(1)]


class SizeRow(NamedTuple):
    """The best racer of a size class, compared with the winner.

    Attributes:
        share: upper end of the class, a share of the largest candidate.
        finalist: number of its evaluation.
        params: its parameters.
        steps: optimiser steps of its longest rung.
        pixels: held-out pixels of that rung.
        accuracy: on these pixels.
        winner_accuracy: of the winner after as many steps, on the same pixels.
        verdict: "winner"; "as good" if the difference is within chance; else "below" or "above".
    """

    share: float
    finalist: int
    params: int
    steps: int
    pixels: int
    accuracy: float
    winner_accuracy: float
    verdict: str


def size_rows(
    candidates: Sequence[Evaluation],
    results: Mapping[TrialKey, Sequence[RungResult]],
    scores: Mapping[TrialKey, float],
    winner: TrialKey,
) -> list[SizeRow]:
    """Compare the best racer of each size class with the winner, the largest class first.

    They are compared in the longest rung that both ran. The best racer of a class is that with the
    longest such rung, on most folds; of several, that with the best score.

    Args:
        candidates: of the search.
        results: of the rungs of each racer, the shortest first.
        scores: of racers that did not fail.
        winner: of the race.
    """
    params = {one.id: size_of(one) for one in candidates}
    classes = dict(zip(params, size_classes(list(params.values())), strict=True))
    of_winner = {rung.steps: rung.right for rung in results[winner]}
    shared: dict[TrialKey, RungResult] = {}
    for key in scores:
        for rung in results[key]:
            # A racer that was not in the last rung ran the first folds of the winner.
            if 0 < len(rung.right) <= len(of_winner.get(rung.steps, ())):
                shared[key] = rung

    def rank(key: TrialKey) -> tuple[int, int, float, int]:
        return shared[key].steps, shared[key].folds, scores[key], -key[0]

    best = {classes[key[0]]: key for key in sorted(shared, key=rank)}
    if winner in shared:
        best[classes[winner[0]]] = winner
    rows = []
    for size_class, key in sorted(best.items()):
        last = shared[key]
        same = of_winner[last.steps][: len(last.right)]
        verdict = "winner" if key == winner else compare_sizes(same, last.right)
        accuracies = float(last.right.mean()), float(same.mean())
        facts = key[0], int(params[key[0]]), last.steps, len(last.right)
        rows.append(SizeRow(SIZE_SHARES[size_class], *facts, *accuracies, verdict))
    return rows


def compare_sizes(winner: Array, other: Array) -> str:
    """Return the verdict of a `SizeRow` from the merits of the winner and another racer."""
    if compare_predictions(other, winner)[2]:
        return "below"
    return "above" if compare_predictions(winner, other)[2] else "as good"


def smaller_finalists(rows: Sequence[SizeRow], unit: str = "pixels") -> list[tuple[SizeRow, str]]:
    """Return the rows of networks that are smaller than the winner, each with a line of text."""
    (params,) = [row.params for row in rows if row.verdict == "winner"] or [0]
    verdicts = {
        "below": "below it by more than chance",
        "above": "above it by more than chance",
        "as good": "as good within chance",
    }
    return [
        (
            row,
            f"{row.params:,} parameters, {row.params / params:.1%} of the winner's: accuracy "
            f"{row.accuracy:.3f} next to {row.winner_accuracy:.3f} on {row.pixels:,} held-out "
            f"{unit} after {row.steps:,} steps, {verdicts[row.verdict]}",
        )
        for row in rows
        if row.params < params
    ]


def smallest_as_good(rows: Sequence[SizeRow], unit: str = "pixels") -> str:
    """Return the line of the smallest network that is not below the winner; "" without one."""
    lines = [
        (row.params, line) for row, line in smaller_finalists(rows, unit) if row.verdict != "below"
    ]
    return min(lines)[1] if lines else ""
