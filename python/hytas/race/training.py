"""Train candidates of a search to the lengths that its strategy asks for."""

from collections.abc import Callable, Sequence

from hytas.race.plan import Trial
from hytas.race.race import fit_of, training_of
from hytas.race.results import Racer
from hytas.race.rungs import Rung
from hytas.race.task import RaceTask
from hytas.search import Evaluation
from hytas.workers import Workers


class CandidateTrainer:
    """Trains candidates by the first recipe, on the first fold, at a steady learning rate.

    A longer training of a candidate continues a shorter one. The fits of the task keep each
    training, so a restarted search repeats none.

    Args:
        task: of the race that follows.
        pool: of the workers that train.
        notify: receives a line for each training.
    """

    def __init__(
        self, task: RaceTask, pool: Workers, notify: Callable[[str], None] = lambda _: None
    ) -> None:
        self._task, self._pool, self._notify = task, pool, notify
        self._lengths: dict[int, list[int]] = {}

    def __call__(self, asked: Sequence[tuple[Evaluation, int]]) -> list[dict[str, float]]:
        """Return the figures of each training on validation pixels, in order.

        Args:
            asked: candidates, and the optimiser steps of each in all.

        Returns:
            `hytas.race.rankings.FIGURES`, "steps" and "seconds"; a failed training has the latter
            two alone.
        """
        task, recipe = self._task, next(iter(self._task.recipes))
        trials, fits = [], {}
        for item, steps in asked:
            lengths = self._lengths.setdefault(item.id, [])
            if steps not in lengths:
                lengths.append(steps)
            before = [Rung(1, each, lengths[0]) for each in sorted(lengths) if each < steps]
            trial = Trial(Racer(item, recipe), 0, Rung(1, steps, lengths[0]))
            trials.append(trial)
            fits[trial.key] = trial, fit_of(task, trial, before)
        sent = task.fits.source.packed() if self._pool.elsewhere else None
        wanted = list(fits.values())
        trained = {}
        for place, fitted in task.fits.run(
            [fit for _, fit in wanted], self._pool, sent=sent, weights=True
        ):
            trial = wanted[place][0]
            trained[trial.key] = training = training_of(task, trial, fitted)
            figures = [f"{name} {value:.3f}" for name, value in training.figures.items()]
            reached = figures[0] if figures else training.reason
            self._notify(f"candidate {training.id}: {training.steps} steps: {reached}")
        return [
            {
                **trained[one.key].figures,
                "steps": one.rung.steps,
                "seconds": trained[one.key].seconds,
            }
            for one in trials
        ]
