"""The latency table of a search space on this device, measured layer by layer in onnxruntime.

A model's time is a sum: embedding and head by (embed_dim), fusion by (embed_dim, depth), and for
every layer an attention part by (embed_dim, num_heads) and an MLP part by (embed_dim, mlp_ratio).
The exported last layer follows the class token alone; a table does not know which layer is last,
so each layer of depth d counts (d - 1) / d of a full layer and 1 / d of a last one, which is right
on average over the order of the layers.
"""

import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from hytas._engine import SearchSpace
from hytas.deploy.bench import repeat
from hytas.errors import InputError
from hytas.export.onnx_file import OPSET
from hytas.model_card import ModelCard
from hytas.models import InputShape

Array = npt.NDArray[Any]
Progress = Callable[[int, int], None]
Build = Callable[["Sketch", str], str]


@dataclass
class Sketch:
    """A small ONNX graph in the making, from `x` (N, T, E); weights are random."""

    nodes: list[onnx.NodeProto]
    weights: list[onnx.TensorProto]
    count: int = 0

    def weight(self, *shape: int) -> str:
        """A new weight of the shape."""
        name = f"w{len(self.weights)}"
        values = np.random.default_rng(len(self.weights)).standard_normal(shape) * 0.05
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def integers(self, *values: int) -> str:
        """A constant shape."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A new node; returns its output."""
        self.count += 1
        output = f"v{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output


def attention(graph: Sketch, x: str, embed: int, heads: int, last: bool = False) -> str:
    """Norm, attention and residual of one layer; queries of the class token alone if `last`."""
    size = embed // heads
    normed = graph.add("LayerNormalization", x, graph.weight(embed), graph.weight(embed), axis=-1)
    asking = _class_token(graph, normed) if last else normed
    split = graph.integers(0, -1, heads, size)
    parts = []
    for source, order in ((asking, [0, 2, 1, 3]), (normed, [0, 2, 3, 1]), (normed, [0, 2, 1, 3])):
        product = graph.add("MatMul", source, graph.weight(embed, heads * size))
        parts.append(graph.add("Transpose", graph.add("Reshape", product, split), perm=order))
    weights = graph.add("Softmax", graph.add("MatMul", parts[0], parts[1]), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", weights, parts[2]), perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", mixed, graph.integers(0, -1, heads * size))
    product = graph.add("MatMul", joined, graph.weight(heads * size, embed))
    biased = graph.add("Add", product, graph.weight(embed))
    return graph.add("Add", _class_token(graph, x) if last else x, biased)


def mlp(graph: Sketch, x: str, embed: int, ratio: float) -> str:
    """Norm, MLP and residual of one layer."""
    hidden = int(embed * ratio)
    normed = graph.add("LayerNormalization", x, graph.weight(embed), graph.weight(embed), axis=-1)
    inner = graph.add("MatMul", normed, graph.weight(embed, hidden))
    active = graph.add("Gelu", graph.add("Add", inner, graph.weight(hidden)))
    outer = graph.add("MatMul", active, graph.weight(hidden, embed))
    return graph.add("Add", x, graph.add("Add", outer, graph.weight(embed)))


def fusion(graph: Sketch, x: str, tokens: int) -> str:
    """Cross-layer fusion: two T x T products."""
    now = graph.add("MatMul", graph.weight(tokens, tokens), x)
    before = graph.add("MatMul", graph.weight(tokens, tokens), x)
    return graph.add("Add", graph.add("Add", now, before), graph.weight(tokens, 1))


def ends(graph: Sketch, card: ModelCard, embed: int) -> str:
    """Everything before the first layer and after the last, from `patches` in the card's dtype."""
    bands = np.asarray(card.preprocessing["bands"], np.int64)
    side, group, count = card.patch_size, card.band_group, len(bands)
    x = graph.add("Cast", "patches", to=TensorProto.FLOAT)
    x = graph.add("Gather", x, graph.integers(*bands.tolist()), axis=3)
    x = graph.add("Div", graph.add("Sub", x, graph.weight(count)), graph.weight(count))
    x = graph.add("Where", graph.add("Equal", graph.add("Sub", x, x), graph.weight(1)), x, x)
    x = graph.add("Reshape", x, graph.integers(0, side * side, count))
    margin = group // 2
    if margin:
        x = graph.add("Pad", x, graph.integers(0, 0, margin, 0, 0, margin), mode="edge")
    x = graph.add("Conv", x, graph.weight(embed, side * side, group), graph.weight(embed))
    x = graph.add("Transpose", x, perm=[0, 2, 1])
    x = graph.add("Concat", _class_token(graph, x), x, axis=1)
    x = graph.add("Add", x, graph.weight(1, count + 1, embed))
    x = graph.add("Reshape", _class_token(graph, x), graph.integers(0, embed))
    x = graph.add("LayerNormalization", x, graph.weight(embed), graph.weight(embed), axis=-1)
    classes = len(card.class_ids)
    x = graph.add("Gemm", x, graph.weight(embed, classes), graph.weight(classes))
    return graph.add("Softmax", x, axis=-1)


def _class_token(graph: Sketch, x: str) -> str:
    return graph.add("Slice", x, graph.integers(0), graph.integers(1), graph.integers(1))


