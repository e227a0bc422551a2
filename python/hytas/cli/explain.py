"""`hytas explain`: what the model of a run looks at."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hytas.cli import options
from hytas.cli.progress import echo
from hytas.cli.tables import aligned
from hytas.errors import InputError

SHOWN = 5


@click.command()
@click.argument("run")
@options.moved_options
@click.option(
    "--groups",
    type=int,
    default=20,
    show_default=True,
    help="Groups of neighbouring bands, at most.",
)
@click.option(
    "--samples",
    type=int,
    default=300,
    show_default=True,
    help="Test pixels, images or spectra, at most.",
)
@click.option(
    "--repeats", type=int, default=3, show_default=True, help="Random shuffles of each part."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="HTML page with charts. The figures are written next to it, as .json.  [default: "
    "explanation.html in RUN]",
)
@options.plugin_option(expose_value=False)
@options.json_option
def explain(
    run: str,
    moved: dict[str, Any],
    groups: int,
    samples: int,
    repeats: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Show which bands and which neighbours the trained model of RUN looks at.

    Importance of a group of bands: what the model loses on test pixels when the values of these
    bands are shuffled between pixels. The same for each pixel of the patch, or each cell of an
    image. The page also shows
    gradients and, for networks with attention, where each layer attends.

    \b
    hytas explain runs/ip
    hytas explain runs/ip --groups 50 --samples 1000 --out ip.html
    """
    from hytas.files import check_folder, write_text
    from hytas.report import write_sections
    from hytas.report.explained import TITLE, explained_section
    from hytas.run import RunFolder
    from hytas.run.explaining import explain_run

    folder = RunFolder(run)
    config, _ = folder.read_config()
    if out is None:
        out = folder.explanation
    else:
        check_folder(out, "out")
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError("out", out, "must end in .html")
    _check_overwrites(out)
    config = config.moved(**options.absolute_paths(moved))
    found = explain_run(run, config, groups=groups, samples=samples, repeats=repeats)
    write_sections(out, f"{TITLE}: {found['data']}", [], [explained_section(found)])
    write_text(out.with_suffix(".json"), json.dumps(found, indent=1, allow_nan=False) + "\n")
    if as_json:
        echo(json.dumps(found, indent=1, allow_nan=False))
        return
    print_found(found)
    echo(f"written   {out}, {out.with_suffix('.json').name}")


def _check_overwrites(out: Path) -> None:
    """Refuse a page that would replace a file of a run, or whose figures would."""
    from hytas.manifest import NAME
    from hytas.run import RunFolder
    from hytas.run.folder import ARTEFACTS

    folder = out.resolve().parent
    if not RunFolder(folder).config.exists():
        return
    written = (out.name, out.with_suffix(".json").name)
    kept = {one.file for name, one in ARTEFACTS.items() if not name.startswith("explanation")}
    for name in written:
        if name in {*kept, NAME}:
            raise InputError("out", out, f"would replace {name} of the run in {folder}")


def print_found(found: Mapping[str, Any]) -> None:
    """Print the most important groups, and what else was found, in a few lines."""
    from hytas.report.explained import attending, spatial

    echo(
        f"{found['samples']} {found['part']} {found['unit']}: accuracy {found['accuracy']:.4f}, "
        f"mean probability of the true class {found['probability']:.4f}"
    )
    head = ["most important", "probability lost", "accuracy lost", "gradient"]
    rows = [
        [
            found["bands"][at]["label"],
            f"{found['bands'][at]['probability']:.4f}",
            f"{found['bands'][at]['accuracy']:.4f}",
            f"{100 * found['bands'][at]['gradient']:.1f} %",
        ]
        for at in found["order"][:SHOWN]
    ]
    for line in (*aligned([head, *rows]), *spatial(found), *attending(found)):
        echo(line)
