"""Simulated searches, whose evaluations are lookups in a table of trained networks.

A table holds few of all architectures, so most proposals of a strategy are not in it. The nearest
network of the table that the search has not seen yet stands for a proposal. Random search takes the
networks of the table in a random order.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hytas._engine import Evolution, Feasible, strategies
from hytas.errors import InputError
from hytas.lab.analysis.factors import Factors
from hytas.spaces.names import space_of
from hytas.spaces.opening import open_for_genes
from hytas.types import Architecture, Floats

RANDOM = "random"
SIMULATED = tuple(name for name, facts in strategies().items() if not facts["several_scores"])
"""Strategies of the engine that go by one score."""


class AskTell(Protocol):
    """A search algorithm: it proposes architectures, and gets the value of each."""

    def ask(self) -> Architecture:
        """Return the next architecture to evaluate, of the table or not."""

    def tell(self, architecture: Architecture, value: float) -> None:
        """Take the value of the architecture that stands for the last proposal."""


@dataclass(frozen=True, eq=False)
class TablePool:
    """The networks of a table, for a search of the nearest one.

    Attributes:
        places: (n, c) their factors, each in units of its deviation, `scale` (c,).
    """

    architectures: Sequence[Architecture]
    factors: Factors
    places: Floats
    scale: Floats

    @classmethod
    def of(cls, architectures: Sequence[Architecture]) -> "TablePool":
        """Return the pool of architectures."""
        factors = Factors.of(architectures)
        rows = factors.rows(architectures)
        deviations = rows.std(axis=0)
        scale = np.where(deviations > 0, deviations, 1.0)
        return cls(architectures, factors, rows / scale, scale)

    def nearest(self, architecture: Architecture, free: NDArray[np.bool_] | None = None) -> int:
        """Return the number of the network whose genes are nearest; of equals the first.

        Args:
            free: (n,) which networks are candidates; None takes all.
        """
        place = self.factors.rows([architecture])[0] / self.scale
        far = ((self.places - place) ** 2).sum(axis=1)
        return int(np.argmin(far if free is None else np.where(free, far, np.inf)))


def maker_of(name: str, space: str, budget: int) -> Callable[[int], AskTell] | None:
    """Return a maker of searches of our engine: seed -> search; None for random search.

    Args:
        name: one of `SIMULATED`.
        budget: evaluations that the search will have, by which its population is chosen.
    """
    if name not in SIMULATED:
        raise InputError("strategy", name, f"must be one of {', '.join(SIMULATED)}")
    if name == RANDOM:
        return None
    try:
        feasible = Feasible(open_for_genes(space))
    except ValueError as error:
        raise InputError(str(error)) from None
    population = int(np.clip(budget // 10, 4, 50))

    def make(seed: int) -> AskTell:
        return _Engine(Evolution(feasible, strategy=name, population=population, seed=seed))

    return make


class _Engine:
    def __init__(self, evolution: Evolution) -> None:
        self._evolution = evolution
        self._waiting: list[tuple[int, Architecture]] = []
        self._number = -1

    def ask(self) -> Architecture:
        if not self._waiting:
            ids, genomes = self._evolution.ask()
            if not len(ids):
                raise InputError("strategy", rule="all architectures of the space were proposed")
            drawn = self._evolution.feasible.space.unpack(genomes)
            self._waiting.extend(reversed(list(zip(ids.tolist(), drawn, strict=True))))
        self._number, architecture = self._waiting.pop()
        return architecture

    def tell(self, architecture: Architecture, value: float) -> None:
        self._evolution.tell(np.array([self._number]), np.array([value]))


@dataclass(frozen=True, eq=False)
class Simulation:
    """The results of simulated searches.

    Attributes:
        chosen: (seeds, evaluations) accuracy of the network that leads after each evaluation.
        best: accuracy of the best network of the table.
    """

    chosen: Floats
    best: float

    @property
    def regret(self) -> Floats:
        """Return (seeds, evaluations) the difference to the best network of the table."""
        return self.best - self.chosen

    def at(self, evaluations: int) -> tuple[float, float, float]:
        """Return the mean regret after some evaluations, and its 95 % interval over seeds.

        No regret is below 0, so the interval begins at 0 or above.
        """
        if evaluations < 1:
            raise InputError("evaluations", evaluations, "must be 1 or more")
        values = self.regret[:, min(evaluations, self.regret.shape[1]) - 1]
        mean = float(values.mean())
        error = float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else math.nan
        return mean, max(0.0, mean - 1.96 * error), mean + 1.96 * error


def simulate(
    pool: TablePool,
    accuracy: Floats,
    make: Callable[[int], AskTell] | None,
    budget: int,
    seeds: Sequence[int],
    values: Floats,
) -> Simulation:
    """Run a search once a seed, in which each evaluation is a lookup in a table.

    The search maximises values: the accuracy, or a score without a training. Its result is the
    network with the largest value so far.

    Args:
        accuracy: (n,) of the networks in the pool, by which the search is judged.
        make: seed -> search; None takes the networks in a random order.
        budget: evaluations; at most n are made.
        values: (n,) larger is better; NaN is the worst.
    """
    if not isinstance(budget, int | np.integer) or budget < 1:
        raise InputError("budget", budget, "must be a whole number of evaluations, 1 or more")
    if not len(seeds):
        raise InputError("seeds", rule="there are none", hint="at least one is needed")
    length = min(budget, len(accuracy))
    finite, chosen = np.where(np.isfinite(values), values, -np.inf), np.empty((len(seeds), length))
    for row, seed in enumerate(seeds):
        visited = (
            np.random.default_rng(seed).permutation(len(accuracy))[:length]
            if make is None
            else _visit(pool, make(seed), values, length)
        )
        leaders = np.maximum.accumulate(finite[visited])
        first = np.flatnonzero(np.r_[True, leaders[1:] > leaders[:-1]])
        leading = first[np.searchsorted(first, np.arange(length), side="right") - 1]
        chosen[row] = accuracy[visited[leading]]
    return Simulation(chosen, float(accuracy.max()))


def _visit(pool: TablePool, search: AskTell, values: Floats, length: int) -> NDArray[np.int64]:
    """Return the numbers of the networks that a search evaluates, in order."""
    free = np.ones(len(values), np.bool_)
    visited = np.empty(length, np.int64)
    for step in range(length):
        number = pool.nearest(search.ask(), free)
        free[number] = False
        visited[step] = number
        search.tell(pool.architectures[number], float(values[number]))
    return visited


def space_of_all(architectures: Sequence[Architecture]) -> str:
    """Return the name of the space of architectures."""
    spaces = sorted({space_of(item) for item in architectures})
    if len(spaces) != 1:
        raise InputError(
            "tables", rule=f"networks of the spaces {', '.join(spaces)}", hint="must be of one"
        )
    return spaces[0]
