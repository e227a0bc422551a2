"""Initial weights of many networks at the price of one: slices of a supernet that the seed fixes.

Nothing is generated per network and next to nothing copied, and two networks differ in their
genes, not in luck: what they share starts with the same weights, as in the HyTAS paper, which
slices every network out of one supernet. Weights of their own for every architecture
(`init="own"`) are there to measure what that is worth (docs/proxies.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from hytas.proxies.baselines import params
from hytas.proxies.draws import Draws, Memo, Source, moved
from hytas.proxies.released import check_fits
from hytas.spaces import mlp_width

RELEASED_DEPTH = 10  # of the supernet whose fusions the released code runs in every network


@dataclass(frozen=True)
class Layer:
    """Weights of one transformer layer; (out, in) each. Biases start at zero and are left out.

    A layer of no heads is idle: it only fuses.
    """

    qkv: Tensor
    proj: Tensor
    fc1: Tensor
    fc2: Tensor
    heads: int
    fusion: Tensor | None = None  # (2, T, T), from the third layer on
    fusion_bias: Tensor | None = None  # (T,)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, absent ones left out."""
        values = {name: getattr(self, name) for name in LAYER_TENSORS}
        return {name: value for name, value in values.items() if value is not None}


LAYER_TENSORS = ("qkv", "proj", "fc1", "fc2", "fusion", "fusion_bias")
LINEAR_TENSORS = ("qkv", "proj", "fc1", "fc2")
OUTER_TENSORS = ("embed", "embed_bias", "class_token", "position", "head")


@dataclass(frozen=True)
class Weights:
    """Weights of one network.

    Attributes:
        supernet: what they are slices of, None where the network has its own: those of two networks
            of one width and one supernet are equal wherever their shapes are.
    """

    embed: Tensor  # (E, P * P * c)
    class_token: Tensor  # (E,)
    position: Tensor  # (T, E)
    head: Tensor  # (classes, E)
    layers: list[Layer] = field(default_factory=list)
    embed_bias: Tensor | None = None  # (E,)
    skips_fusion: bool = False  # fusion takes what entered two layers before, not yet fused
    supernet: str | None = None

    @property
    def embed_dim(self) -> int:
        """Width E of a token."""
        return self.position.shape[1]

    def outer_tensors(self) -> dict[str, Tensor]:
        """The tensors outside the layers by name, absent ones left out."""
        values = {name: getattr(self, name) for name in OUTER_TENSORS}
        return {name: value for name, value in values.items() if value is not None}

    def signed(self, mode: str, memo: Memo) -> Weights:
        """The network after the sign step: |w| in place of w.

        Args:
            mode: "none"; "weights", every tensor; "released", only what the released HyTAS code
                reached: cross-layer fusion, positions and class token.
            memo: of the group, whose networks share what they are slices of.
        """
        if mode == "none":
            return self
        memo = memo if self.supernet else Memo()
        supernet = self.supernet and f"{self.supernet} {mode}"
        names = {"class_token", "position", "fusion", "fusion_bias"}
        every = mode == "weights"

        def positive(place: int, tensors: Mapping[str, Tensor]) -> Any:
            return {
                name: memo.once((supernet, place, name, *value.shape), value.abs)
                for name, value in tensors.items()
                if every or name in names
            }

        outer = positive(-1, self.outer_tensors())
        layers = [
            replace(layer, **positive(place, layer.tensors()))
            for place, layer in enumerate(self.layers)
        ]
        return replace(self, **outer, layers=layers, supernet=supernet)

    def perturbed(self, architecture: Mapping[str, Any], shape: Any, source: Draws) -> Weights:
        """The network with Gaussian noise of relative size `NOISE` on every linear weight."""
        init = "supernet" if source.init == "released" else source.init
        noise = draw_weights(architecture, shape, replace(source, prefix="noise ", init=init))
        memo = source.memo if self.supernet else Memo()

        def noisy(place: int, own: Any, other: Any, names: Sequence[str]) -> Any:
            found = {}
            for name in names:
                value, change = getattr(own, name), getattr(other, name)
                key = (self.supernet, place, name, *value.shape)
                found[name] = memo.once(key, partial(moved, value, change))
            return replace(own, **found)

        pairs = enumerate(zip(self.layers, noise.layers, strict=True))
        layers = [noisy(place, *pair, LINEAR_TENSORS) for place, pair in pairs]
        supernet = self.supernet and f"{self.supernet} perturbed"
        outer = noisy(-1, self, noise, ("embed", "head"))
        return cast(Weights, replace(outer, layers=layers, supernet=supernet))


