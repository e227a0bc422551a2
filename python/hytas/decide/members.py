"""Decide which networks the model averages: the winner, and networks in closed form with it.

With few labels, held-out pixels cannot tell whether a network or a linear one is better elsewhere,
and the mean of both is nearly as good as the better one. So the mean of all ships unless held-out
pixels favour the winner alone by more than chance; of values, whatever fewer networks they favour.
It is a pure function of records, as all decisions are (`hytas.decide.decisions`).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.decide.decisions import (
    LEAST_PIXELS,
    Conditions,
    Maps,
    choose_smoothing,
    maps_of,
    tempered,
)
from hytas.decide.records import HeldOut
from hytas.metrics import ERRORS, LEAST_PROBABILITY, within_chance
from hytas.results import NETWORK, MeanChoice
from hytas.spaces.names import MEAN_WITH, TITLES, linear_architecture
from hytas.types import Smoother

ERRORS_OF_CLASSES = 1.5
"""Standard errors of the mean difference in log likelihood that chance may give."""


def choose_members(
    records: Sequence[HeldOut],
    smoother: Smoother | None,
    conditions: Conditions,
    linear: Sequence[str],
    fits: Callable[[Sequence[str]], bool],
) -> MeanChoice:
    """Choose the networks whose probabilities the model averages.

    Args:
        records: of all folds, or the winner's, with logits of networks in closed form.
        smoother: the filter of the scene; None for tables.
        conditions: what else decides.
        linear: fits of the networks in closed form that may be members.
        fits: whether the mean of some members fits the budget.
    """
    pixels = sum(len(record.pixels) for record in records)
    if pixels < LEAST_PIXELS or not all(len(record.linear) for record in records):
        reason = f"{pixels or 'no'} validation pixels; at least {LEAST_PIXELS} are needed"
        return MeanChoice((NETWORK,), pixels, reason=reason)
    everything = (NETWORK, *linear)
    groups = [
        members
        for count in range(len(everything), 0, -1)
        for members in combinations(everything, count)
        if members == (NETWORK,) or fits(members)
    ]
    if conditions.has_probabilities:
        errors = ERRORS_OF_CLASSES
        groups = [next(members for members in groups if NETWORK in members), (NETWORK,)]
        of_members = {member: _maps(records, (member,), smoother) for member in everything}
        losses = {
            members: _losses(_mean([of_members[one] for one in members]), smoother, conditions)
            for members in groups
        }
    else:  # with few samples a network that is trained by steps may be the worst
        errors = ERRORS
        losses = {members: _errors(records, members) for members in groups}
    chosen = groups[0]
    if not within_chance([losses[members] for members in groups], errors)[0]:
        chosen = min(groups, key=lambda each: losses[each].mean())
    means = {"+".join(members): float(values.mean()) for members, values in losses.items()}
    return MeanChoice(chosen, len(losses[chosen]), means)


def _errors(records: Sequence[HeldOut], members: Sequence[str]) -> NDArray[np.float64]:
    """Return the squared errors (n,) of the mean of values."""
    means = [record.mean(members) for record in records]
    merits = [one.task.merits(one.predicted, one.targets) for one in means]
    return 1 - np.concatenate(merits).astype(np.float64)


def with_members(architecture: Mapping[str, Any], members: Sequence[str]) -> dict[str, Any]:
    """Return the architecture of the mean of some networks.

    Args:
        architecture: of the member "network".
        members: "network", or fits of networks in closed form, or both.
    """
    linear = [fit for fit in TITLES if fit in members]
    if NETWORK not in members:
        architecture = linear_architecture(linear.pop(0))
    return {**architecture, **({MEAN_WITH: linear} if linear else {})}


def _maps(records: Sequence[HeldOut], members: Sequence[str], smoother: Smoother | None) -> Maps:
    """Return the probabilities of held-out pixels by one network; of a table both maps are raw."""
    records = [record.mean(members) for record in records]
    if smoother is not None:
        return maps_of(records, False, smoother, 1.0)
    logits = np.concatenate([record.logits for record in records])
    chances = tempered(logits, 1.0)
    return Maps(np.concatenate([record.targets for record in records]), chances, chances)


def _mean(parts: Sequence[Maps]) -> Maps:
    """Return the mean of maps: the filter of a mean is the mean of the filtered ones."""
    raw, smoothed = (
        np.mean([getattr(part, name) for part in parts], axis=0) for name in ("raw", "smoothed")
    )
    return Maps(parts[0].targets, raw, smoothed)


def _losses(maps: Maps, smoother: Smoother | None, conditions: Conditions) -> NDArray[np.float64]:
    """Return the negative log likelihood (n,) of the map that would ship, calibrated."""
    maps = maps._replace(raw=maps.raw_calibrated)
    chances = maps.raw.astype(np.float64)
    if smoother is not None:
        choice = choose_smoothing(conditions.smooth, maps, conditions.kept_smoothing)
        chances = maps.at(choice.temperature) if choice.method == "guided" else chances
    true = chances[np.arange(len(maps.targets)), maps.targets]
    return np.asarray(-np.log(np.maximum(true, LEAST_PROBABILITY)), np.float64)