def _session(graph: Sketch, source: str, example: Array, result: str, threads: int) -> Any:
    element = helper.np_dtype_to_tensor_dtype(example.dtype)
    made = helper.make_graph(
        graph.nodes,
        "part",
        [helper.make_tensor_value_info(source, element, example.shape)],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
        initializer=graph.weights,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


@dataclass(frozen=True)
class Bench:
    """Times parts of models on this device, in ms a call."""

    card: ModelCard
    threads: int
    batch: int
    seconds: float

    @property
    def tokens(self) -> int:
        """T, the class token counted."""
        return len(self.card.preprocessing["bands"]) + 1

    def part(self, embed: int, build: Build, *, last: bool = False) -> float:
        """One copy of a part: the difference between graphs of four and of one, over three.

        Copies follow one another as layers do; those that leave the class token alone stand
        beside one another.
        """
        example = np.random.default_rng(0).standard_normal((self.batch, self.tokens, embed))
        times = []
        for copies in (1, 4):
            graph, outputs, x = Sketch([], []), [], "x"
            for _ in range(copies):
                outputs.append(build(graph, x))
                x = "x" if last else outputs[-1]
            result = graph.add("Sum", *outputs) if last else x
            times.append(self._time(graph, "x", example.astype(np.float32), result))
        return max(times[1] - times[0], 0.0) / 3

    def ends(self, embed: int) -> float:
        """Everything but the layers, and the call itself."""
        card, graph = self.card, Sketch([], [])
        shape = (self.batch, card.patch_size, card.patch_size, card.bands)
        return self._time(
            graph, "patches", np.ones(shape, card.numpy_dtype), ends(graph, card, embed)
        )

    def _time(self, graph: Sketch, source: str, example: Array, result: str) -> float:
        session = _session(graph, source, example, result, self.threads)
        # On one thread the processor's time is the latency, less what other programs take away.
        clock = time.process_time if self.threads == 1 else time.perf_counter
        call = partial(session.run, None, {source: example})
        return statistics.median(repeat(call, self.seconds, clock))


def profile(
    card: ModelCard,
    *,
    threads: int = 1,
    batch: int = 1,
    seconds: float = 0.1,
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
    variables = _variables(card)
    genes = {gene["name"]: gene["values"] for gene in _space(card, variables).genes}
    if set(genes) != {"depth", "embed_dim", "num_heads", "mlp_ratio"}:
        raise InputError(f"latency table: cannot be measured for genes {', '.join(genes)}")
    bench = Bench(card, threads, batch, seconds)
    whole: list[dict[str, Any]] = []
    layers: list[dict[str, Any]] = []
    for done, embed in enumerate(genes["embed_dim"]):
        rows = _rows_of_width(bench, embed, genes)
        whole += rows[0]
        layers += rows[1]
        if progress is not None:
            progress(done + 1, len(genes["embed_dim"]))
    return {
        "format": "hytas-latency",
        "version": 1,
        "space": card.architecture["space"],
        "unit": "ms",
        "about": f"onnxruntime {onnxruntime.__version__} on the CPU, {threads} thread(s), "
        f"{batch} patch(es) a call, {platform.processor() or platform.machine()}",
        "variables": variables,
        "global": whole,
        "layers": {"depth": layers},
    }


def _rows_of_width(
    bench: Bench, embed: int, genes: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    outside = bench.ends(embed)
    mix = bench.part(embed, partial(fusion, tokens=bench.tokens))
    whole = [
        {"when": {"embed_dim": embed, "depth": depth}, "cost": _ms(outside + (depth - 2) * mix)}
        for depth in genes["depth"]
    ]
    layers: list[dict[str, Any]] = []
    for heads in genes["num_heads"]:
        full = bench.part(embed, partial(attention, embed=embed, heads=heads))
        last = bench.part(embed, partial(attention, embed=embed, heads=heads, last=True), last=True)
        layers += _shared(genes["depth"], embed, "num_heads", heads, full, last)
    for ratio in genes["mlp_ratio"]:
        full = bench.part(embed, partial(mlp, embed=embed, ratio=ratio))
        layers += _shared(genes["depth"], embed, "mlp_ratio", ratio, full, full / bench.tokens)
    return whole, layers


def _shared(
    depths: Sequence[int], embed: int, gene: str, value: Any, full: float, last: float
) -> list[dict[str, Any]]:
    """A layer's cost at every depth: a last layer once, a full one otherwise, on average."""
    return [
        {
            "when": {"depth": depth, "embed_dim": embed, gene: value},
            "cost": _ms(((depth - 1) * full + last) / depth),
        }
        for depth in depths
    ]


def _ms(value: float) -> float:
    """To the nanosecond, as the engine counts."""
    return round(value, 6)


def predict(table: Mapping[str, Any], card: ModelCard) -> float:
    """Milliseconds that a table gives for the card's architecture."""
    space = _space(card, _variables(card)).with_table("here", json.dumps(table))
    return float(space.cost(dict(card.architecture))["latency@here"]) / 1e6  # from ns


def _variables(card: ModelCard) -> dict[str, int]:
    bands, classes = len(card.preprocessing["bands"]), len(card.class_ids)
    return InputShape(bands, classes, card.patch_size, card.band_group).variables()


def _space(card: ModelCard, variables: Mapping[str, int]) -> SearchSpace:
    return SearchSpace.builtin(card.architecture["space"], dict(variables))
