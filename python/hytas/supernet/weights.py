"""A supernet: one set of weights by name, of which every network is a slice (entanglement)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models.blocks import NO_DROP, Drop
from hytas.models.network import Network
from hytas.models.table import NETWORKS
from hytas.models.weight_sharing import full_sizes
from hytas.proxies import check_architecture
from hytas.proxies.initial import DrawnPool, InitialSource
from hytas.spaces import space_of
from hytas.spaces.shape import Shape, shape_from_dict
from hytas.tensors import TENSOR_CHECKSUM, read_tensors, write_tensors
from hytas.train import Subnet, Weights
from hytas.train.slicing import cut, put

FORMAT = "hytas-supernet"
VERSION = 1
CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Supernet:
    """Weights that all networks of a search space share (Chen et al., AutoFormer, ICCV 2021).

    Only the part that a training used is kept. The rest has its initial value, a slice of the
    pool that the seed fixes (`hytas.proxies.initial`), so the supernet is as large as the largest
    network of the space, whatever is kept.

    Attributes:
        seed: of the initial values.
        weights: name -> the part of a parameter that is kept.
        facts: what else its file says, JSON-ready: how it was trained, and on what.
        digest: of its file, in hex; empty if it was not read from one.
    """

    space: str
    shape: Shape
    seed: int
    weights: Weights
    facts: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    device: torch.device = CPU

    @classmethod
    def new(
        cls, space: str, shape: Shape, seed: int, device: torch.device | str = "cpu"
    ) -> Supernet:
        """Return an untrained supernet, which keeps nothing yet."""
        return cls(space, shape, seed, {}, device=torch.device(device))

    def to(self, device: torch.device) -> Supernet:
        """Return the same supernet with its weights on a device."""
        weights = {name: weight.to(device) for name, weight in self.weights.items()}
        return replace(self, weights=weights, device=device)

    @cached_property
    def _source(self) -> InitialSource:
        pool = DrawnPool(self.seed, self.device, torch.float32)
        return InitialSource(pool, full_sizes(self.space, self.shape))

    def subnet(self, architecture: Mapping[str, Any], drop: Drop = NO_DROP) -> Subnet:
        """Return the network of an architecture, without numbers; `drop` is what training drops.

        Raises:
            InputError: the architecture is of another space, or its network cannot be sliced.
        """
        if (of := space_of(architecture)) != self.space:
            rule = f"is of the space {of}"
            hint = f"the supernet is of {self.space}"
            raise InputError("architecture", rule=rule, hint=hint)
        check_architecture(architecture)
        with torch.device("meta"):
            network = NETWORKS[self.space](architecture, self.shape, drop)
        return Subnet.of(_sliceable(network, self.space).requires_grad_(False))

    def initial(self, name: str, size: torch.Size, subnet: Subnet) -> Tensor:
        """Return the initial value of a parameter of a subnet, in this size."""
        assert isinstance(subnet.network, Network)
        return self._source.value(name, size, subnet.network.initializers()[name]).clone()

    def values(self, subnet: Subnet) -> Weights:
        """Return the parameters of a subnet: tensors of its own, laid out as if built alone."""
        weights: Weights = {}
        for name, size in subnet.sizes.items():
            kept = self.weights.get(name)
            if kept is None or any(w > k for w, k in zip(size, kept.shape, strict=True)):
                kept = self._grown(name, kept, size, subnet)
            weights[name] = cut(name, kept, size).detach().contiguous()
        return weights

    def _grown(self, name: str, kept: Tensor | None, size: torch.Size, subnet: Subnet) -> Tensor:
        if kept is None:
            return self.initial(name, size, subnet)
        grown = self.initial(name, torch.Size(map(max, kept.shape, size)), subnet)
        put(name, grown, kept)
        return grown

    def network(self, architecture: Mapping[str, Any]) -> nn.Module:
        """Return the network of an architecture with inherited weights, in evaluation mode.

        Raises:
            InputError: as for `subnet`.
        """
        subnet = self.subnet(architecture)
        network = subnet.network.eval()
        values = {name: value.clone() for name, value in self.values(subnet).items()}
        network.load_state_dict(values, assign=True)
        return network

    def save(self, path: Path) -> None:
        """Write the supernet to a safetensors file, whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        facts = {
            "format": FORMAT,
            "version": VERSION,
            "space": self.space,
            "shape": self.shape.variables(),
            "seed": self.seed,
            **self.facts,
        }
        write_tensors(path, self.weights, facts)

    @classmethod
    def load(cls, path: Path) -> Supernet:
        """Read what `save` wrote.

        Raises:
            InputError: the file is missing, damaged, or no supernet of this hytas.
        """
        if not path.is_file():
            raise InputError(path, rule="no such file", hint="`hytas supernet train` writes it")
        facts, weights = read_tensors(path)
        if facts.get("format") != FORMAT:
            raise InputError(path, rule="not a supernet", hint="`hytas supernet train` writes one")
        if facts.get("version") != VERSION:
            raise InputError(
                path, rule=f"supernet of version {facts.get('version')}, this hytas reads {VERSION}"
            )
        with suppress(KeyError, TypeError, ValueError):
            space, shape = str(facts["space"]), shape_from_dict(facts["shape"])
            return cls(
                space, shape, int(facts["seed"]), weights, facts, str(facts[TENSOR_CHECKSUM])
            )
        raise InputError(path, rule="not a whole supernet: its header lacks space, shape or seed")


def _sliceable(network: nn.Module, space: str) -> Network:
    """Return a network whose every number is a slice of weights by name."""
    initializers = network.initializers() if isinstance(network, Network) else {}
    for name, _ in network.named_parameters():
        if name not in initializers:
            rule = f"its network cannot be sliced: `Network.initializers` lacks parameter {name}"
            raise InputError("space", space, rule)
    for name, _ in network.named_buffers():
        raise InputError("space", space, f"its network cannot be sliced: {name} is a buffer")
    assert isinstance(network, Network)
    return network
