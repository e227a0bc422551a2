"""The consensus of a race: what its best racers together say of pixels without a label.

Networks of different kinds err in different places, so their vote is right more often than most of
them. A racer that agrees with it is probably right elsewhere, too: on thousands of pixels, where
validation pixels are tens, and far from them as well. But a vote prefers what is in the middle: of
racers with patches of 3, 5 and 7 pixels, those with 5 agree most. So agreement does not decide
alone. No label is read.

Sources: Madani, Pennock and Flake, Co-Validation: Using Model Disagreement on Unlabeled Data to
Validate Classification Algorithms, NIPS 2004; Jiang et al., Assessing Generalization of SGD via
Disagreement, ICLR 2022. Measurements: docs/log.md.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hytas.race.racers import Key
from hytas.search import unpack_classes

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
    answers: Mapping[Key, Sequence[bytes]], standings: Mapping[Key, float]
) -> dict[Key, float]:
    """Return the share of pixels at which each racer gives the class with most votes.

    Args:
        answers: key -> packed classes of each fold, of the longest rung that a racer ran.
        standings: of the same racers; larger is better.

    Returns:
        Key -> agreement in 0..1; of a racer with several folds the mean. Empty if some racer has no
        answers, or was asked another number of pixels.
    """
    lengths = {len(each) for packed in answers.values() for each in packed}
    if len(lengths) != 1 or not all(answers.values()):
        return {}
    weights = weights_of({key: standings[key] for key in answers})
    votes = count_votes([(weight, answers[key]) for key, weight in weights.items()])
    consensus = votes.argmax(axis=1)
    return {
        key: float(np.mean([unpack_classes(each) == consensus for each in packed]))
        for key, packed in answers.items()
    }
