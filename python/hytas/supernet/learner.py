"""The subnets of a supernet that the training loop trains in each step."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from hytas._engine import Feasible
from hytas.errors import InputError
from hytas.models.blocks import NO_DROP, Drop
from hytas.models.network import as_network
from hytas.models.weight_sharing import full_sizes
from hytas.models.whitening import whitening
from hytas.spaces.keys import stable_hash
from hytas.supernet.settings import SupernetSettings
from hytas.supernet.weights import Supernet
from hytas.train import Subnet, Weights

WATCHED = 4
"""Subnets that validation pixels watch, after each epoch; their mean tells the best epoch."""
LOOKED_AT = 1000
"""Draws of which the largest and the smallest are those of the sandwich."""


class SupernetLearner:
    """Trains the weights of a supernet inside a budget.

    Args:
        drop: what training drops at random, as of a network that is trained alone.
    """

    def __init__(
        self,
        supernet: Supernet,
        feasible: Feasible,
        settings: SupernetSettings,
        *,
        seed: int,
        drop: Drop = NO_DROP,
    ) -> None:
        self.supernet, self.feasible, self.settings = supernet, feasible, settings
        self.seed, self.drop = seed, drop
        self._watched = [supernet.subnet(each) for each in self._draw("watched", WATCHED)]
        self._ends = self._largest_and_smallest() if settings.method == "sandwich" else []

    @property
    def weights(self) -> Weights:
        """The supernet's weights that are kept."""
        return self.supernet.weights

    @property
    def buffers(self) -> Weights:
        """None: networks of a space have no buffers that training changes."""
        return {}

    def prepare(self, patches: Tensor, seed: int) -> None:
        """Whiten the largest pixel embedding; those of subnets are slices of it."""
        others = map(self._subnet, self._draw("whitened", 64))
        for subnet in chain(self._watched, others):  # until one has a pixel embedding
            network = as_network(subnet.network, "recipe whitened")
            project = network.pixel_projection
            if project is None:
                continue
            names = {id(p): name for name, p in network.named_parameters()}
            weight, bias = names[id(project.weight)], names[id(project.bias)]
            largest = full_sizes(self.supernet.space, self.supernet.shape).get(weight)
            outputs = project.out_features if largest is None else largest[0]
            initial = whitening(patches, outputs, seed)
            if initial is not None:
                device = self.supernet.device
                self.weights[weight], self.weights[bias] = (each.to(device) for each in initial)
            return

    def subnets(self, epoch: int, steps: int) -> Iterator[Sequence[Subnet]]:
        """Yield the subnets of each step: one, or the largest, the smallest and two more."""
        each = 2 if self._ends else 1
        drawn = self._draw(f"epoch {epoch}", steps * each)
        for step in range(steps):
            chosen = drawn[step * each : (step + 1) * each]
            yield [*self._ends, *(self._subnet(architecture) for architecture in chosen)]

    def watched(self) -> Sequence[Subnet]:
        """Return a few subnets that the seed fixes."""
        return self._watched

    def initial(self, name: str, size: torch.Size, subnet: Subnet) -> Tensor:
        """Return the initial value of a parameter."""
        return self.supernet.initial(name, size, subnet)

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Make these the weights of the supernet.

        Raises:
            ValueError: a parameter has not as many axes as that of this supernet.
        """
        for name, own in full_sizes(self.supernet.space, self.supernet.shape).items():
            if name in weights and weights[name].ndim != len(own):
                raise ValueError(f"size mismatch of {name}: {tuple(weights[name].shape)}")
        # A copy, as `weights` may be the same mapping.
        taken = dict(weights)
        self.weights.clear()
        self.weights.update(taken)

    def _subnet(self, architecture: Mapping[str, Any]) -> Subnet:
        return self.supernet.subnet(architecture, self.drop)

    def _draw(self, what: str, count: int) -> list[dict[str, Any]]:
        seed = stable_hash(self.seed, "subnets", what)
        try:
            genomes = self.feasible.sample(count, seed, self.settings.uniform)
        except ValueError as error:
            raise InputError(str(error)) from None
        return self.feasible.space.unpack(genomes)

    def _largest_and_smallest(self) -> list[Subnet]:
        drawn = self._draw("ends", LOOKED_AT)
        name = self.feasible.space.cost_names[0]
        costs = [self.feasible.space.cost(architecture)[name] for architecture in drawn]
        return [self._subnet(drawn[costs.index(end)]) for end in (max(costs), min(costs))]
