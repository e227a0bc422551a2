"""The published figures next to ours, to two digits.

Sources: Zhou et al., HyTAS, ECCV 2024: table 8 of the supplementary (`SIGN`, `SIGN_OA`), and the
figure of factors and accuracy, whose numbers are in the authors' notebook (`FACTORS`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hytas.lab.analysis.scores import rank_last_if_failed, top_accuracies
from hytas.lab.analysis.size import scene_of
from hytas.lab.analysis.tables import RankingTable
from hytas.report import FactTable, Section
from hytas.search.ranks import spearman
from hytas.types import Floats

TITLE = "The published figures next to ours"
AS_MEAN, AS_TEXT = "mean over layers", "the list as text"
# Scene -> proxy -> Spearman's rho with and without the sign step. The last row of the table lacks
# a number, so of Salinas only what is certain stands here.
SIGN: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "indian": {"synflow": (0.60, 0.69), "logsynflow": (0.60, 0.73), "dss": (0.60, 0.69)},
    "houston": {"synflow": (0.53, 0.68), "logsynflow": (0.52, 0.74), "dss": (0.53, 0.67)},
    "pavia": {"synflow": (0.73, 0.69), "logsynflow": (0.73, 0.63), "dss": (0.73, 0.70)},
    "ksc": {"synflow": (0.71, 0.82), "logsynflow": (0.68, 0.84), "dss": (0.72, 0.82)},
    "salinas": {"synflow": (0.91, 0.93), "logsynflow": (0.89, 0.92)},
}
# The same for the accuracy of the network that the score puts first.
SIGN_OA: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "indian": {"synflow": (0.79, 0.81), "logsynflow": (0.79, 0.80), "dss": (0.80, 0.81)},
    "houston": {"synflow": (0.84, 0.88), "logsynflow": (0.84, 0.87), "dss": (0.84, 0.88)},
    "pavia": {"synflow": (0.90, 0.90), "logsynflow": (0.90, 0.90), "dss": (0.89, 0.90)},
    "ksc": {"synflow": (0.87, 0.89), "logsynflow": (0.87, 0.88), "dss": (0.89, 0.89)},
    "salinas": {"synflow": (0.92, 0.93), "logsynflow": (0.92, 0.89)},
}
# Scene -> gene -> Spearman's rho of the gene (the mean over layers) with the accuracy.
FACTORS: Mapping[str, Mapping[str, float]] = {
    "indian": {"depth": 0.28, "embed_dim": 0.61, "num_heads": 0.01, "mlp_ratio": -0.07},
    "houston": {"depth": 0.40, "embed_dim": 0.53, "num_heads": 0.03, "mlp_ratio": -0.02},
    "pavia": {"depth": 0.00, "embed_dim": 0.73, "num_heads": 0.01, "mlp_ratio": 0.05},
    "ksc": {"depth": 0.37, "embed_dim": 0.72, "num_heads": 0.01, "mlp_ratio": -0.05},
    "salinas": {"depth": 0.19, "embed_dim": 0.91, "num_heads": 0.02, "mlp_ratio": -0.01},
}


def measure(tables: Sequence[RankingTable]) -> dict[str, Any]:
    """Return each published figure that a table of a published scene can repeat, and ours.

    Returns:
        JSON-ready: table -> list of "figure", "published", "ours", "alike" (to two digits) and
        "as", how ours was computed where there are several ways.
    """
    figures = {}
    for table in tables:
        scene = scene_of(table.name)
        if scene is None:
            continue
        rows = []
        for proxy in SIGN[scene]:
            for place, label in enumerate(("with", "without")):
                name = (proxy, f"{proxy}_nosign")[place]
                if name in table.scores:
                    ranks = rank_last_if_failed(table.scores[name])
                    ours = spearman(ranks, table.accuracy)
                    first = top_accuracies(ranks, table.accuracy, 1, seeds=1)
                    text = f"{proxy} {label} sign"
                    rows.append(_row(f"rho, {text}", SIGN[scene][proxy][place], ours, ""))
                    value = SIGN_OA[scene][proxy][place]
                    rows.append(_row(f"OA of the first choice, {text}", value, first, ""))
        for gene, value in FACTORS[scene].items():
            if not all(gene in item for item in table.architectures):
                continue
            for how, numbers in _gene(table, gene).items():
                rows.append(_row(f"rho, {gene}", value, spearman(numbers, table.accuracy), how))
        figures[table.name] = rows
    return figures


def _row(figure: str, published: float, ours: float | None, how: str) -> dict[str, Any]:
    alike = ours is not None and abs(ours - published) <= 0.0051
    return {"figure": figure, "published": published, "ours": ours, "alike": alike, "as": how}


def _gene(table: RankingTable, gene: str) -> dict[str, Floats]:
    """Return a gene as numbers (n,), for a list in two ways."""
    values = [item[gene] for item in table.architectures]
    if not any(isinstance(value, list) for value in values):
        return {"": np.array(values, np.float64)}
    texts = [str(list(value)) for value in values]
    places = {text: float(place) for place, text in enumerate(sorted(set(texts)))}
    return {
        AS_MEAN: np.array([float(np.mean(value)) for value in values]),
        AS_TEXT: np.array([places[text] for text in texts]),
    }


def show(measured: Mapping[str, Any]) -> Section:
    """Return the section of what `measure` returned."""
    if not measured:
        return Section(
            "published", TITLE, ["No table is of a published scene, so nothing can be compared."]
        )
    every = [row for rows in measured.values() for row in rows if row["as"] != AS_MEAN]
    alike = sum(row["alike"] for row in every)
    verdict = (
        f"{alike} of {len(every)} published figures come out to two digits, from "
        f"{len(measured)} {'table' if len(measured) == 1 else 'tables'}."
    )
    rows = [
        [
            f"{table}, {row['figure']}",
            row["as"],
            f"{row['published']:.2f}",
            "-" if row["ours"] is None else f"{row['ours']:.3f}",
            "yes" if row["alike"] else "no",
        ]
        for table, entries in measured.items()
        for row in entries
    ]
    heads = ("figure", "computed as", "published", "ours", "the same")
    notes = (
        "Published: table 8 of HyTAS's supplementary (sign), and the figure of factors and "
        "accuracy of the paper. Rows flagged as retrained under another recipe are left out here, "
        "which changes the third digit.",
        "The published rho of num_heads and mlp_ratio is that of the lists sorted as text, so it "
        "mostly compares first layers. The mean over layers, as in the other sections, has "
        "another rho; that of mlp_ratio is then above or near zero instead of below.",
    )
    grids = [FactTable("Published and ours", heads, rows)]
    return Section("published", TITLE, [verdict], grids, (), notes)
