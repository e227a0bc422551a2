"""The task of a final training: its network, its pixels, and the folds whose results decide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hytas.decide.decisions import LEAST_PIXELS
from hytas.run.context import Run
from hytas.run.folder import read_json
from hytas.run.prepared import PreparedData
from hytas.run.soft_labels import ROUNDS, round_recipe
from hytas.run.source import RunSource
from hytas.run.start import Scratch
from hytas.spaces.names import linear_architecture, network_of
from hytas.store import Store
from hytas.train import Recipe
from hytas.train.fit import Fit
from hytas.types import Pixels
from hytas.workers import WorkersLike

MOST_PIXELS = 5000
"""Held-out pixels of a record that fit a temperature; one number needs no more."""
HELD_OUT, NEIGHBOURS, UNLABELLED = "held out", "neighbours", "unlabelled"


class Fold(NamedTuple):
    """The fits on one fold, and the pixels that are held out from them.

    Attributes:
        compared: flat indices of the held-out pixels that smoothing is compared on.
        first: of the winner's architecture.
        last: after self-training; `first` without it.
        linear: of the networks in closed form.
    """

    compared: Pixels
    first: Fit
    last: Fit
    linear: tuple[Fit, ...]


@dataclass(frozen=True, eq=False)
class FinalTask:
    """What the fits of a final training are made of.

    A network is too confident on pixels that it was trained on. Where the final training uses all
    labelled pixels, its architecture is also trained without the pixels of each fold
    (`Split.folds_like_test`). No label of a test pixel is read. A teacher that was trained on
    pixels of a fold does not teach there.

    Attributes:
        source: what the fits read.
        store: of the fits.
        workers: where they are done, in parallel if there are several.
        data: of the run.
        architecture: as the race chose it; of a mean, its parts are fitted.
        recipe: of its network.
        seed: of the final training.
        trained: flat indices of the pixels that it trains on.
        watched: of those that choose its best epoch.
        pairs: training and held-out pixels of each fold; none if the watched pixels are the record.
        fold_seed: of the fits on folds, which further seeds of a run share.
        linear: networks in closed form that may join the mean.
        no_self_training: why it trains without unlabelled pixels, whatever they would gain; or "".
    """

    source: RunSource
    store: Store
    workers: WorkersLike
    data: PreparedData
    architecture: Mapping[str, Any]
    recipe: Recipe
    seed: int
    trained: Pixels
    watched: Pixels
    pairs: Sequence[tuple[Pixels, Pixels]]
    fold_seed: int
    linear: tuple[str, ...]
    no_self_training: str

    @property
    def holds_out(self) -> bool:
        """Whether the watched pixels, which lie like test pixels, are the record of the winner."""
        return len(self.watched) > 0 and not self.data.split.spatially_disjoint

    @property
    def held_out(self) -> int:
        """How many pixels could be held out from a training."""
        if self.holds_out:
            return len(self.watched)
        return sum(len(held_out) for _, held_out in self.pairs)

    @property
    def folds(self) -> list[Fold]:
        """The fits whose results decide for the winner; none with few pixels."""
        if self.holds_out:
            return [self._fold(self.trained, self.watched, self.watched, self.seed)]
        if self.held_out < LEAST_PIXELS:
            return []
        return [
            self._fold(trained, trained[:0], held_out, self.fold_seed)
            for trained, held_out in self.pairs
        ]

    @property
    def fold_fits(self) -> list[Fit]:
        """The fits of all folds, the last of each chain."""
        folds = self.folds
        return [*(fold.last for fold in folds), *(fit for fold in folds for fit in fold.linear)]

    def winner(self, self_trains: bool) -> Fit:
        """Return the final training; its end, if self-training follows."""
        if self.holds_out:  # the record of its validation pixels is its own
            (fold,) = self.folds
            return fold.last if self_trains else fold.first
        test = self.data.split.test
        first = self._first(self.trained, self.watched, test, self.seed)
        return self_training_after(first, {}) if self_trains else first

    def _first(self, trained: Pixels, watched: Pixels, held_out: Pixels, seed: int) -> Fit:
        """Return a fit of the architecture; a teacher that saw held-out pixels takes no part."""
        architecture, teacher = self.architecture, self.source.teacher
        if isinstance(self.source.origin, Scratch):  # a mean is fitted in parts
            architecture = network_of(architecture)
        taught = teacher is not None and not np.intersect1d(teacher.seen, held_out).size
        return Fit(architecture, self.recipe, seed, trained, watched, taught=taught)

    def _fold(self, trained: Pixels, watched: Pixels, held_out: Pixels, seed: int) -> Fold:
        compared, neighbours = self.data.with_neighbours(held_out)
        sample = self.data.unlabelled_sample(seed)
        groups = {
            HELD_OUT: some(held_out),
            NEIGHBOURS: neighbours,
            UNLABELLED: held_out[:0] if sample is None else sample.pixels,
        }
        first = replace(self._first(trained, watched, held_out, seed), logits=groups)
        last = first if self.no_self_training else self_training_after(first, groups)
        linear = tuple(replace(linear_fit(fit, trained), logits=groups) for fit in self.linear)
        return Fold(compared, first, last, linear)


def final_task(run: Run) -> FinalTask:
    """Return the task of the final training of a run, whose architecture is chosen."""
    context = run.context
    holds_out = context.holds_out_validation
    trained, watched = context.final_pixels
    return FinalTask(
        context.source,
        run.store,
        run.training_workers if context.data.trains_in_parallel and not holds_out else "1",
        context.data,
        read_json(run.choice.architecture),
        run.recipe[1],
        context.config.seed,
        trained,
        watched,
        () if holds_out else context.folds(),
        run.decides.context.config.seed,
        context.fits,
        run.no_self_training,
    )


def self_training_after(first: Fit, logits: Mapping[str, Pixels]) -> Fit:
    """Return the last round of self-training that follows a fit.

    Args:
        logits: pixels whose logits its result holds.
    """
    recipe, fit = round_recipe(first.recipe, len(first.trained)), first
    for number in range(ROUNDS):
        # Another seed in each round: other pixels, and other noise on the labelled ones.
        seed = int(np.random.SeedSequence([first.seed, number]).generate_state(1)[0])
        fit = Fit(
            first.architecture,
            recipe,
            seed,
            first.trained,
            first.trained[:0],
            start=fit,
            self_trains=True,
            logits=logits if number == ROUNDS - 1 else {},
        )
    return fit


def linear_fit(fit: str, trained: Pixels) -> Fit:
    """Return the fit of a network in closed form, which no seed changes."""
    return Fit(linear_architecture(fit), Recipe(), 0, trained, trained[:0])


def some(pixels: Pixels) -> Pixels:
    """Return at most `MOST_PIXELS` of the pixels, evenly spread."""
    if len(pixels) <= MOST_PIXELS:
        return pixels
    return pixels[np.linspace(0, len(pixels) - 1, MOST_PIXELS).astype(np.int64)]
