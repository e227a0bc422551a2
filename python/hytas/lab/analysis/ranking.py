"""Measure how well scores rank trained networks: all, those of similar size, and the best."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hytas.lab.analysis.predictors import PREDICTOR_SIZES, predictors
from hytas.lab.analysis.scores import (
    RANK_FIGURES,
    expected_best,
    rank_figures,
    training_free_scores,
)
from hytas.lab.analysis.tables import RankingTable
from hytas.metrics import mean_of_known
from hytas.types import Mask

# Ranges of true parameter counts in millions; the lower end is included, the upper end is not.
BANDS = {
    "0-0.5M": (0.0, 0.5),
    "0.5-1M": (0.5, 1.0),
    "1-2M": (1.0, 2.0),
    "2-4M": (2.0, 4.0),
    "4M+": (4.0, float("inf")),
}
ALL = "all"


def analyse_tables(tables: Sequence[RankingTable], **options: Any) -> dict[str, Any]:
    """Return `analyse_table` of each table, means over tables, and how scores transfer.

    Args:
        options: of `analyse_table`.

    Returns:
        "tables"; "mean" and "predictors": score or predictor -> kind, number of tables, group ->
        figures, over the tables that have it; "transfer", with two or more tables: for each table
        the training-free score that is best on the others (if there is one), and the figures of
        this score and of depth-embed on this table.
    """
    reports = [analyse_table(table, **options) for table in tables]
    return {
        "tables": reports,
        "mean": _mean_over_tables([report["scores"] for report in reports]),
        "predictors": _mean_over_tables([report["predictors"] for report in reports]),
        "transfer": _transfer(reports),
    }


def analyse_table(
    table: RankingTable,
    *,
    seeds: int = 5,
    rank_means: Sequence[Sequence[str]] = (),
    predictor_sizes: Sequence[int] = PREDICTOR_SIZES,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure every score of one table, and predictors fitted on a few of its networks.

    A score that failed (NaN) ranks below all others. Gain is the accuracy of the score's first
    choice, or of the best of its first ten, minus the expected accuracy of the best of ten random
    networks.

    Args:
        seeds: number of draws of the predictors' networks, and of the order of equal scores.
        rank_means: scores of each mean of ranks; a mean is left out if the table lacks one.
        predictor_sizes: numbers of networks to fit predictors on.

    Returns:
        JSON-ready: "name", "networks", "size" (source of the true counts), "notes", "groups"
        (number of networks, expected best of ten random ones and best of all, for all networks and
        for each range of sizes), "scores" and "predictors": name -> "kind", "failed" and group ->
        `FIGURES`. A figure is None if it is undefined, or if a range has fewer than 20 networks.
    """
    groups = groups_of(table)
    progress(f"{table.name}: scores")
    scores = {
        name: {
            "kind": kind,
            "failed": int(np.count_nonzero(~np.isfinite(values))),
            **{
                group: rank_figures(values, table.accuracy, mask, bool(mask.all()), seeds)
                for group, mask in groups.items()
            },
        }
        for name, (kind, values) in training_free_scores(table, rank_means).items()
    }
    return {
        "name": table.name,
        "networks": len(table),
        "size": None if table.size is None else table.size.source,
        "notes": list(table.notes),
        "groups": {
            group: {
                "networks": int(mask.sum()),
                "best": float(table.accuracy[mask].max()) if mask.any() else None,
                "best_of_ten_random": expected_best(table.accuracy[mask], 10),
            }
            for group, mask in groups.items()
        },
        "scores": scores,
        "predictors": predictors(table, groups, seeds, predictor_sizes, progress),
    }


def groups_of(table: RankingTable) -> dict[str, Mask]:
    """Return masks of all networks, and of each range of sizes if true sizes are known."""
    groups: dict[str, Mask] = {ALL: np.ones(len(table), dtype=np.bool_)}
    if table.size is not None:
        millions = table.size.params / 1e6
        groups |= {
            name: (millions >= low) & (millions < high) for name, (low, high) in BANDS.items()
        }
    return groups


def _mean_over_tables(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return score -> "kind", "tables", and group -> figure -> mean over tables that have it."""
    names = list(dict.fromkeys(name for report in reports for name in report))
    result: dict[str, Any] = {}
    for name in names:
        entries = [report[name] for report in reports if name in report]
        result[name] = {"kind": entries[0]["kind"], "tables": len(entries)}
        for group in (ALL, *BANDS):
            inside = [entry[group] for entry in entries if group in entry]
            if inside:
                result[name][group] = {
                    figure: mean_of_known([each.get(figure) for each in inside])
                    for figure in RANK_FIGURES
                }
    return result


def _transfer(reports: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Choose the score with the best mean Spearman on all tables but one; measure it there."""
    if len(reports) < 2:
        return []
    shared = set.intersection(*(set(report["scores"]) for report in reports))

    def rho(report: Mapping[str, Any], name: str, group: str) -> float | None:
        value: float | None = report["scores"][name].get(group, {}).get("spearman")
        return value

    rows = []
    for held_out in reports:
        others = [report for report in reports if report is not held_out]

        means = {
            name: mean_of_known([rho(report, name, ALL) for report in others])
            for name in sorted(shared)
        }
        ranked = {name: mean for name, mean in means.items() if mean is not None}
        if not ranked:
            continue
        chosen = max(ranked, key=lambda name: ranked[name])
        rows.append(
            {
                "table": held_out["name"],
                "chosen": chosen,
                "spearman_on_others": ranked[chosen],
                **{
                    group: {
                        name: rho(held_out, name, group)
                        for name in (chosen, "depth-embed")
                        if name in held_out["scores"]
                    }
                    for group in (ALL, *BANDS)
                },
            }
        )
    return rows
