"""Measure parts of networks, as small ONNX graphs, on this device.

The parts are modules of real networks, traced as in the export of a whole model.
"""

import copy
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper
from onnx.compose import merge_graphs
from onnx.utils import Extractor
from torch import Tensor, nn

from hytas.data import Preprocessing
from hytas.deploy.bench import repeat
from hytas.export.onnx_file import OPSET, inference_copy, take_dtype, trace
from hytas.model_card import ModelCard
from hytas.models import Architecture, InputShape, SensorModel, build_network
from hytas.models.blocks import Block, Layers, layer_of
from hytas.models.layers import CrossLayerFusion
from hytas.models.network import as_network
from hytas.models.table import patch_size_of

Name = TypeVar("Name", bound=Hashable)

Key = tuple[str, int, bool]
"""Key of a part: "attention" and heads, or "mlp" and width; and whether one token is read."""

Graphs = Mapping[Key, onnx.ModelProto]


class WholeLayer(NamedTuple):
    """Key of a layer that is measured as one part.

    Attributes:
        mixer: how it mixes tokens.
        gate: whether it has a gate.
        heads: of its attention.
        ratio: width of the expanded tokens over E.
        grid: sizes of the grid that tokens lie on; () if their number is free.
        last: whether one token is read.
    """

    mixer: str
    gate: bool
    heads: int
    ratio: float
    grid: tuple[int, ...] = ()
    last: bool = False


COPIES = 4
"""Copies of a part, timed beside a single copy: the difference does not contain the call."""

FIRST = slice(0, 1)
"""The class token, which a last layer reads."""


class Part(NamedTuple):
    """A module, and examples of its inputs.

    Attributes:
        module: a module of a network, in evaluation mode.
        inputs: an example of each input; the first axis is the batch.
        free: other axes of free size -> the name of the size.
    """

    module: nn.Module
    inputs: tuple[Tensor, ...]
    free: Mapping[int, str] = {}


class Attend(nn.Module):
    """The attention of a layer and its residual, for the tokens of `read`."""

    def __init__(self, block: Block, read: slice | None) -> None:
        super().__init__()
        self.block, self.read = block, read

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, T, E) -> (N, Q, E)."""
        return self.block.attend(tokens, self.read)


class Apply(nn.Module):
    """A whole layer, for the tokens of `read`."""

    def __init__(self, block: nn.Module, read: slice | None) -> None:
        super().__init__()
        self.block, self.read = block, read

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, T, E) -> (N, Q, E)."""
        mixed: Tensor = self.block(tokens, self.read)
        return mixed


class Mix(nn.Module):
    """The MLP of a layer and its residual."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.block = block

    def forward(self, tokens: Tensor) -> Tensor:
        """(N, Q, E) -> (N, Q, E)."""
        return self.block.mix(tokens)


class _Beside(nn.Module):
    """Independent modules as one module."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(modules)

    def forward(self, inputs: list[tuple[Tensor, ...]]) -> list[Tensor]:
        """Return the output of each module for its inputs."""
        return [part(*given) for part, given in zip(self.parts, inputs, strict=True)]


def trace_parts(parts: Mapping[Name, Part]) -> dict[Name, onnx.ModelProto]:
    """Return name -> the ONNX graph of a part, from `in 0`, `in 1`... to `out`.

    All parts are traced at once and then separated, which takes a third of the time.
    """
    examples, free, sources = [], [], []
    for number, part in enumerate(parts.values()):
        # Each part gets its own sizes and tensors; shared ones would be computed in one part only.
        axes = {0: torch.export.Dim(f"N{number}", min=1)}
        for axis, size in part.free.items():
            axes[axis] = torch.export.Dim(f"{size}{number}", min=2)
        examples.append(tuple(example.clone() for example in part.inputs))
        free.append((axes,) * len(part.inputs))
        sources.append([f"part {number} in {index}" for index in range(len(part.inputs))])
    outputs = [f"part {number} out" for number in range(len(parts))]
    names = ([name for source in sources for name in source], outputs)
    whole = _Beside([part.module for part in parts.values()]).eval().requires_grad_(False)
    extractor = Extractor(trace(whole, examples, free, names, OPSET))
    return {
        name: extractor.extract_model(source, [output])
        for name, source, output in zip(parts, sources, outputs, strict=True)
    }


def layer_parts(blocks: Iterable[nn.Module], token: Tensor) -> dict[Key, Part]:
    """Return the parts of layers.

    Args:
        blocks: layers of one width with all wanted heads ("attention") and MLP widths ("mlp").
        token: an example of tokens (N, T, E).
    """
    found: dict[Key, Part] = {}
    for block in blocks:
        assert isinstance(block, Block)
        for last in (False, True):
            heads = ("attention", block.attention.heads, last)
            found[heads] = Part(Attend(block, FIRST if last else None), (token,), {1: "T"})
        found["mlp", block.fc1.out_features, False] = Part(Mix(block), (token,), {1: "T"})
    return found


