"""`hytas export`: write and check the model files of a trained run again."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.cli.progress import echo
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.run import Outcome


@click.command()
@click.argument("run")
@options.moved_options
@click.option(
    "--formats",
    default="onnx,torchscript",
    show_default=True,
    help="Formats to write. There are also onnx-scene, onnx-scene-smooth (smooths inside), "
    "onnx-fp16, onnx-int8, pt2 and c.",
)
@click.option("--force", is_flag=True, help="Write a reduced format even if its check fails.")
@options.json_option
def export(run: str, moved: dict[str, Any], formats: str, force: bool, as_json: bool) -> None:
    """Export the trained model of RUN and check every file against torch on the test pixels.

    ONNX and TorchScript are always written. A format of reduced precision must agree with torch on
    99 % of the pixels and lose at most 0.5 points of OA. Otherwise it is refused, with the figures.

    \b
    hytas export runs/ip
    hytas export runs/ip --formats onnx-scene,onnx-int8
    """
    from hytas.cli.console import Console
    from hytas.cli.summary import print_outcome
    from hytas.export import check_formats
    from hytas.run import RunFolder, export_run

    names = check_formats([name.strip() for name in formats.split(",")])
    config, _ = RunFolder(run).read_config()
    config = config.moved(**options.absolute_paths(moved))
    scene = config.load_scene()
    if not RunFolder(run).weights.exists():
        raise InputError(f"{run}: holds no trained weights; run `hytas train {run}` first")
    with Console() as console, options.run_argument():
        outcome, further = export_run(
            config,
            scene,
            run,
            formats=names,
            force=force,
            report=console,
            command=options.command_line(),
        )
    outcome = replace(outcome, architecture=_as_written(run, outcome))
    if as_json:
        echo(json.dumps({**outcome.to_dict(), "further": further}, indent=1))
        return
    print_outcome(outcome, config.first_data)
    for name, figures in further.items():
        facts = ", ".join(
            f"{key.replace('_', ' ')} {_figure(value)}"
            for key, value in figures.items()
            if key != "file"
        )
        echo(f"{name}: {figures['file']} ({facts})")


def _as_written(run: str, outcome: "Outcome") -> dict[str, Any]:
    """Return the architecture with its genes in the order of the space.

    The file of weights holds them in alphabetical order.
    """
    from hytas.run import RunFolder
    from hytas.run.folder import read_json

    path = RunFolder(run).architecture
    stored = read_json(path) if path.exists() else None
    return stored if stored == outcome.architecture else outcome.architecture


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if value >= 0.001 else f"{value:.1e}" if value else "0"
    return f"{value:,}" if isinstance(value, int) else str(value)
