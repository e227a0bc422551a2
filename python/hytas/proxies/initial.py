"""Initial weights of any network: the laws of its own initialisation, drawn from a supernet.

The network is built once with every random fill of a whole tensor noted down in place of being
drawn. A parameter so filled is then a slice, by its name, of one supernet that the seed fixes, as
weights.py does for HyTAS: nothing is generated per network, and networks differ in their genes,
not in luck. What the network sets to a constant keeps it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from hytas.errors import InputError
from hytas.models.shape import InputShape
from hytas.models.table import NETWORKS, build_network
from hytas.proxies.draws import DEVIATION, Draws, Pool, moved
from hytas.proxies.keys import architecture_key, stable_hash
from hytas.spaces import space_of

Values = dict[str, Tensor]
"""Name of a parameter -> its tensor."""

_RANDOM = {torch.ops.aten.normal_.default: "normal", torch.ops.aten.uniform_.default: "uniform"}
_BUILDING = threading.Lock()  # networks are built from the one global generator of torch


@dataclass(frozen=True)
class Law:
    """How a parameter is drawn: normal (mean, deviation) or uniform (least, largest)."""

    name: str
    first: float
    second: float

    @property
    def middle(self) -> float:
        """Its mean."""
        return self.first if self.name == "normal" else (self.first + self.second) / 2

    def scaled(self, draws: Tensor) -> Tensor:
        """Draws of the pool (normal of `DEVIATION`, or uniform in -1..1) made to follow the law."""
        factor = self.second / DEVIATION if self.name == "normal" else self.second - self.middle
        if factor == 1.0 and self.middle == 0.0:
            return draws
        return draws * factor + self.middle


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes random fills of whole tensors, and fills with their mean in their place.

    Attributes:
        laws: storage -> law of the fill.
        regular: whether nothing else was random, and nothing was made from what was filled.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.laws: dict[int, Law] = {}
        self.regular = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing here is compiled; to guard against it would import the compiler, for seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _RANDOM and _is_whole(args[0]):
            law = _law(_RANDOM[func], *args[1:], **kwargs)
            self.laws[_storage(args[0])] = law
            return args[0].fill_(law.middle)
        result = func(*args, **kwargs)
        touched = any(isinstance(a, Tensor) and _storage(a) in self.laws for a in args)
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.regular = False
        elif func._schema.is_mutable:
            self._overwritten(func, args, touched)
        elif _is_new(func, result):
            self.laws.pop(_storage(result), None)  # the address of one that is gone
            self.regular &= not touched
        return result

    def _overwritten(self, func: Any, args: tuple[Any, ...], touched: bool) -> None:
        constant = func in (torch.ops.aten.fill_.Scalar, torch.ops.aten.zero_.default)
        if constant and _is_whole(args[0]):
            self.laws.pop(_storage(args[0]), None)
        else:
            self.regular &= not touched


def _is_new(func: Any, result: Any) -> bool:
    """Whether an operation made numbers of its own, not a view."""
    made = isinstance(result, Tensor) and result.is_floating_point()
    return made and func._schema.returns[0].alias_info is None


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _is_whole(tensor: Tensor) -> bool:
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def _law(name: str, first: float | None = None, second: float = 1.0, **rest: Any) -> Law:
    low = rest.get("from", rest.get("mean", 0.0)) if first is None else first
    return Law(name, float(low), float(rest.get("to", rest.get("std", second))))


@dataclass(frozen=True)
class Blueprint:
    """A network and how its parameters start.

    Attributes:
        network: in eval mode; its parameters are to be set by `load`.
        constants: parameters that the initialisation leaves at fixed values, or that follow no law.
        laws: name and shape of the drawn ones, with their laws.
        draws: the seed's.
        linear: names of the weights of linear layers.
    """

    network: nn.Module
    constants: Values
    laws: Mapping[str, tuple[Law, torch.Size]]
    draws: Draws
    linear: frozenset[str] = field(default_factory=frozenset)

    def values(self, sign: str = "none") -> Values:
        """The initial weights, after the sign step: |w| of every parameter ("weights"), or of
        those outside linear layers ("released")."""
        found = dict(self.constants)
        for name, (law, shape) in self.laws.items():
            found[name] = law.scaled(_draw(self.draws, name, law, shape))
        if sign == "none":
            return found
        return {
            name: value if sign == "released" and name in self.linear else value.abs()
            for name, value in found.items()
        }

    def perturbed(self, values: Values) -> Values:
        """`values` with Gaussian noise of relative size `NOISE` on every linear weight."""
        noise = replace(self.draws, prefix="noise ")
        law = Law("normal", 0.0, DEVIATION)
        return {
            name: moved(value, _draw(noise, name, law, value.shape))
            if name in self.linear
            else value
            for name, value in values.items()
        }


def blueprint(architecture: Mapping[str, Any], shape: InputShape, draws: Draws) -> Blueprint:
    """The network of an architecture of any space, and how it starts.

    A network whose initialisation is not fills of whole tensors by constants, normal or uniform
    draws is initialised by itself, from (seed, architecture).

    Raises:
        InputError: no network belongs to the architecture's space, or `draws` are those of the
            released HyTAS code, which are of its space alone.
    """
    pool = draws.pool
    for name in ("init", "fusions"):
        if getattr(draws, name) == "released":
            raise InputError(
                f"{name} released: holds for hytas, not for {architecture.get('space')}"
            )
    if draws.init == "own":
        own = Pool(stable_hash(pool.seed, "own", architecture_key(architecture)), *pool.place)
        draws = replace(draws, pool=own, init="supernet")
    seed = stable_hash(pool.seed, architecture_key(architecture))
    network, laws = _build(architecture, shape, seed)
    network = network.eval().requires_grad_(False).to(*pool.place)
    drawn = {name: (laws[name], p.shape) for name, p in network.named_parameters() if name in laws}
    constants = {n: p.detach() for n, p in network.named_parameters() if n not in drawn}
    linear = {f"{name}.weight" for name, module in network.named_modules() if is_linear(module)}
    return Blueprint(network, constants, drawn, draws, frozenset(linear))


def is_linear(module: nn.Module) -> bool:
    """Whether the proxies see a module: a linear layer, or a convolution, which is a linear map of
    what it stacks, unless it has groups (a depthwise one only filters) or pads with more than
    zeros."""
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        padded = isinstance(module.padding, str) or module.padding_mode != "zeros"
        return module.groups == 1 and not padded
    return isinstance(module, nn.Linear)


def load(network: nn.Module, values: Values) -> None:
    """Set the parameters of a network; `values` are not copied, and must not be changed."""
    for name, parameter in network.named_parameters():
        parameter.data = values[name]


def _build(
    architecture: Mapping[str, Any], shape: InputShape, seed: int
) -> tuple[nn.Module, dict[str, Law]]:
    """A network, and the laws of its parameters; without any where they could not be told."""
    space = space_of(architecture)
    with _BUILDING:
        if space in NETWORKS:
            with _Watch() as watch:
                network = NETWORKS[space](architecture, shape, 0.0)
            if watch.regular:
                found = {n: watch.laws.get(_storage(p)) for n, p in network.named_parameters()}
                return network, {n: law for n, law in found.items() if law is not None}
        return build_network(architecture, shape, seed=seed >> 1), {}


def _draw(draws: Draws, name: str, law: Law, shape: torch.Size) -> Tensor:
    """Draws of the pool for a parameter: a slice of its supernet's.

    Matrices nest by row and column; query, key and value each by itself.
    """
    sizes = tuple(shape)
    while len(sizes) > 1 and sizes[0] == 1:
        sizes = sizes[1:]
    name = f"{draws.prefix}module {name}"
    if len(sizes) == 2:
        thirds = 3 if name.endswith("qkv.weight") and sizes[0] % 3 == 0 else 1
        parts = [
            draws.pool.matrix(f"{name} {part}", sizes[0] // thirds, sizes[1], law.name)
            for part in range(thirds)
        ]
        return (torch.cat(parts) if thirds > 1 else parts[0]).view(shape)
    count = prod(sizes)
    return draws.pool.stream(f"{law.name} {name}", count, SMALL)[:count].view(shape)


SMALL = 1 << 14  # draws of a stream generated together
