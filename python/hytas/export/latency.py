"""Measure the latency table of a search space on this device, layer by layer in onnxruntime.

The parts are modules of real networks, traced as in an export. The time of a model is a sum over
its parts: everything before and after the layers, fusions, and for each layer an attention part and
an MLP part. If the head reads one token, the last layer computes only this token. A table does not
know which layer is last. So at depth d each layer counts as (d - 1) / d of a full layer plus 1 / d
of a last one, which is right on average over the order of the layers.
"""

import itertools
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

from hytas._engine import SearchSpace
from hytas.errors import InputError
from hytas.export.latency_parts import Bench, Graphs
from hytas.model_card import ModelCard
from hytas.models import InputShape
from hytas.models.spectral import BAND, PIXEL
from hytas.spaces import mlp_width

Progress = Callable[[int, int], None]
Genes = Mapping[str, Any]
Row = dict[str, Any]
STREAMS = (BAND, PIXEL)


class Rows(NamedTuple):
    """Rows of a table for the whole network, and for each layer by its depth gene."""

    whole: list[Row]
    layers: dict[str, list[Row]]


class Layout(NamedTuple):
    """The parts of a space's networks.

    Attributes:
        rows: function that measures the parts of one width.
        variables: variables of the space that change the costs; the others are free.
    """

    rows: Callable[[Bench, int, Genes], Rows]
    variables: tuple[str, ...]


