"""How well each score ranks trained networks, with intervals, overall and inside bands of size."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.lab.analysis.bootstrap import (
    amount,
    cell,
    in_resamples,
    kendall,
    precision,
    resamples,
    rounded,
    with_interval,
)
from hytas.lab.analysis.scores import (
    LEAST,
    expected_best,
    rank_last_if_failed,
    scores_of,
    top_accuracies,
)
from hytas.lab.analysis.settings import AnalysisSettings, Log
from hytas.lab.analysis.tables import RankingTable
from hytas.metrics import mean_of_known
from hytas.pictures.plots import draw_intervals
from hytas.report import FactTable, Figure, Section
from hytas.search.ranks import spearman
from hytas.types import Floats

TOPS = {f"top {100 * share:.0f} %": share for share in (0.01, 0.05, 0.10)}
STATISTICS: Mapping[str, Callable[[Floats, Floats], float | None]] = {
    "spearman": spearman,
    "kendall": kendall,
    **{label: partial(precision, share=share) for label, share in TOPS.items()},
}
TITLE = "How well scores rank networks"
REFERENCE = "depth-embed"
# Ranges of true parameter counts in millions; the lower end is included, the upper end is not.
BANDS = {
    "0-0.5M": (0.0, 0.5),
    "0.5-1M": (0.5, 1.0),
    "1-2M": (1.0, 2.0),
    "2-4M": (2.0, 4.0),
    "4M+": (4.0, float("inf")),
}
ALL = "all"
GAINS = {1: "gain of the first choice", 10: "of the first ten"}
ORDERS = 5
"""Random orders of networks with equal scores, whose gains are averaged."""


def measure(tables: Sequence[RankingTable], settings: AnalysisSettings, log: Log) -> dict[str, Any]:
    """Return for each table and group of networks what each score is worth.

    Returns:
        JSON-ready: table -> "networks", "between_seeds" (rho of two trainings of the same network,
        or None) and "groups": group -> "networks" and "scores": score -> "spearman", "kendall" and
        "top 1 %", "top 5 %", "top 10 %", each a figure with the ends of its interval, or None; and
        the gains: the accuracy of the score's first choice, or of the best of its first ten, minus
        the expected accuracy of the best of ten random networks.
    """
    figures = {}
    for table in tables:
        log(f"{table.name}: correlations")
        groups = {}
        for group, mask in size_bands(table).items():
            if mask.sum() >= (2 if group == ALL else LEAST):
                scores = {name: values[mask] for name, values in scores_of(table).items()}
                groups[group] = _group(scores, table.accuracy[mask], settings)
        figures[table.name] = {
            "networks": len(table),
            "between_seeds": _between_seeds(table, settings),
            "groups": groups,
        }
    return figures


def size_bands(table: RankingTable) -> dict[str, NDArray[np.bool_]]:
    """Return masks of all networks and, if true sizes are known, of `BANDS`, or else thirds.

    Thirds are taken where the usual bands do not divide the networks, as under a small budget.
    """
    groups: dict[str, NDArray[np.bool_]] = {ALL: np.ones(len(table), dtype=np.bool_)}
    if table.size is not None:
        millions = table.size.params / 1e6
        groups |= {
            name: (millions >= low) & (millions < high) for name, (low, high) in BANDS.items()
        }
    filled = [name for name, mask in groups.items() if name != ALL and mask.sum() >= LEAST]
    if len(filled) != 1 or table.size is None:
        return groups
    ends = np.quantile(table.size.params, [0, 1 / 3, 2 / 3, 1])
    parts = np.searchsorted(ends[1:-1], table.size.params, side="right")
    return {ALL: groups[ALL]} | {
        f"{amount(ends[part])}-{amount(ends[part + 1])}": parts == part for part in range(3)
    }


def _group(
    scores: Mapping[str, Floats], accuracy: Floats, settings: AnalysisSettings
) -> dict[str, Any]:
    copies = resamples(len(accuracy), settings.resamples, settings.seed)
    random = expected_best(accuracy, 10)
    figures: dict[str, dict[str, Any]] = {}
    for name, values in scores.items():
        if not np.isfinite(values).any():
            continue
        ranks = rank_last_if_failed(values)
        figures[name] = {
            **{
                label: with_interval(in_resamples(statistic, values, accuracy, copies))
                for label, statistic in STATISTICS.items()
            },
            **{
                label: None
                if random is None
                else top_accuracies(ranks, accuracy, count, ORDERS) - random
                for count, label in GAINS.items()
            },
        }
    return {"networks": len(accuracy), "scores": figures}


def _between_seeds(
    table: RankingTable, settings: AnalysisSettings
) -> tuple[float, float, float] | None:
    """Return how well one training ranks another of the same networks."""
    trained = table.of_seeds
    complete = np.isfinite(trained).all(axis=1)
    if trained.shape[1] < 2 or complete.sum() < 2:
        return None
    copies = resamples(int(complete.sum()), settings.resamples, settings.seed)
    first, second = trained[complete, 0], trained[complete, 1]
    return with_interval(in_resamples(spearman, first, second, copies))


def show(measured: Mapping[str, Any]) -> Section:
    """Return the section of what `measure` returned."""
    grids, figures, sentences = [], [], []
    for table, entry in measured.items():
        groups = entry["groups"]
        overall = groups[ALL]["scores"]
        order = sorted(overall, key=lambda name: -(overall[name]["spearman"] or [-2])[0])
        sentences.append(_verdict(table, entry, order))
        rows = [
            [
                name,
                *(cell(overall[name][key]) for key in STATISTICS),
                *(rounded(overall[name][key], 3) for key in GAINS.values()),
            ]
            for name in order
        ]
        labels = ("score", "Spearman's rho", "Kendall's tau", *TOPS, *GAINS.values())
        grids.append(FactTable(f"{table}: all {entry['networks']} networks", labels, rows))
        bands = [group for group in groups if group != ALL]
        if bands:
            rows = [
                [
                    name,
                    *(cell(groups[band]["scores"].get(name, {}).get("spearman")) for band in bands),
                ]
                for name in order
            ]
            heads = ("score", *(f"{band} ({groups[band]['networks']})" for band in bands))
            grids.append(
                FactTable(f"{table}: Spearman's rho among networks of one size", heads, rows)
            )
        # The largest number of networks lies in the middle bands.
        drawn = (ALL, *(bands[-3:-1] if len(bands) > 3 else bands[:2]))
        series = {
            group: {n: groups[group]["scores"].get(n, {}).get("spearman") for n in order}
            for group in drawn
        }
        about = f"Spearman's rho of {len(order)} scores on {table}; the table has the numbers"
        svg = draw_intervals(series, "Spearman's rho with accuracy")
        figures.append(Figure(f"{table}: rho with 95 % intervals", svg, about))
    if len(measured) > 1:
        grids.append(_mean(measured))
    notes = (
        "Intervals hold 95 % of bootstrap resamples of the networks. Precision at the top is the "
        "part of the networks that a score puts first that are also first by accuracy; chance "
        "gives 0.01, 0.05 and 0.10. Gain is the accuracy of the best of the score's first choices "
        "minus the expected best of ten random networks. A score that failed ranks last. Of many "
        "scores that say nothing, one in twenty has an interval without zero by chance.",
    )
    return Section("ranking", TITLE, sentences, grids, figures, notes)


def _mean(measured: Mapping[str, Any]) -> FactTable:
    """Return the mean of Spearman's rho over tables, of scores that all tables have."""
    scores = [entry["groups"][ALL]["scores"] for entry in measured.values()]
    shared = [name for name in scores[0] if all(name in each for each in scores)]
    means = {
        name: mean_of_known([(each[name]["spearman"] or [None])[0] for each in scores])
        for name in shared
    }
    order = sorted(shared, key=lambda name: -2 if means[name] is None else -(means[name] or 0.0))
    rows = [[name, rounded(means[name], 3)] for name in order]
    return FactTable(f"Mean of {', '.join(measured)}", ("score", "Spearman's rho"), rows)


def _verdict(table: str, entry: Mapping[str, Any], order: Sequence[str]) -> str:
    scores = entry["groups"][ALL]["scores"]
    ranked = [name for name in order if scores[name]["spearman"]]
    if not ranked:
        return f"{table}: no score has a rank correlation."
    significant = [name for name in ranked if not holds_zero(scores[name]["spearman"])]
    best, reference = ranked[0], scores.get(REFERENCE, {}).get("spearman")
    parts = [
        f"{table}: {len(significant)} of {len(ranked)} scores have a rho whose interval does not "
        "hold zero",
        f"the highest is that of {best}, {cell(scores[best]['spearman'])}",
    ]
    if reference and best != REFERENCE:
        parts.append(f"{REFERENCE}, which needs no network, has {cell(reference)}")
    text = "; ".join(parts) + "."
    if entry["between_seeds"]:
        text += f" Two trainings of the same networks agree by {cell(entry['between_seeds'])}."
    return text


def holds_zero(figure: Sequence[float]) -> bool:
    """Return whether the interval of a figure holds zero."""
    return not (figure[1] > 0 or figure[2] < 0)
