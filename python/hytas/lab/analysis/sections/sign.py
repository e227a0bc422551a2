"""The effect of the sign step on a score: with and without it, and layer by layer."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hytas.lab.analysis.bootstrap import (
    Column,
    cell,
    resamples,
    rounded,
    spearman_of,
    with_interval,
)
from hytas.lab.analysis.scores import rank_last_if_failed, top_accuracies
from hytas.lab.analysis.sections.published import SIGN
from hytas.lab.analysis.settings import AnalysisSettings, Log
from hytas.lab.analysis.size import SIZED_SCENES, scene_of
from hytas.lab.analysis.tables import RankingTable
from hytas.pictures.plots import draw_lines
from hytas.proxies.spec import parse_proxies
from hytas.report import FactTable, Figure, Section

TITLE = "With and without sign"
# Published columns hold the sign step, and `_nosign` leaves it out; ours are the other way round.
PAIRS = {
    **{name: (name, f"{name}_nosign") for name in ("dss", "synflow", "logsynflow")},
    "dss, ours": ("dss:sign=weights", "dss"),
    "synflow, ours": ("synflow:sign=weights:terms=absolute", "synflow:terms=absolute"),
}
LAYERWISE = {
    "dss": ("dss:sign=weights", "dss"),
    "synflow": ("synflow:sign=weights:terms=absolute", "synflow:terms=absolute"),
}
DEPTH, WIDTH = 10, 112
_LEAST = 1e-12


def measure(tables: Sequence[RankingTable], settings: AnalysisSettings, log: Log) -> dict[str, Any]:
    """Return what scores are worth with and without the sign step, and their layers.

    Returns:
        JSON-ready: "tables": table -> proxy -> "with", "without", "difference" (Spearman's rho with
        intervals), "first_with", "first_without" (accuracy of the first choice) and "published"
        (rho with and without, or None); "layers": proxy -> "with" and "without" -> score of each
        layer of a network of depth `DEPTH`, from our own computation.
    """
    figures = {}
    for table in tables:
        log(f"{table.name}: sign")
        pairs = {name: pair for name, pair in PAIRS.items() if set(pair) <= table.scores.keys()}
        figures[table.name] = {
            name: _pair(table, name, pair, settings) for name, pair in pairs.items()
        }
    log("sign: layer by layer")
    return {"tables": figures, "layers": _layers(settings.seed)}


def _pair(
    table: RankingTable, name: str, pair: tuple[str, str], settings: AnalysisSettings
) -> dict[str, Any]:
    copies = resamples(len(table), settings.resamples, settings.seed)
    reached = Column.of(table.accuracy, copies)
    signed, plain = (
        spearman_of(Column.of(table.scores[column], copies), reached) for column in pair
    )
    first = [
        top_accuracies(rank_last_if_failed(table.scores[column]), table.accuracy, 1, 5)
        for column in pair
    ]
    return {
        "with": with_interval(signed),
        "without": with_interval(plain),
        "difference": with_interval(plain - signed),
        "first_with": first[0],
        "first_without": first[1],
        "published": SIGN.get(scene_of(table.name) or "", {}).get(name),
    }


def _layers(seed: int) -> dict[str, dict[str, list[float]]]:
    from hytas.proxies.by_layer import layer_scores

    architecture = {
        "space": "hytas",
        "depth": DEPTH,
        "embed_dim": WIDTH,
        "num_heads": [4] * DEPTH,
        "mlp_ratio": [4] * DEPTH,
    }
    scores: dict[str, dict[str, list[float]]] = {}
    for name, pair in LAYERWISE.items():
        scores[name] = {}
        for label, text in zip(("with", "without"), pair, strict=True):
            (spec,) = parse_proxies(text)
            blocks = [0.0] * DEPTH
            for layer, value in layer_scores(architecture, SIZED_SCENES["indian"], spec, seed):
                number = re.search(r"blocks\.(\d+)\.", layer)
                if number:
                    blocks[int(number[1])] += value
            scores[name][label] = blocks
    return scores


def show(measured: Mapping[str, Any]) -> Section:
    """Return the section of what `measure` returned."""
    rows, better, total = [], 0, 0
    for table, pairs in measured["tables"].items():
        for name, entry in pairs.items():
            total += 1
            better += bool(entry["difference"] and entry["difference"][1] > 0)
            published = entry["published"] or (None, None)
            rows.append(
                [
                    f"{table}, {name}",
                    cell(entry["with"]),
                    cell(entry["without"]),
                    cell(entry["difference"]),
                    *(rounded(value) for value in published),
                    *(f"{entry[key]:.4f}" for key in ("first_with", "first_without")),
                ]
            )
    heads = (
        *("", "rho with", "without", "difference", "published with", "published without"),
        *("OA of first choice, with", "without"),
    )
    grids = (
        [FactTable("Spearman's rho with and without the sign step", heads, rows)] if rows else []
    )
    verdict = (
        f"Without the sign step, rho is higher for {better} of {total} pairs, by an interval "
        "above zero."
        if total
        else "No table has a score both with and without the sign step."
    )
    places = list(range(1, DEPTH + 1))
    panels = {}
    for name, layers in measured["layers"].items():
        panels[name] = {
            f"{label} sign": (places, _logs(values), [np.nan] * DEPTH, [np.nan] * DEPTH)
            for label, values in layers.items()
        }
    fall = {name: _fall(layers["with"]) for name, layers in measured["layers"].items()}
    plain = {name: _fall(layers["without"]) for name, layers in measured["layers"].items()}
    losses = ", ".join(f"{fall[name]:.1f} for {name} ({plain[name]:.1f} without)" for name in fall)
    svg = draw_lines(panels, ("layer", "log10 of the layer's score"))
    title = "Score of each layer: with sign, deep layers vanish"
    figures = [Figure(title, svg, f"{title}; powers of ten lost: {losses}")]
    notes = (
        f"From the first to the last of {DEPTH} layers, scores with sign lose these powers of "
        f"ten: {losses}. The network has width {WIDTH} and the input of Indian Pines; the figure "
        "is computed here, not read from the tables. The published figures are those of table 8 of "
        "HyTAS's supplementary.",
    )
    return Section("sign", TITLE, [verdict], grids, figures, notes)


def _logs(values: Sequence[float]) -> list[float]:
    return [float(np.log10(max(abs(value), _LEAST))) for value in values]


def _fall(values: Sequence[float]) -> float:
    logs = _logs(values)
    return logs[0] - logs[-1]
