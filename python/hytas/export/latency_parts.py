"""Parts of exported models as small ONNX graphs, and how long each takes on this device."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from hytas.deploy.bench import repeat
from hytas.export.onnx_file import OPSET
from hytas.model_card import ModelCard
from hytas.models.sensor import MOST_RUNS, runs_of
from hytas.spaces import mlp_width

Array = npt.NDArray[Any]
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

    def cut(self, x: str, start: int, stop: int, axis: int) -> str:
        """A slice along one axis."""
        ends = (self.integers(start), self.integers(stop), self.integers(axis))
        return self.add("Slice", x, *ends)

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
    asking = graph.cut(normed, 0, 1, 1) if last else normed
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
    return graph.add("Add", graph.cut(x, 0, 1, 1) if last else x, biased)


def mlp(graph: Sketch, x: str, embed: int, ratio: float) -> str:
    """Norm, MLP and residual of one layer."""
    hidden = mlp_width(embed, ratio)
    normed = graph.add("LayerNormalization", x, graph.weight(embed), graph.weight(embed), axis=-1)
    inner = graph.add("MatMul", normed, graph.weight(embed, hidden))
    active = graph.add("Gelu", graph.add("Add", inner, graph.weight(hidden)))
    outer = graph.add("MatMul", active, graph.weight(hidden, embed))
    return graph.add("Add", x, graph.add("Add", outer, graph.weight(embed)))


def fusion(graph: Sketch, x: str, tokens: int, earlier: str | None = None) -> str:
    """Cross-layer fusion with the tokens of `earlier`, or of x itself: two T x T products."""
    now = graph.add("MatMul", graph.weight(tokens, tokens), x)
    before = graph.add("MatMul", graph.weight(tokens, tokens), earlier or x)
    return graph.add("Add", graph.add("Add", now, before), graph.weight(tokens, 1))


def stream(
    graph: Sketch, x: str, embed: int, tokens: int, layers: int, heads: int, ratio: float
) -> str:
    """Whole layers with fusion, as a network has them."""
    inputs: list[str] = []
    for layer in range(layers):
        if layer >= 2:
            x = fusion(graph, x, tokens, inputs[layer - 2])
        inputs.append(x)
        x = mlp(graph, attention(graph, x, embed, heads), embed, ratio)
    return x


def scaling(graph: Sketch, card: ModelCard) -> str:
    """Band selection and scaling of `patches` in the card's type, as `Scaling` exports it."""
    kept = [int(band) for band in card.preprocessing["bands"]]
    x = graph.add("Cast", "patches", to=TensorProto.FLOAT)
    if len(kept) < card.bands:
        runs = runs_of(kept)
        if len(runs) <= MOST_RUNS:
            parts = [graph.cut(x, start, stop, 3) for start, stop in runs]
            x = graph.add("Concat", *parts, axis=3) if len(parts) > 1 else parts[0]
        else:
            x = graph.add("Gather", x, graph.integers(*kept), axis=3)
    kept_values = x
    x = graph.add("Div", graph.add("Sub", x, graph.weight(len(kept))), graph.weight(len(kept)))
    if card.numpy_dtype.kind == "f":
        x = graph.add("Where", graph.add("Equal", graph.add("Sub", x, x), graph.weight(1)), x, x)
    if card.nodata is not None:
        x = graph.add("Where", graph.add("Equal", kept_values, graph.weight(1)), x, x)
    if card.preprocessing.get("reach") is not None:
        x = graph.add("Clip", x, graph.weight(), graph.weight())
    return x


