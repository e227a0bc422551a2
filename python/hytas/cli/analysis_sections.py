"""The commands of `hytas analyse` that measure one section, and the report of all of them."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.analysis.sections import SECTIONS
from hytas.cli.options import json_option
from hytas.cli.progress import echo
from hytas.cli.tables import aligned
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.report import Section

Command = Callable[..., Any]

space_option = click.option(
    "--space",
    help="Space of the networks of tables without a column space, such as autoformer.  [default: "
    "of the card benchmark.json beside a table; else hytas]",
)
"""--space of tables."""


by_depth_option = click.option(
    "--by-depth", is_flag=True, help="Show what the best networks prefer in each layer."
)


def _options(command: Command) -> Command:
    for option in (
        click.option("--seed", type=int, default=0, show_default=True, help="Seed of all draws."),
        click.option(
            "--sizes",
            default="20,50,100,200,500",
            show_default=True,
            help="Numbers of trained networks to fit predictors on.",
        ),
        click.option(
            "--fits", type=int, default=5, show_default=True, help="Fits of each predictor."
        ),
        click.option(
            "--budget",
            type=int,
            default=200,
            show_default=True,
            help="Evaluations of a simulated search.",
        ),
        click.option(
            "--searches",
            type=int,
            default=100,
            show_default=True,
            help="Simulated searches of each kind.",
        ),
        click.option(
            "--lead",
            "leads",
            multiple=True,
            help="Score that leads simulated searches, or all; repeatable.  [default: some]",
        ),
        click.option(
            "--resamples",
            type=int,
            default=200,
            show_default=True,
            help="Bootstrap resamples of an interval.",
        ),
        space_option,
        click.option("--ignore-column", multiple=True, help="Another column to ignore."),
        click.option("--score-column", multiple=True, help="Another column that holds a score."),
        click.option("--shape", help="BANDS,CLASSES or BANDS,CLASSES,PATCH,GROUP of the scene."),
        click.argument("more", nargs=-1, type=click.Path(path_type=Path)),
        click.option(
            "--tables",
            required=True,
            multiple=True,
            type=click.Path(path_type=Path),
            help="CSV files, folders of CSV files, or folders of `hytas benchmark make`.",
        ),
    ):
        command = option(command)
    return command


def _opened(options: dict[str, Any]) -> tuple[list[Any], Any]:
    from hytas.analysis import read_tables
    from hytas.analysis.settings import AnalysisSettings

    try:
        sizes = tuple(int(part) for part in options["sizes"].split(","))
    except ValueError:
        raise InputError(
            "sizes", options["sizes"], "must be whole numbers, such as 20,50"
        ) from None
    numbers = ("resamples", "searches", "budget", "fits", "seed")
    settings = AnalysisSettings(
        sizes=sizes,
        leads=options["leads"],
        by_depth=options.get("by_depth", False),
        **{name: options[name] for name in numbers},
    )
    tables = read_tables(
        [*options["tables"], *options["more"]],
        shape=None if options["shape"] is None else parse_shape(options["shape"]),
        score_columns=options["score_column"],
        ignored_columns=options["ignore_column"],
        space=options["space"],
    )
    return tables, settings


def parse_shape(text: str) -> Any:
    """Return the shape in a text such as "200,16" or "200,16,7,3"."""
    from hytas.spaces.shape import InputShape

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    odd = all(number % 2 for number in numbers[2:])
    if len(numbers) not in (2, 4) or min(numbers) < 1 or numbers[1] < 2 or not odd:
        raise InputError(
            "shape",
            text,
            "must be BANDS,CLASSES or BANDS,CLASSES,PATCH,GROUP, such as 200,16,7,3, with 2 "
            "classes or more, and PATCH and GROUP odd",
        )
    return InputShape(*numbers)


def _tell(text: str) -> None:
    click.echo(text, err=True)


def section_command(name: str) -> click.Command:
    """Return the command that measures one section and prints its tables."""

    @click.command(name, help=f"{SECTIONS[name]}\n\nhytas analyse {name} --tables results/")
    @_options
    @json_option
    @click.option(
        "--figures", type=click.Path(path_type=Path), help="Folder to write the charts to, as SVG."
    )
    def command(as_json: bool, figures: Path | None, **options: Any) -> None:
        from hytas.analysis.sections import measure_section, show_section

        if figures is not None and figures.exists() and not figures.is_dir():
            raise InputError("figures", figures, "is a file", hint="a folder is needed")
        tables, settings = _opened(options)
        found = measure_section(name, tables, settings, _tell)
        section = show_section(name, found)
        if figures is not None:
            _write_figures(figures, section)
        echo(json.dumps(found, indent=1) if as_json else _text(section))

    return by_depth_option(command) if name == "genes" else command


def _write_figures(folder: Path, section: "Section") -> None:
    from hytas.files import write_text

    folder.mkdir(parents=True, exist_ok=True)
    for number, figure in enumerate(section.figures, start=1):
        title = re.sub(r"[^a-z0-9]+", "-", figure.title.lower()).strip("-")[:50]
        write_text(folder / f"{section.key}-{number}-{title}.svg", figure.svg)


def _text(section: "Section") -> str:
    parts = [section.title, *section.sentences]
    for grid in section.grids:
        parts += ["", grid.title, *aligned([grid.columns, *grid.rows])]
    return "\n".join([*parts, "", *section.notes]).rstrip()


@click.command()
@_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("analysis.html"),
    show_default=True,
    help="The page: one HTML file that needs no network.",
)
@click.option(
    "--section",
    "chosen",
    multiple=True,
    type=click.Choice(list(SECTIONS)),
    help="Only these sections; repeatable.  [default: all]",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    help="Also write all figures to this JSON file.",
)
def report(out: Path, chosen: tuple[str, ...], json_path: Path | None, **options: Any) -> None:
    """Write one page of all that tables of trained networks tell.

    For the three published tables it takes some minutes; fewer --searches and --fits are faster.

    \b
    hytas analyse report --tables results/ --out analysis.html
    hytas analyse report --tables bench/ip --section correlations --section genes
    """
    from hytas.analysis.page import write_analysis
    from hytas.files import check_folder

    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError("out", out, "must end in .html")
    for path in (out, json_path):
        if path is not None:
            check_folder(path, "out")
    tables, settings = _opened(options)
    write_analysis(out, tables, settings, _ordered(chosen), json_path=json_path, tell=_tell)
    echo(f"written   {out} ({out.stat().st_size / 1e6:.2f} MB)")


def _ordered(chosen: Sequence[str]) -> list[str]:
    return [name for name in SECTIONS if name in chosen or not chosen]
