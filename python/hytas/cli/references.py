"""`hytas references`: fit the methods that a searched network has to beat, on the same pixels."""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.cli.progress import aligned_cells, echo
from hytas.errors import InputError, SlowerWarning, escaped
from hytas.files import check_folder

if TYPE_CHECKING:
    from rich.console import Console

LOG_SECONDS = 30.0


@click.command(cls=options.PanelCommand)
@click.option(
    "--methods",
    default="svm,rf,lda,logistic,spectralformer,hytas",
    show_default=True,
    help="Methods to fit. On spectra: svm (RBF), rf (random forest), lda (shrinkage), logistic "
    "(regression) and plsda. On patches: spectralformer, s2mamba, gscvit, "
    "and hytas, a network of median size trained as in the HyTAS benchmark.",
)
@click.option(
    "--seeds", type=int, default=1, show_default=True, help="Number of seeds, from --seed on."
)
@click.option(
    "--network-steps", type=int, help="Optimiser steps of the networks.  [default: as published]"
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="JSON file of the results, written after each fit. The same command goes on from it.",
)
@options.setting_options("data", "split", more=("seed",), data={"required": True, "default": None})
@options.device_option
@options.workers_option
@options.untrusted_option
@options.plugin_option(expose_value=False)
@options.json_option
def references(
    methods: str,
    seeds: int,
    network_steps: int | None,
    out: Path | None,
    seed: int,
    device: str,
    workers: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Fit classical and published classifiers to a scene; print OA, AA and kappa over seeds.

    OA is printed raw and with class probabilities smoothed by the guided filter, as a search
    smooths those of its winner.

    A seed decides the training, and the split if it is drawn. All methods are fitted on the same
    training pixels and tested on the same test pixels. The pixels that a search keeps for
    validation are training pixels here, so --validation-fraction changes nothing. --scaling is for
    svm and rf only; the networks are scaled as published.

    \b
    hytas references --data IndianPine.mat --methods svm,rf --seeds 5 --split blocks
    hytas references --data cube.mat --labels gt.mat --train-per-class 10 --out references.json
    """
    from hytas.references import (
        METHODS,
        ReferenceResults,
        ReferenceSettings,
        parse_methods,
        run_references,
    )

    chosen = parse_methods(methods)
    _check(out, {"seeds": seeds, "network_steps": network_steps})
    from rich.console import Console

    from hytas.data import as_scene
    from hytas.machine import choose_device
    from hytas.run import RunConfig

    config = RunConfig(seed=seed, seeds=seeds, **options.absolute_paths(settings))
    scene = as_scene(config.load_scene(), "references")
    decisive = ReferenceSettings.of(config, network_steps)
    numbers = range(seed, seed + seeds)
    # Fail before the work starts if a split is impossible.
    for number in reversed(numbers):
        decisive.make_split(scene, number)
    used = str(choose_device(device)) if any(METHODS[name].device for name in chosen) else "cpu"
    results = ReferenceResults(out, decisive.setting(scene))
    console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
    try:
        with console.status("") as status, _shown_warnings(console):
            fits = run_references(
                scene,
                decisive,
                chosen,
                numbers,
                results,
                device=used,
                progress=_shower(console, status.update),
                line=lambda text: console.print(escaped(text)),
                workers=workers,
            )
    except KeyboardInterrupt:
        if out is not None:
            raise
        click.echo("interrupted: nothing is kept; a command with --out can go on", err=True)
        raise SystemExit(130) from None
    echo(json.dumps(fits, indent=1, allow_nan=False) if as_json else _text(fits))


def _check(out: Path | None, counts: Mapping[str, int | None]) -> None:
    if out is not None:
        check_folder(out, "out")
    for name, value in counts.items():
        if value is not None and value < 1:
            raise InputError(name, value, "must be 1 or more")


def _shower(
    console: "Console", update: Callable[[str], None]
) -> Callable[[str, int, str, int, int], None]:
    from hytas.run.display import TimeLeft, about

    last, work_of_rate, rate = ("", 0.0), "", TimeLeft()

    def show(method: str, seed: int, work: str, done: int, total: int) -> None:
        nonlocal last, work_of_rate, rate
        fit, now = f"{method}, seed {seed}", time.monotonic()
        if f"{fit}: {work}" != work_of_rate:
            work_of_rate, rate = f"{fit}: {work}", TimeLeft()
        count = f"{work} {done:,} of {total:,}" if total > 1 else work
        left = rate.left(done, total) if done < total else None
        text = escaped(", ".join(filter(None, [f"{fit}: {count}", about(left)])))
        if console.is_terminal:
            update(text)
        elif fit != last[0] or now - last[1] >= LOG_SECONDS:  # a log keeps the first line of a fit
            console.print(text)
            last = fit, now

    return show


@contextmanager
def _shown_warnings(console: "Console") -> Iterator[None]:
    """Print what hytas itself warns of; warnings of libraries go where they went."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, SlowerWarning):
            console.print(escaped(str(message)))
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _text(report: dict[str, Any]) -> str:
    rows = [("method", "OA", "AA", "kappa", "ECE", "OA smoothed", "s a fit")]
    for entry in report["methods"].values():
        rows.append(
            (
                entry["title"],
                *(_spread(entry.get(name)) for name in ("OA", "AA", "kappa", "ECE")),
                _spread((entry["smoothed"] or {}).get("OA")),
                f"{entry['seconds']['mean']:.1f}",
            )
        )
    seeds = report["seeds"]
    what = f"mean and standard deviation of {len(seeds)} seeds" if len(seeds) > 1 else "one seed"
    return "\n".join([f"{report['scene']}, {what}", *aligned_cells(rows)])


def _spread(figure: dict[str, Any] | None) -> str:
    if figure is None or figure["mean"] is None:
        return "-"
    mean, deviation = f"{figure['mean']:.4f}", figure["std"]
    return mean if deviation is None else f"{mean} ± {deviation:.4f}"
