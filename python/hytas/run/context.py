"""Values that the stages of a run share; configuration and scene decide them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from hytas._engine import Feasible, SearchSpace
from hytas.data import LabelledData, Split
from hytas.errors import InputError, library
from hytas.machine import choose_device
from hytas.models import NETWORKS
from hytas.models.table import check_data
from hytas.race import ENOUGH_PIXELS
from hytas.references import ReferenceSettings
from hytas.run.config import RunConfig
from hytas.run.fits import ReferenceFits
from hytas.run.folder import RunFolder, read_json
from hytas.run.pace import Invocation, Pace
from hytas.run.prepared import PreparedData, prepare_scene
from hytas.run.progress import Report, logged
from hytas.run.source import RunSource
from hytas.run.start import Origin, Scratch, StartingModel
from hytas.run.teacher import Teacher, open_teacher
from hytas.run.times import add_start, kept_time, spent_before
from hytas.spaces import open_space, parse_budget, space_of
from hytas.spaces.costs import budget_of_network, shipped_costs
from hytas.spaces.names import LINEAR_SPACE
from hytas.spaces.shape import Shape
from hytas.store import Store
from hytas.train import Recipe
from hytas.types import Pixels
from hytas.workers import WorkersLike, shared_workers

if TYPE_CHECKING:
    from hytas.workers.local import LocalProcesses


@dataclass(frozen=True, eq=False)
class RunContext:
    """The inputs of a run.

    Attributes:
        feasible: the architectures of the space that fit the budget; None without a budget.
        origin: what its networks begin with: random weights, or a trained model.
    """

    config: RunConfig
    data: PreparedData
    space: SearchSpace
    feasible: Feasible | None
    device: torch.device
    origin: Origin = field(default_factory=Scratch)

    @property
    def final_pixels(self) -> tuple[Pixels, Pixels]:
        """Return the pixels of the final training, and the pixels that validate it, if any."""
        split = self.data.split
        if self.config.final_training_on == "all":
            return split.train_and_validation, split.validation[:0]
        return split.train, split.validation

    @property
    def holds_out_validation(self) -> bool:
        """Whether the final training leaves out validation pixels that lie like test pixels."""
        _, watched = self.final_pixels
        return len(watched) > 0 and not self.data.split.spatially_disjoint

    @property
    def no_self_training(self) -> str:
        """Return why the run trains without unlabelled pixels, whatever they would gain; or ""."""
        if self.config.self_training == "none":
            return "self_training none was asked for"
        trained, _ = self.final_pixels
        if reason := self.data.no_self_training(trained) or self.origin.no_self_training:
            return reason
        split = self.data.split
        if split.spatially_disjoint or np.isin(split.test, split.train_and_validation).all():
            return ""  # without test pixels of its own, the model may be for pixels that lie apart
        # Little is left to learn from neighbours: used in none of 20 runs (notes/decisions.md).
        return "the split is not spatially disjoint"

    @property
    def fits(self) -> tuple[str, ...]:
        """The fits of networks in closed form that race, and may join the mean."""
        return self.data.fits if isinstance(self.origin, Scratch) else ()

    def costs(self, architecture: Mapping[str, Any]) -> dict[str, int]:
        """Return the costs of an architecture of the run as it ships."""
        return shipped_costs(architecture, self.space, self.data.shape)

    def fits_budget(self, architecture: Mapping[str, Any]) -> bool:
        """Whether no cost of an architecture is above its bound."""
        costs, bounds = self.costs(architecture), parse_budget(self.config.budget or ()).bounds
        return all(costs.get(name, most) <= most for name, _, most in bounds)

    def folds(self, enough: int = ENOUGH_PIXELS) -> list[tuple[Pixels, Pixels]]:
        """Return pairs of pixels: those that a network trains on, and those held out from it.

        Args:
            enough: held-out pixels, or groups of pixels, wanted in all pairs.
        """
        split, scene, block = self.data.split, self.data.scene, self.config.split.block
        groups = self.data.groups(split.train_and_validation)
        each = 1  # pixels that count as one
        if groups is not None and self.data.task.counts_groups:
            each = -(-len(groups) // len(np.unique(groups)))
        pairs = split.all_folds_like_test(scene, block, ENOUGH_PIXELS, each * enough)
        held_out = np.cumsum([len(pixels) for _, pixels in pairs])
        least = int(np.searchsorted(held_out, each * ENOUGH_PIXELS)) + 1
        return pairs[: max(self.config.held_out_folds, least)]

    @cached_property
    def teacher(self) -> Teacher | None:
        """The teacher of the final training, if it has one."""
        config, split = self.config, self.data.split
        if config.teacher is None:
            return None
        teacher = open_teacher(config.teacher, self.data, config.scale_by)
        if self.holds_out_validation and np.intersect1d(teacher.seen, split.validation).size:
            rule = "its model was trained on validation pixels, which `final_training_on` holds out"
            raise InputError("teacher", config.teacher, rule, "leave `final_training_on` at all")
        return teacher

    @cached_property
    def source(self) -> RunSource:
        """What the fits of the run read."""
        return RunSource.of(self.config, self.data, self.origin, self.device, self.teacher)


@dataclass(frozen=True, eq=False)
class Run:
    """A run that is at work.

    Attributes:
        folder: its files; this process holds the lock.
        command: that does the work, for the record; empty from Python.
        workers: where candidates are scored, as the user named them (`hytas.workers`).
        trainers: where finalists and the winner are trained; None for `workers`.
        first: the run whose architecture and recipe this one trains with another seed; or None.
        pace: when its parts end.
    """

    context: RunContext
    folder: RunFolder
    report: Report
    fits: ReferenceFits
    command: str = ""
    workers: WorkersLike = None
    trainers: "LocalProcesses | None" = None
    first: "Run | None" = None
    pace: Pace = field(default_factory=Pace)

    @property
    def decides(self) -> "Run":
        """The run whose folds decide for this one."""
        return self.first or self

    @property
    def choice(self) -> RunFolder:
        """The folder of the architecture and the recipe."""
        return self.decides.folder

    @cached_property
    def store(self) -> Store:
        """The fits of the run, and of its further seeds."""
        return Store(self.choice.fits, self.context.source)

    @property
    def recipe(self) -> tuple[str, Recipe]:
        """The preset that the race chose, and its recipe; the first one without a race."""
        recipes, path = self.context.config.recipes, self.choice.recipe
        kept = read_json(path, {"preset": next(iter(recipes))})
        name, steps = kept.get("preset"), kept.get("steps")
        if name not in list(recipes):  # a list, because the name in a file may be no text
            raise InputError(path, rule=f"preset {name!r}: must be one of {', '.join(recipes)}")
        return name, recipes[name] if steps is None else shorter(recipes[name], int(steps))

    @property
    def training_workers(self) -> WorkersLike:
        """Return where finalists and the winner are trained."""
        return self.trainers or self.workers

    @property
    def no_self_training(self) -> str:
        """Return why the run trains without unlabelled pixels, whatever they would gain; or ""."""
        if space_of(read_json(self.choice.architecture)) == LINEAR_SPACE:
            return self.context.no_self_training or "it is fitted in closed form"
        return self.context.no_self_training

    def timed(self, stage: str) -> AbstractContextManager[None]:
        """Return what adds the time of a stage to the folder's times."""
        if (began := self.pace.take_began()) is not None:
            add_start(self.folder.times, began, self.command)
        on_gpu = self.context.device.type == "cuda"
        return kept_time(self.folder.times, stage, self.command, on_gpu=on_gpu)

    def of_seed(self, seed: int) -> Self:
        """Return the same run with another seed, in a folder of its own inside this one."""
        context = replace(self.context, config=replace(self.context.config, seed=seed))
        return replace(self, context=context, folder=self.folder.inside(f"seed-{seed}"), first=self)

    def inside(self, name: str, config: RunConfig) -> Self:
        """Return a run on the same pixels with another configuration, in a folder of this one."""
        data = self.context.data
        space, feasible = open_feasible(config, data.shape, self.context.fits)
        context = replace(self.context, config=config, space=space, feasible=feasible)
        folder = self.folder.inside(name)
        folder.claim(config, data.scene)
        _keep_split(folder, data.split, self.report)
        return replace(self, context=context, folder=folder, first=None)


