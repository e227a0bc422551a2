"""Training steps whose values are all on one device; a GPU replays each as one CUDA graph.

A step of a small network is some hundred short operations, and a GPU waits for the host to start
each of them. A captured graph starts them all at once. For this, a step reads only tensors of the
device: the patches, the order of the epoch, the learning rate, and draws of a generator there.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from hytas.errors import one_line, warn_of_slower_work
from hytas.models import Network
from hytas.settings import settings_of
from hytas.train.augment import random_order
from hytas.train.evaluation import Figures, add_batches, figures_of
from hytas.train.learner import Learner, OneNetwork
from hytas.train.optimiser import Leaves, ema_decay
from hytas.train.pixels import LabelledPixels
from hytas.train.recipe import NONE, Recipe
from hytas.train.state import TrainingState
from hytas.train.step import Course, backward, epoch_seed

LEAST_STEPS = 30
"""Shorter trainings end before the captures pay: they take as long as about ten single steps."""
WARM_STEPS = 3
"""Before a capture: libraries then allocate their workspaces, which a capture must not see."""
EVALUATION = 0
"""Key of the evaluation among graphs of steps, whose keys are sizes of batches."""


def captured_steps(
    learner: Learner, state: TrainingState, course: Course, validation: LabelledPixels
) -> "ResidentSteps | None":
    """Return the steps of a training as CUDA graphs; None where they run one operation at a time.

    A failed capture, also for lack of memory, leaves the state as it was, and a warning.
    """
    if len(state.history) >= course.epochs or not can_be_captured(learner, course, validation):
        return None
    try:
        steps = ResidentSteps(learner, state, course, validation)
        steps.capture()
    except RuntimeError as error:
        warn_of_slower_work(
            f"a training step cannot be a CUDA graph here ({one_line(error)}); it runs one "
            "operation at a time, which is slower"
        )
        for moments in state.moments.values():
            moments.steps = moments.steps.cpu()
        return None
    return steps


def can_be_captured(learner: Learner, course: Course, validation: LabelledPixels) -> bool:
    """Return whether a training runs on one GPU, from tensors there, and long enough to pay."""
    recipe, training = course.recipe, course.training
    return (
        course.device.type == "cuda"
        and course.processes.size == 1
        and isinstance(learner, OneNetwork)
        and isinstance(learner.network, Network)
        and learner.network.repeatable
        and training.teacher is None
        and recipe.optimiser == "adamw"
        and not _augments_images(recipe)
        and recipe.loss == recipe.augmentation == NONE  # code of plug-ins may decide by values
        # Of the whole training: one that resumes goes on with the draws that it began with.
        and course.epochs * recipe.steps_per_epoch(len(training)) >= LEAST_STEPS
        and training.is_small
        and validation.is_small
    )


def _augments_images(recipe: Recipe) -> bool:
    """Whether a recipe has augmentations of images, which decide on the CPU what they do."""
    return any(
        getattr(recipe, name) != each.default
        for name, each in settings_of(Recipe).items()
        if each.facts.only == "images"
    )


class ResidentSteps:
    """The steps of a network that is trained alone, on tensors of its device alone.

    The draws of an epoch depend on (seed, epoch) only: its generators are seeded anew.

    Args:
        state: changed in place by each epoch.
        validation: pixels that are evaluated after an epoch.
    """

    def __init__(
        self, learner: Learner, state: TrainingState, course: Course, validation: LabelledPixels
    ) -> None:
        training, recipe, device = course.training, course.recipe, course.device
        self.learner, self.state, self.course = learner, state, course
        everything = np.arange(len(training))
        self.patches = training.batch(everything, device)[0]
        self.targets = training.target_probabilities(everything, device)
        self.validation = [validation.batch(part, device) for part in validation.positions(device)]
        self.evaluated, self.task = len(validation), validation.task
        self.generator, self.draws = torch.Generator(device), training.draws(device)
        steps, rows = recipe.steps_per_epoch(len(training)), recipe.batch_size
        self.order = torch.zeros((steps, rows), dtype=torch.int64, device=device)
        self.rates, self.decays = torch.zeros((2, steps), device=device)
        self.step_in_epoch = torch.zeros(1, dtype=torch.int64, device=device)
        self.losses = torch.zeros((), dtype=torch.float64, device=device)
        self.sums = torch.zeros(3, dtype=torch.float64, device=device)
        self.sizes = [min(rows, len(training) - step * rows) for step in range(steps)]
        self._replays: dict[int, Callable[[], None]] = {}
        for moments in state.moments.values():
            moments.steps = moments.steps.to(device)

    def epoch(self) -> float:
        """Train one pass over the training pixels in a random order; return the mean loss."""
        course, epoch = self.course, len(self.state.history)
        seed, steps, count = epoch_seed(course.seed, epoch), len(self.sizes), sum(self.sizes)
        self.generator.manual_seed(seed)
        torch.manual_seed(seed + 1)  # drop-path uses the global generator
        order = random_order(count, course.recipe.repeats, self.generator, self.draws)
        self.order.view(-1)[:count].copy_(order)
        numbers = range(epoch * steps, (epoch + 1) * steps)
        rates = [course.rate * course.schedule.share(n, course.epochs * steps) for n in numbers]
        self.rates.copy_(torch.tensor(rates))
        self.decays.copy_(torch.tensor([ema_decay(course.recipe, n) for n in numbers]))
        self.step_in_epoch.zero_()
        self.losses.zero_()
        for size in self.sizes:
            self._replays.get(size, partial(self.step, size))()
        return float(self.losses) / count

    def step(self, size: int) -> None:
        """Take the next step of the epoch, with a batch of `size`; nothing waits for the host."""
        course, learner, number = self.course, self.learner, self.step_in_epoch
        chosen = self.order.index_select(0, number)[0, :size]
        subnets = learner.watched()
        leaves = Leaves.of(learner, self.state, subnets)
        batch = self.patches.index_select(0, chosen), self.targets.index_select(0, chosen)
        loss = backward(subnets, leaves.values, course, *batch, self.generator)
        rate, decay = (row.index_select(0, number)[0] for row in (self.rates, self.decays))
        leaves.step_together(course.recipe, rate, decay)
        self.losses += size * loss.double()
        self.step_in_epoch += 1

    def evaluate(self) -> Figures:
        """Return mean cross-entropy, accuracy and mean probability on the validation pixels."""
        if not self.evaluated:
            return None, None, None
        for subnet in self.learner.watched():
            subnet.network.eval()
        self._replays.get(EVALUATION, self.evaluation)()
        return figures_of(self.sums, self.evaluated)

    def evaluation(self) -> None:
        """Sum the figures of the validation pixels up."""
        self.sums.zero_()
        watched = self.learner.watched()
        add_batches(self.sums, watched, self.state.average, self.validation, self.task)

    def capture(self) -> None:
        """Replace every step by a CUDA graph, and leave all values as they were."""
        changed = [self.step_in_epoch, self.losses, self.sums, *self._values()]
        before = [value.detach().clone() for value in changed]
        try:
            for size in set(self.sizes):
                self._replays[size] = self.graph(partial(self.step, size))
            for subnet in self.learner.watched():
                subnet.network.eval()
            if self.evaluated:
                self._replays[EVALUATION] = self.graph(self.evaluation)
        finally:
            with torch.no_grad():
                for value, saved in zip(changed, before, strict=True):
                    value.copy_(saved)
            for weight in self.state.weights.values():
                weight.grad = None  # in the memory of a graph

    def _values(self) -> list[Tensor]:
        """Return all that a step changes."""
        state = self.state
        values = [*state.weights.values(), *state.average.values()]
        for moments in state.moments.values():
            values += [moments.mean, moments.square, moments.steps]
        for subnet in self.learner.watched():
            values += subnet.network.buffers()
        return values

    def graph(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return what replays the operations of `work`."""
        current = torch.cuda.current_stream(self.course.device)
        warming = torch.cuda.Stream(self.course.device)  # type: ignore[no-untyped-call]
        warming.wait_stream(current)
        with torch.cuda.stream(warming):
            for _ in range(WARM_STEPS):
                self.step_in_epoch.zero_()
                work()
        current.wait_stream(warming)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        # A capture that fails leaves its own stream as the current one.
        with torch.cuda.stream(current), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            work()
        return graph.replay
