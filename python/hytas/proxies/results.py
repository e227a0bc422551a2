"""What an architecture got, and why where it got nothing. Needs no torch."""

from typing import TypedDict

from hytas.proxies.table import PROXIES


class Scores(TypedDict):
    """What an architecture got.

    scores: proxy -> score, NaN where it failed; seconds: share of its group's time; reasons:
    proxy -> why its score is NaN.
    """

    scores: dict[str, float]
    seconds: float
    reasons: dict[str, str]


def record(result: Scores, name: str, value: float) -> None:
    """Keep a score; one that is not a finite number becomes NaN, with its reason."""
    result["scores"][name] = value
    if value != value:
        proxy = name.partition(":")[0]
        hint = f"; `hytas proxies {proxy}` lists its options" if PROXIES[proxy].options else ""
        result["reasons"][name] = f"not a number: the formula has no value here{hint}"
    elif value in (float("inf"), float("-inf")):
        result["scores"][name] = float("nan")
        result["reasons"][name] = f"{value}: the score has no finite value"
