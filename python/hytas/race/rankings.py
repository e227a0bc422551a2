"""The rankings of finalists. A ranking is one function, and one line in `RANKINGS`.

A ranking maps the figures of a finalist (name -> mean over all validation pixels) to one number;
larger is better. `hytas.race.race` measures the figures, and the store keeps them all.
"""

from collections.abc import Callable, Mapping

from hytas.errors import InputError, one_line
from hytas.plugins import fill

Ranking = Callable[[Mapping[str, float]], float]
FIGURES = ("accuracy", "probability")
"""Names of the figures of a finalist."""


def probability(figures: Mapping[str, float]) -> float:
    """Return the mean probability of the true class."""
    return figures["probability"]


def accuracy(figures: Mapping[str, float]) -> float:
    """Return the accuracy plus a thousandth of the mean probability of the true class."""
    return figures["accuracy"] + 1e-3 * figures["probability"]


def rmse(figures: Mapping[str, float]) -> float:
    """Return the negative root mean square error of standardised values."""
    return -figures["rmse"]


RANKINGS: dict[str, Ranking] = {
    "accuracy": accuracy,
    "probability": probability,
    "rmse": rmse,
}


def _tried(name: str, ranking: Ranking) -> Ranking:
    """Refuse a ranking that fails on the figures of a finalist before any work is done."""
    try:
        float(ranking({**dict(zip(FIGURES, (0.9, 0.8), strict=True)), "rmse": 0.3}))
    except Exception as error:  # of a user's code
        rule = f"must give a number for figures ({type(error).__name__}: {one_line(error)})"
        hint = f"the figures are {', '.join(FIGURES)}"
        raise InputError("ranking", name, rule, hint) from None
    return ranking


fill("ranking", RANKINGS, _tried)
DEFAULT_RANKING = "probability"


def find_ranking(name: str) -> Ranking:
    """Return the ranking of that name.

    Raises:
        InputError: there is none.
    """
    if name not in RANKINGS:
        rule = f"must be one of {', '.join(RANKINGS)}"
        raise InputError("ranking", name, rule)
    return RANKINGS[name]
