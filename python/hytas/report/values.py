"""What a report shows of a model of values: figures, references, predicted against observed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hytas.files import legible
from hytas.pictures.figures import ACCENT, SOFT, inline_svg
from hytas.report.charts import charted
from hytas.report.facts import FactTable, Figure, Section
from hytas.results import RunResults
from hytas.types import Floats

FIGURES = ("R2", "RMSE", "bias", "RPD", "RPIQ", "CCC")
MOST_POINTS = 2000
Pairs = Mapping[str, tuple[Floats, Floats, Floats]]
"""Name of a target -> observed and predicted values of test samples; columns and rows (2, n)."""


def values_section(results: RunResults, pairs: Pairs) -> Section:
    """Return the part of a page on predicted values."""
    test = results.test
    grid = FactTable(
        "Test samples, with 95 % intervals by bootstrap over groups",
        ("target", "unit", *FIGURES, "samples"),
        [
            (
                legible(name),
                legible(one["unit"]),
                *(_with_ends(one[each], one["intervals"].get(each)) for each in FIGURES),
                str(one["samples"]),
            )
            for name, one in test["per_target"].items()
        ],
    )
    return Section(
        "values",
        "Predicted values",
        [results.headline, *_coverage(test)],
        [grid, *_references(results)],
        list(_figures(pairs, test)),
    )


def _references(results: RunResults) -> Iterator[FactTable]:
    comparison = results.comparison
    if comparison is None or not comparison.rows:
        return
    names = list(results.test["per_target"])
    rows = [
        (
            "this model" if not at else row.title,
            "-" if row.held_out is None else f"{row.held_out:.3f}",
            *(_rounded(row.test["per_target"][name]["RMSE"]) for name in names),
            _rounded(row.test["R2"]),
        )
        for at, row in enumerate(comparison.rows)
    ]
    columns = ("method", "R2, held-out", *(f"RMSE of {legible(name)}, test" for name in names))
    yield FactTable("Reference methods on the same samples", (*columns, "mean R2, test"), rows)


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _with_ends(value: float | None, ends: Sequence[float] | None) -> str:
    return _rounded(value) + ("" if ends is None else f" ({ends[0]:.3g} to {ends[1]:.3g})")


def _coverage(test: Mapping[str, Any]) -> Iterator[str]:
    """Say for each level which share of the test samples its intervals hold."""
    for level, shares in test.get("coverage", {}).items():
        known = [
            f"{share:.0%} of {legible(name)}"
            for name, share in zip(test["per_target"], shares, strict=True)
            if share is not None
        ]
        if known:
            yield f"Intervals of {float(level):.0%} hold {', '.join(known)}."


def _figures(pairs: Pairs, test: Mapping[str, Any]) -> Iterator[Figure]:
    """Draw predicted against observed values with the 1:1 line, and residuals along the target."""
    for name, (observed, predicted, places) in pairs.items():
        known = np.isfinite(observed) & np.isfinite(predicted)
        true, given = observed[known][:MOST_POINTS], predicted[known][:MOST_POINTS]
        if not len(true):
            continue
        unit = test["per_target"].get(name, {}).get("unit")
        title = f"{legible(name)} ({legible(unit)})" if unit else legible(name)
        ends = [float(min(true.min(), given.min())), float(max(true.max(), given.max()))]
        shown = (("predicted", ends, given), ("residual", [0.0, 0.0], given - true))
        for what, line, values in shown:
            with charted(f"observed {title}", what) as (drawing, axes):
                axes.plot(ends, line, color=SOFT, linestyle="--")
                axes.plot(true, values, "o", color=ACCENT, alpha=0.6, markersize=4)
                about = f"{what} over observed {title}; dashed: a perfect prediction"
                yield Figure(f"{title}: {what}", inline_svg(drawing, what, about), about)
        across, down = places[:, known][:, :MOST_POINTS]
        if not np.isfinite(across).all():
            continue
        with charted("column", "row") as (drawing, axes):
            most = float(np.abs(given - true).max())
            colours: dict[str, Any] = {"vmin": -most, "vmax": most, "cmap": "coolwarm"}
            drawn = axes.scatter(across, down, s=9, c=given - true, **colours)
            drawing.colorbar(drawn, ax=axes)
            axes.invert_yaxis()
            about = f"residuals of {title}, predicted less observed, at their pixels"
            yield Figure(f"{title}: residual map", inline_svg(drawing, "map", about), about)
