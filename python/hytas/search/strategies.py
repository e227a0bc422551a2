"""Search strategies of plug-ins: a class with `ask` and `tell`, next to those of the engine.

    class Strategy:
        def __init__(self, feasible: Feasible, seed: int) -> None: ...
        def ask(self, count: int) -> list[dict]: ...
        def tell(self, architectures: list[dict], scores: list[float]) -> None: ...

`ask` returns 1 to `count` architectures, and `tell` is given the same ones with their scores;
larger is better, NaN is a failed score. All random numbers come from `seed`.

A strategy that sets `trains = True` returns pairs from `ask`: an architecture, and the optimiser
steps that it is to be trained for, in all; 0 trains nothing. `tell` is given the same pairs with a
mapping each, of all scores, all costs and the figures of the training on validation pixels
(`hytas.race.rankings.FIGURES`). What failed is missing. A longer training of an architecture
continues the shorter one.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hytas._engine import Feasible, amount_text, strategies
from hytas.errors import InputError
from hytas.plugins import fill

_Ids = npt.NDArray[np.int64]
Genomes = npt.NDArray[np.uint8]
_Rows = npt.NDArray[np.float64]

Measure = Callable[[Sequence[tuple[int, int]]], Sequence[Mapping[str, float]]]

MOST_REPEATS = 20
"""Consecutive rounds in which a strategy may ask for known candidates only."""
REPEATABLE = "asks for other candidates than before: all its random numbers must come from its seed"
NEAREST_OF = 256
"""Feasible samples, of which the nearest replaces a candidate outside the budget."""

STRATEGIES: dict[str, Callable[..., Any]] = {}
"""Name -> class of a plug-in."""
fill("strategy", STRATEGIES, built_in=strategies())


@dataclass(frozen=True)
class StrategySettings:
    """The strategy and the length of a search.

    Attributes:
        strategy: a name of the engine's `strategies()`, or of a plug-in's strategy.
        population: candidates in a generation.
        generations: the search scores `generations` times `population` candidates. (Ageing
            evolution renews a part of its population at a time, so it has more generations.)
        seed: of all random numbers of the engine.
        chunk: candidates between two writes to the store, where one process scores. A kill loses
            what was scored since the last write: workers write a batch each.
        minimised: costs that are objectives in addition to the fitness, for a strategy with several
            scores.
        operators: further settings of the engine's `Evolution`, such as `parents` and `mutation`.
    """

    strategy: str = "evolution"
    population: int = 50
    generations: int = 20
    seed: int = 0
    chunk: int = 16
    minimised: tuple[str, ...] = ()
    operators: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("population", "generations"):
            if getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "must be 1 or more")

    @property
    def evaluations(self) -> int:
        """Return the total number of candidates to score."""
        return self.population * self.generations


class Strategy(Protocol):
    """The methods of `hytas._engine.Evolution` that the search loop uses."""

    @property
    def evaluated(self) -> int: ...
    @property
    def generation(self) -> int: ...
    def ask(self, n: int | None = None) -> tuple[_Ids, Genomes]: ...
    def tell(self, ids: _Ids, scores: _Rows) -> None: ...
    def rescore(self, ids: _Ids, scores: _Rows) -> None: ...
    def front(self) -> tuple[_Ids, Genomes, _Rows]: ...
    def state(self) -> bytes: ...


def check_strategy_name(name: str) -> None:
    """Refuse a strategy that is neither known nor brought by a plug-in."""
    if name not in (names := [*strategies(), *STRATEGIES]):
        rule = f"must be one of {', '.join(names)}"
        raise InputError("strategy", name, rule)


class PluginStrategy:
    """Runs a plug-in's strategy with the guarantees of the engine's strategies.

    Every candidate fits the budget, and is new: one that does not fit is replaced by the nearest of
    some feasible samples, and a known one gets its first score. An interrupted search
    repeats all earlier calls of `ask` and `tell`, so a strategy needs no state of its own.

    Args:
        settings: of the search; `population` candidates are asked for at a time.
        state: of an earlier process, or None.
        notify: receives a line when a candidate is replaced for the first time.
        measure: ids of scored candidates with optimiser steps -> all figures of each.
    """

    def __init__(
        self,
        feasible: Feasible,
        settings: StrategySettings,
        state: bytes | None,
        notify: Callable[[str], None],
        measure: Measure,
    ) -> None:
        self._name, self._population = settings.strategy, settings.population
        self._seed, self._feasible = settings.seed, feasible
        self._notify, self._measure = notify, measure
        self._genomes: list[Genomes] = []
        self._ids: dict[bytes, int] = {}
        self._first: list[float] = []
        self._latest: list[float] = []
        self._asked: list[int] = []
        self._round: list[tuple[int, int]] = []  # candidates, with the steps of their training
        self._replaced = self._count = 0
        self._made = STRATEGIES[self._name](feasible, self._seed)
        self._trains = bool(getattr(self._made, "trains", False))
        if state is not None:
            self._repeat(state)

    @property
    def evaluated(self) -> int:
        """Candidates with a score."""
        return len(self._first)

    @property
    def generation(self) -> int:
        """Rounds that are complete."""
        return len(self._asked)

    def ask(self, n: int | None = None) -> tuple[_Ids, Genomes]:
        """Return ids and genomes of new candidates; none if all that fit were scored."""
        first, self._count = len(self._first), min(self._population, n or self._population)
        del self._genomes[first:]
        self._ids = {key: number for key, number in self._ids.items() if number < first}
        for _ in range(MOST_REPEATS):
            self._propose()
            if len(self._genomes) > first:
                break
            self._tell()
        else:
            fresh = self._unseen()
            self._round = [] if fresh is None else [(self._number(fresh), 0)]
        return np.arange(first, len(self._genomes)), self._rows(self._genomes[first:])

    def tell(self, ids: _Ids, scores: _Rows) -> None:
        """Tell the strategy the scores of the round that it asked for."""
        fresh = [float(row[0]) for row in np.asarray(scores).reshape(len(ids), -1)]
        self._first += fresh
        self._latest += fresh
        self._asked.append(self._count)
        self._tell()

    def finish(self) -> None:
        """Do the trainings of known candidates that the strategy still asks for."""
        first = len(self._first)
        for _ in range(MOST_REPEATS if self._trains and first else 0):
            self._propose()
            if len(self._genomes) > first:
                return
            self._tell()

    def _propose(self) -> None:
        """Ask the strategy for a round."""
        proposals = self._made.ask(self._count)
        if not isinstance(proposals, Sequence) or not 1 <= len(proposals) <= self._count:
            rule = f"ask({self._count}) must return a list of 1 to {self._count} architectures"
            raise self._wrong(rule)
        pairs = proposals if self._trains else [(one, 0) for one in proposals]
        if not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs):
            raise self._wrong("trains, so ask must return pairs of an architecture and steps")
        if not all(isinstance(steps, int) and steps >= 0 for _, steps in pairs):
            raise self._wrong("asks for steps that are no whole number of 0 or more")
        self._round = [(self._number(self._fitting(one)), steps) for one, steps in pairs]

    def rescore(self, ids: _Ids, scores: _Rows) -> None:
        """Update scores, which decide the best candidates; the strategy keeps its own."""
        for number, row in zip(ids.tolist(), np.asarray(scores).reshape(len(ids), -1), strict=True):
            self._latest[number] = float(row[0])

    def front(self) -> tuple[_Ids, Genomes, _Rows]:
        """Return the best candidates; none before the first scores."""
        scores = np.nan_to_num(np.asarray(self._latest, np.float64), nan=-math.inf)
        ids = np.flatnonzero(scores == scores.max(initial=-math.inf))
        return ids, self._rows([self._genomes[number] for number in ids]), scores[ids, None]

    def state(self) -> bytes:
        """Return the state for `_repeat`: lengths of the rounds, first scores, and a digest."""
        kept = {"strategy": self._name, "seed": self._seed, "population": self._population}
        history = {"asked": self._asked, "scores": self._first, "genomes": self._digest()}
        return json.dumps({**kept, **history}).encode()

    def _repeat(self, state: bytes) -> None:
        """Repeat the rounds of an earlier process."""
        values = json.loads(state)
        wanted = (self._name, self._seed, self._population)
        if tuple(values[name] for name in ("strategy", "seed", "population")) != wanted:
            raise ValueError("its search is one of another strategy")
        for count in values["asked"]:
            ids, _ = self.ask(count)
            scores = values["scores"][len(self._first) :][: len(ids)]
            if len(scores) < len(ids):
                raise self._wrong(REPEATABLE)
            self.tell(ids, np.asarray(scores))
        if self._digest() != values["genomes"]:
            raise self._wrong(REPEATABLE)

    def _digest(self) -> str:
        scored = self._genomes[: len(self._first)]
        return hashlib.sha256(b"".join(genome.tobytes() for genome in scored)).hexdigest()

    def _tell(self) -> None:
        genomes = self._rows([self._genomes[number] for number, _ in self._round])
        asked = self._feasible.space.unpack(genomes)
        if self._trains:
            pairs = [(one, steps) for one, (_, steps) in zip(asked, self._round, strict=True)]
            self._made.tell(pairs, self._measure(self._round))
        else:
            self._made.tell(asked, [self._first[number] for number, _ in self._round])

    def _rows(self, genomes: Sequence[Genomes]) -> Genomes:
        return np.array(genomes, np.uint8).reshape(-1, self._feasible.space.genome_length)

    def _number(self, genome: Genomes) -> int:
        """Return the number of a candidate; a new one gets the next."""
        key = genome.tobytes()
        if key not in self._ids:
            self._ids[key] = len(self._genomes)
            self._genomes.append(genome)
        return self._ids[key]

    def _fitting(self, architecture: Mapping[str, Any]) -> Genomes:
        """Return the genome of an architecture; of one that does not fit, a near one that does."""
        space, budget = self._feasible.space, self._feasible.budget
        whole = self._in_length({**architecture, "space": space.name})
        try:
            packed: Genomes = space.pack([whole])
        except (TypeError, ValueError) as error:
            rule = f"asks for what is no architecture of {space.name}: {error}"
            raise self._wrong(rule) from None
        if self._feasible.contains(packed)[0]:
            return _row(packed, 0)
        self._replaced += 1
        if self._replaced == 1:
            cost = space.cost(whole)
            said = ", ".join(amount_text(name, cost[name]) for name, *_ in budget.bounds)
            self._notify(
                f"note: strategy {self._name} asks for architectures that do not fit the budget "
                f"{budget}, such as one of {said}; the nearest of {NEAREST_OF} random ones that "
                "fit takes the place of each"
            )
        samples: Genomes = self._feasible.sample(NEAREST_OF, self._seed + self._replaced)
        return _row(samples, int(np.argmin((samples != packed).sum(1))))

    def _in_length(self, architecture: dict[str, Any]) -> dict[str, Any]:
        """Cut lists of layers to the depth, or repeat their last value up to it."""
        for gene in self._feasible.space.genes:
            depth, values = architecture.get(gene["per"]), architecture.get(gene["name"])
            if isinstance(depth, int) and isinstance(values, list) and values:
                more = [values[-1]] * (depth - len(values))
                architecture[gene["name"]] = [*values[:depth], *more]
        return architecture

    def _unseen(self) -> Genomes | None:
        """Return a random candidate that is new, or None if none is left."""
        if self._feasible.at_most() <= len(self._genomes):
            return None
        for number in range(MOST_REPEATS):
            seed = self._seed + NEAREST_OF * (1 + len(self._genomes)) + number
            samples: Genomes = self._feasible.sample(NEAREST_OF, seed)
            fresh = [place for place, one in enumerate(samples) if one.tobytes() not in self._ids]
            if fresh:
                return _row(samples, fresh[0])
        return None

    def _wrong(self, rule: str) -> InputError:
        return InputError("strategy", self._name, rule)


def _row(genomes: Genomes, place: int) -> Genomes:
    row: Genomes = genomes[place]
    return row
