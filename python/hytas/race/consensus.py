"""Agreement of finalists with a vote on unlabelled pixels.

Networks of different kinds err in different places, so their majority is right more often than most
of them. A finalist that agrees with the majority is likely to generalise. The vote covers up to a
thousand pixels, also far from the few validation pixels. But a vote prefers the middle: of
finalists with patches of 3, 5 and 7 pixels, those with 5 agree most. So agreement does not decide
alone. No label is read.

Reference methods may vote, too: an SVM and a random forest, which see single spectra. On some
scenes they are better than most finalists, and on others far worse. So a method votes unless the
finalists that vote are ahead of it.

Sources: Madani, Pennock and Flake, Co-Validation: Using Model Disagreement on Unlabeled Data to
Validate Classification Algorithms, NIPS 2004; Jiang et al., Assessing Generalization of SGD via
Disagreement, ICLR 2022. Measurements: notes/decisions.md.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from hytas.race.results import RungResult, TrialKey
from hytas.search import MethodVote, unpack_classes

VOTERS = 6
"""Racers that vote: those of the best validation score. Two may be one finalist by two recipes."""

Shares = NDArray[np.float64]


def weights_of(scores: Mapping[TrialKey, float]) -> dict[TrialKey, float]:
    """Return the weight of each racer that votes: its rank among the voters; the last one has 1."""
    best = sorted(scores, key=lambda key: -scores[key])[:VOTERS]
    return {key: float(len(best) - rank) for rank, key in enumerate(best)}


def count_votes(predictions: Sequence[tuple[float, Sequence[bytes]]]) -> Shares:
    """Return the share (n, C) of the votes that each class has, at each pixel.

    Args:
        predictions: weight of a voter, and its packed classes by fold, which share the weight.
    """
    votes = [
        (weight / len(folds), unpack_classes(packed))
        for weight, folds in predictions
        for packed in folds
    ]
    pixels = len(votes[0][1])
    sums = np.zeros((pixels, 1 + max(int(classes.max()) for _, classes in votes)))
    for weight, classes in votes:
        sums[np.arange(pixels), classes] += weight
    shares: Shares = sums / sums.sum(axis=1, keepdims=True)
    return shares


def agreements(
    results: Mapping[TrialKey, RungResult],
    scores: Mapping[TrialKey, float],
    method_votes: Sequence[MethodVote] = (),
) -> dict[TrialKey, float]:
    """Return the share of pixels at which each racer predicts the class with most votes.

    The best racers vote, of those that were trained on the most folds.

    Args:
        results: key -> result of the longest rung that the racer ran.
        scores: validation scores of the racers that may vote; larger is better.
        method_votes: of reference methods. Each method has almost half the weight of all racers
            that vote, unless these are ahead of it by more than chance.

    Returns:
        Key -> agreement in 0..1; of a racer with several folds the mean. Empty if predictions of
        a racer are missing, or their lengths differ.
    """
    lengths = {len(packed) for result in results.values() for packed in result.predictions}
    if len(lengths) != 1 or not all(result.predictions for result in results.values()):
        return {}
    # Scores of fewer folds are of other pixels.
    most = max(results[key].folds for key in scores)
    weights = weights_of({key: scores[key] for key in scores if results[key].folds == most})
    votes: list[tuple[float, Sequence[bytes]]] = [
        (weight, results[key].predictions) for key, weight in weights.items()
    ]
    almost_half = (sum(weights.values()) - 1) / 2  # two methods do not outvote all racers
    for folds in by_method(method_votes):
        fits = all(len(vote.predictions) == min(lengths) for vote in folds)
        if fits and not is_behind(folds, [results[key] for key in weights]):
            votes.append((almost_half, [vote.predictions for vote in folds]))
    majority = count_votes(votes).argmax(axis=1)
    return {
        key: float(np.mean([unpack_classes(packed) == majority for packed in result.predictions]))
        for key, result in results.items()
    }


def by_method(votes: Sequence[MethodVote]) -> list[list[MethodVote]]:
    """Return the votes of each method, by fold."""
    methods = dict.fromkeys(vote.method for vote in votes)
    return [
        sorted((vote for vote in votes if vote.method == method), key=lambda vote: vote.fold)
        for method in methods
    ]


def is_behind(votes: Sequence[MethodVote], racers: Sequence[RungResult]) -> bool:
    """Return whether racers are ahead of a method by more than chance.

    Each racer is compared with the method on the validation pixels of the folds that it ran. Their
    mean lead, in pixels, must be larger than the square root of the errors of both: a lead by
    chance has at most this standard deviation.

    Args:
        votes: of the method, by fold.
        racers: the racers that vote.
    """
    leads, errors = [], []
    for racer in racers:
        folds = votes[: racer.folds]
        pixels = sum(vote.pixels for vote in folds)
        wrong = pixels - sum(vote.right for vote in folds)
        right = racer.right[:pixels]  # a last rung has more folds than the methods
        accuracy = right.mean() if len(right) == pixels > 0 else racer.figures["accuracy"]
        expected = pixels * (1 - accuracy)
        leads.append(wrong - expected)
        errors.append(wrong + expected)
    return fmean(leads) > math.sqrt(max(fmean(errors), 0.0))
