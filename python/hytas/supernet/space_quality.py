"""S3: the quality of a search space, the part of each choice in it, and the next space.

Source: Chen et al., Searching the Search Space of Vision Transformer, NeurIPS 2021. The paper
publishes neither its thresholds nor its steps; those here are parameters, with a reason for each.
Steps go by the mean error E alone; T, of the best subnets, is only reported.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hytas.errors import InputError
from hytas.types import Architecture


@dataclass(frozen=True)
class EvolutionSettings:
    """When a gene's choices change.

    Attributes:
        subnets: drawn inside the budget, to estimate E and T. With 200 the standard error of E is
            about .003 where errors spread by .04.
        top: share of them, the best, whose mean error is T.
        extend: error that one step to the next choice must be worth for a further choice to be
            added at the better end; about the standard error of E.
        shift: the same, for the choice at the worse end to be dropped, too; twice as much.
        prune: error by which a label must be worse than the best label to be dropped; as far as two
            seeds of one network differ.
        least: choices that a gene of numbers keeps.
    """

    subnets: int = 200
    top: float = 0.05
    extend: float = 0.003
    shift: float = 0.006
    prune: float = 0.02
    least: int = 2

    def __post_init__(self) -> None:
        if self.subnets < 10:
            raise InputError("subnets", self.subnets, "must be 10 or more")
        if not 0 < self.top < 1:
            raise InputError("top", self.top, "must be more than 0 and less than 1")
        if not 0 < self.extend <= self.shift < 1:
            raise InputError(
                "extend", self.extend, f"must be more than 0 and at most `shift` {self.shift}"
            )
        if not 0 < self.prune < 1:
            raise InputError("prune", self.prune, "must be more than 0 and less than 1")
        if self.least < 1:
            raise InputError("least", self.least, "must be 1 or more")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


class SpaceQuality(NamedTuple):
    """E, the mean error of random subnets of a space, and T, that of the best of them."""

    E: float
    T: float


def space_quality(errors: NDArray[np.float64], top: float) -> SpaceQuality:
    """Return E and T of errors (N,) of random subnets; T is the mean of a share `top`."""
    best = np.sort(errors)[: max(1, round(top * len(errors)))]
    return SpaceQuality(float(errors.mean()), float(best.mean()))


def choice_errors(
    gene: str, values: Sequence[Any], architectures: Sequence[Architecture], errors: Any
) -> list[tuple[float, float]]:
    """Return for each value of a gene the mean error of subnets that have it, and their weight.

    A gene with a value a layer counts each layer; the weights of a subnet's layers add to 1. The
    mean is NaN where no subnet has the value.
    """
    sums = np.zeros((len(values), 2))
    place = {repr(value): number for number, value in enumerate(values)}
    for architecture, error in zip(architectures, errors, strict=True):
        own = architecture[gene]
        own = own if isinstance(own, list) else [own]
        for value in own:
            sums[place[repr(value)]] += np.array([error, 1.0]) / len(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[:, 0] / sums[:, 1]
    return [(float(mean), float(weight)) for mean, weight in zip(means, sums[:, 1], strict=True)]


def slope(errors: Sequence[tuple[float, float]]) -> float:
    """Return what one step to the next choice adds to the error, by a weighted linear fit.

    Args:
        errors: of each choice, in order, its mean error and its weight; one without weight is left
            out. With fewer than two choices left the slope is 0.
    """
    used = [(place, mean, weight) for place, (mean, weight) in enumerate(errors) if weight > 0]
    if len(used) < 2:
        return 0.0
    place, mean, weight = (np.array(column, np.float64) for column in zip(*used, strict=True))
    place = place - np.average(place, weights=weight)
    return float((weight * place * mean).sum() / (weight * place**2).sum())


class SpaceStep(NamedTuple):
    """What happens to a gene: "extend", "shift", "narrow" or "prune"; and its values afterwards."""

    gene: str
    what: str
    values: list[Any]
    worth: float


def propose(
    gene: str,
    values: Sequence[Any],
    errors: Sequence[tuple[float, float]],
    settings: EvolutionSettings,
    is_possible: Any,
) -> SpaceStep | None:
    """Return the step that the errors of a gene's choices ask for; None if they ask for none.

    Numbers: a clear slope adds a choice at the better end (extend); a steeper one also drops the
    choice at the worse end (shift), or only that, where no further choice is possible (narrow).
    Labels: those that are clearly worse than the best one are dropped (prune).

    Args:
        values: its choices; numbers in ascending order.
        is_possible: gene, values -> whether a space can have them.
    """
    if all(isinstance(value, int | float) for value in values):
        return _of_numbers(gene, values, slope(errors), settings, is_possible)
    means = [mean for mean, weight in errors if weight > 0]
    limit = min(means, default=0.0) + settings.prune
    kept = [v for v, (mean, weight) in zip(values, errors, strict=True) if not mean > limit]
    if len(kept) == len(values) or not is_possible(gene, kept):
        return None
    return SpaceStep(gene, "prune", kept, max(means) - min(means))


def _of_numbers(
    gene: str, values: Sequence[Any], worth: float, settings: EvolutionSettings, is_possible: Any
) -> SpaceStep | None:
    if abs(worth) < settings.extend or len(values) < 2:
        return None
    up = worth < 0  # larger values have smaller errors
    gap = values[-1] - values[-2] if up else values[0] - values[1]
    beyond = (values[-1] if up else values[0]) + gap
    longer = [*values, beyond] if up else [beyond, *values]
    shorter = list(values[1:] if up else values[:-1])
    shifted = longer[1:] if up else longer[:-1]
    if beyond >= 0 and is_possible(gene, longer):
        if abs(worth) >= settings.shift and is_possible(gene, shifted):
            return SpaceStep(gene, "shift", shifted, worth)
        return SpaceStep(gene, "extend", longer, worth)
    if abs(worth) >= settings.shift and len(shorter) >= settings.least:
        return SpaceStep(gene, "narrow", shorter, worth) if is_possible(gene, shorter) else None
    return None
