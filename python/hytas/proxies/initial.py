"""Initial weights of many networks at the price of one: slices of a pool that the seed fixes.

The pool holds every parameter at the size of the space's largest network. A network's parameters
are cut from it by `hytas.models.weight_sharing`, so two networks differ in their genes, not in
luck: what they share starts equal. The HyTAS paper does the same: it slices the initial weights of
a supernet.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from hytas.models.blocks import NO_DROP
from hytas.models.layers import DEVIATION, Initializer
from hytas.models.network import Network
from hytas.models.skeletons import Skeletons, Slot
from hytas.models.table import NETWORKS, build_network, check_data
from hytas.models.weight_sharing import THIRDS, full_sizes, rules_of, slice_of
from hytas.proxies.kinds import linear_weights
from hytas.spaces.keys import architecture_key, stable_hash
from hytas.spaces.names import space_of
from hytas.spaces.shape import Shape

STREAM = 1 << 14  # draws of a parameter of one axis that are made together
ROWS, COLUMNS = 64, 256  # of a matrix, that are drawn together
CUT_BYTES = 1 << 27
NOISE = 0.05  # relative size of CRoZe's perturbation

_Values = dict[str, Tensor]
"""Name of a parameter -> its tensor."""


class DrawnPool:
    """Draws from standard distributions, by the name of a parameter.

    A draw depends on the seed, the name and its place in the parameter. It depends neither on
    earlier draws nor on the device: draws are made on the CPU.

    Attributes:
        norms: nuclear norms of weights that several networks share, by their key in
            `InitialNetwork.keys` and the sign step.
        cuts: parameters that several networks share, by `InitialSource.key`; as many as fit
            `CUT_BYTES`.
    """

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self.seed, self.device, self.dtype = seed, device, dtype
        self.norms: dict[Hashable, Tensor] = {}
        self.cuts: dict[Hashable, Tensor] = {}
        self.cut_bytes = 0
        self._made: dict[Hashable, Tensor] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a worker, without cached draws."""
        return {**vars(self), "norms": {}, "cuts": {}, "cut_bytes": 0, "_made": {}}

    def draws(self, name: str, initializer: str, size: Sequence[int], parts: int = 1) -> Tensor:
        """Return the draws of a full-size parameter.

        Args:
            initializer: "normal", of deviation `DEVIATION`, or "uniform" in -1..1.
            size: its shape. A larger matrix has the same leading rows and columns.
            parts: in which the rows of a matrix are drawn, each like a matrix of its own.
        """
        key = (name, initializer, tuple(size))
        if key not in self._made:
            axes = list(size)
            while len(axes) > 1 and axes[0] == 1:
                axes = axes[1:]
            if len(axes) == 2:
                names = [f"{name} {part} {COLUMNS}" for part in range(parts)]
                values = torch.cat(
                    [self._matrix(each, initializer, axes[0] // parts, axes[1]) for each in names]
                )
            else:
                values = self._blocks(name, initializer, prod(axes), STREAM)
            self._made[key] = values.reshape(*size).to(self.device, self.dtype)
        return self._made[key]

    def perturbed(self, patches: Tensor) -> Tensor:
        """Return patches (N, P, P, bands) with Gaussian noise of relative size `NOISE`."""
        noise = self.draws("patches", "normal", [patches.numel()]).view_as(patches)
        scale: Tensor = NOISE * patches.norm() / noise.norm()
        return patches + noise * scale

    def _matrix(self, name: str, initializer: str, rows: int, columns: int) -> Tensor:
        """Draw (rows, columns), `COLUMNS` columns at a time."""
        strips = []
        for start in range(0, columns, COLUMNS):
            strip = f"{name} from {start}" if start else name
            values = self._blocks(strip, initializer, rows * COLUMNS, ROWS * COLUMNS)
            strips.append(values.view(rows, COLUMNS))
        return torch.cat(strips, dim=1)[:, :columns]

    def _blocks(self, name: str, initializer: str, length: int, block: int) -> Tensor:
        """Draw `length` numbers, `block` at a time, every block from a seed of its own."""
        values = []
        for number in range(-(-max(length, 1) // block)):
            seed = stable_hash(self.seed, f"{initializer} {name}", number) >> 1
            generator = torch.Generator().manual_seed(seed)
            numbers = torch.empty(block, dtype=torch.float32)
            if initializer == "normal":
                numbers.normal_(0.0, DEVIATION, generator=generator)
            else:
                numbers.uniform_(-1.0, 1.0, generator=generator)
            values.append(numbers)
        return torch.cat(values)[:length]


@dataclass(frozen=True)
class InitialSource:
    """The source of the parameters of one network.

    Attributes:
        full: name -> size of the parameter in the largest network; the size of this network where
            the name is missing.
    """

    pool: DrawnPool
    full: Mapping[str, torch.Size]
    space: str = ""

    def value(self, name: str, size: torch.Size, initializer: Initializer) -> Tensor:
        """Return the initial value of a parameter."""
        if initializer.name == "constant":
            return torch.full(
                size, initializer.scale, device=self.pool.device, dtype=self.pool.dtype
            )
        unit = DEVIATION if initializer.name == "normal" else 1.0
        values = self._cut(f"module {name}", name, initializer.name, size)
        return values if initializer.scale == unit else values * (initializer.scale / unit)

    def key(self, slot: Slot) -> Hashable:
        """Return a key of the initial value of a parameter in the pool."""
        return self.space, slot.name, slot.size, slot.initializer

    def cached(self, slot: Slot) -> Tensor:
        """Return the initial value of a parameter, which the pool keeps for other networks."""
        pool, key = self.pool, self.key(slot)
        value = pool.cuts.get(key)
        if value is None:
            if pool.cut_bytes > CUT_BYTES:
                pool.cuts, pool.cut_bytes = {}, 0
            value = pool.cuts[key] = self.value(slot.name, slot.size, slot.initializer)
            pool.cut_bytes += value.nbytes
        return value

    def noise(self, name: str, size: torch.Size) -> Tensor:
        """Return Gaussian noise for a parameter."""
        return self._cut(f"noise module {name}", name, "normal", size)

    def _cut(self, label: str, name: str, initializer: str, size: torch.Size) -> Tensor:
        # Genes outside the space's lists may need more than its largest network has.
        full = torch.Size(map(max, self.full.get(name, size), size))
        parts = 3 if THIRDS in rules_of(name, len(size)) else 1
        return slice_of(name, self.pool.draws(label, initializer, full, parts), size)


@dataclass(frozen=True)
class InitialNetwork:
    """A network and its initial weights.

    Attributes:
        network: in eval mode; its own parameters are not used.
        values: name -> tensor, for every parameter; not to be changed.
        source: of the parameters.
        slots: of the parameters; empty for a network that `Skeletons` does not build.
        keys: name -> key of the value in a pool that other networks share.
    """

    network: nn.Module
    values: _Values
    source: InitialSource
    slots: Sequence[Slot] = ()
    keys: Mapping[str, Hashable] = field(default_factory=dict)

    def signed(self, sign: str) -> _Values:
        """Return the values after the sign step.

        Args:
            sign: "weights" takes |w| of every parameter, "released" |w| of the parameters that are
                not weights of linear layers, "none" leaves all as they are.
        """
        if sign == "none":
            return self.values
        unsigned = linear_weights(self.network) if sign == "released" else frozenset[str]()
        return {n: value if n in unsigned else value.abs() for n, value in self.values.items()}

    def perturbed(self, values: _Values) -> _Values:
        """Return `values` with noise on every weight of a linear layer."""
        noisy = linear_weights(self.network) & values.keys()
        return values | {name: self._noisy(name, values[name]) for name in noisy}

    def _noisy(self, name: str, value: Tensor) -> Tensor:
        noise = self.source.noise(name, value.shape)
        return value + noise * (NOISE * value.square().sum().sqrt() / noise.square().sum().sqrt())


def start_of(
    architecture: Mapping[str, Any],
    shape: Shape,
    pool: DrawnPool,
    skeletons: Skeletons | None = None,
) -> InitialNetwork:
    """Return the network of an architecture, and its initial weights.

    A network that does not name the initializers of all its parameters (`Network.initializers`), or
    that has buffers, keeps its own initial values, from the seed and the architecture.

    Args:
        architecture: genes, and the space.
        skeletons: of this shape, a cache for several calls.
    """
    # A pretreatment has no weight that learns, and leaves nothing of an input of ones.
    architecture = {name: gene for name, gene in architecture.items() if name != "pretreatment"}
    space = space_of(architecture)
    check_data(space, shape)
    source = InitialSource(pool, full_sizes(space, shape), space)
    skeleton = (Skeletons(shape) if skeletons is None else skeletons).of(architecture)
    if skeleton is None:
        return _as_built(architecture, shape, source)
    values = {slot.name: source.cached(slot) for slot in skeleton.slots}
    keys = {slot.name: source.key(slot) for slot in skeleton.slots}
    return InitialNetwork(skeleton.network, values, source, skeleton.slots, keys)


def _as_built(
    architecture: Mapping[str, Any], shape: Shape, source: InitialSource
) -> InitialNetwork:
    """Build a network of any class; without named initializers it keeps its own initial values."""
    space, pool = space_of(architecture), source.pool
    network = _on_meta_device(space, architecture, shape)
    if network is not None:
        initializers, parameters = network.initializers(), network.named_parameters()
        values = {name: source.value(name, p.shape, initializers[name]) for name, p in parameters}
        return InitialNetwork(network, values, source)
    seed = stable_hash(pool.seed, architecture_key(architecture)) >> 1
    own = build_network(architecture, shape, seed=seed)
    own = own.eval().requires_grad_(False).to(pool.device, pool.dtype)
    values = {name: parameter.detach() for name, parameter in own.named_parameters()}
    return InitialNetwork(own, values, InitialSource(pool, {}))


def _on_meta_device(space: str, architecture: Mapping[str, Any], shape: Shape) -> Network | None:
    """Build a network on the meta device; None if it does not name all initializers."""
    try:
        with torch.device("meta"):
            network = NETWORKS[space](architecture, shape, NO_DROP).eval().requires_grad_(False)
    except (RuntimeError, TypeError):  # a constructor that reads values, or wrong genes
        return None
    if not isinstance(network, Network) or list(network.buffers()):
        return None
    names = {name for name, _ in network.named_parameters()}
    return network if network.initializers().keys() == names else None
