"""Figures of HyTAS: the published ones next to ours, the sign step, and the parts of a score.

    python benchmarks/hytas_figures.py hytas-indian [--out hytas_figures.html]

The arguments are tables of trained networks, as `hytas analyse` reads them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from numpy.typing import NDArray

import hytas_published
from hytas.errors import InputError
from hytas.lab.analysis import RankingTable, read_tables
from hytas.lab.analysis.bootstrap import (
    cell,
    in_resamples,
    resamples,
    rounded,
    with_interval,
)
from hytas.lab.analysis.scores import rank_last_if_failed, top_accuracies
from hytas.lab.analysis.settings import AnalysisSettings
from hytas.lab.analysis.size import SIZED_SCENES, scene_of
from hytas.pictures.plots import draw_lines
from hytas.proxies.initial import DrawnPool, start_of
from hytas.proxies.layer_records import LayerRecord
from hytas.proxies.passes import PassSetting, Tally, activation_memory, ones_pass
from hytas.proxies.probe import Probe
from hytas.proxies.spec import ProxySpec, canonical, parse_proxies
from hytas.proxies.table import ONES
from hytas.report import FactTable, Figure, Section, write_sections
from hytas.search.ranks import spearman
from hytas.spaces.genes import genes_only
from hytas.spaces.shape import InputShape
from hytas.types import Floats

SIGN_TITLE = "With and without sign"
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
LEAST = 1e-12


def measure_sign(tables: Sequence[RankingTable], settings: AnalysisSettings) -> dict[str, Any]:
    """Return what scores are worth with and without the sign step, and their layers.

    Returns:
        JSON-ready: "tables": table -> proxy -> "with", "without", "difference" (Spearman's rho with
        intervals), "first_with", "first_without" (accuracy of the first choice) and "published"
        (rho with and without, or None); "layers": proxy -> "with" and "without" -> score of each
        layer of a network of depth `DEPTH`, from our own computation.
    """
    figures = {}
    for table in tables:
        pairs = {name: pair for name, pair in PAIRS.items() if set(pair) <= table.scores.keys()}
        figures[table.name] = {
            name: compared(table, name, pair, settings) for name, pair in pairs.items()
        }
    return {"tables": figures, "layers": layers_of(settings.seed)}


def compared(
    table: RankingTable, name: str, pair: tuple[str, str], settings: AnalysisSettings
) -> dict[str, Any]:
    copies = resamples(len(table), settings.resamples, settings.seed)
    signed, plain = (
        in_resamples(spearman, table.scores[column], table.accuracy, copies) for column in pair
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
        "published": hytas_published.SIGN.get(scene_of(table.name) or "", {}).get(name),
    }


def layers_of(seed: int) -> dict[str, dict[str, list[float]]]:
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


def show_sign(measured: Mapping[str, Any]) -> Section:
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
            f"{label} sign": (places, logs(values), [np.nan] * DEPTH, [np.nan] * DEPTH)
            for label, values in layers.items()
        }
    fall = {name: fall_of(layers["with"]) for name, layers in measured["layers"].items()}
    plain = {name: fall_of(layers["without"]) for name, layers in measured["layers"].items()}
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
    return Section("sign", SIGN_TITLE, [verdict], grids, figures, notes)


def logs(values: Sequence[float]) -> list[float]:
    return [float(np.log10(max(abs(value), LEAST))) for value in values]


def fall_of(values: Sequence[float]) -> float:
    powers = logs(values)
    return powers[0] - powers[-1]


PARTS_TITLE = "Attention and MLP parts"
# Published columns, and those of our proxies.
NAMES = tuple(
    (name, msa, mlp)
    for name in ("snip", "grad_norm", "dss", "synflow:terms=absolute", "fisher")
    for msa, mlp in ((f"{name}_msa", f"{name}_mlp"), (f"{name}:parts=msa", f"{name}:parts=mlp"))
)
SHARES = np.linspace(0.01, 0.99, 25)


def measure_parts(tables: Sequence[RankingTable], settings: AnalysisSettings) -> dict[str, Any]:
    """Return the scales of the parts of scores, and what they are worth alone and together.

    Returns:
        JSON-ready: table -> score -> "median_msa", "median_mlp", "quantiles" ("msa" and "mlp"), and
        "spearman": "msa", "mlp", "sum", "sum of logs" -> rho with its interval, or None.
    """
    figures: dict[str, Any] = {}
    for table in tables:
        copies = resamples(len(table), settings.resamples, settings.seed)
        figures[table.name] = {}
        scores = {canonical(name): values for name, values in table.scores.items()}
        for name, *parts in NAMES:
            msa, mlp = map(canonical, parts)
            if {msa, mlp} <= scores.keys():
                pair = scores[msa], scores[mlp]
                figures[table.name][name] = parts_of(pair, table.accuracy, copies)
    return figures


def parts_of(
    pair: tuple[Floats, Floats], accuracy: Floats, copies: NDArray[np.int64]
) -> dict[str, Any]:
    msa, mlp = pair
    with np.errstate(all="ignore"):
        logs = np.log(msa) + np.log(mlp)  # NaN where a part is negative
    columns = {"msa": msa, "mlp": mlp, "sum": msa + mlp, "sum of logs": logs}
    finite = [values[np.isfinite(values)] for values in pair]
    return {
        "median_msa": float(np.median(finite[0])) if len(finite[0]) else None,
        "median_mlp": float(np.median(finite[1])) if len(finite[1]) else None,
        "quantiles": {
            part: np.quantile(values, SHARES).tolist() if len(values) else []
            for part, values in zip(("msa", "mlp"), finite, strict=True)
        },
        "spearman": {
            name: with_interval(in_resamples(spearman, values, accuracy, copies))
            for name, values in columns.items()
        },
    }


def show_parts(measured: Mapping[str, Any]) -> Section:
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
                    f"{log10(mlp) - log10(msa):.2f}",
                ]
            )
            row = entry["spearman"]
            worth.append([f"{table}, {name}", *(cell(row[key]) for key in row)])
            panels[name] = {part: line(values) for part, values in entry["quantiles"].items()}
        if panels:
            svg = draw_lines(panels, ("share of the networks (%)", "log10 of the part"))
            title = f"{table}: scales of the parts, after the logarithm"
            figures.append(Figure(title, svg, f"{title}; the table has the medians"))
    if not scales:
        verdict = "No table has the attention and the MLP part of a score."
        return Section("parts", PARTS_TITLE, [verdict])
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
    return Section("parts", PARTS_TITLE, [verdict], grids, figures)


def log10(value: float) -> float:
    return float(np.log10(value)) if value > 0 else float("nan")


def line(values: Sequence[float]) -> tuple[list[float], list[float], list[float], list[float]]:
    none = [float("nan")] * len(values)
    shares = (100 * SHARES[: len(values)]).tolist()
    return shares, [log10(value) for value in values], none, none


class Recorded(Tally):
    """A tally that keeps the contribution of each layer."""

    def __init__(self, spec: ProxySpec) -> None:
        super().__init__(spec)
        self.layers: list[tuple[str, float]] = []

    def visit(self, record: LayerRecord) -> None:
        """Add a layer's contribution, and keep it."""
        if record.kind in self.kinds:
            before = sum(map(float, self.parts.values()))
            super().visit(record)
            after = sum(map(float, self.parts.values()))
            self.layers.append((record.name, after - before))


