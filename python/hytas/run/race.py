"""The end of a search: finalists trained briefly, and ranked on validation pixels."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from hytas.errors import InputError, is_out_of_memory
from hytas.run.context import RunContext
from hytas.run.proposals import (
    Proposals,
    Trained,
    describe_predictor,
    diverse,
    global_genes,
    waves,
)
from hytas.run.report import Report
from hytas.run.rounds import RoundResult, best_first, round_results
from hytas.run.trials import Trial, race_folds, run_trials
from hytas.run.workers import end_workers
from hytas.search import Evaluation, EvaluationStore

KEEP = 2
"""One finalist of so many goes on to the next round, which trains so many times longer."""
LAST = 2
"""So many, at the least, are trained in full."""


def race(
    context: RunContext,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    report: Report,
    earlier: Sequence[Trained] = (),
) -> tuple[Evaluation, dict[str, Any]]:
    """The winner of successive halving among diverse finalists.

    Every round trains its networks from the start, each with a whole short schedule; in the last
    one two are trained in full, or more where rounds grow to full length sooner. Where validation
    pixels are few, each is trained once a fold, so that other training pixels validate in turn
    (`hytas.run.trials`).
    They are ranked by their accuracy on validation pixels under other light
    (`hytas.train.shifted_accuracy`), averaged over the rounds so far, each of which counts by its
    length: the first rounds favour who learns fast, and on an easy scene the long ones tell good
    networks no longer apart (Ru et al., Speedy Performance Estimation for Neural Architecture
    Search, NeurIPS 2021). No test pixel is read.
    Where all of a round fail, those next best take their place. What was trained is in the store,
    so a race that was stopped trains nothing twice. With the strategy "predictor" a regressor
    fitted on what was trained so far names finalists, too (`hytas.run.proposals`).
    Source: Jamieson and Talwalkar, Non-stochastic best arm identification, AISTATS 2016.

    Args:
        ranked: evaluations of the search, the best first.
        store: holds the trainings.
        earlier: trainings of earlier runs in the same space, for the predictor.

    Returns:
        The winner, and what is to be kept of the predictor ({} without one).

    Raises:
        InputError: the training of every finalist failed.
        OSError: a process that trained was killed.
    """
    try:
        return _race(context, ranked, store, report, earlier)
    finally:
        end_workers(context)


def _race(
    context: RunContext,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    report: Report,
    earlier: Sequence[Trained],
) -> tuple[Evaluation, dict[str, Any]]:
    train = _trainer(context, store, report)
    steps = first_steps(context)
    count = min(finalist_count(context), len(ranked))
    folds = len(race_folds(context))
    each = f", on {folds} folds" if folds > 1 else ""
    report.line(f"race: {count} finalists, {steps} steps each{each}")
    found: dict[str, Any] = {}
    if context.config.predicts:
        proposals = Proposals(ranked, earlier, context.config.seed)
        left, results = _proposed(proposals, count, lambda wave: train(wave, steps))
        found = proposals.report()
        report.line(describe_predictor(found))
    else:
        left = diverse(ranked, count)
        results = train(left, steps)
    rounds = {result.id: [result] for result in results}
    further = _further_rounds(context, len(left), steps)
    left = best_first(left, rounds)
    for size, length in further:
        waiting, left = left, []
        while waiting and not left:
            chosen, waiting = waiting[:size], waiting[size:]
            report.line(f"race: {len(chosen)} finalists, {length} steps each{each}")
            results = train(chosen, length)
            for result in results:
                rounds[result.id].append(result)
            left = best_first(chosen, rounds)
    if not left:
        raise InputError(
            f"race: the training of every finalist failed; the first: {results[0].reason}"
        )
    return left[0], found


def _further_rounds(context: RunContext, count: int, steps: int) -> list[tuple[int, int]]:
    """Finalists and steps of the rounds after the first."""
    recipe, pixels = context.config.recipe, len(context.split.train)
    full = recipe.epochs_for(pixels) * recipe.steps_per_epoch(pixels)
    limit = full or math.inf  # 0: nothing is trained after the race
    rounds = []
    while math.ceil(count / KEEP) > LAST and steps < limit:
        count, steps = math.ceil(count / KEEP), int(min(steps * KEEP, limit))
        rounds.append((count, steps))
    return [*rounds, (LAST, full)] if count > 1 and full > steps else rounds


def _trainer(
    context: RunContext, store: EvaluationStore, report: Report
) -> Callable[[Sequence[Evaluation], int], list[RoundResult]]:
    """What trains finalists for so many steps, or takes from the store what was trained before."""
    folds = len(race_folds(context))

    def train(chosen: Sequence[Evaluation], steps: int) -> list[RoundResult]:
        by_id = {finalist.id: finalist for finalist in chosen}
        done = [
            item
            for item in store.trainings()
            if item.steps == steps
            and item.id in by_id
            and item.fold < folds
            # For want of memory, which there may be now.
            and not is_out_of_memory(item.reason)
        ]
        known = {(item.id, item.fold) for item in done}
        trials = [Trial(item, fold) for item in chosen for fold in range(folds)]
        missing = [trial for trial in trials if (trial.finalist.id, trial.fold) not in known]
        for result in round_results(done):
            if result.folds == folds:
                report.line(_describe(by_id[result.id], result))
        for training in run_trials(context, missing, steps):
            store.add_training(training)
            done.append(training)
            own = [item for item in done if item.id == training.id]
            if len(own) == folds:
                report.line(_describe(by_id[training.id], *round_results(own)))
        results = {result.id: result for result in round_results(done)}
        return [results[finalist.id] for finalist in chosen]

    return train


def _proposed(
    proposals: Proposals, count: int, train: Callable[[Sequence[Evaluation]], list[RoundResult]]
) -> tuple[list[Evaluation], list[RoundResult]]:
    """`count` finalists and their trainings, each wave chosen by what those before it taught."""
    left: list[Evaluation] = []
    results: list[RoundResult] = []
    for wave in waves(count):
        chosen = proposals.next(wave)
        taught = train(chosen)
        proposals.learn(chosen, taught)
        left += chosen
        results += taught
    return left, results


def finalist_count(context: RunContext) -> int:
    """How many are to race: as configured, or the usual number where there is what to rank on.

    Raises:
        InputError: a race was asked for, and the split has no validation pixels.
    """
    config = context.config
    if len(context.split.validation):
        return config.finalists or config.usual_finalists
    if config.predicts:
        raise InputError(
            "strategy predictor: learns from a race, which ranks on validation pixels, and the "
            "split has none; take more training pixels, or another strategy"
        )
    if (config.finalists or 1) > 1:
        raise InputError(
            f"finalists {config.finalists}: a race ranks on validation pixels, and the split has "
            "none; ask for --finalists 1"
        )
    return 1


def first_steps(context: RunContext) -> int:
    """Optimiser steps of the first round."""
    config = context.config
    if config.race_epochs is None:
        return config.race_steps
    return config.race_epochs * config.recipe.steps_per_epoch(len(context.split.train))


def _describe(finalist: Evaluation, result: RoundResult) -> str:
    genes = ", ".join(
        f"{name} {value}" for name, value in global_genes(finalist.architecture) if name != "space"
    )
    if result.reason:
        return f"  {result.steps} steps: failed: {result.reason} ({genes})"
    return (
        f"  {result.steps} steps: validation OA {result.oa:.3f}, "
        f"under other light {result.shifted_oa:.3f}, "
        f"probability {result.probability:.3f} ({genes})"
    )
