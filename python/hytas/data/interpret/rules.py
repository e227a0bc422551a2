"""Ordered rules: the first one that applies says what something means, and how sure that is."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

Facts = TypeVar("Facts")
Meaning = TypeVar("Meaning")
SURE, GUESS = "sure", "guess"
"""The file or the user says it; or something else makes it likely, and a finding says so."""


class MeaningRule(NamedTuple, Generic[Facts, Meaning]):
    """A rule.

    Attributes:
        name: what it goes by, for people.
        test: returns the meaning of the facts; None if the rule does not apply.
        sureness: SURE or GUESS.
    """

    name: str
    test: Callable[[Facts], Meaning | None]
    sureness: str = SURE


def first(
    rules: Sequence[MeaningRule[Facts, Meaning]], facts: Facts
) -> tuple[Meaning, MeaningRule[Facts, Meaning]] | None:
    """Return the meaning by the first rule that applies, and this rule; None if none does."""
    for rule in rules:
        if (meaning := rule.test(facts)) is not None:
            return meaning, rule
    return None
