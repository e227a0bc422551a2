"""Runs of tables and scenes of values, each on all its folds, next to their reference methods.

    python benchmarks/values.py corn moisture [--budget 100K-params] [--out build/values]

The data are those of `../shared/suite`. A run that is done is not repeated. R2 and RMSE are of the
test samples of all folds together, the mean of R2 over targets; "by fold" is R2 of each fold alone.
Coverage is the share of test values inside their 90 % interval.
"""

import gzip
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas
from numpy.typing import NDArray
from xarray import DataArray

from hytas.data import Scene, Split, SplitSettings, load_scene
from hytas.job import run_pipeline
from hytas.run import RunConfig
from hytas.run.folder import read_json

SUITE = Path(__file__).parents[2] / "shared" / "suite"
REFERENCES = ("plsr", "ridge", "svr", "forest", "fcls")
POINTS = ("tile", "row", "column", "vegetation_fraction")
CELL = 64
"""Side of the block that a tile of EnMAP lies in, with other ground of no data around it."""


def table(name: str, folder: Path, rows: Mapping[str, Any] | None = None, **columns: Any) -> Scene:
    """Read some rows of a table of the suite.

    Args:
        rows: column -> value of the rows that are read; None reads all.
        columns: as for `load_scene`.
    """
    with gzip.open(SUITE / f"{name}.csv.gz") as file:
        read = pandas.read_csv(file)
    for column, value in (rows or {}).items():
        read = read[read[column] == value].drop(columns=column)
    path = folder / f"{name}.csv"
    read.to_csv(path, index=False)
    return load_scene(path, **columns)


def tiles(folder: Path, seed: int = 0) -> Scene:
    """Return the tiles of EnMAP, each inside a block of its own of a split by this seed."""
    held = np.load(SUITE / "enmap_potsdam_points.npz")
    cubes = held["cubes"]
    side, across = cubes.shape[1], int(np.ceil(len(cubes) ** 0.5))
    begins = CELL - np.random.default_rng(seed).integers(0, CELL, size=2) + (CELL - side) // 2
    width = CELL * (across + 2)
    cube = np.full((width, width, cubes.shape[3]), np.nan, np.float32)
    values = np.full((width, width, 1), np.nan)
    corners = [begins + CELL * np.array(divmod(at, across)) for at in range(len(cubes))]
    for corner, tile in zip(corners, cubes, strict=True):
        cube[corner[0] : corner[0] + side, corner[1] : corner[1] + side] = tile
    for at, row, column, value in zip(*(held[one] for one in POINTS), strict=True):
        values[corners[at][0] + row, corners[at][1] + column] = value
    return load_scene(DataArray(cube, dims=("y", "x", "band")), values, task="values")


def jasper(folder: Path) -> Scene:
    """Return the abundances of Jasper Ridge."""
    cube, shares = SUITE / "jasper.mat", SUITE / "jasper_abundance.mat"
    return load_scene(cube, shares, task="values", fractions=True)


class Values(NamedTuple):
    """A task: how its data are read, from a folder for files; its split, and its folds."""

    read: Callable[[Path], Scene]
    split: SplitSettings
    folds: int = 5


IN_FOLDS, ONE = SplitSettings("folds"), SplitSettings()
TASKS = {
    "corn": Values(
        partial(
            table,
            "corn",
            rows={"instrument": "m5"},
            target_column=("moisture", "oil", "protein", "starch"),
        ),
        IN_FOLDS,
    ),
    "moisture": Values(
        partial(table, "soil_moisture", target_column=("soil_moisture",), group_column="day"),
        IN_FOLDS,
    ),
    "dough": Values(
        partial(table, "dough", target_column=("fat", "sucrose", "flour", "water")), IN_FOLDS
    ),
    "nirsoil": Values(
        partial(table, "nirsoil", target_column=("nitrogen", "carbon", "cec")), ONE, 1
    ),
    "enmap": Values(tiles, SplitSettings("folds", block=CELL)),
    "jasper": Values(jasper, SplitSettings("blocks", train_per_class=500), 1),
}


class Figures(NamedTuple):
    """Figures of a method on the test samples of all folds."""

    r2: float
    rmse: list[float]
    by_fold: list[float]


def pooled(reports: list[Mapping[str, Any]], truths: list[NDArray[np.float64]]) -> Figures:
    """Return the figures of all folds together.

    Args:
        reports: of `hytas.metrics.value_report`, for each fold.
        truths: (n, T) of each fold.
    """
    rows = [list(report["per_target"].values()) for report in reports]
    squares = np.array([[one["RMSE"] ** 2 * one["samples"] for one in row] for row in rows]).sum(0)
    every = np.concatenate(truths)
    known = np.isfinite(every).sum(axis=0)
    r2 = 1 - squares / (np.nanvar(every, axis=0) * known)
    by_fold = [float(report["R2"]) for report in reports]
    return Figures(float(r2.mean()), np.sqrt(squares / known).tolist(), by_fold)


def measure(name: str, budget: str, effort: str, seed: int, out: Path) -> None:
    """Run a task on all its folds, and print a row for each method."""
    task, folder = TASKS[name], out / f"{name}-{budget}-{effort}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    scene = task.read(folder)
    metrics, truths = [], []
    for fold in range(task.folds):
        split = replace(task.split, fold=fold)
        config = RunConfig(budget=budget, effort=effort, seed=seed, task="values", split=split)
        run = folder / f"fold{fold}"
        if not (run / "metrics.json").exists():
            run_pipeline(config, scene, run, device="cpu", workers="1")
        metrics.append(read_json(run / "metrics.json"))
        truths.append(scene.targets(Split.load(run / "split.npz").test))
    rows = {"hytas": [one["test"] for one in metrics]}
    for method in REFERENCES:
        if all(method in one["references"]["methods"] for one in metrics):
            rows[method] = [one["references"]["methods"][method]["test"] for one in metrics]
    counts = [np.isfinite(truth).sum(axis=0) for truth in truths]
    shares = [one["test"].get("coverage", {}).get("0.9") for one in metrics]
    covered = "-"
    if all(share is not None and None not in share for share in shares):
        inside = sum(np.array(s) @ n for s, n in zip(shares, counts, strict=True))
        covered = f"{inside / sum(n.sum() for n in counts):.3f}"
    for method, reports in rows.items():
        found = pooled(reports, truths)
        rmse = ", ".join(f"{one:.4g}" for one in found.rmse)
        folds = ", ".join(f"{one:.3f}" for one in found.by_fold)
        own = covered if method == "hytas" else ""
        click.echo(f"| {name} | {method} | {found.r2:.4f} | {rmse} | {folds} | {own} |")


@click.command()
@click.argument("tasks", nargs=-1, type=click.Choice(list(TASKS)))
@click.option("--budget", default="100K-params", show_default=True)
@click.option("--effort", default="quick", show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=Path, default=Path("build/values"), show_default=True)
def main(tasks: tuple[str, ...], budget: str, effort: str, seed: int, out: Path) -> None:
    """Print figures of TASKS, or of all: a row of a table for each method."""
    click.echo("| task | method | R2 | RMSE of each target | R2 by fold | coverage .9 |")
    click.echo("|---|---|---|---|---|---|")
    for name in tasks or TASKS:
        measure(name, budget, effort, seed, out)


if __name__ == "__main__":
    main()
