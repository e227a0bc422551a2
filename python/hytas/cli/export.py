"""`hytas export`: the files of a trained run, checked again."""

import json
from dataclasses import replace

import click

from hytas.cli import options
from hytas.errors import InputError


@click.command()
@click.argument("run")
@click.option("--data", help="The run's scene, where it no longer lies where it was.")
@click.option("--labels", help="The file of its labels, likewise.")
@options.json_option
def export(run: str, data: str | None, labels: str | None, as_json: bool) -> None:
    """Export the trained model of RUN to ONNX and TorchScript and check both against torch.

    \b
    hytas export runs/ip
    """
    from hytas.cli.console import Console
    from hytas.cli.summary import print_outcome
    from hytas.run import RunFolder, export_run

    config, _ = RunFolder(run).read_config()
    if data is not None:
        config = replace(config, data=data, labels=labels)
    scene = config.load_scene()
    if not RunFolder(run).weights.exists():
        raise InputError(f"{run}: holds no trained weights; `hytas train {run}` makes them")
    console = Console()
    try:
        outcome = export_run(config, scene, run, report=console)
    finally:
        console.close()
    if as_json:
        click.echo(json.dumps(outcome.to_dict(), indent=1))
    else:
        print_outcome(outcome, config.data)
