"""Networks on the meta device, which run with weights by name (`torch.func.functional_call`).

They share the modules of equal place and sizes, so that a network of a new architecture is built in
a fraction of the time that torch takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from hytas.models.blocks import NO_DROP
from hytas.models.layers import Initializer
from hytas.models.network import Network
from hytas.models.numberless import MadeTensor, without_numbers
from hytas.models.streams import initializer_of
from hytas.models.table import BUILT_IN, NETWORKS
from hytas.spaces import space_of
from hytas.spaces.shape import Shape

MOST_KNOWN = 1024  # modules that networks share


class Slot(NamedTuple):
    """A parameter of a network, and the module that reads it."""

    name: str
    size: torch.Size
    initializer: Initializer
    module: nn.Module


class Skeleton(NamedTuple):
    """A network on the meta device, in eval mode, which shares modules with others."""

    network: Network
    slots: list[Slot]


class Skeletons:
    """Networks of architectures without weights."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._made = MadeTensor()
        self._slots: dict[tuple[nn.Module, str], list[Slot]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to a worker, which finds out the rest."""
        return {**vars(Skeletons(self.shape))}

    def of(self, architecture: Mapping[str, Any]) -> Skeleton | None:
        """Return the network of an architecture, valid until the next one is built.

        None for one whose initial values are not those of `hytas.models.streams`.
        """
        if (space := space_of(architecture)) not in BUILT_IN:
            return None
        if self._made.forget(MOST_KNOWN):
            self._slots.clear()
        with without_numbers(self._made):
            network = NETWORKS[space](architecture, self.shape, NO_DROP)
        if not (isinstance(network, Network) and network.starts_by_streams):
            return None
        return Skeleton(network, self._slots_of(network))

    def _slots_of(self, module: nn.Module, path: str = "") -> list[Slot]:
        """Return the parameters of a module, which goes to eval mode; a shared one is read once."""
        if module.training:
            module.training = False
        slots: list[Slot] = []
        for name, parameter in module._parameters.items():
            if parameter is not None:
                initializer = initializer_of(module, name)
                assert initializer is not None
                slots.append(Slot(path + name, parameter.shape, initializer, module))
        for name, child in module._modules.items():
            if child is None:
                continue
            inner = f"{path}{name}."
            if child not in self._made.members:
                slots += self._slots_of(child, inner)
                continue
            if (child, inner) not in self._slots:
                self._slots[child, inner] = self._slots_of(child, inner)
            slots += self._slots[child, inner]
        return slots
