"""`hytas analyse`: sections about tables of trained networks, and the report of all of them."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.cli.options import (
    PATH,
    count_option,
    json_option,
    path_option,
    plugin_option,
    together,
    whole_numbers,
)
from hytas.cli.progress import aligned_cells, echo
from hytas.errors import InputError
from hytas.lab.analysis.sections import SECTIONS

if TYPE_CHECKING:
    from hytas.report import Section

_options = together(
    path_option(
        "--tables",
        required=True,
        multiple=True,
        help="CSV files, folders of CSV files, folders of `hytas benchmark make`, or published "
        "tables such as hytas-indian.",
    ),
    click.argument("more", nargs=-1, type=PATH),
    click.option("--score-column", multiple=True, help="Another column that holds a score."),
    click.option("--ignore-column", multiple=True, help="Another column to ignore."),
    click.option(
        "--space",
        help="Space of the networks of tables without a column space, such as autoformer.  "
        "[default: of the card benchmark.json next to a table; else hytas]",
    ),
    plugin_option(expose_value=False),
    count_option("--resamples", default=200, text="Bootstrap resamples of an interval."),
    count_option("--fits", default=5, text="Fits of each predictor."),
    click.option(
        "--sizes",
        default="20,50,100,200,500",
        show_default=True,
        help="Numbers of trained networks to fit predictors on.",
    ),
    count_option("--seed", default=0, text="Seed of all draws.", least=0),
)


@click.group()
def analyse() -> None:
    """Measure tables of trained networks: scores, genes and predictors."""


def _tables(options: dict[str, Any]) -> list[Any]:
    from hytas.lab.analysis import read_tables

    return read_tables(
        [*options["tables"], *options["more"]],
        score_columns=options["score_column"],
        ignored_columns=options["ignore_column"],
        space=options["space"],
    )


def _settings(options: dict[str, Any]) -> Any:
    from hytas.lab.analysis.settings import AnalysisSettings

    sizes = tuple(whole_numbers(options["sizes"]))
    if min(sizes, default=0) < 2:
        rule = "must be whole numbers of 2 or more, such as 20,50"
        raise InputError("sizes", options["sizes"], rule)
    numbers = ("resamples", "fits", "seed")
    return AnalysisSettings(
        sizes=sizes,
        by_depth=options.get("by_depth", False),
        **{name: options[name] for name in numbers},
    )


def _log(text: str) -> None:
    click.echo(text, err=True)


def _section_command(name: str) -> click.Command:
    """Return the command that measures one section and prints its tables."""

    @click.command(name, help=f"{SECTIONS[name]}\n\nhytas analyse {name} --tables results/")
    @_options
    @json_option
    @path_option("--figures", "charts", help="Folder to write the charts to, as SVG.")
    def command(as_json: bool, charts: Path | None, **options: Any) -> None:
        from hytas.lab.analysis.sections import measure_section, show_section

        if charts is not None and charts.exists() and not charts.is_dir():
            raise InputError("figures", charts, "is a file", hint="a folder is needed")
        settings, tables = _settings(options), _tables(options)
        figures = measure_section(name, tables, settings, _log)
        section = show_section(name, figures)
        if charts is not None:
            _write_charts(charts, section)
        echo(json.dumps(figures, indent=1) if as_json else _text(section))

    if name != "genes":
        return command
    about = "Show what the best networks prefer in each layer."
    return click.option("--by-depth", is_flag=True, help=about)(command)


def _write_charts(folder: Path, section: "Section") -> None:
    from hytas.files import write_text

    folder.mkdir(parents=True, exist_ok=True)
    for number, figure in enumerate(section.figures, start=1):
        title = re.sub(r"[^a-z0-9]+", "-", figure.title.lower()).strip("-")[:50]
        write_text(folder / f"{section.key}-{number}-{title}.svg", figure.svg)


def _text(section: "Section") -> str:
    parts = [section.title, *section.sentences]
    for grid in section.grids:
        parts += ["", grid.title, *aligned_cells([grid.columns, *grid.rows])]
    return "\n".join([*parts, "", *section.notes]).rstrip()


for _name in SECTIONS:
    analyse.add_command(_section_command(_name))


@analyse.command()
@_options
@path_option(
    "--out",
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
@path_option("--json", "json_path", help="Also write all figures to this JSON file.")
def report(out: Path, chosen: tuple[str, ...], json_path: Path | None, **options: Any) -> None:
    """Write one page with all sections.

    For the three published tables it takes some minutes; fewer --fits are faster.

    \b
    hytas analyse report --tables results/ --out analysis.html
    hytas analyse report --tables bench/ip --section ranking --section genes
    """
    from hytas.files import check_folder
    from hytas.lab.analysis.page import write_analysis

    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError("out", out, "must end in .html")
    for path in (out, json_path):
        if path is not None:
            check_folder(path, "out")
    settings, tables = _settings(options), _tables(options)
    names = [name for name in SECTIONS if name in chosen or not chosen]
    write_analysis(out, tables, settings, names, json_path=json_path, log=_log)
    echo(f"written   {out} ({out.stat().st_size / 1e6:.2f} MB)")
