"""Race finalists by a plan: do the trainings that it needs, until it has a winner."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hytas.errors import InputError
from hytas.race.events import RaceEvents, RaceListener
from hytas.race.finalists import describe_genes
from hytas.race.plan import RacePlan, RungRanks, Trial, TrialBatch, Winner
from hytas.race.results import BEFORE_CONVERSION, Racer, RungResult, key_of, rung_results
from hytas.race.rungs import Rung
from hytas.race.task import RaceTask
from hytas.search import Evaluation, EvaluationStore, Training, pack_merits
from hytas.train import Recipe, Schedule
from hytas.train.fit import Fit, Fitted
from hytas.workers import Workers, WorkersLike, open_workers

HELD_OUT = "held out"
"""Name of the pixels whose classes a training of a race predicts."""


def race(
    task: RaceTask,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    *,
    workers: WorkersLike = None,
    listener: RaceListener | None = None,
    until: Callable[[], bool] | None = None,
) -> Racer:
    """Return the winner of successive halving among diverse finalists, and its recipe.

    Finalists are of all sizes (`hytas.race.diverse`). In the first rung each finalist is
    trained by the first recipe, and the better half by each further recipe that makes a difference
    to it (`RaceTask.recipes_for`). A finalist keeps its best recipe. Each rung continues the
    trainings of the rung before (`hytas.race.plan_rungs`). A finalist is trained once for each
    fold. Early rungs, of many finalists, take only the folds that they need (`RaceTask.folds_of`).
    The last rung takes all folds and compares finalists pixel by pixel: a finalist that is behind
    by more than two standard deviations of chance does not win (`hytas.race.rungs.choose_winner`).

    Finalists are ranked by the mean probability of the true class on validation pixels
    (`hytas.race.RANKINGS`). No test label is read.

    With `task.front` those are promoted that no other beats in costs and score
    (`hytas.race.front`), and more of them reach the last rung. The most accurate of these wins.

    If all finalists of a rung fail, the next best take their place. The fits of the task keep every
    training, so a restarted race repeats none.

    Source: Jamieson and Talwalkar, Non-stochastic best arm identification, AISTATS 2016.

    Args:
        task: of the race.
        ranked: evaluations of the search, the best first.
        store: receives the trainings.
        workers: that train finalists in parallel (`hytas.workers.open_workers`): a number of
            processes, a text of `workers`, or an executor. None starts one process a core, or as
            many as the memory of a GPU allows.
        listener: is told of rungs, finalists and trainings; None is nobody.
        until: ends the race: the best of the last rung that ended wins, or of those that were
            trained in the first rung; at least one is. Without it the trainings that take longest
            begin first, so that no worker waits long for the end of a rung.

    Raises:
        InputError: the training of every finalist failed, or an unknown ranking.
        OSError: a worker that trained was lost.
    """
    plan = RacePlan(task, ranked)
    events = RaceEvents(task, plan.rungs, plan.trainings, listener or RaceListener())
    on_cpu, sent = task.fits.source.device.type == "cpu", task.fits.source.patch_bytes
    device = task.fits.source.device
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=sent, shared_gpu=device) as pool:
        trainer = _Trainer(task, store, pool, events, until)
        walk = plan.walk()
        step = next(walk)
        while not isinstance(step, Winner):
            if isinstance(step, TrialBatch):
                reply = trainer.train(step)
            else:
                trainer.end(step)
            step = walk.send(reply)
    task.fits.keep_weights()
    if step.cut_short:
        events.line("the time of the race is over: the best of the last rung that ended wins")
    if step.racer is None:
        rule = "the training of every finalist failed"
        raise InputError("race", rule=rule, hint=f"the first: {step.reason}")
    return step.racer


class _Trainer:
    """Does the trainings of a race, and tells how far it is."""

    def __init__(
        self,
        task: RaceTask,
        store: EvaluationStore,
        pool: Workers,
        events: RaceEvents,
        until: Callable[[], bool] | None,
    ) -> None:
        self.task, self.store, self.pool, self.until = task, store, pool, until
        self.events, self.rungs = events, events.rungs
        self.results: dict[Any, Training] = {}

    def is_over(self) -> bool:
        """Return whether the time of the race is over."""
        return self.until is not None and self.until()

    def train(self, batch: TrialBatch) -> tuple[dict[Any, Training], bool]:
        """Do the trainings of a batch; return all so far, and whether the time is over."""
        rung, folds = self.rungs[batch.rung], batch.folds
        if batch.joins:
            self.events.extend(len(batch.racers) * folds)
        self.events.line(self._announce(batch.racers, rung.steps, folds))
        trials = list(batch.trials)
        if self.until is None:
            trials.sort(key=lambda one: (-one.racer.finalist.costs.get("macs", 0), -one.fold))
        fits = [self._fit(one, batch.rung) for one in trials]
        found = ((at, self.task.fits.get(fit)) for at, fit in enumerate(fits))
        done = {at: fitted for at, fitted in found if fitted is not None}
        own = [self._keep(trials[at], fitted) for at, fitted in done.items()]
        racing = batch.before + len(batch.racers) + batch.following
        self.events.begin(rung, racing * folds, batch.before * folds + len(done))
        by_key = {racer.key: racer for racer in batch.racers}
        for result in rung_results(own):
            if result.folds == folds:
                self.events.result((by_key[result.key], result))
                self.events.line(self._describe(by_key[result.key], result))

        def ends_here() -> bool:
            if not self.is_over():
                return False
            complete = any(one.folds == folds for one in rung_results(own))
            return not batch.may_end or bool(batch.before) or complete

        missing = [at for at in range(len(trials)) if at not in done]
        if not missing or ends_here():
            return self.results, self.is_over()
        sent = self.task.fits.source.packed() if self.pool.elsewhere else None
        wanted = [fits[at] for at in missing]
        for place, fitted in self.task.fits.run(wanted, self.pool, sent=sent):
            trial = trials[missing[place]]
            training = self._keep(trial, fitted)
            own.append(training)
            mine = [item for item in own if key_of(item) == key_of(training)]
            (result,) = rung_results(mine)
            whole = (trial.racer, result) if len(mine) == folds else None
            self.events.trained(training, whole)
            if whole is not None:
                self.events.line(self._describe(*whole))
            if len(own) < len(trials) and ends_here():
                break
        return self.results, self.is_over()

    def _fit(self, trial: Trial, rung: int) -> Fit:
        """Return the fit of a trial; in the last rung the target makes its predictions."""
        fit = fit_of(self.task, trial, self.rungs[:rung])
        is_last = rung == len(self.rungs) - 1
        return replace(fit, target=self.task.target) if is_last else fit

    def _keep(self, trial: Trial, fitted: Fitted) -> Training:
        training = training_of(self.task, trial, fitted)
        self.store.add_training(training)
        self.results[trial.key] = training
        return training

    def end(self, ranks: RungRanks) -> None:
        """Tell the ranks of a rung, and remove the weights that no later rung goes on from."""
        self.events.end(ranks.racers, ranks.kept, ranks.results, ranks.scores)
        rung = self.rungs[ranks.rung]
        folds = range(self.task.folds_of(rung))
        self.task.fits.keep_weights(
            self._fit(Trial(racer, fold, rung), ranks.rung)
            for racer in ranks.racers
            for fold in folds
        )

    def _announce(self, racers: Sequence[Racer], steps: int, folds: int) -> str:
        if racers[0].finalist in self.task.linear:
            return f"race: {len(racers)} networks in closed form, fitted on {folds} folds"
        recipes = list(dict.fromkeys(racer.recipe for racer in racers))
        finalists = len({racer.finalist.id for racer in racers})
        names = " and ".join([", ".join(recipes[:-1]), recipes[-1]])
        by = f", by the recipes {names}" if len(racers) > finalists else ""
        each = f", on {folds} folds" if folds > 1 else ""
        return f"race: {finalists} finalists, {steps} steps each{by}{each}"

    def _describe(self, racer: Racer, result: RungResult) -> str:
        name = self._name(racer)
        if result.reason:
            return f"  {result.steps} steps: failed: {result.reason} ({name})"
        figures = ", ".join(
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in result.figures.items()
        )
        return f"  {result.steps} steps: {figures} ({name})"

    def _name(self, racer: Racer) -> str:
        by = f"{racer.recipe} recipe, " if len(self.task.recipes) > 1 else ""
        return by + describe_genes(racer.finalist.architecture)


def fit_of(task: RaceTask, trial: Trial, before: Sequence[Rung] = ()) -> Fit:
    """Return the fit of a trial, which may go on where those of the rungs before ended."""
    racer, fold, rung = trial
    recipe = task.recipes[racer.recipe]
    trained, held_out = task.all_folds[fold]
    shorter = None
    if before:
        shorter = fit_of(task, Trial(racer, fold, before[-1]), before[:-1])
    classes = {HELD_OUT: held_out}
    return Fit(
        racer.finalist.architecture,
        replace(recipe, patience=1.0),  # no early stopping, because another rung may follow
        task.seed,
        trained,
        held_out,
        rung_schedule(rung, recipe, len(trained)),
        classes=classes,
        shorter=shorter,
    )


def training_of(task: RaceTask, trial: Trial, fitted: Fitted) -> Training:
    """Return the figures of a fit for the ranking, as an evaluation store keeps them."""
    _, held_out = task.all_folds[trial.fold]
    figures: dict[str, float] = {}
    right = b""
    if not fitted.reason:
        best = fitted.best
        assert best.validation_oa is not None
        assert best.validation_probability is not None
        labelled = task.fits.source.labelled(held_out)
        epoch = fitted.converted or (best.validation_oa, best.validation_probability)
        figures = labelled.task.race_figures(epoch)
        if fitted.converted is not None:
            figures[BEFORE_CONVERSION] = best.validation_oa
        merits = labelled.task.merits(fitted.classes[HELD_OUT], labelled.targets)
        right = pack_merits(merits)
    return Training(
        *trial.racer.key,
        trial.rung.steps,
        trial.fold,
        len(held_out),
        figures,
        fitted.seconds,
        fitted.reason,
        right,
    )


def rung_schedule(rung: Rung, recipe: Recipe, pixels: int) -> Schedule:
    """Return the schedule of a rung.

    The learning rate stays at its peak, so the next rung can continue. In the last rung it
    falls, beginning at the end of the rung before.

    Args:
        rung: of `plan_rungs`.
        recipe: of the racer.
        pixels: training pixels.
    """

    def epochs(steps: int) -> int:
        return max(1, -(-steps // recipe.steps_per_epoch(pixels)))

    warmup = recipe.warmup * rung.first
    if rung.before is None:
        return Schedule(epochs(rung.steps), warmup, None)
    steady = epochs(rung.before) * recipe.steps_per_epoch(pixels)
    return Schedule(epochs(rung.steps), warmup, float(steady))
