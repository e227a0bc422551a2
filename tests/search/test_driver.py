"""The loop of ask, score and tell: right winner, exact resume, failures ranked last."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata

from hytas._engine import Budget, Feasible, SearchSpace
from hytas.search import Evaluation, EvaluationStore, SearchWatch, StrategySettings, search

VARIABLES = {"bands": 20, "classes": 4, "patch_size": 3, "band_group": 1}
SETTINGS = StrategySettings(population=12, generations=4, seed=3, chunk=5)


class KillError(Exception):
    """Stands for the end of the process."""


class Scorer:
    """Scores by width, fails on depth 7, and dies after a number of architectures."""

    def __init__(self, dies_after: int = 10**9, fails_always: bool = False) -> None:
        self.left = dies_after
        self.fails_always = fails_always
        self.scored: list[dict[str, Any]] = []

    def score(self, architectures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        results = []
        for architecture in architectures:
            if self.left == 0:
                raise KillError
            self.left -= 1
            self.scored.append(architecture)
            failed = self.fails_always or architecture["depth"] == 7
            value = math.nan if failed else architecture["embed_dim"] + architecture["depth"] / 100
            results.append(
                {
                    "scores": {"width": value},
                    "reasons": {"width": "depth 7"} if failed else {},
                    "seconds": 0.0,
                }
            )
        return results


def feasible(budget: str = "20K..300K-params") -> Feasible:
    return Feasible(SearchSpace.builtin("hytas", VARIABLES), Budget.parse(budget))


def fitness(items: Sequence[Evaluation]) -> list[float]:
    return [item.scores["width"] for item in items]


def test_winner_has_the_best_score_and_failures_rank_last(tmp_path: Path) -> None:
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        result = search(feasible(), Scorer(), fitness, SETTINGS, store)
        items = store.evaluations()
    assert result.evaluated == len(items) == 48
    assert len({str(item.architecture) for item in items}) == 48
    assert result.failed == sum(math.isnan(item.scores["width"]) for item in items) > 0
    valid = [item for item in items if not math.isnan(item.scores["width"])]
    assert result.winner == max(valid, key=lambda item: item.scores["width"])
    assert all(20_000 <= item.costs["params"] <= 300_000 for item in items)


@pytest.mark.parametrize("dies_after", [0, 1, 12, 13, 29, 47])
def test_interrupted_equals_uninterrupted(dies_after: int, tmp_path: Path) -> None:
    with EvaluationStore(tmp_path / "whole.sqlite") as store:
        expected = search(feasible(), Scorer(), fitness, SETTINGS, store)
        everything = store.evaluations()
    path = tmp_path / "killed.sqlite"
    with EvaluationStore(path) as store, pytest.raises(KillError):
        search(feasible(), Scorer(dies_after), fitness, SETTINGS, store)
    with EvaluationStore(path) as store:
        kept = len(store.evaluations())
        again = Scorer()
        result = search(feasible(), again, fitness, SETTINGS, store)
        assert store.evaluations() == everything
    assert result.winner == expected.winner
    assert len(again.scored) == 48 - kept  # nothing kept is scored twice
    assert kept >= dies_after - SETTINGS.chunk + 1


def mean_rank(items: Sequence[Evaluation]) -> NDArray[np.float64]:
    """Of width and of smallness, among `items`: what is added moves the fitness of the others."""
    columns = ([item.scores["width"] for item in items], [-item.costs["params"] for item in items])
    ranks = [rankdata(column, nan_policy="omit") for column in columns]
    return np.asarray(np.mean(ranks, axis=0) / len(items))


def test_a_search_that_ends_in_its_first_generation_has_a_front(tmp_path: Path) -> None:
    settings = replace(SETTINGS, strategy="nsga2", minimised=("params",))
    ends = SearchWatch(until=lambda: True)
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        result = search(feasible(), Scorer(), fitness, settings, store, watch=ends)
        items = [item for item in store.evaluations() if not math.isnan(fitness([item])[0])]
    assert result.evaluated == SETTINGS.chunk
    unbeaten = {
        item.id
        for item in items
        if not any(
            fitness([other]) >= fitness([item])
            and other.costs["params"] <= item.costs["params"]
            and (fitness([other]), other.costs["params"]) != (fitness([item]), item.costs["params"])
            for other in items
        )
    }
    assert {item.id for item, _ in result.front} == unbeaten


@pytest.mark.parametrize("strategy", ["nsga2", "evolution"])
def test_a_fitness_of_ranks_is_told_again_as_it_moves(strategy: str, tmp_path: Path) -> None:
    minimised = ("macs",) if strategy == "nsga2" else ()
    settings = replace(SETTINGS, strategy=strategy, minimised=minimised)
    with EvaluationStore(tmp_path / "whole.sqlite") as store:
        result = search(feasible(), Scorer(), mean_rank, settings, store)
        items = store.evaluations()
        state = store.load_state()
    values = dict(zip((item.id for item in items), mean_rank(items), strict=True))
    points = [(values[item.id], *(-item.costs[name] for name in minimised)) for item in items]
    front = {
        item.id
        for item, point in zip(items, points, strict=True)
        if not math.isnan(point[0])
        and not any(
            other != point and all(theirs >= own for theirs, own in zip(other, point, strict=True))
            for other in points
        )
    }
    assert {item.id: value for item, value in result.front} == {n: values[n] for n in front}
    path = tmp_path / "killed.sqlite"
    with EvaluationStore(path) as store, pytest.raises(KillError):
        search(feasible(), Scorer(29), mean_rank, settings, store)
    with EvaluationStore(path) as store:
        assert search(feasible(), Scorer(), mean_rank, settings, store) == result
        assert store.load_state() == state


def test_an_infinite_score_has_failed_before_and_after_a_kill(tmp_path: Path) -> None:
    class Infinite(Scorer):
        """Scores the widest with infinity."""

        def score(self, architectures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
            found = super().score(architectures)
            for result, architecture in zip(found, architectures, strict=True):
                if architecture["embed_dim"] >= 48:
                    result["scores"]["width"] = math.inf
            return found

    with EvaluationStore(tmp_path / "store.sqlite") as store:
        live = search(feasible(), Infinite(), fitness, SETTINGS, store)
        assert live.winner.architecture["embed_dim"] < 48
        assert live.failed
        again = search(feasible(), Infinite(), fitness, SETTINGS, store)
    assert (again.winner, again.failed) == (live.winner, live.failed)


def test_exhausted_budget_ends_the_search(tmp_path: Path) -> None:
    # The smallest network: with E = 32, heads of 3, 5 and 6 all have an inner width of 30.
    tight = feasible("27474-params")
    assert tight.count() == 3**4
    settings = replace(SETTINGS, generations=10)
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        result = search(tight, Scorer(), fitness, settings, store)
        assert len(store.evaluations()) == result.evaluated == 3**4
    assert result.exhausted


def test_known_architectures_are_candidates(tmp_path: Path) -> None:
    wide = feasible()
    (best,) = wide.space.unpack(wide.sample(1, 5))
    with EvaluationStore(tmp_path / "a.sqlite") as store:
        search(wide, Scorer(), fitness, SETTINGS, store, start_with=[best])
        items = store.evaluations()
    with EvaluationStore(tmp_path / "b.sqlite") as store:
        search(wide, Scorer(), fitness, SETTINGS, store)
        others = store.evaluations()
    assert [item.architecture for item in items if item.id < 0] == [best]
    assert [item for item in items if item.id >= 0] == others
