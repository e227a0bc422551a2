"""The supernet of a run: trained in a stage of its own, and checked before anything uses it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from hytas._engine import Budget
from hytas.errors import InputError
from hytas.export import describe
from hytas.models.blocks import Drop
from hytas.run.context import Run, RunContext
from hytas.run.final.decide import Conditions, calibrate
from hytas.run.final.train import forget_damaged, hold_out
from hytas.run.folder import read_json
from hytas.run.weights import CALIBRATION, TrainedModel, save_weights
from hytas.supernet import InheritedScore, Supernet, SupernetLearner
from hytas.train import ALONE, DivergedError, Epoch, Processes, Recipe, TrainingResult, train


def check_supernet(context: RunContext) -> None:
    """Refuse, before any work, what could not be trained or scored."""
    assert context.feasible is not None
    if not len(context.data.split.validation):
        rule = "subnets are chosen on validation pixels, and the split has none"
        raise InputError("validation_fraction", context.config.split.validation_fraction, rule)
    supernet = Supernet.new(context.space.name, context.data.shape, context.config.seed)
    _learner(context, supernet, context.config.recipe)


def supernet_stage(run: Run, processes: Processes = ALONE) -> None:
    """Train the supernet of a run on its training pixels, and write it.

    Args:
        run: of the first process.
        processes: that train together; the others call `help_train`.

    Raises:
        DivergedError: the training leaves the range of numbers.
        LostProcessError: another process has ended.
    """
    context, folder, (preset, recipe) = run.context, run.folder, run.recipe
    config, checkpoint = context.config, folder.checkpoint
    forget_damaged(checkpoint, run.report.line)
    try:
        supernet, result = _fitted(
            context, recipe, processes, checkpoint=checkpoint, progress=run.report.epoch
        )
    except DivergedError:
        checkpoint.unlink(missing_ok=True)
        raise
    assert config.supernet_settings is not None
    facts = {
        **_origin(context),
        "budget": config.budget,
        "settings": config.supernet_settings.to_dict(),
        "recipe": recipe.to_dict(),
        "processes": processes.size,
        "training": {**result.to_dict(), "preset": preset},
    }
    Supernet(supernet.space, supernet.shape, supernet.seed, supernet.weights, facts).save(
        folder.supernet
    )
    checkpoint.unlink(missing_ok=True)
    kept = sum(weight.numel() for weight in supernet.weights.values())
    run.report.line(f"supernet: {kept:,} weights in {folder.supernet.name}")


def help_train(context: RunContext, processes: Processes) -> None:
    """Train, with the first process, the supernet that it writes; write nothing.

    Raises:
        DivergedError: the training leaves the range of numbers.
        LostProcessError: another process has ended.
    """
    (recipe,) = context.config.recipes.values()
    _fitted(context, recipe, processes)


def _fitted(
    context: RunContext,
    recipe: Recipe,
    processes: Processes,
    checkpoint: Path | None = None,
    progress: Callable[[Epoch], None] = lambda _: None,
) -> tuple[Supernet, TrainingResult]:
    """The trained supernet of a run, and its history."""
    config, data = context.config, context.data
    supernet = Supernet.new(context.space.name, data.shape, config.seed, context.device)
    result = train(
        _learner(context, supernet, recipe),
        data.labelled(data.split.train),
        data.labelled(data.split.validation),
        recipe,
        seed=config.seed,
        device=context.device,
        checkpoint=checkpoint,
        progress=progress,
        processes=processes,
    )
    return supernet, result


def load_supernet(context: RunContext, path: str | Path) -> Supernet:
    """Return a supernet that fits a run."""
    supernet = Supernet.load(Path(path))
    facts = supernet.facts
    if supernet.space != context.space.name or supernet.shape != context.data.shape:
        rule = f"is of space {supernet.space} with {_shape(supernet.shape)}"
        hint = f"the run's is {context.space.name} with {_shape(context.data.shape)}"
        raise InputError("supernet", path, rule, hint)
    for name, value in _origin(context).items():
        if name != "genes" and facts.get(name) != value:
            rule = f"was trained with another {name}"
            hint = "the run's must be the same"
            raise InputError("supernet", path, rule, hint)
    choices = facts.get("genes")
    for gene, values in _origin(context)["genes"].items():
        if not isinstance(choices, dict) or any(v not in choices.get(gene, []) for v in values):
            raise InputError(
                "supernet", path, f"was trained in another space: {gene} had not all of {values}"
            )
    _check_budget(path, str(facts.get("budget")), context)
    return supernet


def inherited_score(context: RunContext, path: str | Path) -> InheritedScore:
    """Return the score of architectures with the weights of a supernet that fits a run."""
    return score_with(context, load_supernet(context, path))


def score_with(context: RunContext, supernet: Supernet) -> InheritedScore:
    """Return the score of a supernet on the run's validation pixels."""
    validation = context.data.labelled(context.data.split.validation)
    return InheritedScore(supernet.to(context.device), validation, context.config.seed)


