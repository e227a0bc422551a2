"""One training step: the gradients of a batch, on any device."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from hytas.models.blocks import part_of_batch
from hytas.models.layers import wide_kernels_in_parts
from hytas.plugins import fill
from hytas.train.augment import augment, mix
from hytas.train.learner import Subnet, Weights
from hytas.train.pixels import LabelledPixels
from hytas.train.processes import ALONE, Processes
from hytas.train.recipe import NONE, Recipe
from hytas.train.schedule import Schedule

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {}
"""Name -> loss of a plug-in."""
fill("loss", LOSSES, built_in=(NONE,))


@dataclass(frozen=True)
class Course:
    """The values that are the same in every step of a training."""

    training: LabelledPixels
    recipe: Recipe
    schedule: Schedule
    rate: float
    seed: int
    device: torch.device
    processes: Processes = ALONE

    @property
    def epochs(self) -> int:
        return self.schedule.epochs

    @cached_property
    def class_weights(self) -> Tensor | None:
        """Return the weights (C,) of the classes in the loss; their mean over the pixels is 1."""
        training = self.training
        weights = training.task.weights(training.targets, self.recipe.class_weights)
        return None if weights is None else torch.from_numpy(weights).to(self.device)

    @cached_property
    def dark(self) -> Tensor | None:
        dark = self.training.dark
        return None if dark is None else torch.tensor(dark, device=self.device)


def backward(
    subnets: Sequence[Subnet],
    values: Weights,
    course: Course,
    patches: Tensor,
    targets: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Add the gradients of a batch to `values`, and return the mean loss of the subnets.

    Of several processes, each adds its part of both.

    Args:
        subnets: that see the batch, one after the other.
        values: name -> leaf, a parameter that `subnets` use.
        patches: scaled (N, P, P, bands), not augmented.
        targets: class distributions (N, C).
        generator: of the augmentation, on the CPU or on the device.
    """
    recipe, count = course.recipe, len(patches)
    patches = augment(patches, recipe, generator, course.dark)
    patches, targets = mix(patches, targets, recipe, generator)
    if course.training.teacher is not None:
        taught = course.training.teacher(patches)
        targets = targets.lerp(taught, recipe.distillation)  # the loss is linear in its targets
    rows, part = course.processes.part(count)
    patches, targets = patches[rows], targets[rows]
    total = torch.zeros((), device=course.device)
    for subnet in subnets:
        network = subnet.network
        if not network.training:  # it visits all modules
            network.train()
        with part_of_batch(rows, count), wide_kernels_in_parts():
            logits = subnet(values, patches)
        task = course.training.task
        if recipe.loss == NONE:
            loss = task.loss(logits, targets, course.class_weights, recipe.label_smoothing)
        else:
            loss = LOSSES[recipe.loss](*task.terms(logits, targets))
        share = part * (loss if len(subnets) == 1 else loss / len(subnets))
        share.backward()  # type: ignore[no-untyped-call]
        total = total + share.detach()
    return total


def epoch_seed(seed: int, epoch: int) -> int:
    """Return a seed of random generators, another one for every (seed, epoch)."""
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint32)[0])
