"""The consensus of a race: what its best racers together say of pixels without a label.

Networks of different kinds err in different places, so their vote is right more often than most of
them. A racer that agrees with it is probably right elsewhere, too: on thousands of pixels, where
validation pixels are tens, and far from them as well. But a vote prefers what is in the middle: of
racers with patches of 3, 5 and 7 pixels, those with 5 agree most. So agreement does not decide
alone. No label is read.

An SVM and a random forest see single spectra, and race no network. On some scenes they are better
than most racers. So they vote, too, unless the racers that vote are ahead of them.

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
    answers: Mapping[Key, Sequence[bytes]],
    standings: Mapping[Key, float],
    accuracies: Mapping[Key, float] | None = None,
    ballots: Sequence[Ballot] = (),
) -> dict[Key, float]:
    """Return the share of pixels at which each racer gives the class with most votes.

    Args:
        answers: key -> packed classes of each fold, of the longest rung that a racer ran.
        standings: of the same racers; larger is better.
        accuracies: of the same racers on validation pixels, in 0..1; needed with ballots.
        ballots: of methods that do not race. Each method has half the weight of all racers that
            vote, unless these are ahead of it by more than chance.

    Returns:
        Key -> agreement in 0..1; of a racer with several folds the mean. Empty if some racer has no
        answers, or was asked another number of pixels.
    """
    lengths = {len(each) for packed in answers.values() for each in packed}
    if len(lengths) != 1 or not all(answers.values()):
        return {}
    weights = weights_of({key: standings[key] for key in answers})
    votes = [(weight, answers[key]) for key, weight in weights.items()]
    if ballots and accuracies:
        accuracy = fmean(accuracies[key] for key in weights)
        half = sum(weights.values()) / 2
        votes += [(half, packed) for packed in admitted(ballots, accuracy, lengths.pop())]
    consensus = count_votes(votes).argmax(axis=1)
    return {
        key: float(np.mean([unpack_classes(each) == consensus for each in packed]))
        for key, packed in answers.items()
    }


def admitted(ballots: Sequence[Ballot], accuracy: float, length: int) -> list[list[bytes]]:
    """Return the answers of each method that racers are not ahead of, for each fold.

    A lead counts if it is larger than its standard deviation by chance, the square root of the
    errors of both (`hytas.metrics.compare_answers`).

    Args:
        ballots: of all methods.
        accuracy: mean of the racers that vote.
        length: of the answers of racers, in bytes; ballots on other pixels do not count.
    """
    found = []
    for method in dict.fromkeys(one.method for one in ballots):
        own = [one for one in ballots if one.method == method]
        pixels = sum(one.pixels for one in own)
        wrong, expected = pixels - sum(one.right for one in own), pixels * (1 - accuracy)
        fits = all(len(one.answers) == length for one in own)
        if fits and wrong - expected <= math.sqrt(wrong + max(expected, 0.0)):
            found.append([one.answers for one in own])
    return found
