"""What races: an architecture and the recipe that it is trained by."""

from collections.abc import Iterable
from typing import NamedTuple

from hytas.search import Evaluation, Training

Key = tuple[int, str]
"""Of a racer: the number of its evaluation, and the name of its recipe."""


class Racer(NamedTuple):
    """A finalist of the search, with one of the recipes.

    Attributes:
        finalist: its evaluation.
        recipe: name of the recipe.
    """

    finalist: Evaluation
    recipe: str

    @property
    def key(self) -> Key:
        """What its trainings are known by."""
        return self.finalist.id, self.recipe


def one_each(racers: Iterable[Racer]) -> list[Racer]:
    """Return the first racer of each finalist."""
    found: dict[int, Racer] = {}
    for racer in racers:
        found.setdefault(racer.finalist.id, racer)
    return list(found.values())


def key_of(training: Training) -> Key:
    """Return whose training it is."""
    return training.id, training.recipe
