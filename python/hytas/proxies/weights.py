"""Initial weights of many networks at the price of one: slices of a supernet that the seed fixes.

Nothing is generated per network and next to nothing copied, and two networks differ in their
genes, not in luck: what they share starts with the same weights, as in the HyTAS paper, which
slices every network out of one supernet. Weights of their own for every architecture
(`init="own"`) are there to measure what that is worth (docs/proxies.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from hytas.proxies.baselines import params
from hytas.proxies.keys import architecture_key, stable_hash
from hytas.proxies.released import ReleasedSupernet, bands_together, check_fits

INITS = ("supernet", "own", "released")
FUSIONS = ("shipped", "released")
RELEASED_DEPTH = 10  # of the supernet whose fusions the released code runs in every network
CHUNK = 1 << 20  # draws of a stream generated together; a network's own run starts in the first
SMALL_CHUNK = 1 << 14  # the same, of a tensor of its own
ROWS, WIDTH = 64, 256  # rows of a supernet matrix generated together, and its least width
NOISE = 0.05  # size of CRoZe's perturbation over that of what it perturbs
DEVIATION = 0.02  # of tokens, positions and linear maps, as the shipped network initialises them


class Pool:
    """Draws of a seed, each a function of (seed, name, place), whatever was asked before.

    They are made on the CPU whatever the device, so that weights never depend on the device.
    """

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self.seed = seed
        self.device, self.dtype = device, dtype
        self.place = (device, dtype)
        self.norms: dict[Hashable, Tensor] = {}  # nuclear norms of slices, by their key
        self._made: dict[str, Tensor] = {}
        self._released: dict[str, Tensor] | None = None
        self._lock = threading.Lock()

    def stream(self, name: str, length: int, block: int = CHUNK) -> Tensor:
        """At least `length` draws: normal if the name says so, uniform in -1..1 if not.

        A name is always asked for with the same `block`, the draws made together.
        """
        have = self._made.get(name)
        if have is None or have.numel() < length:
            self._made[name] = have = self._grown(name, have, -(-length // block), block)
        return have

    def matrix(self, name: str, rows: int, columns: int, law: str = "normal") -> Tensor:
        """The first rows and columns of a supernet's matrix of "normal" or "uniform" draws."""
        width = max(WIDTH, 1 << (columns - 1).bit_length())
        name = f"{law} {name} {width}"
        have = self._made.get(name)
        if have is None or len(have) < max(rows, 1):
            have = self._grown(name, have, -(-max(rows, 1) // ROWS), ROWS * width).view(-1, width)
            self._made[name] = have
        return have[:rows, :columns]

    def _grown(self, name: str, have: Tensor | None, blocks: int, block: int) -> Tensor:
        """What there is of `name`, flat, and the blocks of draws that follow it."""
        flat = [] if have is None else [have.flatten()]
        first = 0 if have is None else have.numel() // block
        drawn = torch.cat([self._block(name, number, block) for number in range(first, blocks)])
        return torch.cat([*flat, drawn.to(self.device, self.dtype)])

    def released(self, shape: Any) -> dict[str, Tensor]:
        """The tensors of the supernet that the released HyTAS code draws (released.py)."""
        with self._lock:
            if self._released is None:
                tensors = ReleasedSupernet(shape, self.seed).tensors
                tensors["embed"] = bands_together(tensors["embed"], shape)
                self._released = {name: t.to(*self.place) for name, t in tensors.items()}
        return self._released

    def _block(self, name: str, number: int, size: int) -> Tensor:
        generator = torch.Generator().manual_seed(stable_hash(self.seed, name, number) >> 1)
        draws = torch.empty(size)
        if name.startswith("normal"):
            return draws.normal_(0.0, DEVIATION, generator=generator)
        return draws.uniform_(-1.0, 1.0, generator=generator)


class Memo:
    """What the networks of a group have in common, made once."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Tensor] = {}

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """The tensor of this key, made the first time that it is asked for."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


class _Source(Protocol):
    """Where a network's weights come from."""

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor: ...

    def normal(self, name: str, rows: int, columns: int) -> Tensor: ...

    def uniform(self, name: str, *size: int) -> Tensor: ...


class _Supernet:
    """Slices of the seed's supernet, by the name of the tensor."""

    def __init__(self, pool: Pool, prefix: str, memo: Memo) -> None:
        self.pool, self.prefix, self.memo = pool, prefix, memo

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        return self.memo.once((self.prefix, key), make)

    def normal(self, name: str, rows: int, columns: int) -> Tensor:
        return self.pool.matrix(self.prefix + name, rows, columns)

    def uniform(self, name: str, *size: int) -> Tensor:
        count = prod(size)
        return self.pool.stream(self.prefix + name, count, SMALL_CHUNK)[:count].view(size)


class _Own:
    """Consecutive tensors of a run of draws that starts where the architecture says."""

    def __init__(self, pool: Pool, key: str, length: int) -> None:
        self.pool, self.length = pool, length
        names = ("normal", "uniform")
        self.at = {name: stable_hash(pool.seed, name, key) % CHUNK for name in names}

    def once(self, _: Hashable, make: Callable[[], Tensor]) -> Tensor:
        return make()

    def _take(self, name: str, size: tuple[int, ...]) -> Tensor:
        start = self.at[name]
        self.at[name] = start + prod(size)
        return self.pool.stream(name, CHUNK + self.length)[start : self.at[name]].view(size)

    def normal(self, name: str, rows: int, columns: int) -> Tensor:
        return self._take("normal", (rows, columns))

    def uniform(self, name: str, *size: int) -> Tensor:
        return self._take("uniform", size)


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
OUTER_TENSORS = ("embed", "class_token", "position", "head")


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

    def signed(self, mode: str) -> Weights:
        """The network after the sign step: |w| in place of w.

        Args:
            mode: "none"; "weights", every tensor; "released", only what the released HyTAS code
                reached: cross-layer fusion, positions and class token.
        """
        if mode == "none":
            return self
        supernet = self.supernet and f"{self.supernet} {mode}"
        names = {"class_token", "position", "fusion", "fusion_bias"}
        every = mode == "weights"
        outer = {n: getattr(self, n).abs() for n in OUTER_TENSORS if every or n in names}
        if every and self.embed_bias is not None:
            outer["embed_bias"] = self.embed_bias.abs()
        layers = []
        for layer in self.layers:
            inner = {n: w.abs() for n, w in layer.tensors().items() if every or n in names}
            layers.append(replace(layer, **cast(Any, inner)))
        return replace(self, **cast(Any, outer), layers=layers, supernet=supernet)

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


@dataclass(frozen=True)
class Draws:
    """How an architecture gets its draws.

    Attributes:
        init: "supernet", slices of the seed's supernet; "own", a run of its own; "released",
            slices of the supernet that the released HyTAS code draws (released.py).
        fusions: "shipped", cross-layer fusion before every layer from the third on; "released", as
            the released HyTAS code, which goes on fusing up to layer 10 whatever the depth, each
            time with what entered two layers before, not yet fused itself.
    """

    pool: Pool
    init: str = INITS[0]
    fusions: str = FUSIONS[0]
    prefix: str = ""
    memo: Memo = field(default_factory=Memo)

    def of_group(self) -> Draws:
        """The same draws with a memory of their own, to be forgotten with the group."""
        return replace(self, memo=Memo())

    @property
    def supernet(self) -> str | None:
        """Name of what the weights are slices of; None where each network has its own."""
        return None if self.init == "own" else f"{self.init} {self.prefix}"

    def source(self, architecture: Mapping[str, Any], length: int) -> _Source:
        """The draws of one architecture that takes no more than `length`."""
        if self.init == "own":
            return _Own(self.pool, self.prefix + architecture_key(architecture), length)
        return _Supernet(self.pool, self.prefix, self.memo)


def perturbed_patches(patches: Tensor, pool: Pool) -> Tensor:
    """Patches (N, P, P, bands) with Gaussian noise of relative size `NOISE`, that of the seed."""
    noise = pool.stream("normal patches", patches.numel())[: patches.numel()]
    return moved(patches, noise.view_as(patches))


def moved(values: Tensor, noise: Tensor) -> Tensor:
    """`values` with noise of relative size `NOISE`."""
    scale: Tensor = NOISE * values.norm() / noise.norm()
    return values + noise * scale


def draw_weights(architecture: Mapping[str, Any], shape: Any, draws: Draws) -> Weights:
    """The initial weights of a HyTAS network, a function of (seed, architecture) alone.

    Args:
        architecture: genes embed_dim, num_heads, mlp_ratio.
        shape: the InputShape.
        draws: the seed's.

    Returns:
        Weights distributed as HyTAS initialises its network (the patch embedding too is normal of
        deviation 0.02, its bias zero); most are views.
    """
    if draws.init == "released":
        return _released_weights(architecture, shape, draws)
    embed, tokens = int(architecture["embed_dim"]), shape.tokens
    spare = RELEASED_DEPTH * (2 * tokens + 1) * tokens
    source = draws.source(architecture, int(params(architecture, shape, 0)) + spare)
    fan_in = shape.patch_size**2 * shape.band_group
    genes = zip(architecture["num_heads"], architecture["mlp_ratio"], strict=True)
    layers = [
        _draw_layer(source, index, (embed, heads, int(embed * ratio)), tokens)
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


def _draw_layer(source: _Source, index: int, sizes: tuple[int, int, int], tokens: int) -> Layer:
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


def _draw_fusion(source: _Source, index: int, tokens: int) -> dict[str, Tensor]:
    bound = (2 * tokens) ** -0.5

    def drawn(name: str, *size: int) -> Tensor:
        name = f"{index} {name}"
        return source.once(name, lambda: source.uniform(name, *size) * bound)

    return {
        "fusion": drawn("fusion", 2, tokens, tokens),
        "fusion_bias": drawn("fusion bias", tokens),
    }
