"""Measure the latency table of `hytas-wide`: streams of band tokens and of pixel tokens.

A layer is one part. It is measured at the smallest and the largest width f of its MLP or expanded
tokens; between them the time is nearly linear in f. Heads add what they add at the smallest f. A
gate adds to a convolution what it adds to a layer without a mixer. Times are measured at some
numbers of tokens and are linear between them.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from hytas.export.latency_parts import Bench, WholeLayer
from hytas.export.latency_rows import Genes, Row, Rows, anchors, ends, layer_cost, row
from hytas.models.blocks import ATTENTION, KERNELS, NO_MIXER
from hytas.models.spectral import BAND, CENTRE, CLASS, MEAN, PARALLEL, PIXEL, SERIES

STREAMS = {BAND: "band_stride", PIXEL: "patch"}
"""Stream -> the gene of its number of tokens."""

DENSE, SPARSE, AREAS = 1.15, 3.0, 10.0
"""Factors between measured numbers of tokens: in attention, in other parts, in whole models."""


class Curve(NamedTuple):
    """Costs in ms at some numbers of tokens, linear between them."""

    counts: list[int]
    costs: list[float]

    def at(self, count: int) -> float:
        """Return the cost at a number of tokens."""
        return float(np.interp(count, self.counts, self.costs))


class Kind(NamedTuple):
    """What the layers of a stream are."""

    mixer: str
    gate: bool
    heads: int


def wide(bench: Bench, embed: int, genes: Genes) -> Rows:
    """Measure the parts of networks of one width."""
    layers = Layers(bench, embed, genes)
    found = {f"{stream}_depth": list(_layer_rows(layers, stream)) for stream in STREAMS}
    fusions = [one for stream in STREAMS for one in _fusion_rows(layers, stream)]
    keyed = {"embed_dim": embed}
    return Rows(
        [_with(one, keyed) for one in [*fusions, *_end_rows(layers)]],
        {gene: [_with(one, keyed) for one in rows] for gene, rows in found.items()},
    )


class Layers:
    """Measured layers of one width."""

    def __init__(self, bench: Bench, embed: int, genes: Genes) -> None:
        self.bench, self.embed, self.genes = bench, embed, genes
        self.ratios = ends(sorted({*genes["band_mlp"], *genes["pixel_mlp"]}))
        self.heads = sorted({*genes["band_heads"], *genes["pixel_heads"]})
        wanted = list(self._wanted())
        graphs = bench.whole_layers(embed, (key for key, _ in wanted))
        self.curves: dict[WholeLayer, Curve] = {}
        for key, counts in wanted:
            measure = bench.part if key.last else bench.chained
            costs = [measure(graphs[key], T=count) for count in counts]
            if key.grid:  # the curve of a stream is kept by the number of its axes
                short = key._replace(grid=(len(key.grid),))
                before = self.curves.get(short, Curve([], []))
                self.curves[short] = Curve([*before.counts, *counts], [*before.costs, *costs])
            else:
                self.curves[key] = Curve(counts, costs)

    def tokens(self, stream: str, size: int, mixer: str = NO_MIXER) -> int:
        """Return the number of tokens of a stream, with the class token that attention needs."""
        count = size**2 if stream == PIXEL else -(-self.bench.bands // size)
        return count + (mixer == ATTENTION)

    def cost(self, stream: str, size: int, kind: Kind, ratio: float, last: bool) -> float:
        """Return the ms of a layer, of all tokens or of one."""
        mixer, gate, heads = kind
        count = self.tokens(stream, size, mixer)
        if mixer == NO_MIXER:
            return self._at(WholeLayer(mixer, gate, self.heads[0], ratio, (), last), count)
        if mixer == ATTENTION:
            few, many = (
                WholeLayer(mixer, gate, number, self.ratios[0], (), last)
                for number in (self.heads[0], heads)
            )
            added = self.curves[many].at(count) - self.curves[few].at(count)
            return max(self._at(few._replace(ratio=ratio), count) + added, 0.0)
        axes = 2 if stream == PIXEL else 1
        plain = self._at(WholeLayer(mixer, False, self.heads[0], ratio, (axes,), last), count)
        alone = Kind(NO_MIXER, False, heads)
        gated = alone._replace(gate=gate)
        added = self.cost(stream, size, gated, ratio, last)
        return max(plain + added - self.cost(stream, size, alone, ratio, last), 0.0)

    def _at(self, key: WholeLayer, count: int) -> float:
        costs = [self.curves[key._replace(ratio=ratio)].at(count) for ratio in self.ratios]
        return float(np.interp(key.ratio, self.ratios, costs))

    def _wanted(self) -> Iterable[tuple[WholeLayer, list[int]]]:
        """Yield what to measure, and at which numbers of tokens."""
        counts = [
            self.tokens(stream, s) for stream, gene in STREAMS.items() for s in self.genes[gene]
        ]
        few = self.heads[0]
        for gate, last in product((False, True), repeat=2):
            for ratio in self.ratios:
                yield WholeLayer(NO_MIXER, gate, few, ratio, (), last), anchors(counts, SPARSE)
            asked = [(few, ratio) for ratio in self.ratios]
            asked += [(heads, self.ratios[0]) for heads in self.heads[1:]]
            attending = anchors([count + 1 for count in counts], SPARSE if last else DENSE)
            for heads, ratio in asked:
                yield WholeLayer(ATTENTION, gate, heads, ratio, (), last), attending
        for (mixer, kernel), ratio in product(KERNELS.items(), self.ratios):
            plain = WholeLayer(mixer, False, few, ratio)
            for stride in sorted({*ends(self.genes["band_stride"])}, reverse=True):
                count = self.tokens(BAND, stride)
                yield plain._replace(grid=(count,)), [count]
            for side in ends([side for side in self.genes["patch"] if side >= kernel]):
                for last in (False, True):
                    yield plain._replace(grid=(side, side), last=last), [side**2]


def _with(one: Row, keys: Mapping[str, Any]) -> Row:
    return {"when": {**one["when"], **keys}, "cost": one["cost"]}


def _not_mean(genes: Genes) -> list[str]:
    return [pooling for pooling in genes["pooling"] if pooling != MEAN]


def _layer_rows(layers: Layers, stream: str) -> Iterable[Row]:
    """Yield the rows of a layer. Where the mean of all tokens is read, no layer is shorter."""
    genes, gene, depth = layers.genes, STREAMS[stream], f"{stream}_depth"
    parts = (genes[f"{stream}_{name}"] for name in ("mixer", "gate", "mlp"))
    for size, mixer, gate, ratio in product(genes[gene], *parts):
        attends = mixer == ATTENTION
        for heads in genes[f"{stream}_heads"] if attends else [genes[f"{stream}_heads"]]:
            kind = Kind(mixer, gate == "yes", heads if attends else layers.heads[0])
            when = {gene: size, f"{stream}_mixer": mixer, f"{stream}_gate": gate}
            when |= {f"{stream}_heads": heads, f"{stream}_mlp": ratio}
            full = layers.cost(stream, size, kind, ratio, last=False)
            whole, short = _read(genes, stream, attends)
            for keys in whole:
                yield row(full, **when, **keys, **{depth: genes[depth]})
            if not short:
                continue
            last = layers.cost(stream, size, kind, ratio, last=True)
            for number, keys in product(genes[depth][1:], short):
                counted = genes[depth][:2] if number == genes[depth][1] else number
                yield row(layer_cost(number, full, last), **when, **keys, **{depth: counted})


def _read(genes: Genes, stream: str, attends: bool) -> tuple[list[Genes], list[Genes]]:
    """Return the genes with which all tokens are read, and those with which one is."""
    others = _not_mean(genes)
    if stream == PIXEL:
        return [{"pooling": MEAN}], [{"pooling": others}]
    if not attends:
        return [{"tokens": genes["tokens"], "pooling": genes["pooling"]}], []
    # In series the pixels' stream gets the class token.
    apart = [tokens for tokens in genes["tokens"] if tokens != SERIES]
    short: list[Genes] = [{"tokens": SERIES, "pooling": genes["pooling"]}]
    return [{"tokens": apart, "pooling": MEAN}], [*short, {"tokens": apart, "pooling": others}]


def _fusion_rows(layers: Layers, stream: str) -> Iterable[Row]:
    """Yield the fusions of a stream: before every layer from the third on."""
    genes, gene, depth = layers.genes, STREAMS[stream], f"{stream}_depth"
    other = PIXEL if stream == BAND else BAND
    there = [tokens for tokens in genes["tokens"] if tokens != other]
    every = {"tokens": genes["tokens"], depth: genes[depth], gene: genes[gene]}
    yield row(0.0, **{**every, "fusion": "no"})
    yield row(0.0, **{**every, "fusion": "yes", "tokens": other})
    for size in genes[gene]:
        tokens = layers.tokens(stream, size, ATTENTION)
        mix = layers.bench.part(layers.bench.fusion(tokens), E=layers.embed)
        keys = {"fusion": "yes", "tokens": there, gene: size}
        for number in genes[depth]:
            yield row(mix * max(number - 2, 0), **keys, **{depth: number})


class Ends:
    """Measured models without a layer, by their tokens and what is read."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        genes = layers.genes
        sides = [round(area**0.5) for area in anchors([s**2 for s in genes["patch"]], AREAS)]
        self.strides, self.widths = ends(genes["band_stride"]), ends(genes["band_width"])
        self.sides = ends(sides)
        corners = list(product(self.sides, self.strides, self.widths))
        asked = [_end(layers, PIXEL, *read, side) for read in PIXEL_READS for side in sides]
        asked += [_end(layers, BAND, True, CLASS, *corner) for corner in corners]
        small = [(self.sides[0], stride, self.widths[0]) for stride in self.strides]
        asked += [_end(layers, BAND, False, MEAN, *corner) for corner in small]
        asked += [_end(layers, PARALLEL, True, CLASS, s, *small[0][1:]) for s in self.sides]
        costs = iter(layers.bench.models(asked))
        areas = [side**2 for side in sides]
        one, every, plain = (Curve(areas, [next(costs) for _ in sides]) for _ in PIXEL_READS)
        self.pixel = {True: one, False: plain}
        self.read_all = Curve(areas, [b - a for a, b in zip(one.costs, every.costs, strict=True)])
        self.band = {corner: next(costs) for corner in corners}
        # What a stream of bands costs more if it does not attend, and all its tokens are read.
        entered = {corner[1]: next(costs) - self.band[corner] for corner in small}
        self.entered = self._by_tokens(entered)
        # A model with both kinds of tokens has scaling, head and call only once.
        once = [one.at(s**2) + self.band[s, *small[0][1:]] - next(costs) for s in self.sides]
        self.once = Curve([side**2 for side in self.sides], once)

    def pixels(self, side: int, attends: bool, read_all: bool) -> float:
        """Return the ms of a model of pixel tokens."""
        cost = self.pixel[attends].at(side**2)
        return cost + (max(self.read_all.at(side**2), 0.0) if read_all else 0.0)

    def bands(self, side: int, stride: int, width: int, attends: bool, read_all: bool) -> float:
        """Return the ms of a model of band tokens, which grows with the patch's area."""
        count = self.layers.tokens(BAND, stride)
        by_area = []
        for edge in self.sides:
            at_strides = {
                s: float(
                    np.interp(width, self.widths, [self.band[edge, s, w] for w in self.widths])
                )
                for s in self.strides
            }
            by_area.append(self._by_tokens(at_strides).at(count))
        cost = Curve([edge**2 for edge in self.sides], by_area).at(side**2)
        if not attends:
            return cost + self.entered.at(count)
        return cost + (max(self.read_all.at(count), 0.0) if read_all else 0.0)

    def _by_tokens(self, costs: Mapping[int, float]) -> Curve:
        strides = sorted(costs, reverse=True)
        counts = [self.layers.tokens(BAND, stride) for stride in strides]
        return Curve(counts, [costs[stride] for stride in strides])