def shorter(recipe: Recipe, steps: int) -> Recipe:
    """Return a recipe with so many optimiser steps."""
    return replace(recipe, steps=steps, epochs=None, most_epochs=None)


def open_feasible(
    config: RunConfig, shape: Shape, fits: Sequence[str]
) -> tuple[SearchSpace, Feasible | None]:
    """Return the space for inputs of `shape`, and its architectures that fit the budget.

    Args:
        fits: of networks in closed form whose mean with an architecture is to fit, too: all of
            them, or as many as leave room for one.
    """
    if config.space in NETWORKS:
        check_data(config.space, shape)  # now, because other data do not give its variables
    space, budget = open_space(config.space, config.budget or (), offered=shape.variables())
    if space.name not in NETWORKS:
        names = ", ".join(NETWORKS)
        raise InputError(
            "space", config.space, "hytas has no network for it", hint=f"choose one of {names}"
        )
    check_data(space.name, shape)
    for name in config.minimised:
        if name not in space.cost_names:
            rule = f"{name!r} is not a cost of {space.name}"
            hint = f"choose from {', '.join(space.cost_names)}"
            raise InputError("pareto", config.pareto, rule, hint)
    if not config.budget:
        return space, None
    for count in range(len(fits), 0, -1):
        for group in combinations(fits, count):
            with suppress(ValueError):
                return space, Feasible(space, budget_of_network(budget, space, shape, group))
    try:
        return space, Feasible(space, budget)
    except ValueError as error:
        raise InputError(str(error)) from None


