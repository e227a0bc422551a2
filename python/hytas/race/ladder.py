"""The ladder of sizes: small networks race beside large ones, so a larger budget loses nothing.

A budget is an upper limit. Whether a larger network is better, only a race can tell, and the best
network of a smaller budget must be in it. Every function here is one of plain values.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hytas.metrics import compare_answers
from hytas.race.racers import Key
from hytas.race.results import RungResult
from hytas.race.standings import Placing
from hytas.search import Evaluation

SHARES = (1.0, 0.5, 0.25, 0.1)
"""Each size class ends at so much of the largest candidate; the next one begins there."""
WEIGHTS = (3, 2, 2, 1)
"""Finalists of each size class, relative to the others."""
PREFERENCES = ("accurate", "small")

Flags = NDArray[np.bool_]


def size_of(candidate: Evaluation) -> float:
    """Return the parameters of a candidate; 0 where its space does not count them."""
    return candidate.costs.get("params", 0)


def size_classes(sizes: Sequence[float]) -> list[int]:
    """Return the size class of each size: its place in `SHARES`, 0 for the largest sizes."""
    largest = max(sizes, default=0)
    limits = np.array(SHARES)[None, :] * largest
    return [int(within) - 1 for within in (np.asarray(sizes)[:, None] <= limits).sum(1)]


def is_far_behind(best: Flags, other: Flags) -> bool:
    """Return whether the second one is behind by twice what chance gives (McNemar).

    Args:
        best, other: (n,) which pixels each has right; empty ones say nothing.
    """
    if len(best) != len(other):
        return False
    ahead, back, _ = compare_answers(other, best)
    return bool(ahead - back > 2 * (ahead + back) ** 0.5)


def that_go_on(
    classes: Sequence[int], count: int, far_behind: Sequence[bool], *, more: int = 0
) -> list[int]:
    """Return the places of those that go on to the next rung, in their order.

    The best of each size class goes on, unless it is far behind.

    Args:
        classes: size class of each racer, the best first.
        count: of those that go on.
        far_behind: which of them are far behind the first one.
        more: how many of the best of smaller classes than the first one's go on beside the first
            `count`, and not in place of some of them.
    """
    best = [classes.index(each) for each in sorted(set(classes))]
    best = sorted(place for place in best if not far_behind[place])
    if more:
        smaller = [place for place in best if classes[place] > classes[0]][:more]
        return sorted({*range(min(count, len(classes))), *smaller})
    kept = best[:count]
    others = [place for place in range(len(classes)) if place not in kept]
    return sorted([*kept, *others[: count - len(kept)]])


def choose_winner(
    right: Sequence[Flags], sizes: Sequence[float], prefer: str = PREFERENCES[0]
) -> int:
    """Return the place of the winner among the racers of the last rung.

    Those that are far behind the one with most right pixels are out; it is the best of several, so
    a lead by chance is larger than that of a pair. Of the others the first one wins. Or the
    smallest one that is within chance of it (McNemar).

    Args:
        right: (n,) of each racer, the best by its placing first: which of the same held-out pixels
            it has right. Empty ones are within chance of all.
        sizes: of each racer.
        prefer: one of `PREFERENCES`.
    """
    most = max(right, key=lambda flags: int(flags.sum()))
    first = next(at for at, flags in enumerate(right) if not is_far_behind(most, flags))
    if prefer == "accurate":
        return first
    within = [
        at
        for at, flags in enumerate(right)
        if len(flags) != len(right[first]) or not compare_answers(flags, right[first])[2]
    ]
    return min(within, key=lambda at: (sizes[at], at))


class LadderRow(NamedTuple):
    """The best of a size class, beside the winner.

    Attributes:
        share: upper end of the class, a share of the largest candidate.
        finalist: number of its evaluation.
        params: its parameters.
        steps: optimiser steps of the longest rung that it ran.
        pixels: held-out pixels there.
        accuracy: there.
        winner_accuracy: of the winner after as many steps, on the same pixels.
        verdict: "winner"; "as good" if it is within chance of the winner; else "below", or "above".
    """

    share: float
    finalist: int
    params: int
    steps: int
    pixels: int
    accuracy: float
    winner_accuracy: float
    verdict: str


def ladder_rows(
    candidates: Sequence[Evaluation],
    results: Mapping[Key, Sequence[RungResult]],
    placed: Mapping[Key, Placing],
    winner: Key,
) -> list[LadderRow]:
    """Return the best racer of each size class beside the winner, the largest first.

    The best one is the one that came farthest; of several, the one of the best placing.

    Args:
        candidates: of the search.
        results: of the rungs that each racer ran, the shortest first.
        placed: racers that did not fail, with their placing.
        winner: of the race.
    """
    params = {one.id: size_of(one) for one in candidates}
    classes = dict(zip(params, size_classes(list(params.values())), strict=True))
    best: dict[int, Key] = {}
    for key in sorted(placed, key=lambda key: (results[key][-1].steps, placed[key].value, -key[0])):
        best[classes[key[0]]] = key
    best[classes[winner[0]]] = winner
    own = {(one.steps, one.folds): one for one in results[winner]}
    rows = []
    for size_class, key in sorted(best.items()):
        last = results[key][-1]
        same = own.get((last.steps, last.folds))
        if same is None or not len(last.right) == len(same.right) > 0:
            continue
        verdict = "winner" if key == winner else compare_sizes(same.right, last.right)
        accuracies = float(last.right.mean()), float(same.right.mean())
        facts = key[0], int(params[key[0]]), last.steps, len(last.right)
        rows.append(LadderRow(SHARES[size_class], *facts, *accuracies, verdict))
    return rows


def compare_sizes(winner: Flags, other: Flags) -> str:
    """Return how a racer's right pixels compare with the winner's: a verdict of `LadderRow`."""
    if compare_answers(other, winner)[2]:
        return "below"
    return "above" if compare_answers(winner, other)[2] else "as good"


def smaller_ones(rows: Sequence[LadderRow]) -> list[tuple[LadderRow, str]]:
    """Return the rows of networks that are smaller than the winner, each with a line about it."""
    (params,) = [row.params for row in rows if row.verdict == "winner"] or [0]
    words = {
        "below": "below it by more than chance",
        "above": "above it by more than chance",
        "as good": "as good within chance",
    }
    return [
        (
            row,
            f"{row.params:,} parameters, {row.params / params:.0%} of the winner's: accuracy "
            f"{row.accuracy:.3f} beside {row.winner_accuracy:.3f} on {row.pixels} held-out pixels "
            f"after {row.steps} steps, {words[row.verdict]}",
        )
        for row in rows
        if row.params < params
    ]
