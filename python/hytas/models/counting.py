"""The costs of an architecture, counted on its network: in all, or by layer."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hytas.models.blocks import Block, MixerBlock
from hytas.models.layers import PixelEmbedding, SpectralEmbedding
from hytas.models.linear import MeanNetwork
from hytas.models.network import Network
from hytas.models.pretreatment import Pretreatment
from hytas.models.streams import TokenStream
from hytas.models.table import build_network, count_parameters
from hytas.spaces.costs import LayerCost
from hytas.spaces.names import PRETREATMENTS, TITLES
from hytas.spaces.shape import Shape


def counted_cost(architecture: Mapping[str, Any], shape: Shape, name: str) -> float:
    """Return the parameters ("params"), or the multiply-accumulates for one patch ("macs")."""
    with torch.device("meta"):
        network = build_network(architecture, shape).eval()
    if name == "params":
        return float(count_parameters(network))
    return float(_counter(network, shape).get_total_flops()) / 2.0 + _treating(network)


def counted_layers(architecture: Mapping[str, Any], shape: Shape) -> list[LayerCost]:
    """Return the parts of the network in the order in which they compute.

    Every token is counted in every layer, as the formulas of the spaces do. The network that ships
    leaves out, in the last layer of a stream, the tokens that are not read.
    """
    with torch.device("meta"):
        network = build_network(architecture, shape).eval()
    if not isinstance(network, MeanNetwork):
        return _layers_of(network, shape)
    layers = _layers_of(network.network, shape)
    for fit, one in network.linear.items():
        macs = _counter(one, shape).get_total_flops() // 2
        layers.append(LayerCost(fit, "", TITLES[fit], count_parameters(one), macs))
    return [*layers, LayerCost("shift", "", "shift of each class", len(network.shift.bias), 0)]


def _layers_of(network: nn.Module, shape: Shape) -> list[LayerCost]:
    streams = network.token_streams if isinstance(network, Network) else {}
    for stream in streams.values():
        stream.observer = lambda _: None  # so that its last layer computes all tokens
    counter = _counter(network, shape)
    counts = counter.flop_counts
    root = type(network).__name__

    layers: list[LayerCost] = []
    for of, name, module in _parts(network, streams):
        if isinstance(module, TokenStream):
            own = sum(parameter.numel() for parameter in module.parameters(recurse=False))
            about = "class token and positions, added" if own else "GELU"
            layers.append(LayerCost(name, of, about, own, 0))
            continue
        flops = sum(counts.get(f"{root}.{name}", {}).values())
        params, macs = count_parameters(module), flops // 2
        if isinstance(module, Pretreatment):
            macs, of = module.macs, ""
        layers.append(LayerCost(name, of, _about(module), params, macs))
    params = count_parameters(network) - sum(part.params for part in layers)
    whole = counter.get_total_flops() // 2 + _treating(network)
    macs = whole - sum(part.macs for part in layers)
    if params or macs:
        layers.append(LayerCost("", "", "other parameters", params, macs))
    return layers


def _treating(network: nn.Module) -> int:
    """Return the multiply-accumulates of a pretreatment, which is no matrix product."""
    treats = network.pretreatment if isinstance(network, Network) else None
    return 0 if treats is None else treats.macs


def _parts(
    network: nn.Module, streams: Mapping[str, TokenStream]
) -> Iterator[tuple[str, str, nn.Module]]:
    waiting = list(network.named_children())
    for stream, module in streams.items():
        while waiting:
            name, part = waiting.pop(0)
            yield stream, name, part
            if part is module:
                yield from ((stream, f"{name}.{own}", layer) for own, layer in _layers(module))
                break
    yield from (("", name, part) for name, part in waiting)


def _counter(network: nn.Module, shape: Shape) -> FlopCounterMode:
    """Count the operations of a network for one patch, on the meta device.

    There nothing is computed; and a CPU's attention kernel would not be counted.
    """
    with torch.device("meta"):
        patch = torch.empty(1, shape.side, shape.side, shape.bands)
        counter = FlopCounterMode(display=False)
        with torch.no_grad(), counter:
            network(patch)
    return counter


def _layers(stream: TokenStream) -> Iterator[tuple[str, nn.Module]]:
    for number, block in enumerate(stream.blocks):
        if number >= 2 and len(stream.fusions):
            yield f"fusions.{number - 2}", stream.fusions[number - 2]
        yield f"blocks.{number}", block


def _about(module: nn.Module) -> str:
    if isinstance(module, Block):
        heads = module.attention.heads
        return f"attention with {heads} heads, then an MLP of width {module.fc1.out_features}"
    if isinstance(module, MixerBlock):
        return _about_mixer(module)
    if isinstance(module, SpectralEmbedding):
        bands, step = module.project.kernel_size[0], module.project.stride[0]
        side = module.patch_size
        return f"a token every {step} bands, of {bands} bands over {side} x {side} pixels"
    if isinstance(module, Pretreatment):
        return f"{PRETREATMENTS[module.kind]}, each band standardised"
    if isinstance(module, PixelEmbedding):
        return f"a token a pixel, {module.patch_size} x {module.patch_size} pixels"
    if isinstance(module, nn.Linear):
        return f"linear map from {module.in_features} to {module.out_features}"
    return _KINDS.get(type(module).__name__, type(module).__name__)


def _about_mixer(module: MixerBlock) -> str:
    gated = ", gated" if module.gate is not None else ""
    width = f"{module.fc1.out_features} values a token{gated}"
    if module.attention is not None:
        return f"attention with {module.attention.heads} heads over {width}"
    if module.near is not None:
        return f"convolution of width {module.near.kernel_size[0]} over {width}"
    return f"no mixing of tokens, {width}"


_KINDS = {
    "CrossLayerFusion": "fusion with the tokens of two layers ago",
    "LayerNorm": "layer normalisation",
    "ModuleDict": "layer normalisation",  # of each stream
}
