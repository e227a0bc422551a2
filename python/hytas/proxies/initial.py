"""Initial weights of many networks at the price of one: slices of a pool that the seed fixes.

The pool holds every parameter at the size of the space's largest network. A network's parameters
are cut from it by `hytas.models.slices`, so two networks differ in their genes, not in luck: what
they share starts equal. The HyTAS paper does the same: it slices the initial weights of a supernet.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from hytas.models.blocks import NO_DROP
from hytas.models.layers import DEVIATION, Law
from hytas.models.network import Network
from hytas.models.slices import THIRDS, full_sizes, rules_of, slice_of
from hytas.models.table import NETWORKS, build_network, check_data
from hytas.proxies.kinds import linear_weights
from hytas.spaces.keys import architecture_key, stable_hash
from hytas.spaces.names import space_of
from hytas.spaces.shape import Shape

INITS = ("pool", "own")
STREAM = 1 << 14  # draws of a parameter of one axis that are made together
ROWS, COLUMNS = 64, 256  # of a matrix, that are drawn together
NOISE = 0.05  # size of CRoZe's perturbation over that of what it perturbs

Values = dict[str, Tensor]
"""Name of a parameter -> its tensor."""


class Pool:
    """Draws of standard laws, by the name of a parameter.

    A draw depends on the seed, the name and its place in the parameter. It does not depend on what
    was asked for before, nor on the device: draws are made on the CPU.

    Args:
        seed: of every draw.
        device: of the tensors.
        dtype: of the tensors.

    Attributes:
        norms: nuclear norms of weights that several networks have, by `Tap.key`.
    """

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self.seed, self.device, self.dtype = seed, device, dtype
        self.norms: dict[Hashable, Tensor] = {}
        self._made: dict[Hashable, Tensor] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to a worker, which draws for itself."""
        return {**vars(self), "norms": {}, "_made": {}}

    def draws(self, name: str, law: str, size: Sequence[int], parts: int = 1) -> Tensor:
        """Return the draws of a full-size parameter.

        Args:
            name: of the parameter.
            law: "normal", of deviation `DEVIATION`, or "uniform" in -1..1.
            size: its shape. A larger matrix has the same leading rows and columns.
            parts: in which the rows of a matrix are drawn, each like a matrix of its own.
        """
        key = (name, law, tuple(size))
        if key not in self._made:
            axes = list(size)
            while len(axes) > 1 and axes[0] == 1:
                axes = axes[1:]
            if len(axes) == 2:
                names = [f"{name} {part} {COLUMNS}" for part in range(parts)]
                drawn = torch.cat(
                    [self._matrix(each, law, axes[0] // parts, axes[1]) for each in names]
                )
            else:
                drawn = self._blocks(name, law, prod(axes), STREAM)
            self._made[key] = drawn.reshape(*size).to(self.device, self.dtype)
        return self._made[key]

    def perturbed(self, patches: Tensor) -> Tensor:
        """Return patches (N, P, P, bands) with Gaussian noise of relative size `NOISE`."""
        noise = self.draws("patches", "normal", [patches.numel()])
        return _with_noise(patches, noise.view_as(patches))

    def _matrix(self, name: str, law: str, rows: int, columns: int) -> Tensor:
        """Draw (rows, columns), `COLUMNS` columns at a time."""
        strips = []
        for start in range(0, columns, COLUMNS):
            strip = f"{name} from {start}" if start else name
            drawn = self._blocks(strip, law, rows * COLUMNS, ROWS * COLUMNS)
            strips.append(drawn.view(rows, COLUMNS))
        return torch.cat(strips, dim=1)[:, :columns]

    def _blocks(self, name: str, law: str, length: int, block: int) -> Tensor:
        """Draw `length` numbers, `block` at a time, every block from a seed of its own."""
        drawn = []
        for number in range(-(-max(length, 1) // block)):
            seed = stable_hash(self.seed, f"{law} {name}", number) >> 1
            generator = torch.Generator().manual_seed(seed)
            numbers = torch.empty(block, dtype=torch.float32)
            if law == "normal":
                numbers.normal_(0.0, DEVIATION, generator=generator)
            else:
                numbers.uniform_(-1.0, 1.0, generator=generator)
            drawn.append(numbers)
        return torch.cat(drawn)[:length]


def _with_noise(values: Tensor, noise: Tensor) -> Tensor:
    """Add noise, scaled to the relative size `NOISE`."""
    scale: Tensor = NOISE * values.norm() / noise.norm()
    return values + noise * scale


@dataclass(frozen=True)
class Source:
    """Where the parameters of one network are cut from.

    Attributes:
        pool: draws.
        full: name -> size of the parameter in the largest network; one that is missing is drawn at
            the size of this network.
    """

    pool: Pool
    full: Mapping[str, torch.Size]

    def value(self, name: str, size: torch.Size, law: Law) -> Tensor:
        """Return the initial value of a parameter."""
        if law.name == "constant":
            return torch.full(size, law.scale, device=self.pool.device, dtype=self.pool.dtype)
        unit = DEVIATION if law.name == "normal" else 1.0
        drawn = self._cut(f"module {name}", name, law.name, size)
        return drawn if law.scale == unit else drawn * (law.scale / unit)

    def noisy(self, name: str, value: Tensor) -> Tensor:
        """Return a parameter's value with noise of relative size `NOISE`."""
        return _with_noise(value, self._cut(f"noise module {name}", name, "normal", value.shape))

    def _cut(self, label: str, name: str, law: str, size: torch.Size) -> Tensor:
        # Genes off the space's list may ask for more than its largest network has.
        full = torch.Size(map(max, self.full.get(name, size), size))
        parts = 3 if THIRDS in rules_of(name, len(size)) else 1
        return slice_of(name, self.pool.draws(label, law, full, parts), size)


@dataclass(frozen=True)
class Start:
    """A network and its initial weights.

    Attributes:
        network: in eval mode; its own parameters are not used.
        values: name -> tensor, for every parameter; not to be changed.
        source: where they are cut from.
        shared: name -> law of the parameters that other networks cut from the same pool.
    """

    network: nn.Module
    values: Values
    source: Source
    shared: Mapping[str, Law]

    def signed(self, sign: str) -> Values:
        """Return the values after the sign step.

        Args:
            sign: "weights" takes |w| of every parameter, "released" |w| of the parameters that are
                not weights of linear layers, "none" leaves all as they are.
        """
        if sign == "none":
            return self.values
        kept = linear_weights(self.network) if sign == "released" else frozenset[str]()
        return {n: value if n in kept else value.abs() for n, value in self.values.items()}

    def perturbed(self, values: Values) -> Values:
        """Return `values` with noise on every weight of a linear layer."""
        noisy = linear_weights(self.network) & values.keys()
        return values | {name: self.source.noisy(name, values[name]) for name in noisy}

    def key_of(self, name: str, sign: str) -> Hashable | None:
        """Return a key of a signed value: equal keys, equal values; None if nobody shares it."""
        law = self.shared.get(name)
        return None if law is None else (name, sign, law, self.values[name].shape)


def start_of(
    architecture: Mapping[str, Any], shape: Shape, pool: Pool, init: str = INITS[0]
) -> Start:
    """Return the network of an architecture of any space, and its initial weights.

    A network that does not name the laws of all its parameters (`Network.laws`), or has buffers,
    starts as it initialises itself, from the seed and the architecture.

    Args:
        architecture: genes, and the space.
        shape: what the scene fixes.
        pool: draws of the seed.
        init: "pool", slices of the pool; "own", draws of the architecture's own.

    Raises:
        InputError: no network belongs to the architecture's space.
    """
    space, pooled = space_of(architecture), init == "pool"
    check_data(space, shape)
    if not pooled:
        seed = stable_hash(pool.seed, "own", architecture_key(architecture))
        pool = Pool(seed, pool.device, pool.dtype)
    network = _without_numbers(space, architecture, shape)
    if network is None:
        return _self_initialised(architecture, shape, pool)
    laws = network.laws()
    source = Source(pool, full_sizes(space, shape) if pooled else {})
    parameters = network.named_parameters()
    values = {name: source.value(name, p.shape, laws[name]) for name, p in parameters}
    return Start(network, values, source, laws if pooled else {})


def _without_numbers(space: str, architecture: Mapping[str, Any], shape: Shape) -> Network | None:
    """Build a network on the meta device; None if laws do not tell all its numbers."""
    if space not in NETWORKS:
        return None
    try:
        with torch.device("meta"):
            network = NETWORKS[space](architecture, shape, NO_DROP).eval().requires_grad_(False)
    except (RuntimeError, TypeError):  # of a constructor that reads its numbers, or of bad genes
        return None
    if not isinstance(network, Network) or list(network.buffers()):
        return None
    names = {name for name, _ in network.named_parameters()}
    return network if network.laws().keys() == names else None


def _self_initialised(architecture: Mapping[str, Any], shape: Shape, pool: Pool) -> Start:
    """Build a network that draws its own weights, from the pool's seed and the architecture."""
    seed = stable_hash(pool.seed, architecture_key(architecture)) >> 1
    network = build_network(architecture, shape, seed=seed)
    network = network.eval().requires_grad_(False).to(pool.device, pool.dtype)
    values = {name: parameter.detach() for name, parameter in network.named_parameters()}
    return Start(network, values, Source(pool, {}), {})