def prepare(
    config: RunConfig, scene: LabelledData, device: torch.device, split: Split | None = None
) -> RunContext:
    """Prepare the scene, and find the architectures that fit the budget.

    Args:
        split: the split of a run that goes on; None draws a new one.
    """
    start = None if config.start is None else StartingModel.open(config.start)
    data = prepare_scene(config, scene, split, start)
    fits = data.fits if start is None else ()
    space, feasible = open_feasible(config, data.shape, fits)
    return RunContext(config, data, space, feasible, device, start or Scratch())


def _kept_split(folder: RunFolder, scene: LabelledData) -> Split | None:
    """Return the split in the folder, if it is of this scene and not damaged."""
    there = folder.config.is_file() and folder.split.is_file()
    if not there or folder.manifest.fault(folder.split) is not None:
        return None
    return Split.load(folder.split) if folder.read_config()[1] == scene.fingerprint else None


def _keep_split(folder: RunFolder, split: Split, report: Report) -> None:
    """Write the split of a new run, or write it again if its file is damaged."""
    fault = folder.manifest.fault(folder.split)
    if fault is not None or not folder.split.is_file():
        split.save(folder.split)
    if fault is not None:
        if folder.manifest.fault(folder.split) is not None:
            folder.split.unlink()
            rule = f"{fault}; it cannot be made again, because this version draws another split"
            hint = "put a copy back, or choose another folder"
            raise InputError(folder.split, rule=rule, hint=hint)
        report.line(f"{folder.split.name}: {fault}: made again")
    folder.manifest.record([folder.split])


@contextmanager
def _tracked(report: Report, config: RunConfig, folder: Path) -> Iterator[Report]:
    """Yield a report that passes events on to listeners of `hytas.lab`, which are named."""
    with ExitStack() as listeners:
        for name in config.track:
            listener = import_module(f"hytas.lab.{name}").listener
            report = listeners.enter_context(listener(report, folder, config))
        yield report


@contextmanager
def open_run(
    out: str | Path,
    config: RunConfig,
    scene: LabelledData,
    device: str,
    report: Report,
    check: Callable[[RunContext], object] = lambda _: None,
    command: Invocation = Invocation(),
    workers: WorkersLike = None,
) -> Iterator[Run]:
    """Prepare a run and lock its folder; nothing is written before all settings are checked.

    Args:
        device: cpu, cuda or auto.
        check: raises `InputError` for a run that cannot be done; it is called before the lock.
    """
    context = prepare(config, scene, choose_device(device), _kept_split(RunFolder(out), scene))
    check(context)
    for name in config.track:
        library(name, "track", name, "'hytas[track]'")
    if not RunFolder(out).is_trained:
        _ = context.teacher  # opened now, to refuse one that does not fit
    settings, parallel = ReferenceSettings.of(config), context.data.trains_in_parallel
    with RunFolder(out) as folder, shared_workers(workers, context.device) as trainers:
        folder.claim(config, scene)
        with (
            logged(report, folder.log) as lines,
            _tracked(lines, config, folder.path) as log,
            ReferenceFits(context.data.scene, settings, workers, parallel) as fits,
        ):
            _keep_split(folder, context.data.split, log)
            pace = Pace(config.minutes, spent_before(folder.times), command.began)
            yield Run(context, folder, log, fits, command.text, workers, trainers, pace=pace)
