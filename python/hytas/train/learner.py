"""What a training trains: weights by name, and the networks that use them in each step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Protocol, Self

import torch
from torch import Tensor, nn
from torch.func import functional_call

from hytas.errors import InputError
from hytas.models import whiten_embedding
from hytas.models.weight_sharing import slice_of

Weights = dict[str, Tensor]
"""Name of a parameter -> its tensor."""


@dataclass(frozen=True, eq=False)
class Subnet:
    """A plain network that runs with slices of given weights, not with its own.

    Attributes:
        network: whose own parameters are not used, unless they are the given weights.
        sizes: name -> size of each of its parameters.
    """

    network: nn.Module
    sizes: Mapping[str, torch.Size]

    @classmethod
    def of(cls, network: nn.Module) -> Self:
        """Return the subnet that a network is."""
        return cls(network, {name: p.shape for name, p in network.named_parameters()})

    def cut(self, weights: Mapping[str, Tensor]) -> Weights:
        """Return the network's parameters, cut from larger ones of the same names.

        Raises:
            InputError: a parameter is missing, or has no such slice.
        """
        cut_weights: Weights = {}
        for name, size in self.sizes.items():
            if name not in weights:
                raise InputError(name, rule="the given weights have no such parameter")
            full = weights[name]
            cut_weights[name] = full if full.shape == size else slice_of(name, full, size)
        return cut_weights

    def __call__(self, weights: Mapping[str, Tensor], patches: Tensor) -> Tensor:
        """Return the logits (N, C) for scaled patches (N, P, P, bands)."""
        if all(weights.get(name) is value for name, value in self._own.items()):
            logits: Tensor = self.network(patches)
        else:
            logits = functional_call(self.network, self.cut(weights), (patches,))
        return logits

    @cached_property
    def _own(self) -> Weights:
        return dict(self.network.named_parameters())


class Learner(Protocol):
    """What the training loop trains."""

    @property
    def weights(self) -> Weights:
        """Name -> parameter, changed in place by the training."""

    @property
    def buffers(self) -> Weights:
        """Name -> buffer that a step changes as well, such as the mean of a batch normalisation."""

    def prepare(self, patches: Tensor, seed: int) -> None:
        """Let the weights start from scaled training patches (n, P, P, bands), if the recipe is
        whitened."""

    def subnets(self, epoch: int, steps: int) -> Iterator[Sequence[Subnet]]:
        """Yield the networks of each of the steps of an epoch, counted from 0; a function of the
        seed and the epoch."""

    def watched(self) -> Sequence[Subnet]:
        """Return the networks that are evaluated after each epoch."""

    def initial(self, name: str, size: torch.Size, subnet: Subnet) -> Tensor:
        """Return the initial value of a parameter that `subnet` needs and `weights` lack in this
        size."""

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Make these the weights and the buffers.

        Raises:
            ValueError: they are not weights of this learner.
        """


class OneNetwork:
    """A network that is trained alone.

    Args:
        network: its parameters are what is trained.
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self._weights: Weights = dict(network.named_parameters())
        kept = network.state_dict().keys()
        self._buffers = {name: one for name, one in network.named_buffers() if name in kept}
        self._subnets = [Subnet.of(network)]

    @property
    def weights(self) -> Weights:
        """The network's own parameters."""
        return self._weights

    @property
    def buffers(self) -> Weights:
        """The network's own buffers that its state holds."""
        return self._buffers

    def prepare(self, patches: Tensor, seed: int) -> None:
        """Whiten the network's pixel embedding."""
        whiten_embedding(self.network, patches, seed)

    def subnets(self, epoch: int, steps: int) -> Iterator[Sequence[Subnet]]:
        """Yield the network, for each step."""
        return repeat(self._subnets, steps)

    def watched(self) -> Sequence[Subnet]:
        """Return the network."""
        return self._subnets

    def initial(self, name: str, size: torch.Size, subnet: Subnet) -> Tensor:
        """Raise: a network lacks none of its own parameters."""
        raise InputError(name, rule=f"{tuple(size)} is no size of this network's")

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights and buffers into the network."""
        whole = self.weights | self.buffers
        if weights.keys() != whole.keys():
            other = sorted(weights.keys() ^ whole.keys())
            raise ValueError(f"names differ: {other[0]}")
        for name, own in whole.items():
            if weights[name].shape != own.shape:
                raise ValueError(
                    f"size mismatch of {name}: {tuple(weights[name].shape)}, not {tuple(own.shape)}"
                )
        with torch.no_grad():
            for name, own in whole.items():
                own.copy_(weights[name])
