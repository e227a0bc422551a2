"""The attention and MLP parts of a score, before and after the logarithm."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hytas.lab.analysis.bootstrap import Column, cell, resamples, spearman_of, with_interval
from hytas.lab.analysis.settings import AnalysisSettings, Log
from hytas.lab.analysis.tables import RankingTable
from hytas.pictures.plots import draw_lines
from hytas.proxies.spec import canonical
from hytas.report import FactTable, Figure, Section
from hytas.types import Floats

TITLE = "Attention and MLP parts"
# Published columns, and those of our proxies.
NAMES = tuple(
    (name, msa, mlp)
    for name in ("snip", "grad_norm", "dss", "synflow:terms=absolute", "fisher")
    for msa, mlp in ((f"{name}_msa", f"{name}_mlp"), (f"{name}:parts=msa", f"{name}:parts=mlp"))
)
_SHARES = np.linspace(0.01, 0.99, 25)


def measure(tables: Sequence[RankingTable], settings: AnalysisSettings, log: Log) -> dict[str, Any]:
    """Return the scales of the parts of scores, and what they are worth alone and together.

    Returns:
        JSON-ready: table -> score -> "median_msa", "median_mlp", "quantiles" ("msa" and "mlp"), and
        "spearman": "msa", "mlp", "sum", "sum of logs" -> rho with its interval, or None.
    """
    figures: dict[str, Any] = {}
    for table in tables:
        log(f"{table.name}: parts")
        copies = resamples(len(table), settings.resamples, settings.seed)
        reached = Column.of(table.accuracy, copies)
        figures[table.name] = {}
        scores = {canonical(name): values for name, values in table.scores.items()}
        for name, *parts in NAMES:
            msa, mlp = map(canonical, parts)
            if {msa, mlp} <= scores.keys():
                pair = scores[msa], scores[mlp]
                figures[table.name][name] = _parts(pair, reached, copies)
    return figures


def _parts(pair: tuple[Floats, Floats], reached: Column, copies: Floats) -> dict[str, Any]:
    msa, mlp = pair
    with np.errstate(all="ignore"):
        logs = np.log(msa) + np.log(mlp)  # NaN where a part is negative
    columns = {"msa": msa, "mlp": mlp, "sum": msa + mlp, "sum of logs": logs}
    finite = [values[np.isfinite(values)] for values in pair]
    return {
        "median_msa": float(np.median(finite[0])) if len(finite[0]) else None,
        "median_mlp": float(np.median(finite[1])) if len(finite[1]) else None,
        "quantiles": {
            part: np.quantile(values, _SHARES).tolist() if len(values) else []
            for part, values in zip(("msa", "mlp"), finite, strict=True)
        },
        "spearman": {
            name: with_interval(spearman_of(Column.of(values, copies), reached))
            for name, values in columns.items()
        },
    }


def show(measured: Mapping[str, Any]) -> Section:
    """Return the section of what `measure` returned."""
    scales, worth, figures = [], [], []
    for table, scores in measured.items():
        panels = {}
        for name, entry in scores.items():
            msa, mlp = entry["median_msa"], entry["median_mlp"]
            if not msa or not mlp:
                continue
            scales.append(
                [
                    f"{table}, {name}",
                    *(f"{value:.3g}" for value in (msa, mlp, mlp / msa)),
                    f"{_log(mlp) - _log(msa):.2f}",
                ]
            )
            row = entry["spearman"]
            worth.append([f"{table}, {name}", *(cell(row[key]) for key in row)])
            panels[name] = {part: _line(values) for part, values in entry["quantiles"].items()}
        if panels:
            svg = draw_lines(panels, ("share of the networks (%)", "log10 of the part"))
            title = f"{table}: scales of the parts, after the logarithm"
            figures.append(Figure(title, svg, f"{title}; the table has the medians"))
    if not scales:
        verdict = "No table has the attention and the MLP part of a score."
        return Section("parts", TITLE, [verdict])
    verdict = (
        f"In {len(scales)} pairs of parts, the median of the MLP part is "
        f"{min(float(row[3]) for row in scales):.2g} to "
        f"{max(float(row[3]) for row in scales):.2g} times that of the attention part."
    )
    heads = ("", "median, attention", "median, MLP", "MLP / attention", "difference of log10")
    grids = [
        FactTable("Scales, before and after the logarithm", heads, scales),
        FactTable(
            "Spearman's rho with accuracy",
            ("", "attention", "MLP", "sum", "sum of logarithms"),
            worth,
        ),
    ]
    return Section("parts", TITLE, [verdict], grids, figures)


def _log(value: float) -> float:
    return float(np.log10(value)) if value > 0 else float("nan")


def _line(values: Sequence[float]) -> tuple[list[float], list[float], list[float], list[float]]:
    none = [float("nan")] * len(values)
    shares = (100 * _SHARES[: len(values)]).tolist()
    return shares, [_log(value) for value in values], none, none
