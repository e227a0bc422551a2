"""The end of a search: finalists trained briefly, and ranked on validation pixels."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hytas.errors import InputError
from hytas.models import build_network
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
from hytas.search import Evaluation, EvaluationStore, Training
from hytas.train import retrain

FINALISTS = 16
KEEP = 4
"""One finalist of so many goes on to the next round, which trains so many times longer."""


def race(
    context: RunContext,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    report: Report,
    earlier: Sequence[Trained] = (),
) -> tuple[Evaluation, dict[str, Any]]:
    """The winner of successive halving among diverse finalists.

    Every round trains its networks from the start, each with a whole short schedule, and ranks
    them by the mean probability that validation pixels give to their class. No test pixel is read.
    What was trained is in the store, so a race that was stopped trains nothing twice. With the
    strategy "predictor" only the first finalists are the proxy's; a regressor fitted on what was
    trained so far names the others (`hytas.run.proposals`).
    Source: Jamieson and Talwalkar, Non-stochastic best arm identification, AISTATS 2016.

    Args:
        ranked: evaluations of the search, the best first.
        store: holds the trainings.
        earlier: trainings of earlier runs in the same space, for the predictor.

    Returns:
        The winner, and what is to be kept of the predictor ({} without one).

    Raises:
        InputError: the split has no validation pixels.
    """
    config = context.config
    if len(context.split.validation) == 0:
        raise InputError(
            f"finalists {config.finalists}: a race ranks on validation pixels, and the split has "
            "none; ask for --finalists 1"
        )
    known = {(item.id, item.steps): item for item in store.trainings()}

    def trained(chosen: Sequence[Evaluation], steps: int) -> list[Training]:
        results = []
        for finalist in chosen:
            if (finalist.id, steps) not in known:
                training = _train(context, finalist, steps)
                store.add_training(training)
                known[finalist.id, steps] = training
            results.append(known[finalist.id, steps])
            report.line(_describe(finalist, results[-1]))
        return results

    steps = first_steps(context)
    count = min(finalists(context), len(ranked))
    report.line(f"race: {count} finalists, {steps} steps each")
    found: dict[str, Any] = {}
    if config.strategy == "predictor":
        proposals = Proposals(ranked, earlier, config.seed)
        left, results = [], []
        for wave in waves(count):
            chosen = proposals.next(wave)
            left += chosen
            results += trained(chosen, steps)
            proposals.learn(chosen, results[-len(chosen) :])
        found = proposals.report()
        report.line(describe_predictor(found))
    else:
        left = diverse(ranked, count)
        results = trained(left, steps)
    while len(left) > 1:
        # The better of the proxy comes first in `left`, and stays first among equals.
        order = sorted(range(len(left)), key=lambda place: -results[place].probability)
        left = [left[place] for place in order[: math.ceil(len(left) / KEEP)]]
        if len(left) > 1:
            steps *= KEEP
            report.line(f"race: {len(left)} finalists, {steps} steps each")
            results = trained(left, steps)
    return left[0], found


def finalists(context: RunContext) -> int:
    """How many are to race: as configured, or the usual number where there is what to rank on."""
    if context.config.finalists is not None:
        return context.config.finalists
    return FINALISTS if len(context.split.validation) else 1


def first_steps(context: RunContext) -> int:
    """Optimiser steps of the first round."""
    config = context.config
    if config.race_epochs is None:
        return config.race_steps
    return config.race_epochs * config.recipe.steps_per_epoch(len(context.split.train))


def _train(context: RunContext, finalist: Evaluation, steps: int) -> Training:
    config = context.config
    network = build_network(
        finalist.architecture, context.shape, drop_path=config.recipe.drop_path, seed=config.seed
    )
    result = retrain(
        network,
        context.labelled(context.split.train),
        context.labelled(context.split.validation),
        replace(config.recipe, steps=steps, epochs=None),
        seed=config.seed,
        device=context.device,
    )
    best = result.history[result.best_epoch - 1]
    assert best.validation_probability is not None
    assert best.validation_oa is not None
    seconds = sum(epoch.seconds for epoch in result.history)
    return Training(finalist.id, steps, best.validation_probability, best.validation_oa, seconds)


def _describe(finalist: Evaluation, training: Training) -> str:
    genes = ", ".join(
        f"{name} {value}" for name, value in global_genes(finalist.architecture) if name != "space"
    )
    return (
        f"  {training.steps} steps: validation OA {training.oa:.3f}, "
        f"probability {training.probability:.3f} ({genes})"
    )
