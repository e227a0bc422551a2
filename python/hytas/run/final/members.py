"""Decide which networks the model averages: the winner, linear networks, or several of them.

With few labels, held-out pixels cannot tell whether a network or a linear one is better elsewhere,
and the mean of both is nearly as good as the better one. So the mean ships unless held-out pixels
favour fewer networks by more than chance. It is a pure function of records, as all decisions are
(`hytas.run.final.decide`).
"""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hytas.metrics import LEAST_PROBABILITY
from hytas.results import NETWORK, MeanChoice
from hytas.run.final.decide import (
    LEAST_PIXELS,
    Conditions,
    calibrate,
    choose_smoothing,
    maps_of,
    probabilities,
)
from hytas.run.final.held_out import HeldOut
from hytas.types import Smoother

CHANCE = 2.0
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
        records: of all folds, or the winner's, with logits of linear networks.
        smoother: the filter of the scene; None for tables.
        conditions: what else decides.
        linear: names in `FITS` of the linear networks that may be members.
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
    losses = {members: _losses(records, members, smoother, conditions) for members in groups}
    best = groups[0]
    lead = 0.0
    for members in groups[1:]:
        gain = losses[groups[0]] - losses[members]
        deviation = float(gain.std()) / len(gain) ** 0.5
        if (errors := float(gain.mean()) / max(deviation, 1e-12)) > max(lead, CHANCE):
            best, lead = members, errors
    means = {"+".join(members): float(values.mean()) for members, values in losses.items()}
    return MeanChoice(best, len(losses[best]), means)


def _losses(
    records: Sequence[HeldOut],
    members: Sequence[str],
    smoother: Smoother | None,
    conditions: Conditions,
) -> NDArray[np.float64]:
    """Return the negative log likelihood (n,) of held-out pixels in the map that would ship."""
    records = [record.mean(members) for record in records]
    temperature = calibrate(records, False, conditions).temperature
    if smoother is None:
        targets = np.concatenate([record.targets for record in records])
        logits = np.concatenate([record.logits for record in records])
        chances = probabilities(logits, temperature).astype(np.float64)
    else:
        maps = maps_of(records, False, smoother, temperature)
        choice = choose_smoothing(conditions.smooth, maps, conditions.kept_smoothing)
        targets = maps.targets
        chances = (
            maps.at(choice.temperature)
            if choice.method == "guided"
            else maps.raw.astype(np.float64)
        )
    losses: NDArray[np.float64] = -np.log(
        np.maximum(chances[np.arange(len(targets)), targets], LEAST_PROBABILITY), dtype=np.float64
    )
    return losses
