"""`hytas references`: fit the methods that a searched network has to beat, on the same pixels."""

import json
from pathlib import Path
from typing import Any

import click

from hytas.cli import options
from hytas.cli.progress import aligned_cells, echo
from hytas.files import check_folder


@click.command(cls=options.PanelCommand)
@click.option(
    "--methods",
    default="svm,rf,lda,logistic,spectralformer,hytas",
    show_default=True,
    help="Methods to fit. On spectra: svm (RBF), rf (random forest), lda (shrinkage), logistic "
    "(regression) and plsda. On patches: spectralformer, s2mamba, gscvit, "
    "and hytas, a network of median size trained as in the HyTAS benchmark.",
)
@options.count_option("--seeds", default=1, text="Number of seeds, from --seed on.")
@options.path_option(
    "--out",
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
    if out is not None:
        check_folder(out, "out")
    from hytas.data import as_scene
    from hytas.machine import choose_device
    from hytas.run import RunConfig
    from hytas.run.display import DetailedDisplay

    config = RunConfig(seed=seed, seeds=seeds, **options.absolute_paths(settings))
    scene = as_scene(config.load_scene(), "references")
    used = str(choose_device(device)) if any(METHODS[name].device for name in chosen) else "cpu"
    decisive = ReferenceSettings.of(config, used)
    numbers = range(seed, seed + seeds)
    # Fail before the work starts if a split is impossible.
    for number in reversed(numbers):
        decisive.make_split(scene, number)
    results = ReferenceResults(out, decisive.setting(scene))
    try:
        with DetailedDisplay() as console:
            fits = run_references(
                scene,
                decisive,
                chosen,
                numbers,
                results,
                progress=lambda method, seed, work, done, total: console.pixels(
                    f"{method}, seed {seed}: {work}", done, total
                ),
                line=console.line,
                workers=workers,
            )
    except KeyboardInterrupt:
        if out is not None:
            raise
        click.echo("interrupted: nothing is kept; a command with --out can go on", err=True)
        raise SystemExit(130) from None
    echo(json.dumps(fits, indent=1, allow_nan=False) if as_json else _text(fits))


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
