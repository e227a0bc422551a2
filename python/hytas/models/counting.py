"""What the network of an architecture costs, counted on the network itself: in all, or by layer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hytas.models.layers import Block, PixelEmbedding, SpectralEmbedding, TokenStream
from hytas.models.network import Network
from hytas.models.table import build_network, count_parameters
from hytas.spaces.shape import InputShape


@dataclass(frozen=True)
class LayerCost:
    """One part of a network.

    Attributes:
        name: of its module; "" for the parameters that belong to no part.
        about: what it is, in words.
        params: parameters.
        macs: multiply-accumulates of its matrix products for one patch.
    """

    name: str
    about: str
    params: int
    macs: int


def counted_cost(architecture: Mapping[str, Any], shape: InputShape, name: str) -> float:
    """Return the parameters ("params"), or the multiply-accumulates for one patch ("macs").

    Raises:
        InputError: no network belongs to the architecture's space.
    """
    with torch.device("meta"):
        network = build_network(architecture, shape).eval()
    if name == "params":
        return float(count_parameters(network))
    return float(_counter(network, shape).get_total_flops()) / 2.0


def counted_layers(architecture: Mapping[str, Any], shape: InputShape) -> list[LayerCost]:
    """Return the parts of the network in the order in which they compute.

    Every token is counted in every layer, as the formulas of the spaces do. The network that ships
    leaves out, in the last layer of a stream, the tokens that nobody reads.

    Raises:
        InputError: no network belongs to the architecture's space.
    """
    with torch.device("meta"):
        network = build_network(architecture, shape).eval()
    streams = network.token_streams if isinstance(network, Network) else {}
    for stream in streams.values():
        stream.observer = lambda _: None  # so that its last layer computes all tokens
    counts = _counter(network, shape).flop_counts
    root = type(network).__name__

    def cost(name: str, module: nn.Module) -> LayerCost:
        flops = sum(counts.get(f"{root}.{name}", {}).values())
        return LayerCost(name, _about(module), count_parameters(module), flops // 2)

    found: list[LayerCost] = []
    for name, module in network.named_children():
        if isinstance(module, TokenStream):
            own = sum(parameter.numel() for parameter in module.parameters(recurse=False))
            found.append(LayerCost(name, "class token and positions, added", own, 0))
            found += [cost(f"{name}.{part}", layer) for part, layer in _layers(module)]
        else:
            found.append(cost(name, module))
    if rest := count_parameters(network) - sum(part.params for part in found):
        found.append(LayerCost("", "other parameters", rest, 0))
    return found


def _counter(network: nn.Module, shape: InputShape) -> FlopCounterMode:
    """What counted one patch's way through a network on the meta device.

    There nothing is computed; and a CPU's attention kernel would not be counted.
    """
    with torch.device("meta"):
        patch = torch.empty(1, shape.patch_size, shape.patch_size, shape.bands)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            network(patch)
    return counter


def _layers(stream: TokenStream) -> Iterator[tuple[str, nn.Module]]:
    """The layers of a stream by name, each behind the fusion that comes before it."""
    for number, block in enumerate(stream.blocks):
        if number >= 2 and len(stream.fusions):
            yield f"fusions.{number - 2}", stream.fusions[number - 2]
        yield f"blocks.{number}", block


def _about(module: nn.Module) -> str:
    if isinstance(module, Block):
        heads = module.attention.heads
        return f"attention with {heads} heads, then an MLP of width {module.fc1.out_features}"
    if isinstance(module, SpectralEmbedding):
        bands, step = module.project.kernel_size[0], module.project.stride[0]
        side = module.patch_size
        return f"a token every {step} bands, of {bands} bands over {side} x {side} pixels"
    if isinstance(module, PixelEmbedding):
        return f"a token a pixel, {module.patch_size} x {module.patch_size} pixels"
    if isinstance(module, nn.Linear):
        return f"linear map from {module.in_features} to {module.out_features}"
    return _KINDS.get(type(module).__name__, type(module).__name__)


_KINDS = {
    "CrossLayerFusion": "fusion with the tokens of two layers ago",
    "LayerNorm": "layer normalisation",
}
