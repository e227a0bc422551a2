"""The family of a supernet: for each budget its best subnet, as an ordinary model."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hytas._engine import Budget
from hytas.data import LabelledData, Split
from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.machine import choose_device
from hytas.pictures import draw_family
from hytas.run.choosing.searching import race_stage, search_with
from hytas.run.config import RunConfig
from hytas.run.context import Run, RunContext, open_run, prepare
from hytas.run.delivering.files import export_stage, map_stage, predictions_stage
from hytas.run.delivering.metrics import write_metrics
from hytas.run.folder import RunFolder, read_json, write_json
from hytas.run.progress import SILENT, Report
from hytas.run.stages import begin, do, is_done
from hytas.run.supernet import (
    check_supernet,
    help_train,
    inherit_weights,
    load_supernet,
    score_with,
    supernet_stage,
    train_alone,
    write_network,
)
from hytas.spaces import with_files
from hytas.supernet import InheritedScore, Supernet
from hytas.train import LostProcessError, Processes, open_processes

TRAINED_ALONE = "alone"


@dataclass(frozen=True)
class Member:
    """A subnet of a family, with inherited weights.

    Attributes:
        name: its budget.
        probability: mean one of the true class on validation pixels.
        validation: accuracy there.
        test: accuracy of its ONNX file on test pixels.
        alone: that of the same architecture trained alone; None where it was not asked for.
    """

    name: str
    architecture: dict[str, Any]
    costs: dict[str, int]
    probability: float
    validation: float
    test: float
    alone: float | None
    folder: Path


def train_supernet(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    device: str = "auto",
    report: Report = SILENT,
) -> Path:
    """Train a supernet for a scene inside a budget; the same call again goes on where it stopped.

    Processes that `torchrun` started train it together, each on its part of every batch. The first
    one alone reads and writes the folder.

    Args:
        config: with a budget and `supernet_settings`.
        device: cpu, cuda or auto.

    Returns:
        The supernet's file.

    Raises:
        InputError: bad configuration, or `out` belongs to another run.
        LostProcessError: another process has ended.
        OSError: `out` cannot be written.
    """
    with open_processes(device) as processes:
        if not processes.leads:
            _help(config, scene, device, processes)
            return RunFolder(out).supernet
        with open_run(out, config, scene, device, report, check_supernet) as run:
            report.line(run.context.data.split.describe())
            do(run, "supernet", partial(_lead, processes=processes))
            return run.folder.supernet


def _lead(run: Run, processes: Processes) -> None:
    processes.broadcast(run.context.data.split)
    supernet_stage(run, processes)


def _help(config: RunConfig, scene: LabelledData, device: str, processes: Processes) -> None:
    """Train with the first process, if it gets as far as that; else it says what is wrong."""
    split: Split | None = None
    try:
        split = processes.broadcast(split)
    except LostProcessError:
        return
    help_train(prepare(config, scene, choose_device(device), split), processes)


def export_family(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    budgets: Sequence[str],
    *,
    alone: bool = False,
    device: str = "auto",
    report: Report = SILENT,
    **lengths: Any,
) -> list[Member]:
    """Write the best subnet of each budget as an ordinary model in a folder of its own.

    Each is the best of `config.generations` of evolution by its inherited weights on validation
    pixels. Table and chart lie in `out`.

    Args:
        out: the folder of `train_supernet`.
        budgets: each narrows that of the supernet.
        alone: train each architecture alone, too, on the same pixels, for as many steps.
        device: cpu, cuda or auto.
        lengths: "population" and "generations" of each search; else those of `config`.

    Raises:
        InputError: `out` has no whole supernet, or no subnet meets a budget.
        ExportError: an exported file computes something else than torch.
        OSError: `out` cannot be written.
    """
    if config.proxy != "inherited" and not RunFolder(Path(out)).supernet.is_file():
        raise InputError(
            "folder", out, "holds no supernet", hint="`hytas supernet train` makes one"
        )
    searching = replace(config, **lengths)
    configs = [_member_config(searching, budget) for budget in budgets]
    with open_run(out, config, scene, device, report) as run:
        supernet = _whole_supernet(run.folder, run.context)
        score = score_with(run.context, supernet)
        inner = [
            run.inside(name, of) for of, name in zip(configs, folder_names(budgets), strict=True)
        ]
        members = [_member(each, supernet, score, alone) for each in inner]
        _write_family(run, members)
        return members


def _whole_supernet(folder: RunFolder, context: RunContext) -> Supernet:
    path = folder.supernet
    if fault := folder.manifest.fault(path):
        raise InputError(path, rule=fault, hint="`hytas supernet train` makes it again")
    return load_supernet(context, path)


def _member_config(config: RunConfig, budget: str) -> RunConfig:
    try:
        narrowed = str(Budget.parse([str(config.budget), budget]))
    except ValueError as error:
        raise InputError(
            "budget", budget, f"inside {config.budget} of the supernet: {error}"
        ) from None
    return replace(
        config, budget=narrowed, proxy="inherited", finalists=1, final_training_on="train"
    )


def folder_names(budgets: Sequence[str]) -> list[str]:
    """Names of folders: each is a budget's, with latency tables by the names of their files."""
    named = [str(with_files("", budget, lambda path: Path(path).name)[1]) for budget in budgets]
    if len(set(named)) < len(named):  # tables of one name in several folders
        named = list(budgets)
    return [name.replace(",", "-").replace("/", "-") for name in named]