def inherit_weights(run: Run, supernet: Supernet, score: InheritedScore) -> None:
    """Write the weights that the architecture inherits, calibrated on validation pixels."""
    architecture = read_json(run.folder.architecture)
    training = {
        **supernet.facts["training"],
        "supernet": supernet.digest,
        "inherited": score.figures(architecture),
    }
    write_network(run, supernet.network(architecture), training)


def write_network(run: Run, network: nn.Module, training: Mapping[str, Any]) -> None:
    """Write the weights of a network that was not trained on validation pixels.

    They calibrate it. Its record of them is written, too.

    Args:
        training: facts on how it was trained, JSON-ready.
    """
    context, data = run.context, run.context.data
    architecture = read_json(run.folder.architecture)
    split = data.split
    none = split.validation[:0]
    record = hold_out(network, data, split.train, split.validation, none, context.device)
    record.save(run.folder.record(0))
    calibrated = calibrate([record], False, Conditions())
    run.report.line(calibrated.describe())
    card = describe(
        data.scene, data.preprocessing, architecture, data.shape, calibrated.temperature
    )
    facts = {**training, CALIBRATION: calibrated.to_dict()}
    save_weights(run.folder.weights, TrainedModel(network, card, facts))


def _learner(context: RunContext, supernet: Supernet, recipe: Recipe) -> SupernetLearner:
    config = context.config
    assert context.feasible is not None
    assert config.supernet_settings is not None
    return SupernetLearner(
        supernet,
        context.feasible,
        config.supernet_settings,
        seed=config.seed,
        drop=Drop(recipe.drop_path, recipe.dropout),
    )


def _origin(context: RunContext) -> dict[str, Any]:
    """What a supernet must share with a run that uses it."""
    split = context.data.split
    parts = (split.train, split.validation)
    pixels = b"".join(np.asarray(part, np.int64).tobytes() + b"|" for part in parts)
    origin = {
        "scene": context.data.scene.fingerprint,
        "split": hashlib.sha256(pixels).hexdigest(),
        "scaling": context.data.preprocessing.to_dict(),
        "genes": {gene["name"]: gene["values"] for gene in context.space.genes},
    }
    parsed: dict[str, Any] = json.loads(json.dumps(origin))  # as a file gives it back
    return parsed


def _check_budget(path: str | Path, budget: str, context: RunContext) -> None:
    """Refuse a run whose budget reaches beyond that of its supernet."""
    if context.feasible is None:
        return
    mine = {name: (lower, upper) for name, lower, upper in context.feasible.budget.bounds}
    try:
        bounds = Budget.parse(budget).bounds
    except ValueError:
        raise InputError(
            "supernet", path, f"not a whole supernet: its budget is {budget!r}"
        ) from None
    for name, lower, upper in bounds:
        low, high = mine.get(name, (None, None))
        if low is None or high is None or low < lower or high > upper:
            rule = f"was trained inside {budget}"
            hint = f"the budget {context.config.budget} reaches beyond it"
            raise InputError("supernet", path, rule, hint)


def _shape(shape: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in shape.variables().items())


def train_alone(
    run: Run, architecture: Mapping[str, Any], recipe: Recipe, checkpoint: Path | None = None
) -> tuple[nn.Module, TrainingResult]:
    """Train an architecture on the training pixels; validation pixels choose the best epoch.

    Raises:
        DivergedError: the training leaves the range of numbers.
    """
    context, data = run.context, run.context.data
    if checkpoint is not None:
        forget_damaged(checkpoint, run.report.line)
    network = context.network(architecture, recipe)
    result = train(
        network,
        data.labelled(data.split.train),
        data.labelled(data.split.validation),
        recipe,
        seed=context.config.seed,
        device=context.device,
        checkpoint=checkpoint,
        progress=run.report.epoch,
    )
    return network.eval(), result


def probability_of(result: TrainingResult) -> float:
    """Return the mean probability of the true class on validation pixels, of the best epoch."""
    return result.history[result.best_epoch - 1].score