PIXEL_READS = ((True, CLASS), (True, MEAN), (False, CENTRE))
"""Whether pixel tokens attend and what is read of them, in the measured models."""


def _end(
    layers: Layers,
    tokens: str,
    attends: bool,
    pooling: str,
    side: int,
    stride: int | None = None,
    width: int | None = None,
) -> Genes:
    """Return a model without a layer."""
    genes = layers.genes
    found = {"space": "hytas-wide", "embed_dim": layers.embed, "fusion": "no", "tokens": tokens}
    found |= {"pooling": pooling, "patch": side}
    found |= {"band_stride": stride or genes["band_stride"][0]}
    found |= {"band_width": width or genes["band_width"][0]}
    for stream in STREAMS:
        found |= {f"{stream}_mixer": ATTENTION if attends else NO_MIXER, f"{stream}_gate": "no"}
        found |= {f"{stream}_heads": layers.heads[0], f"{stream}_mlp": []}
    return found


def _end_rows(layers: Layers) -> Iterable[Row]:
    """Yield the rows of everything except layers and fusions."""
    genes, found = layers.genes, Ends(layers)
    plain = [mixer for mixer in genes["band_mixer"] if mixer != ATTENTION]
    mixers = {True: [ATTENTION], False: plain}
    both = [tokens for tokens in genes["tokens"] if tokens not in (BAND, PIXEL)]
    free = {gene: genes[gene] for gene in ("band_stride", "band_width", "patch", "pooling")}
    free |= {gene: genes[gene] for gene in ("band_mixer", "pixel_mixer")}
    for attends, read_all, side in product((True, False), (True, False), genes["patch"]):
        here = {**free, "pooling": [MEAN] if read_all else _not_mean(genes), "patch": side}
        pixels = found.pixels(side, attends, read_all)
        yield row(pixels, **{**here, "tokens": PIXEL, "pixel_mixer": mixers[attends]})
        for stride, width in product(genes["band_stride"], genes["band_width"]):
            sizes = {**here, "band_stride": stride, "band_width": width}
            sizes["band_mixer"] = mixers[attends]
            alone = found.bands(side, stride, width, attends, read_all)
            yield row(alone, **{**sizes, "tokens": BAND})
            for tokens in both:
                short = found.bands(side, stride, width, attends, read_all and tokens != SERIES)
                cost = max(pixels + short - found.once.at(side**2), pixels)
                yield row(cost, **{**sizes, "tokens": tokens, "pixel_mixer": mixers[attends]})
    for attends in (True, False):  # no network mixes its two streams differently
        mixed = {"band_mixer": mixers[attends], "pixel_mixer": mixers[not attends]}
        yield row(0.0, **{**free, "tokens": both, **mixed})