def layer_scores(
    architecture: Mapping[str, Any], shape: InputShape, spec: ProxySpec, seed: int = 0
) -> list[tuple[str, float]]:
    """Return the name and the contribution of each layer that a proxy reads, the first one last.

    The layers are in the order of the backward pass, and their sum is the score.

    Args:
        spec: of a proxy that needs no labelled patches, such as dss or synflow.
    """
    if spec.members or spec.proxy.pass_name != ONES:
        raise InputError("proxy", spec.name, "it has no scores of single layers")
    device = torch.device("cpu")
    pool = DrawnPool(seed, device, torch.float32)
    ones = torch.ones(1, shape.patch_size, shape.patch_size, shape.bands)
    setting = PassSetting(pool, shape.classes, None, ones, activation_memory(device))
    start = start_of(genes_only(architecture), shape, pool)
    tally = Recorded(spec)
    probe = Probe(start, shape.classes)
    ones_pass(probe, start, spec.options["sign"], [tally], setting)
    return tally.layers


@click.command()
@click.argument("tables", nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("hytas_figures.html"))
def main(tables: tuple[str, ...], out: Path) -> None:
    """Write one page with the figures and their tables."""
    read, settings = read_tables(tables), AnalysisSettings()
    sections = [
        hytas_published.show(hytas_published.measure(read)),
        show_sign(measure_sign(read, settings)),
        show_parts(measure_parts(read, settings)),
    ]
    write_sections(out, "Figures of HyTAS", [], sections)
    click.echo(f"written   {out}")


if __name__ == "__main__":
    main()
