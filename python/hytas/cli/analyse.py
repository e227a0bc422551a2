"""`hytas analyse`: analysis of tables of trained networks."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from hytas.cli.analysis_sections import log, read_given, report, section_command, table_options
from hytas.cli.options import json_option, whole_numbers
from hytas.cli.progress import aligned_cells, echo
from hytas.errors import InputError
from hytas.lab.analysis.sections import SECTIONS


@click.group()
def analyse() -> None:
    """Measure tables of trained networks: scores, genes, predictors and searches."""


analyse.add_command(report)
for _name in SECTIONS:
    analyse.add_command(section_command(_name))


@analyse.command()
@table_options
@click.option("--seeds", type=int, default=5, show_default=True, help="Fits of each predictor.")
@click.option(
    "--rank-mean",
    "rank_means",
    multiple=True,
    help="Also rank by the mean of these ranks, such as snip,dss.",
)
@click.option(
    "--predictor-sizes",
    default="20,50,100,200",
    show_default=True,
    help="Number of trained networks to fit predictors on; 0 fits no predictor.",
)
@json_option
def ranking(
    seeds: int, rank_means: tuple[str, ...], predictor_sizes: str, as_json: bool, **options: Any
) -> None:
    """Print how well each score of the tables ranks their networks by accuracy.

    A table needs a column OA, columns of genes and columns of scores. The genes are depth,
    embed_dim, num_heads and mlp_ratio, or the column space and its genes, as `hytas score` writes
    them. Scores have the names that `hytas proxies` lists.

    The figures are Spearman's rho and Kendall's tau, over all networks and among networks of
    similar size, and the gain of the score's first choice and of its first ten. Gain is the
    accuracy of the best of them minus the expected accuracy of the best of ten random networks.

    \b
    hytas analyse ranking --tables results/
    hytas analyse ranking --tables a.csv b.csv --rank-mean snip,naswot --json
    """
    sizes = _sizes(predictor_sizes)
    if seeds < 1:
        raise InputError("seeds", seeds, "must be 1 or more")
    from hytas.lab.analysis import analyse_tables
    from hytas.lab.analysis.scores import parse_rank_means

    means = list(dict.fromkeys(parse_rank_means(rank_means)))
    tables = read_given(options)
    _check_members(tables, means)
    analysis = analyse_tables(
        tables, seeds=seeds, rank_means=means, predictor_sizes=sizes, progress=log
    )
    echo(json.dumps(analysis, indent=1, allow_nan=False) if as_json else _text(analysis))


def _sizes(text: str) -> list[int]:
    sizes = whole_numbers(text)
    if sizes == [0]:
        return []
    if min(sizes, default=0) < 2:
        raise InputError(
            "predictor_sizes",
            text,
            "each must be a whole number of 2 or more, such as 20,50",
            hint="0 alone fits no predictor",
        )
    return sizes


def _check_members(tables: Sequence[Any], means: Sequence[Sequence[str]]) -> None:
    """Refuse a rank mean whose scores no table has together."""
    from hytas.lab.analysis.scores import training_free_scores

    for members in means:
        missing: list[str] = []
        for table in tables:
            scores = training_free_scores(table, ())
            missing = [name for name in members if name not in scores]
            if not missing:
                break
        if missing:
            raise InputError(
                "rank_mean",
                ",".join(members),
                f"no table has {missing[0]}",
                hint=f"the last has {', '.join(scores)}",
            )


def _text(analysis: Mapping[str, Any]) -> str:
    parts = []
    for table in analysis["tables"]:
        head = f"{table['name']}: {table['networks']} networks"
        if table["size"]:
            head += f"; true parameter counts from {table['size']}"
        lines = [head, *table["notes"], _counts(table["groups"])]
        parts.append("\n".join([*lines, *_rows({**table["scores"], **table["predictors"]})]))
    if len(analysis["tables"]) > 1:
        names = ", ".join(table["name"] for table in analysis["tables"])
        rows = _rows({**analysis["mean"], **analysis["predictors"]}, len(analysis["tables"]))
        parts.append("\n".join([f"mean of {names}", *rows]))
        parts.append("\n".join(_transfer(analysis["transfer"])))
    return "\n\n".join(parts)


def _counts(groups: Mapping[str, Any]) -> str:
    return "networks: " + ", ".join(f"{name} {each['networks']}" for name, each in groups.items())


def _rows(entries: Mapping[str, Mapping[str, Any]], tables: int = 1) -> list[str]:
    """Return one line for each score, the best first.

    Scores that some tables lack come after the others, and predictors come last.
    """
    from hytas.lab.analysis.ranking import ALL, BANDS

    groups = (ALL, *BANDS)
    head = ["rho/tau", *groups, "top-1", "top-10"]
    cells = [head]

    def place(name: str) -> tuple[bool, bool, float]:
        rho = entries[name]["all"]["spearman"]
        last, partial = (
            entries[name]["kind"] == "predictor",
            entries[name].get("tables", 1) < tables,
        )
        return last, partial, 0.0 if last else (2.0 if rho is None else -rho)

    for name in sorted(entries, key=place):
        entry = entries[name]
        pairs = [
            "/".join(_cell(entry.get(group, {}).get(key)) for key in ("spearman", "kendall"))
            for group in groups
        ]
        gains = [_cell(entry["all"].get(key)) for key in ("top1_gain", "top10_gain")]
        failed = f" ({entry['failed']} failed)" if entry.get("failed") else ""
        if entry.get("tables", tables) < tables:
            failed = f" ({entry['tables']} of {tables} tables)"
        cells.append([name + failed, *pairs, *gains])
    return aligned_cells(cells)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".replace("0.", ".", 1)


def _transfer(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["for each table: the score that is best on the other tables, and its rho on this one"]
    for entry in rows:
        name = entry["chosen"]
        pairs = [(group, entry[group]) for group in ("all", "1-2M", "2-4M")]
        figures = ", ".join(
            f"{group} {_cell(rho[name])} (depth-embed {_cell(rho.get('depth-embed'))})"
            for group, rho in pairs
        )
        lines.append(f"{entry['table']}: {name}: {figures}")
    return lines
