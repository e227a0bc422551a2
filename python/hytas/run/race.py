"""The end of a search: finalists trained briefly, and ranked on validation pixels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hytas.errors import InputError
from hytas.models import build_network
from hytas.run.context import RunContext
from hytas.run.report import Report
from hytas.search import Evaluation, EvaluationStore, Training
from hytas.train import retrain

KEEP = 4
"""One finalist of so many goes on to the next round, which trains so many times longer."""


def race(
    context: RunContext,
    ranked: Sequence[Evaluation],
    store: EvaluationStore,
    report: Report,
) -> Evaluation:
    """The winner of successive halving among diverse finalists.

    Every round trains its networks from the start, each with a whole short schedule, and ranks
    them by the mean probability that validation pixels give to their class. No test pixel is read.
    What was trained is in the store, so a race that was stopped trains nothing twice.
    Source: Jamieson and Talwalkar, Non-stochastic best arm identification, AISTATS 2016.

    Args:
        ranked: evaluations of the search, the best first.
        store: holds the trainings.

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
    left = diverse(ranked, config.finalists)
    steps = config.race_steps
    while len(left) > 1:
        report.line(f"race: {len(left)} finalists, {steps} steps each")
        results = []
        for finalist in left:
            if (finalist.id, steps) not in known:
                training = _train(context, finalist, steps)
                store.add_training(training)
                known[finalist.id, steps] = training
            results.append(known[finalist.id, steps])
            report.line(_describe(finalist, results[-1]))
        # The better of the proxy comes first in `left`, and stays first among equals.
        order = sorted(range(len(left)), key=lambda place: -results[place].probability)
        left = [left[place] for place in order[: math.ceil(len(left) / KEEP)]]
        steps *= KEEP
    return left[0]


def diverse(ranked: Sequence[Evaluation], count: int) -> list[Evaluation]:
    """The `count` best that differ from one another in a global gene, kinds taking turns.

    A kind is what the genes with names for values say, as the `tokens` of `hytas-wide`; and two of
    one kind differ in width or depth, until there are no more such.
    """
    turns = [
        _in_turn(ranked, lambda genes: tuple(v for v in genes.values() if isinstance(v, str))),
        list(ranked),
    ]
    chosen: list[Evaluation] = []
    seen: set[Any] = set()
    for distinct, items in ((True, turns[0]), (False, turns[1])):
        for item in items:
            genes = _global_genes(item.architecture)
            if len(chosen) >= count or item in chosen:
                continue
            if not distinct or genes not in seen:
                chosen.append(item)
                seen.add(genes)
    return sorted(chosen, key=ranked.index)


def _in_turn(
    items: Sequence[Evaluation], kind: Callable[[dict[str, Any]], Any]
) -> list[Evaluation]:
    """The first of every kind, then the second of every kind, and so on."""
    places: dict[Any, int] = {}
    keyed: list[tuple[int, int, Evaluation]] = []
    for item in items:
        turn = places.get(kind(item.architecture), 0)
        places[kind(item.architecture)] = turn + 1
        keyed.append((turn, len(keyed), item))
    return [item for _, _, item in sorted(keyed, key=lambda entry: entry[:2])]


def _global_genes(architecture: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((k, v) for k, v in sorted(architecture.items()) if not isinstance(v, list))


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
        f"{name} {value}" for name, value in _global_genes(finalist.architecture) if name != "space"
    )
    return (
        f"  {training.steps} steps: validation OA {training.oa:.3f}, "
        f"probability {training.probability:.3f} ({genes})"
    )
