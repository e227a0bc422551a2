"""Weight entanglement: how a parameter of a small network is cut from that of the largest.

`slice_of` has one rule for each parameter. It serves the initial weights of proxies and the subnets
of a supernet. A network runs with the mapping name -> tensor by `torch.func.functional_call`.
AutoFormer's code takes every third row for q, k and v, but not of their bias: its checkpoints do
not fit here.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from hytas.errors import InputError
from hytas.models.blocks import NO_DROP
from hytas.models.numberless import MadeTensor, without_numbers
from hytas.models.table import NETWORKS, check_data
from hytas.spaces.opening import builtin_space
from hytas.spaces.shape import Shape

PREFIX, THIRDS, CENTRE, GRID, TOKENS = "prefix", "thirds", "centre", "grid", "tokens"
"""Rules of an axis. "prefix": the leading entries. "thirds": the leading rows of the
queries, of the keys and of the values, so every head is whole. "centre": the middle of a kernel.
"grid": the middle of a square of pixels, laid out row by row. "tokens": the class token, and the
middle of the square of pixels that follows it."""

# End of a parameter's name -> the rule of each axis; "prefix" for all other axes.
RULES: dict[str, tuple[str, ...]] = {
    "qkv.weight": (THIRDS,),
    "qkv.bias": (THIRDS,),
    "band_embed.project.weight": (PREFIX, GRID, CENTRE),
    "near.weight": (PREFIX, PREFIX, CENTRE, CENTRE),
    "window_bias": (PREFIX, CENTRE, CENTRE),
    "pixel_stream.position": (PREFIX, TOKENS),
}
# The same for the fusions of the pixels' stream, by number of axes: weight (2, T, T), bias (T,).
FUSIONS: dict[int, tuple[str, ...]] = {3: (PREFIX, TOKENS, TOKENS), 1: (TOKENS,)}


def slice_of(name: str, full: Tensor, wanted: Sequence[int]) -> Tensor:
    """Cut the parameter of a smaller network from a full-size parameter.

    Args:
        name: of the parameter in the network, such as "pixel_stream.blocks.0.attention.qkv.weight".
        full: the parameter of the largest network.
        wanted: the shape of the smaller one.

    Returns:
        A tensor of shape `wanted`; a view of `full` if the rules allow one.
    """
    cut = full
    if len(wanted) == full.ndim and all(w <= f for w, f in zip(wanted, full.shape, strict=True)):
        for axis, rule in enumerate(rules_of(name, full.ndim)):
            if cut.shape[axis] != wanted[axis]:
                cut = _cut(cut, axis, wanted[axis], rule)
    if cut.shape != torch.Size(wanted):
        raise InputError(name, rule=f"{tuple(wanted)} is no slice of {tuple(full.shape)}")
    return cut


def rules_of(name: str, axes: int) -> tuple[str, ...]:
    """Return the rule of each axis of a parameter."""
    if "pixel_stream.fusions." in name:
        rules = FUSIONS[axes]
    else:
        rules = next((axis_rules for end, axis_rules in RULES.items() if name.endswith(end)), ())
    return (*rules[:axes], *(PREFIX for _ in range(axes - len(rules))))


def _cut(full: Tensor, axis: int, size: int, rule: str) -> Tensor:
    """Keep about `size` entries along one axis: fewer where the rule cannot give as many."""
    have = full.shape[axis]
    if rule == THIRDS:
        return torch.cat([part.narrow(axis, 0, size // 3) for part in full.chunk(3, axis)], axis)
    if rule == CENTRE:
        return full.narrow(axis, (have - size) // 2, size)
    if rule == GRID:
        return full.index_select(axis, _middle(have, size, full.device))
    if rule == TOKENS:
        pixels = 1 + _middle(have - 1, size - 1, full.device)
        return full.index_select(axis, torch.cat([pixels.new_zeros(1), pixels]))
    return full.narrow(axis, 0, size)


def _middle(have: int, wanted: int, device: torch.device) -> Tensor:
    """Return the places of the middle `wanted` of `have` pixels, in squares row by row."""
    outer, inner = isqrt(have), isqrt(wanted)
    margin = (outer - inner) // 2
    square = torch.arange(outer**2, device=device).view(outer, outer)
    return square[margin : margin + inner, margin : margin + inner].flatten()


@lru_cache(maxsize=8)
def full_sizes(space: str, shape: Shape) -> Mapping[str, torch.Size]:
    """Return the size of every parameter in the largest network of a built-in space, by name.

    It is the largest size along each axis over `_extremes`; a test checks that every architecture
    fits. A space that is not built in, or has no network, has no sizes.
    """
    opened = builtin_space(space, tuple(shape.variables().items()))
    if opened is None or space not in NETWORKS:
        return {}
    check_data(space, shape)
    largest: dict[str, torch.Size] = {}
    made = MadeTensor()
    for architecture in _extremes(opened.genes):
        with without_numbers(made):
            network = NETWORKS[space]({"space": space, **architecture}, shape, NO_DROP)
        for name, parameter in network.named_parameters(remove_duplicate=False):
            largest_so_far = largest.get(name, parameter.shape)
            largest[name] = torch.Size(map(max, largest_so_far, parameter.shape))
    return largest


def _extremes(genes: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the architecture with every gene at its largest value, and those with one gene changed.

    A gene of numbers changes to its smallest value, a gene of labels from its last to each other.
    One with a value for each stage also changes in one stage alone.
    """
    top = {gene["name"]: _ends(gene)[-1] for gene in genes}
    for gene in genes:
        for value in _ends(gene):
            chosen = {**top, gene["name"]: value}
            yield {each["name"]: _of_layers(each, chosen) for each in genes}


def _ends(gene: Mapping[str, Any]) -> list[Any]:
    """Return the smallest and the largest value of a gene, or all its labels."""
    values = list(gene["values"])
    if isinstance(values[0], str):
        return values
    if gene["length"] is not None and not isinstance(values[0], list):  # a value for each stage
        high, low = max(values), min(values)
        alone = [
            [low if stage == changed else high for stage in range(gene["length"])]
            for changed in range(gene["length"])
        ]
        return [*alone, low, high]
    if isinstance(values[0], list):  # the values of each layer
        return [[min(each) for each in values], [max(each) for each in values]]
    return [min(values), max(values)]


def _of_layers(gene: Mapping[str, Any], chosen: Mapping[str, Any]) -> Any:
    """Return the value of a gene, repeated for every layer if it has one a layer."""
    value = chosen[gene["name"]]
    layers = chosen[gene["per"]] if gene["per"] is not None else gene["length"]
    return value if layers is None or isinstance(value, list) else [value] * layers