def _member(run: Run, supernet: Supernet, score: InheritedScore, alone: bool) -> Member:
    """Search, write and check the subnet of one budget."""

    def search(of: Run) -> None:
        search_with(of, score)

    def inherit(of: Run) -> None:
        inherit_weights(of, supernet, score)

    run.report.line(f"subnet of {run.context.config.budget}")
    begin(run, [])
    do(run, "search", search, done=lambda _: is_done(run.folder, "race"))
    do(run, "race", race_stage, changes=[run.folder.evaluations], shown="best subnet")
    do(run, "final training", inherit, shown="inherited weights")
    _delivered(run)
    if run.context.data.has_class_map:
        do(run, "map", map_stage)
    else:
        do(run, "predictions", predictions_stage)
    architecture = read_json(run.folder.architecture)
    figures = score.figures(architecture)
    return Member(
        run.folder.path.name,
        architecture,
        run.context.space.cost(architecture),
        figures["probability"],
        figures["accuracy"],
        read_json(run.folder.metrics)["test"]["OA"],
        _trained_alone(run, architecture) if alone else None,
        run.folder.path,
    )


def _delivered(run: Run) -> None:
    """Export the network of a run, and write its figures."""
    do(run, "export", export_stage)
    do(run, "figures", write_metrics)


def _trained_alone(run: Run, architecture: dict[str, Any]) -> float:
    """Train the architecture alone, by the supernet's recipe; its accuracy on test pixels."""
    inner = run.inside(TRAINED_ALONE, run.context.config)
    begin(inner, [])
    write_json(inner.folder.architecture, architecture)
    do(inner, "final training", _train_alone)
    _delivered(inner)
    accuracy: float = read_json(inner.folder.metrics)["test"]["OA"]
    return accuracy


def _train_alone(run: Run) -> None:
    preset, recipe = run.recipe
    architecture = read_json(run.folder.architecture)
    network, result = train_alone(run, architecture, recipe)
    write_network(run, network, {**result.to_dict(), "preset": preset})
    run.store.keep_weights()


def _write_family(run: Run, members: Sequence[Member]) -> None:
    """Write the table and the chart of a family."""
    folder = run.folder
    files = [folder.family, folder.family_picture]
    folder.manifest.forget(files)
    cost = run.context.space.cost_names[0]
    members = sorted(members, key=lambda each: each.costs[cost])
    rows = [
        [
            each.name,
            each.costs[cost],
            round(each.probability, 4),
            round(each.validation, 4),
            round(each.test, 4),
            "" if each.alone is None else round(each.alone, 4),
            json.dumps(each.architecture),
        ]
        for each in members
    ]
    columns = ["budget", cost, "probability", "validation_OA", "test_OA", "alone_test_OA"]
    with atomic_write(folder.family) as temporary, temporary.open("w", newline="") as file:
        csv.writer(file).writerows([[*columns, "architecture"], *rows])
    draw_family(
        folder.family_picture,
        [each.costs[cost] for each in members],
        [each.test for each in members],
        [each.alone for each in members],
        cost,
    )
    folder.manifest.record(files)
