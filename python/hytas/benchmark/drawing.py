"""Which networks a benchmark holds: distinct architectures, drawn exactly from those that fit."""

from typing import Any

from hytas._engine import Feasible
from hytas.errors import InputError

UNIFORM = ("choices", "architectures")
"""What is drawn with equal chances: the choices of each gene, or whole architectures."""
MOST_DRAWS = 64
"""Draws for each network that is asked for; where most draws repeat others, there are no more."""


def draw(feasible: Feasible, number: int, seed: int, uniform: str) -> list[dict[str, Any]]:
    """Return `number` distinct architectures that fit; fewer of them are a beginning of more.

    Args:
        uniform: one of `UNIFORM`.
    """
    if uniform not in UNIFORM:
        raise InputError("uniform", uniform, f"must be one of {', '.join(UNIFORM)}")
    if number < 1:
        raise InputError("networks", number, "must be 1 or more")
    draws = number
    while draws <= MOST_DRAWS * number:
        genomes = feasible.sample(draws, seed, uniform)
        first = {genome.tobytes(): place for place, genome in reversed(list(enumerate(genomes)))}
        if len(first) >= number:
            return feasible.space.unpack(genomes[sorted(first.values())[:number]])
        draws *= 2
    raise InputError(
        "networks",
        number,
        f"the budget has no more than about {len(first)} architectures",
        hint="ask for fewer, or for a larger budget",
    )