def profile(
    card: ModelCard,
    *,
    threads: int = 1,
    batch: int = 1,
    seconds: float = 0.05,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure the layers of the card's search space on this device.

    Args:
        card: gives space, sensor and patch; its architecture does not matter.
        threads: CPU threads.
        batch: patches at a time; a cost is the time of one call.
        seconds: time to measure each graph.
        progress: called with the number of measured widths and of all widths.

    Returns:
        The table as JSON, which the engine's `latency@` budgets read.

    Raises:
        InputError: the search space has no layout here.
    """
    name = card.architecture["space"]
    if name not in LAYOUTS:
        raise InputError(f"latency table: space {name} is not one of {', '.join(LAYOUTS)}")
    variables = _variables(card)
    genes = {gene["name"]: gene["values"] for gene in _space(card).genes}
    bench = Bench(card, threads, batch, seconds)
    whole: list[Row] = []
    layers: dict[str, list[Row]] = {}
    for done, embed in enumerate(genes["embed_dim"]):
        rows = LAYOUTS[name].rows(bench, embed, genes)
        whole += rows.whole
        for depth, found in rows.layers.items():
            layers.setdefault(depth, []).extend(found)
        if progress is not None:
            progress(done + 1, len(genes["embed_dim"]))
    return {
        "format": "hytas-latency",
        "version": 1,
        "space": name,
        "unit": "us",
        "about": f"onnxruntime {onnxruntime.__version__} on the CPU, {threads} thread(s), "
        f"{batch} patch(es) per call, {platform.processor() or platform.machine()}",
        "conditions": {"threads": threads, "batch": batch},
        "variables": {key: variables[key] for key in LAYOUTS[name].variables},
        "global": whole,
        "layers": layers,
    }


def _hytas(bench: Bench, embed: int, genes: Genes) -> Rows:
    """Measure a width of `hytas`: band tokens with fusion, read at the class token."""
    plain = {"space": "hytas", "embed_dim": embed}
    kinds = {gene: genes[gene] for gene in ("num_heads", "mlp_ratio")}
    depths = genes["depth"]
    (outside,) = bench.models([plain | {gene: [] for gene in kinds}])
    graphs = bench.layers(plain | _filled(kinds), "band")
    costs = _stream(bench, graphs, embed, bench.bands + 1, kinds, depths)
    whole = [
        _row(outside + (depth - 2) * costs.fusion, embed_dim=embed, depth=depth) for depth in depths
    ]
    layers: list[Row] = []
    for gene, full, last in costs.layers:
        layers += _by_depth(depths, "depth", embed, full, last, gene)
    return Rows(whole, {"depth": layers})


def _wide(bench: Bench, embed: int, genes: Genes) -> Rows:
    """Measure a width of `hytas-wide`: streams of band tokens and of pixel tokens."""
    named = {s: {gene: genes[gene] for gene in (f"{s}_heads", f"{s}_mlp")} for s in STREAMS}
    plain = {"space": "hytas-wide", "embed_dim": embed, "pooling": "class", "fusion": "no"}
    plain |= {gene: [] for kinds in named.values() for gene in kinds}
    plain |= {gene: genes[gene][0] for gene in ("patch", "band_width", "band_stride")}
    # Both streams have the same layers, so one stream is measured with the genes of both.
    both = {f"band_{part}": _union(genes, part) for part in ("heads", "mlp")}
    graphs = bench.layers(plain | {"tokens": "band"} | _filled(both), "band")
    whole = _wide_ends(bench, plain, genes)
    layers: dict[str, list[Row]] = {"band_depth": [], "pixel_depth": []}
    depths = genes["band_depth"]
    for stride in genes["band_stride"]:
        count, sizes = -(-bench.bands // stride) + 1, {"band_stride": stride}
        costs = _stream(bench, graphs, embed, count, named["band"], depths)
        whole += _wide_fusions(costs.fusion, embed, genes, "band_depth", "pixel", sizes)
        for gene, full, last in costs.layers:
            for tokens in genes["tokens"]:
                for pooling in genes["pooling"]:
                    # In series the pixels' stream gets the class token; a mean needs every token.
                    short = full if pooling == "mean" and tokens != "series" else last
                    keys = {"tokens": tokens, "pooling": pooling, **sizes, **gene}
                    layers["band_depth"] += _by_depth(
                        depths, "band_depth", embed, full, short, keys
                    )
    depths = genes["pixel_depth"]
    for side in genes["patch"]:
        count, sizes = side * side + 1, {"patch": side}
        costs = _stream(bench, graphs, embed, count, named["pixel"], depths)
        whole += _wide_fusions(costs.fusion, embed, genes, "pixel_depth", "band", sizes)
        for gene, full, last in costs.layers:
            for pooling in genes["pooling"]:
                short = full if pooling == "mean" else last
                keys = {"pooling": pooling, **sizes, **gene}
                layers["pixel_depth"] += _by_depth(depths, "pixel_depth", embed, full, short, keys)
    return Rows(whole, layers)


def _wide_ends(bench: Bench, plain: Genes, genes: Genes) -> list[Row]:
    """Measure everything except layers and fusions: models without a layer, by their tokens.

    Band tokens are measured for the smallest and the largest patch and width. Values between them
    are interpolated, because the work grows with the patch's area and with the width.
    """
    embed, sides, strides = plain["embed_dim"], genes["patch"], genes["band_stride"]
    grid = [
        {"patch": side, "band_width": width}
        for side in (sides[0], sides[-1])
        for width in (genes["band_width"][0], genes["band_width"][-1])
    ]
    shared = [{"tokens": "parallel", **corner} for corner in (grid[0], grid[2])]
    asked = [{"tokens": "pixel", "patch": side} for side in sides] + shared
    asked += [{"tokens": "band", "band_stride": s, **corner} for s in strides for corner in grid]
    costs = bench.models([{**plain, **genes_set} for genes_set in asked])
    pixel = dict(zip(sides, costs[: len(sides)], strict=True))
    band = np.reshape(costs[len(sides) + 2 :], (len(strides), 2, 2))
    # A model with both kinds of tokens has scaling, head and call only once.
    once = [
        pixel[side] + float(band[0, corner, 0]) - costs[len(sides) + corner]
        for corner, side in enumerate((sides[0], sides[-1]))
    ]
    rows = []
    for side, number, width in itertools.product(sides, range(len(strides)), genes["band_width"]):
        area = [float(np.interp(width, _ends(genes["band_width"]), ends)) for ends in band[number]]
        alone = _over_area(side, sides, area)
        beside = max(pixel[side] + alone - _over_area(side, sides, once), pixel[side])
        for tokens in genes["tokens"]:
            cost = {"pixel": pixel[side], "band": alone}.get(tokens, beside)
            keys = {"patch": side, "band_stride": strides[number], "band_width": width}
            rows.append(_row(cost, embed_dim=embed, tokens=tokens, **keys))
    return rows


def _over_area(side: int, sides: Sequence[int], values: Sequence[float]) -> float:
    """Interpolate by area between the values of the smallest and the largest patch."""
    return float(np.interp(side**2, [edge**2 for edge in _ends(sides)], values))


def _ends(values: Sequence[int]) -> tuple[int, int]:
    return values[0], values[-1]


def _union(genes: Genes, part: str) -> list[Any]:
    """Return the values of a layer's gene in both streams."""
    return sorted({value for stream in STREAMS for value in genes[f"{stream}_{part}"]})


def _filled(kinds: Genes) -> dict[str, list[Any]]:
    """Return genes for as many layers as the longest list; shorter lists repeat."""
    count = max(map(len, kinds.values()))
    return {name: [values[i % len(values)] for i in range(count)] for name, values in kinds.items()}


def _wide_fusions(
    mix: float,
    embed: int,
    genes: Genes,
    depth_gene: str,
    without: str,
    sizes: Mapping[str, int],
) -> list[Row]:
    """Measure the fusions of a stream for each `mix`; networks of the kind `without` have none."""
    return [
        _row(
            mix * max(depth - 2, 0) if fused == "yes" and tokens != without else 0.0,
            embed_dim=embed,
            tokens=tokens,
            fusion=fused,
            **{depth_gene: depth},
            **sizes,
        )
        for tokens in genes["tokens"]
        for fused in genes["fusion"]
        for depth in genes[depth_gene]
    ]


# search space -> layout of its networks. A new space is one function and one line.
LAYOUTS = {
    "hytas": Layout(_hytas, ("bands", "classes", "patch_size", "band_group")),
    "hytas-wide": Layout(_wide, ("bands", "classes")),
}


class StreamCosts(NamedTuple):
    """Costs in ms of a fusion, and of the parts of a layer (gene, all tokens, one token)."""

    fusion: float
    layers: list[tuple[dict[str, Any], float, float]]


def _stream(
    bench: Bench, graphs: Graphs, embed: int, tokens: int, kinds: Genes, depths: Sequence[int]
) -> StreamCosts:
    """Measure the parts of layers over `tokens` tokens; `kinds` are genes of heads and MLP ratio.

    A part that is measured alone keeps its weights in the cache. In a network other parts replace
    them. So a chain of layers with middle genes is measured as well, and all parts are scaled by
    its time divided by the sum of its parts.
    """
    (heads, counts), (ratio, ratios) = kinds.items()
    full, last = {}, {}
    for count in counts:
        key = ("attention", count)
        full[heads, count] = bench.part(graphs[(*key, False)], T=tokens)
        last[heads, count] = bench.part(graphs[(*key, True)], T=tokens)
    for value in ratios:
        graph = graphs["mlp", mlp_width(embed, value), False]
        full[ratio, value], last[ratio, value] = (bench.part(graph, T=t) for t in (tokens, 1))
    middling = [_middle(counts), _middle(ratios)]
    layer = [graphs["attention", middling[0], False]]
    layer.append(graphs["mlp", mlp_width(embed, middling[1]), False])
    layers = _middle(depths) + 2
    alone = layers * (full[heads, middling[0]] + full[ratio, middling[1]])
    factor = bench.chain(layer * layers, T=tokens) / alone if alone > 0 else 1.0
    mix = bench.part(bench.fusion(tokens), E=embed)
    return StreamCosts(
        factor * mix,
        [({g: value}, factor * full[g, value], factor * last[g, value]) for g, value in full],
    )


def _middle(values: Sequence[Any]) -> Any:
    return sorted(values)[len(values) // 2]


def _by_depth(
    depths: Sequence[int], gene: str, embed: int, full: float, last: float, keys: Mapping[str, Any]
) -> list[Row]:
    return [
        _row(_layer(depth, full, last), embed_dim=embed, **{gene: depth}, **keys)
        for depth in depths
    ]


def _layer(depth: int, full: float, last: float) -> float:
    """Return the average cost of a layer at a depth, where one layer is the last."""
    return ((depth - 1) * full + last) / depth if depth else 0.0


def _row(milliseconds: float, **when: Any) -> Row:
    """Return a row in whole microseconds, so that the engine sees fewer different sums."""
    return {"when": when, "cost": round(1000.0 * milliseconds)}


def predict(table: Mapping[str, Any], card: ModelCard, name: str = "here") -> float:
    """Return the milliseconds of the card's architecture in a table; `name` is for messages.

    Raises:
        InputError: it is not a table, it has another space or sensor, or its unit is not time.
    """
    try:
        space = _space(card).with_table(name, json.dumps(table))
        cost = float(space.cost(dict(card.architecture))[f"latency@{name}"])
    except ValueError as error:
        raise InputError(str(error)) from None
    if table["unit"] not in ("ns", "us", "ms", "s"):
        raise InputError(f"latency table '{name}': its unit is {table['unit']!r}; must be time")
    return cost / 1e6  # from ns


def conditions(table: Mapping[str, Any]) -> tuple[int, int]:
    """Return threads and patches per call of a table; 1 and 1 if it does not name them.

    Raises:
        InputError: they are not whole numbers of 1 or more.
    """
    found = table.get("conditions", {})
    values = [found.get(name, 1) if isinstance(found, dict) else 0 for name in ("threads", "batch")]
    if not all(type(value) is int and value > 0 for value in values):
        raise InputError(
            f'latency table: "conditions" is {json.dumps(found)}; must hold "threads" and "batch", '
            "whole numbers of 1 or more"
        )
    threads, batch = values
    return threads, batch


def _variables(card: ModelCard) -> dict[str, int]:
    bands, classes = len(card.preprocessing["bands"]), len(card.class_ids)
    return InputShape(bands, classes, card.patch_size, card.band_group).variables()


def _space(card: ModelCard) -> SearchSpace:
    return SearchSpace.builtin(card.architecture["space"], _variables(card))
