"""The latency table of a search space on this device, measured layer by layer in onnxruntime.

A model's time is a sum over what its genes decide: everything before and after the layers, fusions,
and for every layer an attention part and an MLP part. Where the head reads one token, the exported
last layer follows that token alone; a table does not know which layer is last, so each layer of
depth d counts (d - 1) / d of a full layer and 1 / d of a last one, which is right on average over
the order of the layers.
"""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

from hytas._engine import SearchSpace
from hytas.errors import InputError
from hytas.export.latency_parts import Bench, attention, band_tokens, fusion, mlp, stream
from hytas.model_card import ModelCard
from hytas.models import InputShape

Progress = Callable[[int, int], None]
Genes = Mapping[str, Sequence[Any]]
Row = dict[str, Any]


class Rows(NamedTuple):
    """Rows of a table: those of the whole network, and those of each layer by its depth gene."""

    whole: list[Row]
    layers: dict[str, list[Row]]


class Layout(NamedTuple):
    """How a space's networks are made up of parts.

    Attributes:
        rows: measures the parts of one width.
        variables: of the space, on which the costs depend; the others are free.
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
    """Measure the layers of the card's search space here.

    Args:
        card: gives space, sensor and patch; its own architecture does not matter.
        threads: CPU threads.
        batch: patches at a time; costs are those of one call.
        seconds: for each graph timed.
        progress: called with widths measured and widths in all.

    Returns:
        The table, JSON, in the form that the engine's `latency@` budgets read.

    Raises:
        InputError: a search space that is not made of these layers.
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
        f"{batch} patch(es) a call, {platform.processor() or platform.machine()}",
        "conditions": {"threads": threads, "batch": batch},
        "variables": {key: variables[key] for key in LAYOUTS[name].variables},
        "global": whole,
        "layers": layers,
    }


def _hytas(bench: Bench, embed: int, genes: Genes) -> Rows:
    """A width of `hytas`: band tokens, always fused, read at the class token."""
    outside = bench.ends(embed, bench.card.patch_size, "band")
    depths, names = genes["depth"], ("num_heads", "mlp_ratio")
    parts = _stream_parts(bench, embed, bench.bands + 1, genes, names, depths)
    whole = [
        _row(outside + (depth - 2) * parts.fusion, embed_dim=embed, depth=depth) for depth in depths
    ]
    layers: list[Row] = []
    for gene, full, last in parts.layers:
        layers += _by_depth(depths, "depth", embed, full, last, gene)
    return Rows(whole, {"depth": layers})


