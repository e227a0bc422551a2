"""Initial weights of many networks at the price of one: views into a shared pool of draws.

A network's weights are one contiguous run of a long stream of random numbers that the seed fixes;
where the run starts is fixed by the seed and the architecture. Within a network all draws are
independent, as in an initialisation of its own, and nothing is generated or copied per network.
(The HyTAS reference slices every network out of one supernet, which is the same idea.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod, sqrt
from typing import Any, cast

import torch
from torch import Tensor

from .baselines import params
from .keys import architecture_key, stable_hash

CHUNK = 1 << 20  # draws generated together; a run starts within the first chunk
NOISE = 0.05  # size of CRoZe's perturbation over that of what it perturbs
DEVIATION = 0.02  # of tokens, positions and linear maps, as the shipped network initialises them


class Pool:
    """Two endless streams of draws for a seed: normal (deviation 0.02) and uniform (-1..1).

    The streams are made on the CPU whatever the device, so that a score's weights never depend on
    the device, and grow chunk by chunk, so that they never depend on what was asked before.
    """

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self.seed = seed
        self.device, self.dtype = device, dtype
        self._streams: dict[str, Tensor] = {}

    def stream(self, kind: str, length: int) -> Tensor:
        """At least `length` draws of a stream: "uniform", or normal under any other name."""
        have = self._streams.get(kind)
        if have is None or have.numel() < length:
            chunks = range(-(-length // CHUNK))
            made = torch.cat([self._chunk(kind, number) for number in chunks])
            self._streams[kind] = have = made.to(self.device, self.dtype)
        return have

    def _chunk(self, kind: str, number: int) -> Tensor:
        generator = torch.Generator().manual_seed(stable_hash(self.seed, kind, number) >> 1)
        draws = torch.empty(CHUNK)
        if kind != "uniform":
            return draws.normal_(0.0, DEVIATION, generator=generator)
        return draws.uniform_(-1.0, 1.0, generator=generator)


@dataclass(frozen=True)
class Layer:
    """Weights of one transformer layer; (out, in) each. Biases start at zero and are left out."""

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
    """Weights of one network."""

    embed: Tensor  # (E, P * P * c)
    embed_bias: Tensor  # (E,)
    class_token: Tensor  # (E,)
    position: Tensor  # (T, E)
    head: Tensor  # (classes, E)
    layers: list[Layer] = field(default_factory=list)

    @property
    def embed_dim(self) -> int:
        """Width E of a token."""
        return self.position.shape[1]

    def signed(self, mode: str) -> Weights:
        """The network after the sign step: |w| in place of w.

        Args:
            mode: "none"; "weights", every tensor; "released", only what the released HyTAS code
                reached: cross-layer fusion, positions and class token.
        """
        if mode == "none":
            return self
        names = {"class_token", "position", "fusion", "fusion_bias"}
        every = mode == "weights"
        outer = {n: getattr(self, n).abs() for n in OUTER_TENSORS if every or n in names}
        layers = []
        for layer in self.layers:
            inner = {n: w.abs() for n, w in layer.tensors().items() if every or n in names}
            layers.append(replace(layer, **cast(Any, inner)))
        return replace(self, **cast(Any, outer), layers=layers)

    def perturbed(self, architecture: Mapping[str, Any], pool: Pool) -> Weights:
        """The network with Gaussian noise of relative size `NOISE` on every linear weight."""
        size = sum(w.numel() for w in (self.embed, self.head))
        size += sum(getattr(layer, n).numel() for layer in self.layers for n in LINEAR_TENSORS)
        run = _Run(pool, "noise" + architecture_key(architecture), size)

        def noisy(weight: Tensor) -> Tensor:
            noise = run.normal(*weight.shape)
            return _moved(weight, noise)

        layers = []
        for layer in self.layers:
            inner = {name: noisy(getattr(layer, name)) for name in LINEAR_TENSORS}
            layers.append(replace(layer, **cast(Any, inner)))
        return replace(self, embed=noisy(self.embed), head=noisy(self.head), layers=layers)


def perturbed_patches(patches: Tensor, pool: Pool) -> Tensor:
    """Patches (N, P, P, bands) with Gaussian noise of relative size `NOISE`, that of the seed."""
    noise = pool.stream("noise", patches.numel())[: patches.numel()].view_as(patches)
    return _moved(patches, noise)


def _moved(values: Tensor, noise: Tensor) -> Tensor:
    scale: Tensor = NOISE * values.norm() / noise.norm()
    return values + noise * scale


class _Run:
    """Hands out consecutive tensors of one network's run of the streams."""

    def __init__(self, pool: Pool, key: str, length: int) -> None:
        self.pool, self.length = pool, length
        self.at = {
            kind: stable_hash(pool.seed, kind, key) % CHUNK for kind in ("normal", "uniform")
        }

    def _take(self, kind: str, size: tuple[int, ...]) -> Tensor:
        start = self.at[kind]
        self.at[kind] = start + prod(size)
        return self.pool.stream(kind, CHUNK + self.length)[start : self.at[kind]].view(size)

    def normal(self, *size: int) -> Tensor:
        return self._take("normal", size)

    def uniform(self, bound: float, *size: int) -> Tensor:
        return self._take("uniform", size) * bound


def draw_weights(architecture: Mapping[str, Any], shape: Any, pool: Pool) -> Weights:
    """The initial weights of a HyTAS network, a function of (pool.seed, architecture) alone.

    Args:
        architecture: genes embed_dim, num_heads, mlp_ratio.
        shape: the InputShape.
        pool: the draws of the seed.

    Returns:
        Weights distributed as `SpectralTransformer` initialises its own; most are views of `pool`.
    """
    embed, tokens = int(architecture["embed_dim"]), shape.tokens
    run = _Run(pool, architecture_key(architecture), int(params(architecture, shape, 0)))
    fan_in = shape.patch_size**2 * shape.band_group
    layers = []
    genes = zip(architecture["num_heads"], architecture["mlp_ratio"], strict=True)
    for index, (heads, ratio) in enumerate(genes):
        inner, hidden = heads * (embed // heads), int(embed * ratio)
        fusion = {}
        if index >= 2:
            bound = 1.0 / sqrt(2 * tokens)
            fusion["fusion"] = run.uniform(bound, 2, tokens, tokens)
            fusion["fusion_bias"] = run.uniform(bound, tokens)
        layers.append(
            Layer(
                run.normal(3 * inner, embed),
                run.normal(embed, inner),
                run.normal(hidden, embed),
                run.normal(embed, hidden),
                heads,
                **fusion,
            )
        )
    return Weights(
        run.uniform(1.0 / sqrt(fan_in), embed, fan_in),
        run.uniform(1.0 / sqrt(fan_in), embed),
        run.normal(embed),
        run.normal(tokens, embed),
        run.normal(shape.classes, embed),
        layers,
    )
