"""`hytas explain`: which bands and neighbours the model of a run uses."""

import json
from collections.abc import Mapping
from typing import Any

import click

from hytas.cli import options
from hytas.cli.progress import aligned_cells, echo

SHOWN = 5


@click.command()
@click.argument("run")
@options.moved_options
@options.count_option("--groups", default=20, text="Groups of neighbouring bands, at most.")
@options.count_option(
    "--samples", default=300, text="Test pixels, images or spectra, at most.", least=2
)
@options.count_option("--repeats", default=3, text="Random shuffles of each part.")
@options.plugin_option(expose_value=False)
@options.json_option
def explain(
    run: str, moved: dict[str, Any], groups: int, samples: int, repeats: int, as_json: bool
) -> None:
    """Show which bands and which neighbours the trained model of RUN looks at.

    Importance of a group of bands: what the model loses on test pixels when the values of these
    bands are shuffled between pixels. The same for each pixel of the patch, or each cell of an
    image. Also gradients and, for networks with attention, where each layer attends. The report of
    the run shows all of it in charts.

    \b
    hytas explain runs/ip
    hytas explain runs/ip --groups 50 --samples 1000
    """
    from hytas.run import RunFolder
    from hytas.run.delivering.reporting import report_runs
    from hytas.run.explaining import explain_run
    from hytas.run.folder import write_json

    folder = RunFolder(run)
    config = folder.read_config()[0].moved(**options.absolute_paths(moved))
    explanation = explain_run(run, config, groups=groups, samples=samples, repeats=repeats)
    if as_json:
        echo(json.dumps(explanation, indent=1, allow_nan=False))
        return
    _print(explanation)
    with folder:
        write_json(folder.explanation, explanation)
    report_runs([run], folder.report)
    echo(f"written   {folder.explanation}, {folder.report.name}")


def _print(explanation: Mapping[str, Any]) -> None:
    from hytas.report.explained import attending, explanation_summary, importance_texts, spatial

    echo(explanation_summary(explanation))
    head = ["most important", "probability lost", "accuracy lost", "gradient"]
    groups = [explanation["bands"][at] for at in explanation["order"][:SHOWN]]
    rows = [[group["label"], *importance_texts(group)] for group in groups]
    for line in (*aligned_cells([head, *rows]), *spatial(explanation), *attending(explanation)):
        echo(line)