def _wide(bench: Bench, embed: int, genes: Genes) -> Rows:
    """A width of `hytas-wide`: streams of band tokens and of pixel tokens."""
    whole = [
        _row(cost, embed_dim=embed, tokens=tokens, patch=side)
        for side in genes["patch"]
        for tokens, cost in _wide_ends(bench, embed, side, genes).items()
    ]
    layers: dict[str, list[Row]] = {"band_depth": [], "pixel_depth": []}
    depths = genes["band_depth"]
    for stride in genes["band_stride"]:
        count, sizes = -(-bench.bands // stride) + 1, {"band_stride": stride}
        parts = _stream_parts(bench, embed, count, genes, ("band_heads", "band_mlp"), depths)
        whole += _wide_fusions(parts.fusion, embed, genes, "band_depth", "pixel", sizes)
        for gene, full, last in parts.layers:
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
        whole += _wide_bands(bench, embed, side, genes)
        parts = _stream_parts(bench, embed, count, genes, ("pixel_heads", "pixel_mlp"), depths)
        whole += _wide_fusions(parts.fusion, embed, genes, "pixel_depth", "band", sizes)
        for gene, full, last in parts.layers:
            for pooling in genes["pooling"]:
                short = full if pooling == "mean" else last
                keys = {"pooling": pooling, **sizes, **gene}
                layers["pixel_depth"] += _by_depth(depths, "pixel_depth", embed, full, short, keys)
    return Rows(whole, layers)


def _wide_ends(bench: Bench, embed: int, side: int, genes: Genes) -> dict[str, float]:
    """Everything but layers, fusions and band tokens, by the kind of tokens."""
    plain, pixels = (bench.ends(embed, side, kind) for kind in ("none", "pixel"))
    return {tokens: plain if tokens == "band" else pixels for tokens in genes["tokens"]}


def _wide_bands(bench: Bench, embed: int, side: int, genes: Genes) -> list[Row]:
    """Band tokens of every width and stride; the width between is interpolated."""
    area, widths = side * side, genes["band_width"]
    rows = []
    for stride in genes["band_stride"]:
        measured = [
            bench.part(
                partial(band_tokens, embed=embed, sizes=(bench.bands, area, width, stride)),
                (area, bench.bands),
                beside=True,
            )
            for width in (widths[0], widths[-1])
        ]
        for width in widths:
            cost = float(np.interp(width, (widths[0], widths[-1]), measured))
            for tokens in genes["tokens"]:
                keys = {"patch": side, "band_stride": stride, "band_width": width}
                rows.append(
                    _row(0.0 if tokens == "pixel" else cost, embed_dim=embed, tokens=tokens, **keys)
                )
    return rows


def _wide_fusions(
    mix: float,
    embed: int,
    genes: Genes,
    depth_gene: str,
    without: str,
    sizes: Mapping[str, int],
) -> list[Row]:
    """The fusions of a stream, of `mix` each; networks of the kind `without` have none."""
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


# search space -> how its networks are made up. A new space is one function and one line.
LAYOUTS = {
    "hytas": Layout(_hytas, ("bands", "classes", "patch_size", "band_group")),
    "hytas-wide": Layout(_wide, ("bands", "classes")),
}


class StreamParts(NamedTuple):
    """Costs in ms: of a fusion, and of the parts of a layer (gene, in full, for one token)."""

    fusion: float
    layers: list[tuple[dict[str, Any], float, float]]


def _stream_parts(
    bench: Bench,
    embed: int,
    tokens: int,
    genes: Genes,
    names: tuple[str, str],
    depths: Sequence[int],
) -> StreamParts:
    """The parts of layers over `tokens` tokens.

    A part that is repeated alone stays in the cache with its weights; in a network the others drive
    it out. So a whole stream of middling genes is measured too, and all parts are scaled by what it
    takes over the sum of its parts.
    """
    shape, layers = (tokens, embed), sorted(depths)[len(depths) // 2] + 2
    mix = bench.part(partial(fusion, tokens=tokens), shape)
    found: list[tuple[dict[str, Any], float, float]] = []
    middle: list[float] = []
    values = [genes[name] for name in names]
    builds = [
        [partial(attention, embed=embed, heads=value) for value in values[0]],
        [partial(mlp, embed=embed, ratio=value) for value in values[1]],
    ]
    for name, kinds, parts in zip(names, values, builds, strict=True):
        times = [bench.part(build, shape) for build in parts]
        middle.append(times[len(times) // 2])
        for value, build, full in zip(kinds, parts, times, strict=True):
            found.append(({name: value}, full, _one_token(bench, build, shape)))
    heads, ratio = (kinds[len(kinds) // 2] for kinds in values)
    chain = partial(stream, embed=embed, tokens=tokens, layers=layers, heads=heads, ratio=ratio)
    alone = layers * sum(middle) + (layers - 2) * mix
    factor = bench.whole(chain, shape) / alone if alone > 0 else 1.0
    return StreamParts(
        factor * mix, [(gene, factor * full, factor * last) for gene, full, last in found]
    )


def _one_token(bench: Bench, build: Any, shape: tuple[int, int]) -> float:
    """A part of the last layer, where one token is read."""
    if build.func is mlp:
        return bench.part(build, (1, shape[1]))
    return bench.part(partial(build, last=True), shape, beside=True)


def _by_depth(
    depths: Sequence[int], gene: str, embed: int, full: float, last: float, keys: Mapping[str, Any]
) -> list[Row]:
    return [
        _row(_layer(depth, full, last), embed_dim=embed, **{gene: depth}, **keys)
        for depth in depths
    ]


def _layer(depth: int, full: float, last: float) -> float:
    """A layer's cost at a depth: a last layer once, a full one otherwise, on average."""
    return ((depth - 1) * full + last) / depth if depth else 0.0


def _row(milliseconds: float, **when: Any) -> Row:
    """A row, in whole microseconds: fewer sums of layers for the engine to tell apart."""
    return {"when": when, "cost": round(1000.0 * milliseconds)}


def predict(table: Mapping[str, Any], card: ModelCard, name: str = "here") -> float:
    """Milliseconds that a table gives for the card's architecture; `name` is for messages.

    Raises:
        InputError: no table, one of another space or sensor, or one of another unit than time.
    """
    try:
        space = _space(card).with_table(name, json.dumps(table))
        cost = float(space.cost(dict(card.architecture))[f"latency@{name}"])
    except ValueError as error:
        raise InputError(str(error)) from None
    if table["unit"] not in ("ns", "us", "ms", "s"):
        raise InputError(f"latency table '{name}': its unit is {table['unit']!r}, not one of time")
    return cost / 1e6  # from ns


def conditions(table: Mapping[str, Any]) -> tuple[int, int]:
    """Threads and patches a call that a table holds for; 1 and 1 where it does not say.

    Raises:
        InputError: they are no whole numbers of 1 or more.
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
