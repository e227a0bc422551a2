"""`hytas export`: write and check the model files of a trained run again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hytas.cli import options
from hytas.cli.progress import echo
from hytas.errors import InputError


def _split(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",")]


@click.command()
@click.argument("run")
@options.moved_options
@click.option(
    "--formats",
    multiple=True,
    callback=_split,
    default=("onnx,torchscript",),
    show_default=True,
    help="Formats to write, as a list or as several options. Patches: onnx, onnx-fp16, onnx-int8, "
    "onnx-w8 (weights of 8 bits), torchscript, pt2, c. Whole lines: onnx-scene, onnx-scene-fp16, "
    "onnx-scene-w8, onnx-scene-smooth (smooths inside). qgis: tiles for the plugin Deepness. stac: "
    "an item of a catalogue that describes all files.",
)
@click.option(
    "--input",
    "taken",
    default="sensor",
    show_default=True,
    help="Type of the values that the files take: sensor, or float32 for runtimes without uint16.",
)
@click.option("--force", is_flag=True, help="Write a reduced format even if its check fails.")
@options.plugin_option(expose_value=False)
@options.json_option
def export(
    run: str, moved: dict[str, Any], formats: list[str], taken: str, force: bool, as_json: bool
) -> None:
    """Export the trained model of RUN and check every file against torch on the test pixels.

    ONNX and TorchScript are always written. A format of reduced precision must agree with torch on
    99 % of the pixels and lose at most 0.5 points of OA. Otherwise it is refused, with the figures,
    and the other formats are written.

    \b
    hytas export runs/ip
    hytas export runs/ip --formats onnx-scene,onnx-w8
    hytas export runs/ip --formats onnx --input float32
    """
    from hytas.cli.summary import next_command
    from hytas.export import ExportError, check_formats, file_of
    from hytas.job import export_run
    from hytas.run import RunFolder
    from hytas.run.display import DetailedDisplay

    names = check_formats(formats, taken)
    folder = RunFolder(run)
    config, _ = folder.read_config()
    config = config.moved(**options.absolute_paths(moved))
    scene = config.load_scene()
    if not folder.is_trained:
        raise InputError("run", run, "must hold trained weights", f"run `hytas train {run}` first")
    try:
        with DetailedDisplay() as console, options.run_argument():
            outcome, further = export_run(
                config,
                scene,
                run,
                formats=names,
                force=force,
                taken=taken,
                report=console,
                command=options.command_line(),
            )
    except ExportError as refusal:
        print_written(refusal.written)
        raise
    if as_json:
        echo(json.dumps({**outcome.to_dict(), "further": further}, indent=1))
        return
    assert outcome.metrics is not None  # a run with weights has figures
    parity = outcome.metrics["parity"]
    main = {}
    for name, figures in parity["formats"].items():
        path = folder.path / file_of(name)
        size = {"file": str(path), "bytes": path.stat().st_size}
        main[name] = {**size, "pixels": parity["pixels"], **figures}
    print_written({**main, **further})
    echo(f"\n{next_command(outcome, config.first_data)}")


def print_written(written: Mapping[str, Mapping[str, Any]]) -> None:
    """Print a line for each format: its file, and how it compares with torch."""
    if not written:
        return
    files = [Path(figures["file"]) for figures in written.values()]
    echo(f"\nwritten to {files[0].parent}/")
    width = max(len(path.name) for path in files)
    for path, figures in zip(files, written.values(), strict=True):
        echo(f"  {path.name:<{width}} {figures['bytes']:>11,} bytes  {_compared(figures)}")


def _compared(figures: Mapping[str, Any]) -> str:
    """Return the result of the check of a file in words."""
    if "forced_past" in figures:
        return f"forced: {figures['forced_past']}"
    if "agreement" in figures:
        return (
            f"{100 * figures['agreement']:.2f} % of torch's labels on {figures['pixels']:,} "
            f"pixels, OA {figures['OA_torch']:.4f} -> {figures['OA']:.4f}"
        )
    if "R2_torch" in figures:
        errors = ", ".join(f"{one:.3g}" for one in figures["RMSE_of_torch"])
        return (
            f"RMSE to torch {errors} in units on {figures['pixels']:,} samples, "
            f"R2 {figures['R2_torch']:.4f} -> {figures['R2']:.4f}"
        )
    if "max_difference" in figures:
        same = (
            f"torch's labels on {figures['pixels']:,} pixels, "
            f"largest difference {figures['max_difference']:.1e}"
        )
        if "ram_bytes" not in figures:
            return same
        return (
            f"{same}; {figures['ram_bytes']:,} bytes of RAM and {figures['patch_bytes']:,} for a "
            f"patch, {figures['constant_bytes']:,} of flash without code"
        )
    return ", ".join(
        f"{key.replace('_', ' ')} {value}"
        for key, value in figures.items()
        if key not in ("file", "bytes")
    )