def draw_weights(architecture: Mapping[str, Any], shape: Any, draws: Draws) -> Weights:
    """The initial weights of a HyTAS network, a function of (seed, architecture) alone.

    Args:
        architecture: genes embed_dim, num_heads, mlp_ratio.
        shape: the InputShape.
        draws: the seed's.

    Returns:
        Weights distributed as HyTAS initialises its network, but for the patch embedding: normal of
        deviation 0.02 and without a bias, where the network's own is uniform and has one. Most are
        views.
    """
    if draws.init == "released":
        return _released_weights(architecture, shape, draws)
    embed, tokens = int(architecture["embed_dim"]), shape.tokens
    spare = RELEASED_DEPTH * (2 * tokens + 1) * tokens
    source = draws.source(architecture, int(params(architecture, shape, 0)) + spare)
    fan_in = shape.patch_size**2 * shape.band_group
    genes = zip(architecture["num_heads"], architecture["mlp_ratio"], strict=True)
    layers = [
        _draw_layer(source, index, (embed, heads, mlp_width(embed, ratio)), tokens)
        for index, (heads, ratio) in enumerate(genes)
    ]
    if draws.fusions == "released":
        none = source.normal("idle", 0, embed)
        for index in range(len(layers), RELEASED_DEPTH):
            fusion = _draw_fusion(source, index, tokens)
            layers.append(Layer(none, none, none, none, 0, **fusion))
    return Weights(
        source.normal("embed", embed, fan_in),
        source.normal("class token", 1, embed)[0],
        source.normal("position", tokens, embed),
        source.normal("head", shape.classes, embed),
        layers,
        skips_fusion=draws.fusions == "released",
        supernet=draws.supernet,
    )


def _released_weights(architecture: Mapping[str, Any], shape: Any, draws: Draws) -> Weights:
    """A network's slices of the released code's supernet."""
    check_fits(architecture)
    pool, embed = draws.pool, int(architecture["embed_dim"])
    get = pool.released(shape)
    genes = list(zip(architecture["num_heads"], architecture["mlp_ratio"], strict=True))
    layers = []
    none = get["0 proj"][:0, :embed]
    for index in range(RELEASED_DEPTH if draws.fusions == "released" else len(genes)):
        names = ("fusion", "fusion bias") if index >= 2 else ()
        fusion = {name.replace(" ", "_"): get[f"{index} {name}"] for name in names}
        if index >= len(genes):
            layers.append(Layer(none, none, none, none, 0, **fusion))
            continue
        heads, hidden = genes[index][0], int(embed * genes[index][1])
        inner = heads * (embed // heads)
        thirds = [get[f"{index} qkv"][part : 3 * inner : 3, :embed] for part in range(3)]
        qkv = draws.memo.once((index, inner, embed), partial(torch.cat, thirds))
        layers.append(
            Layer(
                qkv,
                get[f"{index} proj"][:embed, :inner],
                get[f"{index} fc1"][:hidden, :embed],
                get[f"{index} fc2"][:embed, :hidden],
                heads,
                **fusion,
            )
        )
    return Weights(
        get["embed"][:embed],
        get["class token"][:embed],
        get["position"][:, :embed],
        get["head"][:, :embed],
        layers,
        get["embed bias"][:embed],
        skips_fusion=draws.fusions == "released",
        supernet=draws.supernet,
    )


def _draw_layer(source: Source, index: int, sizes: tuple[int, int, int], tokens: int) -> Layer:
    """One layer of (E, heads, f); a matrix lies with E along its rows, so that slices nest."""
    embed, heads, hidden = sizes
    inner = heads * (embed // heads)
    fusion = _draw_fusion(source, index, tokens) if index >= 2 else {}

    def stacked() -> Tensor:
        return torch.cat([source.normal(f"{index} {name}", inner, embed) for name in "qkv"])

    return Layer(
        source.once((index, inner, embed), stacked),
        source.normal(f"{index} proj", inner, embed).T,
        source.normal(f"{index} fc1", hidden, embed),
        source.normal(f"{index} fc2", hidden, embed).T,
        heads,
        **fusion,
    )


def _draw_fusion(source: Source, index: int, tokens: int) -> dict[str, Tensor]:
    bound = (2 * tokens) ** -0.5

    def drawn(name: str, *size: int) -> Tensor:
        name = f"{index} {name}"
        return source.once(name, lambda: source.uniform(name, *size) * bound)

    return {
        "fusion": drawn("fusion", 2, tokens, tokens),
        "fusion_bias": drawn("fusion bias", tokens),
    }
