"""One step of AdamW or SGD on what a step's networks use of the weights, and on nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from hytas.train.learner import Learner, Subnet, Weights
from hytas.train.recipe import Recipe
from hytas.train.slicing import cut, put, union
from hytas.train.state import Moments, TrainingState

BETAS, EPSILON = (0.9, 0.999), 1e-8  # as torch has them
MOMENTUM = 0.9


@dataclass(frozen=True, eq=False)
class Leaves:
    """The slices of all weights that some subnets use together, as leaves of their graphs.

    A slice that is the whole of a parameter, or a view of it, is changed in place; another one is
    written back. So a step of a subnet costs what it would cost if the subnet were trained alone,
    however large the shared weights are.

    Attributes:
        state: holds the whole of the weights.
        values: name -> leaf.
    """

    state: TrainingState
    values: Weights

    @classmethod
    def of(cls, learner: Learner, state: TrainingState, subnets: Sequence[Subnet]) -> Self:
        """Cut the leaves; weights that are too small for a subnet grow first."""
        values: Weights = {}
        for name, size in cover(learner, state, subnets).items():
            full = state.weights[name]
            if isinstance(full, nn.Parameter):  # of a network that is trained alone
                full.grad = None
                values[name] = full
            else:
                values[name] = cut(name, full, size).detach().requires_grad_()
        return cls(state, values)

    def gradients(self) -> list[Tensor]:
        """Return the gradients of the leaves that have one."""
        return [leaf.grad for leaf in self.values.values() if leaf.grad is not None]

    @torch.no_grad()
    def step(self, recipe: Recipe, rate: float) -> None:
        """Change the weights by their gradients, and move their average towards them."""
        nn.utils.clip_grad_norm_(self.values.values(), recipe.clip_norm)
        names = [name for name, leaf in self.values.items() if leaf.grad is not None]
        moments = {name: self._cut_moments(name) for name in names}
        for matrices in (True, False):
            group = [name for name in names if (self.values[name].ndim > 1) == matrices]
            decay = recipe.weight_decay if matrices else 0.0
            update = self._sgd if recipe.optimiser == "sgd" else self._adamw
            update(group, moments, rate, decay)
        for name in names:
            leaf, whole, part = self.values[name], self.state.moments[name], moments[name]
            put(name, self.state.weights[name], leaf)
            put(name, whole.mean, part.mean)
            put(name, whole.square, part.square)
        self._average(names, recipe)

    @torch.no_grad()
    def step_together(self, recipe: Recipe, rate: Tensor, decay: Tensor) -> None:
        """Do the same without waiting for the host, for whole parameters after equally many steps.

        The fused kernel, which counts steps on the device, rounds otherwise than torch's plain one.

        Args:
            recipe: with AdamW.
            rate: a scalar on the device of the weights, as `decay`.
            decay: of the moving average.
        """
        state, leaves = self.state, self.values
        nn.utils.clip_grad_norm_(leaves.values(), recipe.clip_norm)
        names = [name for name, leaf in leaves.items() if leaf.grad is not None]
        for matrices in (True, False):
            group = [name for name in names if (leaves[name].ndim > 1) == matrices]
            self._adamw(group, state.moments, rate, recipe.weight_decay if matrices else 0.0)
        averages = [state.average[name] for name in names]
        changes = torch._foreach_mul([leaves[name] for name in names], 1.0 - decay)
        torch._foreach_mul_(averages, decay)
        torch._foreach_add_(averages, changes)

    def _cut_moments(self, name: str) -> Moments:
        whole, size = self.state.moments[name], self.values[name].shape
        return Moments(cut(name, whole.mean, size), cut(name, whole.square, size), whole.steps)

    def _adamw(
        self, names: Sequence[str], moments: dict[str, Moments], rate: float | Tensor, decay: float
    ) -> None:
        if not names:
            return
        values = [self.values[name] for name in names]
        # The fused kernel of a CPU reads memory from end to end; that of a GPU would need the
        # steps to be counted there.
        fits = all(value.is_cpu and value.is_contiguous() for value in values)
        adamw(
            values,
            [self.values[name].grad for name in names],  # type: ignore[misc]
            [moments[name].mean for name in names],
            [moments[name].square for name in names],
            [],
            [moments[name].steps for name in names],
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=rate,
            weight_decay=decay,
            eps=EPSILON,
            maximize=False,
            fused=isinstance(rate, Tensor) or fits or None,
        )

    def _sgd(
        self, names: Sequence[str], moments: dict[str, Moments], rate: float, decay: float
    ) -> None:
        sgd(
            [self.values[name] for name in names],
            [self.values[name].grad for name in names],  # type: ignore[misc]
            [moments[name].mean for name in names],
            weight_decay=decay,
            momentum=MOMENTUM,
            lr=rate,
            dampening=0.0,
            nesterov=True,
            maximize=False,
        )
        for name in names:
            moments[name].steps += 1

    def _average(self, names: Sequence[str], recipe: Recipe) -> None:
        """Move the averages towards the leaves."""
        groups: dict[float, list[str]] = {}
        for name in names:
            step = float(self.state.moments[name].steps) - 1.0
            groups.setdefault(ema_decay(recipe, step), []).append(name)
        for decay, group in groups.items():
            leaves, wholes = ([of[n] for n in group] for of in (self.values, self.state.average))
            averages = [
                cut(name, whole, leaf.shape)
                for name, whole, leaf in zip(group, wholes, leaves, strict=True)
            ]
            torch._foreach_lerp_(averages, leaves, 1.0 - decay)
            for name, whole, average in zip(group, wholes, averages, strict=True):
                put(name, whole, average)


def ema_decay(recipe: Recipe, step: float) -> float:
    """Return the decay of the average after a step, from 0; less in the first, still noisy ones."""
    return min(recipe.ema_decay, (1.0 + step) / (10.0 + step))


def cover(
    learner: Learner, state: TrainingState, subnets: Sequence[Subnet]
) -> dict[str, torch.Size]:
    """Enlarge the parameters of a state that are too small for some subnets.

    Returns:
        Name -> the size that the subnets use together.
    """
    sizes = dict(subnets[0].sizes)
    for subnet in subnets[1:]:
        sizes = union(sizes, subnet.sizes)
    for name, size in sizes.items():
        covered = state.weights.get(name)
        if covered is None or any(w > k for w, k in zip(size, covered.shape, strict=True)):
            user = next(subnet for subnet in subnets if name in subnet.sizes)
            _grow(learner, state, name, size, user)
    return sizes


@torch.no_grad()
def _grow(
    learner: Learner, state: TrainingState, name: str, size: torch.Size, user: Subnet
) -> None:
    """Enlarge a parameter of a state to at least `size`, with initial values for `user`."""
    smaller = state.weights.get(name)
    if smaller is not None:
        size = torch.Size(map(max, smaller.shape, size))
    grown = learner.initial(name, size, user)
    average, moments = grown.clone(), Moments.of(grown)
    if smaller is not None:
        before = state.moments[name]
        put(name, grown, smaller)
        put(name, average, state.average[name])
        put(name, moments.mean, before.mean)
        put(name, moments.square, before.square)
        moments.steps = before.steps
    state.weights[name], state.average[name], state.moments[name] = grown, average, moments