def band_tokens(graph: Sketch, x: str, embed: int, sizes: tuple[int, int, int, int]) -> str:
    """Band tokens and the class token of (N, area, bands); sizes: bands, area, width, stride."""
    bands, area, width, stride = sizes
    margin = width // 2
    if margin:
        x = graph.add("Pad", x, graph.integers(0, 0, margin, 0, 0, margin), mode="edge")
    kernel = graph.weight(embed, area, width)
    x = graph.add("Conv", x, kernel, graph.weight(embed), strides=[stride])
    x = graph.add("Transpose", x, perm=[0, 2, 1])
    x = graph.add("Concat", graph.cut(x, 0, 1, 1), x, axis=1)
    return graph.add("Add", x, graph.weight(1, -(-bands // stride) + 1, embed))


def pixel_tokens(graph: Sketch, x: str, embed: int, bands: int, side: int) -> str:
    """Pixel tokens and the class token of (N, area, bands)."""
    x = graph.add("Add", graph.add("MatMul", x, graph.weight(bands, embed)), graph.weight(embed))
    grid = graph.add("Transpose", x, perm=[0, 2, 1])
    grid = graph.add("Reshape", grid, graph.integers(0, 0, side, side))
    near = graph.add(
        "Conv", grid, graph.weight(embed, 1, 3, 3), graph.weight(embed), group=embed, pads=[1] * 4
    )
    near = graph.add("Reshape", near, graph.integers(0, 0, side * side))
    x = graph.add("Add", x, graph.add("Transpose", near, perm=[0, 2, 1]))
    x = graph.add("Concat", graph.cut(x, 0, 1, 1), x, axis=1)
    return graph.add("Add", x, graph.weight(1, side * side + 1, embed))


def head(graph: Sketch, x: str, embed: int, classes: int) -> str:
    """From the first token of (N, T, E) to probabilities."""
    x = graph.add("Reshape", graph.cut(x, 0, 1, 1), graph.integers(0, embed))
    x = graph.add("LayerNormalization", x, graph.weight(embed), graph.weight(embed), axis=-1)
    x = graph.add("Gemm", x, graph.weight(embed, classes), graph.weight(classes))
    return graph.add("Softmax", x, axis=-1)


def ends(graph: Sketch, card: ModelCard, embed: int, side: int, tokens: str) -> str:
    """All but the layers, of a network of band tokens or of pixel tokens.

    "none" leaves the tokens out: what is left is what every network has.
    """
    bands = len(card.preprocessing["bands"])
    x = graph.add("Reshape", scaling(graph, card), graph.integers(0, side * side, bands))
    if tokens == "band":
        x = band_tokens(graph, x, embed, (bands, side * side, card.band_group, 1))
    elif tokens == "pixel":
        x = pixel_tokens(graph, x, embed, bands, side)
    else:
        x = graph.add("MatMul", graph.cut(x, 0, 1, 1), graph.weight(bands, embed))
    return head(graph, x, embed, len(card.class_ids))


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
    def bands(self) -> int:
        """Bands that enter the network."""
        return len(self.card.preprocessing["bands"])

    def part(self, build: Build, shape: tuple[int, int], *, beside: bool = False) -> float:
        """One copy of a part whose input is (N, *shape): graphs of four less one, over three.

        Copies follow one another as layers do, or stand `beside` one another, as those must that
        leave another shape than they take.
        """
        example = np.random.default_rng(0).standard_normal((self.batch, *shape))
        times = []
        for copies in (1, 4):
            graph, outputs, x = Sketch([], []), [], "x"
            for _ in range(copies):
                outputs.append(build(graph, x))
                x = "x" if beside else outputs[-1]
            result = graph.add("Sum", *outputs) if beside else x
            times.append(self._time(graph, "x", example.astype(np.float32), result))
        return max(times[1] - times[0], 0.0) / 3

    def whole(self, build: Build, shape: tuple[int, int]) -> float:
        """A graph whose input is (N, *shape), with the call itself."""
        example = np.random.default_rng(0).standard_normal((self.batch, *shape))
        graph = Sketch([], [])
        return self._time(graph, "x", example.astype(np.float32), build(graph, "x"))

    def ends(self, embed: int, side: int, tokens: str) -> float:
        """Everything but the layers, and the call itself."""
        card, graph = self.card, Sketch([], [])
        shape = (self.batch, side, side, card.bands)
        result = ends(graph, card, embed, side, tokens)
        return self._time(graph, "patches", np.ones(shape, card.numpy_dtype), result)

    def _time(self, graph: Sketch, source: str, example: Array, result: str) -> float:
        session = _session(graph, source, example, result, self.threads)
        # On one thread the processor's time is the latency, less what other programs take away.
        clock = time.process_time if self.threads == 1 else time.perf_counter
        call = partial(session.run, None, {source: example})
        return statistics.median(repeat(call, self.seconds, clock))
