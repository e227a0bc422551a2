"""The strategy "supernet": a short race of kinds, then a supernet of the kind that won it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hytas.files import write_text
from hytas.run.choosing.searching import (
    finalist_count,
    first_steps,
    hold_race,
    race_stage,
    race_task,
    search_with,
)
from hytas.run.context import Run, shorter
from hytas.run.final.stage import are_recorded
from hytas.run.folder import read_json, write_json
from hytas.run.supernets.stage import (
    are_inherited,
    check_supernet,
    inherit_weights,
    load_supernet,
    probability_of,
    score_with,
    supernet_stage,
    train_alone,
)
from hytas.search import EvaluationStore
from hytas.spaces.genes import active
from hytas.spaces.opening import with_values
from hytas.supernet import InheritedScore, Supernet, SupernetSettings

FOLDER = "supernet"
LONGER = 2
"""Steps of a supernet's training over those of a network alone: each trains a part of it."""


def choose_by_supernet(run: Run) -> None:
    """Race one rung, train a supernet of the winner's kind, and write its best subnet.

    A kind is the value of every gene of labels, and the patch: tokens, mixer, pooling and so on.
    Each part is kept in the folder `supernet`, so a run that was stopped goes on.
    """
    inner = _inner(run)
    if not inner.folder.supernet.exists():
        check_supernet(inner.context)
        supernet_stage(inner)
    search_with(inner, _score(inner)[1])
    race_stage(inner)  # of one finalist: the best score
    write_json(run.folder.architecture, read_json(inner.folder.architecture))


def inherit_if_better(run: Run) -> None:
    """Write the weights that the winner inherits, if validation pixels say so.

    They are compared with those of a training alone, on the same training pixels, by the mean
    probability of the true class. If those are better, the final training is still to be done.
    """
    inner = _inner(run)
    supernet, score = _score(inner)
    architecture = read_json(run.folder.architecture)
    _, result = train_alone(run, architecture, run.recipe[1], inner.folder.checkpoint)
    alone, inherited = probability_of(result), score(architecture)
    run.report.line(
        f"probability on validation pixels: {inherited:.4f} with the supernet's weights, "
        f"{alone:.4f} trained alone"
    )
    if inherited >= alone:
        inherit_weights(run, supernet, score)
        inner.folder.checkpoint.unlink(missing_ok=True)


def are_recorded_or_inherited(run: Run) -> bool:
    """Return whether the records of all folds are there, or inherited weights need none."""
    return are_inherited(run.folder.weights) or are_recorded(run)


def _score(inner: Run) -> tuple[Supernet, InheritedScore]:
    supernet = load_supernet(inner.context, inner.folder.supernet)
    return supernet, score_with(inner.context, supernet)


def _inner(run: Run) -> Run:
    """The run of the supernet, in the space of the kind that wins."""
    config = run.context.config
    path = run.folder.path / f"{FOLDER}.json"  # next to the folder: it is no file of that run
    if not path.exists():
        kind, preset = _winning_kind(run)
        write_json(run.folder.recipe, {"preset": preset})
        write_text(path, with_values(config.space, {name: [v] for name, v in kind.items()}))
    recipe = replace(run.recipe[1], patience=1.0)
    if recipe.epochs is None:
        recipe = replace(recipe, steps=LONGER * recipe.steps, most_epochs=None)
    else:
        recipe = replace(recipe, epochs=LONGER * max(1, recipe.epochs))
    return run.inside(
        FOLDER,
        replace(
            config,
            space=str(path.resolve()),
            proxy="inherited",
            strategy="evolution",
            finalists=1,
            final_training_on="train",
            supernet=None,
            supernet_settings=SupernetSettings(),
            recipe=recipe,
            presets="full",  # which changes nothing of it
        ),
    )


def _winning_kind(run: Run) -> tuple[dict[str, object], str]:
    """The kind of the finalist that is best after the first rung, and its preset."""
    context, task = run.context, race_task(run.context, run.folder.race)
    steps = first_steps(context)
    recipes = {name: shorter(recipe, steps) for name, recipe in task.recipes.items()}
    task = replace(task, recipes=recipes)
    with EvaluationStore(run.folder.evaluations) as store:
        # Whole epochs, so that no second rung follows.
        winner = hold_race(run, task, store, finalist_count(context), task.final_steps)
    kind = kind_of(winner.finalist.architecture)
    run.report.line("kind: " + ", ".join(f"{name} {value}" for name, value in kind.items()))
    return kind, winner.recipe


def kind_of(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """Return the genes that a supernet of one kind fixes: its labels and its patch, by name."""
    return {
        name: value
        for name, value in active(architecture).items()
        if name == "patch" or (isinstance(value, str) and name != "space")
    }
