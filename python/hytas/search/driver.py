"""The search loop: ask the engine, score, tell the engine."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hytas._engine import Evolution, Feasible
from hytas.errors import InputError
from hytas.search.store import Evaluation, EvaluationStore

Architecture = dict[str, Any]
ENOUGH_FAILED = 20
"""Architectures; where so many in a row, from the first, have no score, a search stops."""


class Scorer(Protocol):
    """What scores architectures: `hytas.proxies.Evaluator`."""

    def score(self, architectures: Sequence[Architecture]) -> Sequence[Mapping[str, Any]]:
        """One mapping an architecture, with `scores`, `reasons` and `seconds`."""


@dataclass(frozen=True)
class SearchSettings:
    """How long and how wide to search.

    Attributes:
        strategy: how the engine selects, a name of its `strategies()`.
        population: architectures a generation.
        generations: how many times the population's number is evaluated in all. (Ageing evolution
            renews only a part of its population a generation, and has more of them.)
        seed: of all draws of the engine.
        chunk: architectures scored between two writes to the store; what a kill can lose.
        minimised: costs to weigh against the fitness, as objectives of their own; for a
            strategy that takes several scores.
    """

    strategy: str = "evolution"
    population: int = 50
    generations: int = 20
    seed: int = 0
    chunk: int = 16
    minimised: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("population", "generations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}: must be 1 or more")

    @property
    def evaluations(self) -> int:
        """Architectures to score in all."""
        return self.population * self.generations


@dataclass(frozen=True)
class SearchProgress:
    """Where the search stands, after each chunk of evaluations.

    `rate` counts evaluations a second of this process, and `remaining` is in seconds.
    """

    generation: int
    evaluated: int
    evaluations: int
    best: float
    rate: float
    remaining: float


@dataclass(frozen=True)
class SearchResult:
    """The winner, and how the search ended.

    Attributes:
        winner: the evaluation of the best fitness; the earlier one of equals.
        fitness: its fitness.
        front: those that no other beats in fitness and in every minimised cost, with their fitness;
            with no such cost the winner, and its equals.
        evaluated: architectures scored.
        failed: those without a score.
        exhausted: whether all that is feasible was scored.
    """

    winner: Evaluation
    fitness: float
    front: tuple[tuple[Evaluation, float], ...]
    evaluated: int
    failed: int
    exhausted: bool


Fitness = Callable[[Sequence[Evaluation]], Iterable[float]]
"""From all evaluations so far to the fitness of each; larger is better, NaN ranks last."""


def search(
    feasible: Feasible,
    scorer: Scorer,
    fitness: Fitness,
    settings: SearchSettings,
    store: EvaluationStore,
    *,
    progress: Callable[[SearchProgress], None] = lambda _: None,
) -> SearchResult:
    """Search the architectures of `feasible`, going on from what `store` holds.

    A generation that was interrupted is asked again, which the engine answers in the same way, and
    what was scored of it is read from the store: so the evaluations equal those of a run that was
    never interrupted.

    Raises:
        InputError: every architecture's score failed, and the message has the first reason; or the
            store lacks an evaluation that its state counts.
    """
    evolution = _resume(feasible, settings, store)
    told: dict[int, float] = {}
    done = {item.id: item for item in store.evaluations()}
    lost = [number for number in range(evolution.evaluated) if number not in done]
    if lost:
        raise InputError(
            f"{store.path}: damaged: of {evolution.evaluated} evaluations that the search told, "
            f"number {lost[0]} is missing; choose another folder"
        )
    clock = _Clock(settings, len(done))
    exhausted = False
    while evolution.evaluated < settings.evaluations and not exhausted:
        ids, genomes = evolution.ask(settings.evaluations - evolution.evaluated)
        exhausted = len(ids) == 0
        generation = evolution.generation
        asked = list(zip(ids.tolist(), feasible.space.unpack(genomes), strict=True))
        missing = [pair for pair in asked if pair[0] not in done]
        for start in range(0, len(missing), settings.chunk):
            chunk = missing[start : start + settings.chunk]
            fresh = _score(feasible, scorer, generation, chunk)
            store.add(fresh)
            done.update((item.id, item) for item in fresh)
            progress(clock.progress(generation, done, fitness))
        if not exhausted:
            values = dict(zip(done, fitness(list(done.values())), strict=True))
            if len(values) >= ENOUGH_FAILED and all(math.isnan(v) for v in values.values()):
                break  # the rest would have no score either
            # A fitness may depend on all that was evaluated, as a mean of ranks does.
            moved = [n for n in range(evolution.evaluated) if values[n] != told.get(n)]
            evolution.tell(ids, _rows(ids.tolist(), values, done, settings))
            if moved:
                evolution.rescore(np.array(moved), _rows(moved, values, done, settings))
            told = values
            store.save_state(evolution.state())
    front = [done[number] for number in evolution.front()[0].tolist()]
    return _result(done, fitness, front, exhausted)


def _rows(
    ids: Sequence[int],
    values: Mapping[int, float],
    done: Mapping[int, Evaluation],
    settings: SearchSettings,
) -> npt.NDArray[np.float64]:
    """The objectives of `ids`, one row each."""
    return np.array([_objectives(values[number], done[number], settings) for number in ids])


def _objectives(fitness: float, item: Evaluation, settings: SearchSettings) -> list[float]:
    """All larger is better. A failed score takes its costs along: it must not win by them."""
    if math.isnan(fitness):
        return [math.nan] * (1 + len(settings.minimised))
    return [fitness, *(-float(item.costs[name]) for name in settings.minimised)]


def _resume(feasible: Feasible, settings: SearchSettings, store: EvaluationStore) -> Evolution:
    state = store.load_state()
    if state is not None:
        try:
            return Evolution.restore(feasible, state)
        except ValueError as error:
            raise InputError(f"{store.path}: {error}") from None
    return Evolution(
        feasible,
        strategy=settings.strategy,
        population=settings.population,
        seed=settings.seed,
    )


def _score(
    feasible: Feasible,
    scorer: Scorer,
    generation: int,
    chunk: Sequence[tuple[int, Architecture]],
) -> list[Evaluation]:
    architectures = [architecture for _, architecture in chunk]
    return [
        Evaluation(
            number,
            generation,
            architecture,
            feasible.space.cost(architecture),
            {name: _score_of(value) for name, value in result["scores"].items()},
            dict(result["reasons"]),
            float(result["seconds"]),
        )
        for (number, architecture), result in zip(chunk, scorer.score(architectures), strict=True)
    ]


def _score_of(value: float) -> float:
    """A score as the store gives it back: one that is not finite has failed."""
    return float(value) if math.isfinite(value) else math.nan


def _result(
    done: Mapping[int, Evaluation],
    fitness: Fitness,
    front: Sequence[Evaluation],
    exhausted: bool,
) -> SearchResult:
    items = list(done.values())
    values = dict(zip(done, fitness(items), strict=True))
    ranked = [(value, -item.id, item) for value, item in zip(values.values(), items, strict=True)]
    valid = [entry for entry in ranked if not math.isnan(entry[0])]
    if not valid:
        reasons = [f"{name}: {why}" for item in items for name, why in item.reasons.items()]
        raise InputError(
            f"proxy: no architecture of {len(items)} got a score"
            + (f"; the first reason: {reasons[0]}" if reasons else "")
        )
    value, _, winner = max(valid, key=lambda entry: entry[:2])
    failed = len(items) - len(valid)
    valued = tuple((item, values[item.id]) for item in front)
    return SearchResult(winner, value, valued, len(items), failed, exhausted)


class _Clock:
    """Counts the evaluations of this process, apart from those that were resumed."""

    def __init__(self, settings: SearchSettings, resumed: int) -> None:
        self.settings = settings
        self.resumed = resumed
        self.started = time.monotonic()

    def progress(
        self, generation: int, done: Mapping[int, Evaluation], fitness: Fitness
    ) -> SearchProgress:
        total = self.settings.evaluations
        elapsed = max(time.monotonic() - self.started, 1e-9)
        rate = (len(done) - self.resumed) / elapsed
        values = [value for value in fitness(list(done.values())) if not math.isnan(value)]
        return SearchProgress(
            generation + 1,
            len(done),
            total,
            max(values, default=math.nan),
            rate,
            max(0, total - len(done)) / rate,
        )