@dataclass(frozen=True)
class Bench:
    """Measure parts of models on this device, in ms per call."""

    card: ModelCard
    threads: int
    batch: int
    seconds: float
    fusions: dict[int, onnx.ModelProto] = field(default_factory=dict, repr=False)

    @property
    def bands(self) -> int:
        """Return the number of bands that enter the network."""
        return len(self.card.preprocessing["bands"])

    def network(self, architecture: Architecture) -> nn.Module:
        """Return the network of an architecture for the card's sensor, in evaluation mode."""
        return build_network(architecture, self._shape(architecture)).eval()

    def layers(self, architecture: Architecture, stream: str) -> Graphs:
        """Trace the parts of a stream's layers; the number of tokens T is free."""
        blocks = as_network(self.network(architecture), "latency").token_streams[stream].blocks
        return trace_parts(layer_parts(blocks, torch.zeros(2, 8, architecture["embed_dim"])))

    def whole_layers(
        self, embed_dim: int, wanted: Iterable[WholeLayer]
    ) -> Mapping[WholeLayer, onnx.ModelProto]:
        """Trace layers of one width as one part each; the number of tokens T is free, or a grid."""
        parts = {}
        for key in wanted:
            layers = Layers([key.heads], [key.ratio], key.mixer, key.gate)
            block = layer_of(layers, 0, embed_dim, key.grid)
            token = torch.zeros(2, prod(key.grid) if key.grid else 8, embed_dim)
            applied = Apply(block, FIRST if key.last else None)
            parts[key] = Part(applied, (token,), {} if key.grid else {1: "T"})
        return trace_parts(parts)

    def fusion(self, tokens: int) -> onnx.ModelProto:
        """Trace a fusion of T tokens, once; the width E is free."""
        if tokens not in self.fusions:
            inputs = (torch.zeros(2, tokens, 32), torch.zeros(2, tokens, 32))
            part = Part(CrossLayerFusion(tokens), inputs, {2: "E"})
            self.fusions[tokens] = trace_parts({"fusion": part})["fusion"]
        return self.fusions[tokens]

    def models(self, architectures: Sequence[Architecture]) -> list[float]:
        """Measure whole models, with the time of the call."""
        parts = {}
        for number, architecture in enumerate(architectures):
            scaling = Preprocessing.from_dict(self.card.preprocessing)
            model = inference_copy(SensorModel(self.network(architecture), scaling), self.card)
            side = self._shape(architecture).patch_size
            parts[number] = Part(model, (torch.zeros(2, side, side, self.card.bands),))
        graphs = trace_parts(parts)
        for graph in graphs.values():
            take_dtype(graph, self.card.dtype)
        return [self.call(graph) for graph in graphs.values()]

    def part(self, graph: onnx.ModelProto, **sizes: int) -> float:
        """Measure a part with these sizes: a graph of four copies minus one of one, over three."""
        graph = _sized(graph, sizes)
        apart = reduce(partial(_beside, graph), range(1, COPIES), graph)
        return max(self.call(apart) - self.call(graph), 0.0) / (COPIES - 1)

    def chained(self, graph: onnx.ModelProto, **sizes: int) -> float:
        """Measure a part inside a network: a chain of four copies minus one of one, over three."""
        graph = _sized(graph, sizes)
        longer = self.chain([graph] * COPIES)
        return max(longer - self.call(graph), 0.0) / (COPIES - 1)

    def chain(self, graphs: Sequence[onnx.ModelProto], **sizes: int) -> float:
        """Measure graphs in a chain, with the time of the call."""
        return self.call(reduce(_after, [_sized(graph, sizes) for graph in graphs]))

    def call(self, graph: onnx.ModelProto) -> float:
        """Measure a graph; only the batch is free."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = self.threads, 4
        session = onnxruntime.InferenceSession(
            graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        rng = np.random.default_rng(0)
        given = {}
        for source in graph.graph.input:
            kind = source.type.tensor_type
            shape = [self.batch, *(axis.dim_value for axis in kind.shape.dim[1:])]
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            given[source.name] = rng.uniform(0.0, 1.0, shape).astype(dtype)
        # On one thread the processor time is the latency without the share of other programs.
        clock = time.process_time if self.threads == 1 else time.perf_counter
        return min(repeat(partial(session.run, None, given), self.seconds, clock))

    def _shape(self, architecture: Architecture) -> InputShape:
        card = self.card
        largest = InputShape(self.bands, len(card.class_ids), card.patch_size, card.band_group)
        return replace(largest, patch_size=patch_size_of(architecture, largest))


def _sized(graph: onnx.ModelProto, sizes: Mapping[str, int]) -> onnx.ModelProto:
    """Return a copy with fixed sizes, so that onnxruntime computes shapes when it loads it."""
    fixed = copy.deepcopy(graph)
    for value in (*fixed.graph.input, *fixed.graph.output):
        for axis in value.type.tensor_type.shape.dim:
            size = axis.dim_param.rstrip("0123456789")
            if size in sizes:
                axis.dim_value = sizes[size]
    return fixed


def _beside(copied: onnx.ModelProto, graph: onnx.ModelProto, number: int) -> onnx.ModelProto:
    """Return `copied` with one more copy of `graph`, which has its own inputs and weights."""
    return _merged(graph, copied, [], f"copy {number} ")


def _after(graph: onnx.ModelProto, following: onnx.ModelProto) -> onnx.ModelProto:
    """Return a graph that applies `following` to the output of `graph`."""
    ends = [(graph.graph.output[0].name, following.graph.input[0].name)]
    return _merged(graph, following, ends, f"after {len(graph.graph.node)} ")


def _merged(
    left: onnx.ModelProto, right: onnx.ModelProto, ends: list[tuple[str, str]], prefix: str
) -> onnx.ModelProto:
    renamed = onnx.compose.add_prefix_graph(right.graph, prefix)
    ends = [(output, f"{prefix}{source}") for output, source in ends]
    joined = merge_graphs(left.graph, renamed, ends)
    return helper.make_model(joined, opset_imports=left.opset_import, ir_version=left.ir_version)
