"""The consensus of a race: what its best racers together say of pixels without a label.

Networks of different kinds err in different places, so their vote is right more often than most of
them. A racer that agrees with it is probably right elsewhere, too: on thousands of pixels, where
validation pixels are tens, and far from them as well. But a vote prefers what is in the middle: of
racers with patches of 3, 5 and 7 pixels, those with 5 agree most. So agreement does not decide
alone. No label is read.

Methods that do not race may vote, too: an SVM and a random forest, which see single spectra. On
some scenes they are better than most racers, and on others far worse. So a method votes unless the
racers that vote are ahead of it.

Sources: Madani, Pennock and Flake, Co-Validation: Using Model Disagreement on Unlabeled Data to
Validate Classification Algorithms, NIPS 2004; Jiang et al., Assessing Generalization of SGD via
Disagreement, ICLR 2022. Measurements: docs/log.md.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from hytas.race.racers import Key
from hytas.race.results import RungResult
from hytas.search import Ballot, unpack_classes

VOTERS = 6
"""So many racers vote: those of the best standing. Two may be one finalist by two recipes."""

Votes = NDArray[np.float64]


def weights_of(standings: Mapping[Key, float]) -> dict[Key, float]:
    """Return the weight of each racer that votes: its rank among them, the last one's is 1."""
    best = sorted(standings, key=lambda key: -standings[key])[:VOTERS]
    return {key: float(len(best) - place) for place, key in enumerate(best)}


def count_votes(answers: Sequence[tuple[float, Sequence[bytes]]]) -> Votes:
    """Return the share (n, C) of the votes that each class has, at each pixel.

    Args:
        answers: weight of a racer, and its answers: the weight is divided among them.
    """
    ballots = [
        (weight / len(packed), unpack_classes(each))
        for weight, packed in answers
        for each in packed
    ]
    pixels = len(ballots[0][1])
    votes = np.zeros((pixels, 1 + max(int(classes.max()) for _, classes in ballots)))
    for weight, classes in ballots:
        votes[np.arange(pixels), classes] += weight
    shares: Votes = votes / votes.sum(axis=1, keepdims=True)
    return shares


def agreements(
    last: Mapping[Key, RungResult],
    standings: Mapping[Key, float],
    ballots: Sequence[Ballot] = (),
) -> dict[Key, float]:
    """Return the share of pixels at which each racer gives the class with most votes.

    The best of those that ran as many folds as any vote.

    Args:
        last: key -> what the racer said in the longest rung that it ran.
        standings: of the same racers; larger is better.
        ballots: of methods that do not race. Each method has almost half the weight of all racers
            that vote, unless these are ahead of it by more than chance.

    Returns:
        Key -> agreement in 0..1; of a racer with several folds the mean. Empty if some racer has no
        answers, or was asked another number of pixels.
    """
    lengths = {len(each) for said in last.values() for each in said.answers}
    if len(lengths) != 1 or not all(said.answers for said in last.values()):
        return {}
    # Standings of fewer folds are of other pixels.
    most = max(said.folds for said in last.values())
    weights = weights_of({key: standings[key] for key in last if last[key].folds == most})
    votes: list[tuple[float, Sequence[bytes]]] = [
        (weight, last[key].answers) for key, weight in weights.items()
    ]
    almost_half = (sum(weights.values()) - 1) / 2  # two methods do not outvote all racers
    for own in _by_method(ballots):
        fits = all(len(one.answers) == min(lengths) for one in own)
        if fits and not is_behind(own, [last[key] for key in weights]):
            votes.append((almost_half, [one.answers for one in own]))
    consensus = count_votes(votes).argmax(axis=1)
    return {
        key: float(np.mean([unpack_classes(each) == consensus for each in said.answers]))
        for key, said in last.items()
    }


def _by_method(ballots: Sequence[Ballot]) -> list[list[Ballot]]:
    """Return the ballots of each method, by fold."""
    methods = dict.fromkeys(one.method for one in ballots)
    return [
        sorted((one for one in ballots if one.method == method), key=lambda one: one.fold)
        for method in methods
    ]


def is_behind(ballots: Sequence[Ballot], voters: Sequence[RungResult]) -> bool:
    """Return whether racers are ahead of a method by more than chance.

    Each racer is compared with the method on the validation pixels of the folds that it ran. Their
    mean lead, in pixels, must be larger than the square root of the errors of both: a lead by
    chance has at most this standard deviation.

    Args:
        ballots: of the method, by fold.
        voters: the racers that vote.
    """
    leads, errors = [], []
    for racer in voters:
        own = ballots[: racer.folds]
        pixels = sum(one.pixels for one in own)
        wrong = pixels - sum(one.right for one in own)
        of_own = racer.right[:pixels]  # a last rung has more folds than the methods
        accuracy = of_own.mean() if len(of_own) == pixels > 0 else racer.figures["accuracy"]
        expected = pixels * (1 - accuracy)
        leads.append(wrong - expected)
        errors.append(wrong + expected)
    return fmean(leads) > math.sqrt(max(fmean(errors), 0.0))
