"""The end of a search: finalists are trained briefly and ranked on validation pixels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hytas.errors import InputError, is_out_of_memory
from hytas.race.finalists import diverse, global_genes
from hytas.race.rankings import USUAL_RANKING, Ranking, find_ranking
from hytas.race.rungs import plan_rungs
from hytas.race.standings import RungResult, best_first, rung_results
from hytas.race.task import RaceTask
from hytas.race.trials import Trial, run_trials
from hytas.race.workers import Workers, worker_count
from hytas.search import Evaluation, EvaluationStore, Training

Tell = Callable[[str], None]


def race(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    *,
    finalists: int,
    steps: int,
    ranking: str = USUAL_RANKING,
    workers: int | None = None,
    tell: Tell = lambda _: None,
) -> Evaluation:
    """Return the winner of successive halving among diverse finalists.

    Every rung trains its finalists from the start, each with a whole short schedule
    (`hytas.race.plan_rungs`). Where validation pixels are few, each finalist is trained once a
    fold, so that other pixels validate in turn. Finalists are ranked by the mean over their rungs
    so far, each of which counts by its length: early rungs favour networks that learn fast, and on
    an easy scene the late ones no longer tell good networks apart (Ru et al., Speedy Performance
    Estimation for Neural Architecture Search, NeurIPS 2021). No test pixel is read.

    If all finalists of a rung fail, the next best take their place. Every training is kept in the
    store, so a race that was stopped trains nothing twice.

    Source: Jamieson and Talwalkar, Non-stochastic best arm identification, AISTATS 2016.

    Args:
        task: how to train a finalist.
        ranked: evaluations of the search, the best first.
        store: keeps the trainings.
        finalists: of the first rung; all of `ranked` if there are fewer.
        steps: optimiser steps of the first rung.
        ranking: name of one of `hytas.race.RANKINGS`.
        workers: processes that train side by side; None takes one a core.
        tell: receives a line for each rung and each finalist.

    Raises:
        InputError: the training of every finalist failed, or an unknown ranking.
        OSError: a process that trained was killed.
    """
    merit = find_ranking(ranking)
    if workers is None:
        workers = worker_count(task.device, task.labelled.patch_bytes)
    waiting = diverse(ranked, finalists)
    found: dict[int, list[RungResult]] = {}
    with Workers(workers) as pool:
        trainer = _Trainer(task, store, pool, merit, tell)
        for rung in plan_rungs(len(waiting), steps, task.final_steps):
            left: list[Evaluation] = []
            while waiting and not left:
                chosen, waiting = waiting[: rung.finalists], waiting[rung.finalists :]
                results = trainer.train(chosen, rung.steps)
                for result in results:
                    found.setdefault(result.id, []).append(result)
                left = best_first(chosen, found, merit)
            waiting = left
    if not waiting:
        raise InputError(
            f"race: the training of every finalist failed; the first: {results[0].reason}"
        )
    return waiting[0]


@dataclass(frozen=True, eq=False)
class _Trainer:
    """Trains the finalists of a rung, or takes from the store what was trained before."""

    task: RaceTask
    store: EvaluationStore
    workers: Workers
    ranking: Ranking
    tell: Tell

    def train(self, chosen: Sequence[Evaluation], steps: int) -> list[RungResult]:
        """Return what each of `chosen` reaches with so many steps, in their order."""
        folds = len(self.task.folds)
        each = f", on {folds} folds" if folds > 1 else ""
        self.tell(f"race: {len(chosen)} finalists, {steps} steps each{each}")
        done = self._known(chosen, steps)
        by_id = {finalist.id: finalist for finalist in chosen}
        for result in rung_results(done):
            if result.folds == folds:
                self.tell(_describe(by_id[result.id], result))
        known = {(item.id, item.fold) for item in done}
        trials = [Trial(item, fold) for item in chosen for fold in range(folds)]
        missing = [trial for trial in trials if (trial.finalist.id, trial.fold) not in known]
        for training in run_trials(self.task, missing, steps, self.workers):
            self.store.add_training(training)
            done.append(training)
            own = [item for item in done if item.id == training.id]
            if len(own) == folds:
                self.tell(_describe(by_id[training.id], *rung_results(own)))
        results = {result.id: result for result in rung_results(done)}
        return [results[finalist.id] for finalist in chosen]

    def _known(self, chosen: Sequence[Evaluation], steps: int) -> list[Training]:
        """The trainings of this rung that the store holds."""
        ids = {finalist.id for finalist in chosen}
        return [
            item
            for item in self.store.trainings()
            if item.steps == steps
            and item.id in ids
            and item.fold < len(self.task.folds)
            and self._counts(item)
        ]

    def _counts(self, training: Training) -> bool:
        """Whether a training is not to be done again."""
        if training.reason:  # where memory was short, there may be enough now
            return not is_out_of_memory(training.reason)
        try:
            self.ranking(training.figures)
        except KeyError:  # kept before this figure was measured
            return False
        return True


def _describe(finalist: Evaluation, result: RungResult) -> str:
    genes = ", ".join(
        f"{name} {value}" for name, value in global_genes(finalist.architecture) if name != "space"
    )
    if result.reason:
        return f"  {result.steps} steps: failed: {result.reason} ({genes})"
    figures = ", ".join(
        f"{name.replace('_', ' ')} {value:.3f}" for name, value in result.figures.items()
    )
    return f"  {result.steps} steps: {figures} ({genes})"
