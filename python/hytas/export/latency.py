"""Measure the latency table of a search space on this device, layer by layer in onnxruntime.

The parts are modules of real networks, traced as in an export. The time of a model is a sum over
its parts: everything before and after the layers, fusions, and the layers. A layer of `hytas` is an
attention part and an MLP part; `latency_wide.py` has the layers of `hytas-wide`. If the head reads
one token, the last layer computes only this token. A table does not know which layer is last. So at
depth d each layer counts as (d - 1) / d of a full layer plus 1 / d of a last one, which is right on
average over the order of the layers.
"""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import onnxruntime

from hytas._engine import SearchSpace
from hytas.errors import InputError
from hytas.export.latency_parts import Bench, Graphs
from hytas.export.latency_rows import Genes, Row, Rows, anchors, between_widths, layer_cost, row
from hytas.export.latency_wide import wide
from hytas.model_card import ModelCard
from hytas.models import InputShape
from hytas.spaces import mlp_width

Progress = Callable[[int, int], None]


class Layout(NamedTuple):
    """The parts of a space's networks.

    Attributes:
        rows: function that measures the parts of one width.
        variables: variables of the space that change the costs; the others are free.
        factor: between measured widths; costs of the widths between them are interpolated.
    """

    rows: Callable[[Bench, int, Genes], Rows]
    variables: tuple[str, ...]
    factor: float = 1.0


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
        raise InputError("space", name, f"has no layout; must be one of {', '.join(LAYOUTS)}")
    variables = _variables(card)
    genes = {gene["name"]: gene["values"] for gene in _space(card).genes}
    bench = Bench(card, threads, batch, seconds)
    measured: dict[int, Rows] = {}
    widths = anchors(genes["embed_dim"], LAYOUTS[name].factor)
    for done, embed in enumerate(widths):
        measured[embed] = LAYOUTS[name].rows(bench, embed, genes)
        if progress is not None:
            progress(done + 1, len(widths))
    whole: list[Row] = []
    layers: dict[str, list[Row]] = {}
    for embed in genes["embed_dim"]:
        rows = between_widths(measured, embed)
        whole += rows.whole
        for depth, found in rows.layers.items():
            layers.setdefault(depth, []).extend(found)
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
        row(outside + (depth - 2) * costs.fusion, embed_dim=embed, depth=depth) for depth in depths
    ]
    layers: list[Row] = []
    for gene, full, last in costs.layers:
        layers += _by_depth(depths, "depth", embed, full, last, gene)
    return Rows(whole, {"depth": layers})


def _filled(kinds: Genes) -> dict[str, list[Any]]:
    """Return genes for as many layers as the longest list; shorter lists repeat."""
    count = max(map(len, kinds.values()))
    return {name: [values[i % len(values)] for i in range(count)] for name, values in kinds.items()}


# search space -> layout of its networks. A new space is one function and one line.
LAYOUTS = {
    "hytas": Layout(_hytas, ("bands", "classes", "patch_size", "band_group")),
    "hytas-wide": Layout(wide, ("bands", "classes"), 4.0),
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
        row(layer_cost(depth, full, last), embed_dim=embed, **{gene: depth}, **keys)
        for depth in depths
    ]


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
        raise InputError(
            f"latency table '{name}'", rule=f"its unit is {table['unit']!r}", hint="must be time"
        )
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
            "latency_table",
            rule=f'"conditions" is {json.dumps(found)}',
            hint='must hold "threads" and "batch", whole numbers of 1 or more',
        )
    threads, batch = values
    return threads, batch


def _variables(card: ModelCard) -> dict[str, int]:
    bands, classes = len(card.preprocessing["bands"]), len(card.class_ids)
    return InputShape(bands, classes, card.patch_size, card.band_group).variables()


def _space(card: ModelCard) -> SearchSpace:
    return SearchSpace.builtin(card.architecture["space"], _variables(card))
