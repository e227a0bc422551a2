"""The supernet of a run: trained in a stage of its own, and checked before anything uses it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from torch import nn

from hytas._engine import Budget, SearchSpace
from hytas.decide.decisions import Conditions, calibrate
from hytas.errors import InputError
from hytas.export import describe
from hytas.models.blocks import Drop
from hytas.run.context import Run, RunContext
from hytas.run.final.fits import network_after, observed
from hytas.run.folder import read_json
from hytas.run.prepared import PreparedData
from hytas.run.source import RunSource
from hytas.run.weights import CALIBRATION, TrainedModel, save_weights
from hytas.store import Store
from hytas.supernet import InheritedScore, Supernet, SupernetLearner
from hytas.train import ALONE, Processes, Recipe, TrainingResult
from hytas.train.fit import Fit
from hytas.train.loop import Watch

_FIELDS = {one.name for one in fields(RunSource)}


def check_supernet(context: RunContext) -> None:
    """Refuse, before any work, what could not be trained or scored."""
    assert context.feasible is not None
    if not len(context.data.split.validation):
        rule = "subnets are chosen on validation pixels, and the split has none"
        raise InputError("validation_fraction", context.config.split.validation_fraction, rule)
    supernet = Supernet.new(context.space.name, context.data.shape, context.config.seed)
    _learner(context, supernet, context.config.recipe)


@dataclass(frozen=True, eq=False)
class SupernetSource(RunSource):
    """What the training of a supernet reads.

    Attributes:
        context: of the run; the budget decides which subnets are drawn.
    """

    context: RunContext | None = None

    def network(self, fit: Fit) -> SupernetLearner:
        """Return the learner of a supernet with random weights."""
        assert self.context is not None
        data, space = self.context.data, self.context.space
        supernet = Supernet.new(space.name, data.shape, fit.seed, self.device)
        return _learner(self.context, supernet, fit.recipe)


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
    config = context.config
    assert config.supernet_settings is not None
    store, fit = _store(context, folder.fits), _fit(context, recipe)
    fitted = store.one(fit, Watch(run.report.epoch, processes=processes))
    facts = {
        **_origin(context.data, context.space),
        "budget": config.budget,
        "settings": config.supernet_settings.to_dict(),
        "recipe": recipe.to_dict(),
        "processes": processes.size,
        "training": {**fitted.done.to_dict(), "preset": preset},
    }
    weights = store.weights(fit)
    Supernet(context.space.name, context.data.shape, config.seed, weights, facts).save(
        folder.supernet
    )
    store.keep_weights()
    kept = sum(weight.numel() for weight in weights.values())
    run.report.line(f"supernet: {kept:,} weights in {folder.supernet.name}")


def help_train(context: RunContext, processes: Processes) -> None:
    """Train, with the first process, the supernet that it writes; write nothing.

    Raises:
        DivergedError: the training leaves the range of numbers.
        LostProcessError: another process has ended.
    """
    (recipe,) = context.config.recipes.values()
    with TemporaryDirectory() as folder:
        _ = (
            _store(context, Path(folder))
            .one(_fit(context, recipe), Watch(processes=processes))
            .done
        )


def _store(context: RunContext, folder: Path) -> Store:
    values = {name: value for name, value in vars(context.source).items() if name in _FIELDS}
    return Store(folder, SupernetSource(**values, context=context))


def _fit(context: RunContext, recipe: Recipe) -> Fit:
    """Return the training of a supernet; its architecture is all that subnets are drawn from."""
    config, split = context.config, context.data.split
    assert config.supernet_settings is not None
    drawn = {
        "supernet": context.space.name,
        "genes": _origin(context.data, context.space)["genes"],
        "budget": config.budget,
        "settings": config.supernet_settings.to_dict(),
    }
    return Fit(drawn, recipe, config.seed, split.train, split.validation)


def load_supernet(context: RunContext, path: str | Path) -> Supernet:
    """Return a supernet that fits a run."""
    supernet = Supernet.load(Path(path))
    facts = supernet.facts
    if supernet.space != context.space.name or supernet.shape != context.data.shape:
        rule = f"is of space {supernet.space} with {_shape(supernet.shape)}"
        hint = f"the run's is {context.space.name} with {_shape(context.data.shape)}"
        raise InputError("supernet", path, rule, hint)
    for name, value in _origin(context.data, context.space).items():
        if name != "genes" and facts.get(name) != value:
            rule = f"was trained with another {name}"
            hint = "the run's must be the same"
            raise InputError("supernet", path, rule, hint)
    choices = facts.get("genes")
    for gene, values in _origin(context.data, context.space)["genes"].items():
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
    """Write the weights of a network that was not trained on validation pixels, which calibrate it.

    Args:
        training: facts on how it was trained, JSON-ready.
    """
    context, data = run.context, run.context.data
    architecture = read_json(run.folder.architecture)
    split = data.split
    record = observed(network, data, split.train, split.validation, context.device)
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


def _origin(data: PreparedData, space: SearchSpace) -> dict[str, Any]:
    """What a supernet must share with a run that uses it."""
    split = data.split
    parts = (split.train, split.validation)
    pixels = b"".join(np.asarray(part, np.int64).tobytes() + b"|" for part in parts)
    origin = {
        "scene": data.scene.fingerprint,
        "split": hashlib.sha256(pixels).hexdigest(),
        "scaling": data.preprocessing.to_dict(),
        "genes": {gene["name"]: gene["values"] for gene in space.genes},
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
    run: Run, architecture: Mapping[str, Any], recipe: Recipe
) -> tuple[nn.Module, TrainingResult]:
    """Train an architecture on the training pixels; validation pixels choose the best epoch.

    Raises:
        DivergedError: the training leaves the range of numbers.
    """
    context, split = run.context, run.context.data.split
    fit = Fit(architecture, recipe, context.config.seed, split.train, split.validation)
    result = run.store.one(fit, Watch(run.report.epoch)).done
    return network_after(run.store, fit), result


def probability_of(result: TrainingResult) -> float:
    """Return the mean probability of the true class on validation pixels, of the best epoch."""
    return result.history[result.best_epoch - 1].score
