"""A latency budget: finalists are timed, and those over it leave the race."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hytas.run.choosing import latency
from hytas.run.folder import RunFolder
from hytas.search import Evaluation


def candidate(number: int) -> Evaluation:
    return Evaluation(number, 0, {"number": number}, {}, {}, {}, 0.0)


class Runs:
    """A run whose candidates take as many ms as `times` says."""

    def __init__(self, folder: Path, budget: str, times: list[float]) -> None:
        self.lines: list[str] = []
        self.asked: list[int] = []
        self.times = times
        table = folder / "table.json"
        table.write_text(json.dumps({"conditions": {"threads": 2, "batch": 8}}))
        bounds = [("params", 0, 5)]
        if budget:
            bounds.append((f"latency@{table}", 0, int(float(budget) * 1e6)))
        context = SimpleNamespace(
            feasible=SimpleNamespace(budget=SimpleNamespace(bounds=bounds)),
            config=SimpleNamespace(recipes={"whole": None}, seed=0),
            source=SimpleNamespace(begun=lambda architecture, *_: architecture["number"]),
            data=SimpleNamespace(preprocessing=None, scene=None, shape=None),
        )
        self.run: Any = SimpleNamespace(
            context=context,
            folder=RunFolder(folder),
            report=SimpleNamespace(line=self.lines.append),
        )

    def time(self, models: list[Any], *, threads: int, batch: int) -> list[float]:
        assert (threads, batch) == (2, 8)
        numbers = [number for number, _ in models]
        self.asked += numbers
        return [self.times[number] for number in numbers]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def made(budget: str, times: list[float]) -> Runs:
        found = Runs(tmp_path, budget, times)
        monkeypatch.setattr(latency, "time_models", found.time)
        monkeypatch.setattr(
            latency, "SensorModel", lambda number, _: SimpleNamespace(eval=lambda: number)
        )
        monkeypatch.setattr(latency, "describe", lambda *_: None)
        return found

    return made


def first(count: int) -> Callable[[Sequence[Evaluation]], Sequence[Evaluation]]:
    return lambda ranked: ranked[:count]


def ids(found: list[Evaluation]) -> list[int]:
    return [one.id for one in found]


def test_slow_finalists_leave_and_others_take_their_place(runs: Any) -> None:
    given = runs("1.0", [0.5, 1.5, 0.9, 1.1, 0.2, 0.1])
    ranked = [candidate(number) for number in range(6)]
    assert ids(latency.within_latency(given.run, ranked, first(2)))[:2] == [0, 2]
    assert given.asked == [0, 1, 2]
    assert "1 of them take longer and leave the race" in given.lines[0]


def test_those_that_race_are_timed_whatever_their_rank(runs: Any) -> None:
    """Finalists are of every size and may be known ones: the first by rank are not enough."""
    given = runs("1.0", [0.5, 0.5, 1.5, 0.9, 0.2, 0.1])
    ranked = [candidate(number) for number in range(6)]

    def choose(found: Sequence[Evaluation]) -> Sequence[Evaluation]:
        return [found[0], *found[-2:]] if 2 in ids(found) else [found[0], *found[1:3]]

    given.times[5] = 2.0
    found = latency.within_latency(given.run, ranked, choose)
    assert given.asked == [0, 4, 5, 3]
    assert ids(found) == [0, 1, 2, 3, 4]
    # After four choices those race that were timed and are fast enough.
    slow = [0.5, *[2.0] * 8]
    many = runs("1.0", slow)
    (many.run.folder.path / "latency.json").unlink()
    found = latency.within_latency(many.run, [candidate(n) for n in range(9)], first(2))
    assert (ids(found), many.asked) == ([0], [0, 1, 2, 3, 4])


def test_a_candidate_is_timed_once(runs: Any) -> None:
    ranked = [candidate(number) for number in range(2)]
    once = latency.within_latency(runs("1.0", [0.5, 1.5]).run, ranked, first(2))
    again = runs("1.0", [9.0, 9.0])
    assert ids(latency.within_latency(again.run, ranked, first(2))) == ids(once) == [0]
    assert again.asked == []


@pytest.mark.parametrize("count", [9, 6])
def test_if_none_is_fast_enough_all_race(count: int, runs: Any) -> None:
    given = runs("1.0", [2.0] * count)
    ranked = [candidate(number) for number in range(count)]
    assert ids(latency.within_latency(given.run, ranked, first(2))) == list(range(count))
    assert given.asked == list(range(min(count, 8)))
    assert "no candidate keeps the latency" in given.lines[-1]
