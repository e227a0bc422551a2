"""The search loop: ask the engine, score, tell the engine."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hytas._engine import Evolution, Feasible, SearchSpace
from hytas.errors import InputError
from hytas.search.records import Evaluation
from hytas.search.store import EvaluationStore
from hytas.search.strategies import (
    REPEATABLE,
    STRATEGIES,
    Measure,
    PluginStrategy,
    Strategy,
    StrategySettings,
)
from hytas.types import Architecture

ENOUGH_FAILED = 20
"""A search stops if this many candidates have no score, counted from the first one."""


ScoreFigures = Mapping[str, Any]


class Scorer(Protocol):
    """An object that scores architectures, such as `hytas.proxies.Evaluator`.

    Optional attributes: `parts` yields results as they come, `workers` is the number of parallel
    workers, and `expect` receives the number of all coming architectures.
    """

    def score(self, architectures: Sequence[Architecture]) -> Sequence[ScoreFigures]:
        """Return a mapping with `scores`, `reasons` and `seconds` for each architecture."""


def score_parts(
    scorer: Scorer, architectures: Sequence[Architecture], size: int
) -> Iterator[Sequence[ScoreFigures]]:
    """Yield the results of architectures in their order, a part at a time.

    Args:
        scorer: scores them; one with workers decides itself how long its parts are.
    """
    if hasattr(scorer, "parts"):
        yield from scorer.parts(architectures)
        return
    size = max(size, 1)
    for start in range(0, len(architectures), size):
        yield scorer.score(architectures[start : start + size])


@dataclass(frozen=True)
class SearchProgress:
    """The progress of a search, after each chunk of candidates.

    Attributes:
        best: the best fitness so far.
        workers: number of parallel workers.
    """

    generation: int
    evaluated: int
    evaluations: int
    best: float
    workers: int = 1


@dataclass(frozen=True)
class SearchResult:
    """The winner, and the figures of the search.

    Attributes:
        winner: the candidate with the best fitness; of equals the earlier one.
        front: candidates that no other beats in fitness and all minimised costs, with their
            fitness. Without minimised costs these are the winner and its equals.
        evaluated: number of scored candidates.
        failed: number of candidates without a score.
        exhausted: whether all feasible architectures were scored.
    """

    winner: Evaluation
    front: tuple[tuple[Evaluation, float], ...]
    evaluated: int
    failed: int
    exhausted: bool


TRAINED_STEPS, TRAINED_ACCURACY = "trained_steps", "trained_accuracy"
"""Scores of a candidate that was trained during the search."""
Train = Callable[[Sequence[tuple[Evaluation, int]]], Sequence[Mapping[str, float]]]
"""Candidates with optimiser steps -> figures of each training."""
_Values = npt.NDArray[np.float64]
Fitness = Callable[[Sequence[Evaluation]], Iterable[float]]
"""All candidates so far -> the fitness of each; larger is better, NaN ranks last."""


class SearchWatch(NamedTuple):
    """What follows a search, and may end it.

    Attributes:
        progress: is called after each chunk of candidates.
        notify: receives a line for the user.
        until: the search ends when it returns True after a candidate was scored.
    """

    progress: Callable[[SearchProgress], None] = lambda _: None
    notify: Callable[[str], None] = lambda _: None
    until: Callable[[], bool] = lambda: False


def search(
    feasible: Feasible,
    scorer: Scorer,
    fitness: Fitness,
    settings: StrategySettings,
    store: EvaluationStore,
    *,
    start_with: Sequence[Architecture] = (),
    train: Train | None = None,
    watch: SearchWatch = SearchWatch(),
) -> SearchResult:
    """Search the architectures of `feasible`, and go on from the content of `store`.

    Architectures of `start_with` are additional candidates; their ids are negative.
    The engine repeats the candidates of an interrupted generation, whose scores are read from the
    store. So the candidates equal those of a search that was never interrupted.

    For a strategy that trains (`hytas.search.strategies`), `train` trains candidates. The longest
    training of a candidate is in its scores: `TRAINED_STEPS` and `TRAINED_ACCURACY`.

    Raises:
        InputError: no candidate got a score, with the first reason; the store lacks a candidate
            that its state counts; or a plug-in's strategy asks for other candidates than before.
    """
    progress, notify, until = watch
    done = {item.id: item for item in store.evaluations()}
    evolution = _resume(feasible, settings, store, notify, _Measured(done, store, train))
    latest = _Latest(fitness)
    # The fitness of the first candidates of `done`, as the strategy knows it.
    values_before = np.empty(0)
    _check_known(store, done, evolution.evaluated)
    given = [
        (-1 - number, dict(one)) for number, one in enumerate(start_with) if -1 - number not in done
    ]
    for fresh in scored(feasible.space, scorer, -1, given, len(given)):
        store.add(fresh)
        done.update((item.id, item) for item in fresh)
    best = _Best(settings)
    exhausted = False
    while evolution.evaluated < settings.evaluations and not exhausted and not (done and until()):
        ids, genomes = evolution.ask(settings.evaluations - evolution.evaluated)
        exhausted = len(ids) == 0
        generation = evolution.generation
        candidates = list(zip(ids.tolist(), feasible.space.unpack(genomes), strict=True))
        missing = [pair for pair in candidates if pair[0] not in done]
        if any(done[number].architecture != one for number, one in candidates if number in done):
            raise InputError("strategy", settings.strategy, REPEATABLE)
        if hasattr(scorer, "expect"):
            scorer.expect(settings.evaluations - len(done))
        for fresh in scored(feasible.space, scorer, generation, missing, settings.chunk):
            store.add(fresh)
            done.update((item.id, item) for item in fresh)
            reached, workers = best.of(done, latest), getattr(scorer, "workers", 1)
            total = settings.evaluations
            progress(SearchProgress(generation + 1, len(done), total, reached, workers))
            if until():
                break
        if not exhausted and all(number in done for number in ids.tolist()):
            values = latest(done.values())
            if len(values) >= ENOUGH_FAILED and np.isnan(values).all():
                break  # the others would have no score either
            _tell(evolution, ids, done, values, values_before, settings)
            values_before = values
            store.save_state(evolution.state())
    if isinstance(evolution, PluginStrategy):
        evolution.finish()
    told = evolution.front()[0].tolist()
    front = [done[number] for number in told] or _unbeaten(done, latest, settings)
    return _result(done, latest, front, exhausted)


def _check_known(store: EvaluationStore, known: Collection[int], evaluated: int) -> None:
    """Refuse a store that lost a scored candidate."""
    lost = next((number for number in range(evaluated) if number not in known), None)
    if lost is not None:
        rule = f"damaged: of the {evaluated} candidates that the search scored, number {lost} is "
        raise InputError(store.path, rule=f"{rule}missing", hint="choose another folder")


class _Measured:
    """All figures of candidates, which are trained for the steps that are asked for."""

    def __init__(
        self, done: dict[int, Evaluation], store: EvaluationStore, train: Train | None
    ) -> None:
        self._done, self._store, self._train = done, store, train

    def __call__(self, asked: Sequence[tuple[int, int]]) -> list[dict[str, float]]:
        wanted = [(self._done[number], steps) for number, steps in asked if steps]
        if wanted and self._train is None:
            rule = "trains candidates, and nothing here trains them"
            raise InputError("strategy", rule=rule, hint="`hytas search` does")
        results = iter(self._train(wanted) if wanted and self._train is not None else ())
        figures = [dict(next(results)) if steps else {} for _, steps in asked]
        for (number, steps), reached in zip(asked, figures, strict=True):
            item = self._done[number]
            if steps >= item.scores.get(TRAINED_STEPS, 1) and "accuracy" in reached:
                trained = {TRAINED_STEPS: float(steps), TRAINED_ACCURACY: reached["accuracy"]}
                self._done[number] = replace(item, scores={**item.scores, **trained})
        self._store.add(self._done[number] for number, _ in asked)
        return [
            {**_finite(self._done[number].scores), **self._done[number].costs, **reached}
            for (number, _), reached in zip(asked, figures, strict=True)
        ]


def _finite(scores: Mapping[str, float]) -> dict[str, float]:
    own = (TRAINED_STEPS, TRAINED_ACCURACY)
    return {
        name: value for name, value in scores.items() if math.isfinite(value) and name not in own
    }


class _Latest:
    """A fitness that is computed anew only when candidates have come."""

    def __init__(self, fitness: Fitness) -> None:
        self._fitness, self._values = fitness, np.empty(0)

    def __call__(self, items: Collection[Evaluation]) -> _Values:
        if len(items) != len(self._values):
            self._values = np.fromiter(self._fitness(list(items)), np.float64, len(items))
        return self._values


def _tell(
    strategy: Strategy,
    ids: npt.NDArray[np.int64],
    done: Mapping[int, Evaluation],
    values: _Values,
    before: _Values,
    settings: StrategySettings,
) -> None:
    """Tell a strategy the scores of a generation, and those of older candidates that moved.

    A fitness may depend on all candidates, as a mean of ranks does.

    Args:
        values: of all candidates.
        before: of the first of them, as the strategy knows it.
    """
    items, numbers = list(done.values()), np.array(list(done))
    moved = (numbers >= 0) & (numbers < strategy.evaluated)
    old = values[: len(before)]
    moved[: len(old)] &= (old != before) & ~(np.isnan(old) & np.isnan(before))
    order = np.argsort(numbers)
    indices = order[np.searchsorted(numbers, ids, sorter=order)]
    strategy.tell(ids, _objectives(indices, values, items, settings))
    if moved.any():
        rows = _objectives(np.flatnonzero(moved), values, items, settings)
        strategy.rescore(numbers[moved], rows)


def _objectives(
    places: npt.NDArray[np.int64],
    values: _Values,
    items: Sequence[Evaluation],
    settings: StrategySettings,
) -> _Values:
    """Return objectives, where larger is better, a row for each of `places` in `items`.

    After a failed score the costs fail, too.
    """
    rows = np.empty((len(places), 1 + len(settings.minimised)))
    rows[:, 0] = values[places]
    for column, name in enumerate(settings.minimised, start=1):
        rows[:, column] = [-float(items[place].costs[name]) for place in places.tolist()]
    rows[np.isnan(rows[:, 0])] = math.nan
    return rows


def _unbeaten(
    done: Mapping[int, Evaluation], latest: _Latest, settings: StrategySettings
) -> list[Evaluation]:
    """Return the front of a search that ended before a strategy was told its first generation."""
    items = list(done.values())
    rows = _objectives(np.arange(len(items)), latest(items), items, settings)
    beats = (rows[:, None] >= rows).all(axis=2) & (rows[:, None] > rows).any(axis=2)
    kept = ~beats.any(axis=0) & np.isfinite(rows[:, 0])
    return [item for item, keeps in zip(items, kept, strict=True) if keeps]


def _resume(
    feasible: Feasible,
    settings: StrategySettings,
    store: EvaluationStore,
    notify: Callable[[str], None],
    measure: Measure,
) -> Strategy:
    """Return the strategy of the engine or of a plug-in, at the beginning or where the store is."""
    state, name = store.load_state(), settings.strategy
    try:
        if name in STRATEGIES:
            return PluginStrategy(feasible, settings, state, notify, measure)
        if state is not None:
            return Evolution.restore(feasible, state)
        size = settings.population
        return Evolution(feasible, name, population=size, seed=settings.seed, **settings.operators)
    except ValueError as error:
        if state is None or isinstance(error, InputError):
            raise
        raise InputError(store.path, rule=str(error)) from None


def scored(
    space: SearchSpace,
    scorer: Scorer,
    generation: int,
    numbered: Sequence[tuple[int, dict[str, Any]]],
    chunk: int,
) -> Iterator[list[Evaluation]]:
    """Yield numbered architectures with their scores, a part at a time."""
    rest = iter(numbered)
    for results in score_parts(scorer, [architecture for _, architecture in numbered], chunk):
        yield [
            Evaluation(
                number,
                generation,
                architecture,
                space.cost(architecture),
                # As the store returns them: a score that is not finite has failed.
                {
                    name: float(value) if math.isfinite(value) else math.nan
                    for name, value in result["scores"].items()
                },
                dict(result["reasons"]),
                float(result["seconds"]),
            )
            for result, (number, architecture) in zip(results, rest, strict=False)
        ]


def _result(
    done: Mapping[int, Evaluation], fitness: _Latest, front: Sequence[Evaluation], exhausted: bool
) -> SearchResult:
    items = list(done.values())
    values = dict(zip(done, fitness(items).tolist(), strict=True))
    ranked = [(value, -item.id, item) for value, item in zip(values.values(), items, strict=True)]
    valid = [entry for entry in ranked if not math.isnan(entry[0])]
    if not valid:
        reasons = [f"{name}: {why}" for item in items for name, why in item.reasons.items()]
        raise InputError(
            f"proxy: no architecture of {len(items)} got a score"
            + (f"; the first reason: {reasons[0]}" if reasons else "")
        )
    *_, winner = max(valid, key=lambda entry: entry[:2])
    failed = len(items) - len(valid)
    valued = tuple((item, values[item.id]) for item in front)
    return SearchResult(winner, valued, len(items), failed, exhausted)


class _Best:
    """The best fitness so far.

    A fitness takes all candidates, so it is computed at the end of a generation, and whenever the
    number of candidates has doubled: not after every chunk.
    """

    def __init__(self, settings: StrategySettings) -> None:
        self.settings = settings
        self.value, self.valued = math.nan, 0

    def of(self, done: Mapping[int, Evaluation], fitness: _Latest) -> float:
        count = len(done)
        ends = count % self.settings.population == 0 or count >= self.settings.evaluations
        if ends or count >= 2 * self.valued:
            values = fitness(done.values())
            self.value, self.valued = float(np.fmax.reduce(values, initial=math.nan)), count
        return self.value
