"""Events that report the progress of a race."""

from typing import NamedTuple

from hytas.race.results import Racer
from hytas.search import Training


class RaceProgress(NamedTuple):
    """A training of the race has ended.

    Attributes:
        rung: number of the rung, from 1.
        rungs: of the race.
        trained: trainings of this rung that have ended.
        trainings: of this rung.
        steps: optimiser steps of all trainings of the race so far.
        all_steps: optimiser steps of the whole race.
        best: racer with the highest accuracy in this rung, and its accuracy on validation pixels;
            None where no racer has been trained on all folds.
        ended: the training that ended; None as a rung begins.
    """

    rung: int
    rungs: int
    trained: int
    trainings: int
    steps: int
    all_steps: int
    best: tuple[Racer, float] | None
    ended: Training | None = None


class RungRow(NamedTuple):
    """A finalist at the end of a rung.

    Attributes:
        racer: the finalist, with the recipe that suits it best.
        accuracy: on validation pixels, None if its training failed.
        score: that it is ranked by, larger is better (`hytas.race.RaceScore.value`).
        kept: whether it is promoted to the next rung; in the last rung, whether it wins.
    """

    racer: Racer
    accuracy: float | None
    score: float
    kept: bool


class RungEnd(NamedTuple):
    """A rung has ended.

    Attributes:
        rung: number of the rung, from 1.
        rungs: of the race.
        steps: optimiser steps of a training up to here.
        folds: that each finalist is trained on.
        rows: finalists of the rung, the best first.
    """

    rung: int
    rungs: int
    steps: int
    folds: int
    rows: tuple[RungRow, ...]
