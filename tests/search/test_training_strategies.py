"""Strategies of plug-ins that ask for trainings: the examples, as a user runs them."""

from pathlib import Path

import pytest

from hytas import plugins
from hytas._engine import Feasible
from hytas.errors import InputError
from hytas.job import run_pipeline
from hytas.proxies import Evaluator
from hytas.run import RunConfig, read_run
from hytas.search import EvaluationStore, StrategySettings, search
from hytas.spaces import InputShape, open_space
from refusals import refuses

EXAMPLES = Path(__file__).parents[2] / "examples"
SHAPE = InputShape(bands=20, classes=4)


@pytest.fixture(params=["asha", "two_objectives"])
def strategy(request: pytest.FixtureRequest):
    path = EXAMPLES / f"{request.param}.py"
    plugins.load_plugins([str(path)])
    yield request.param.replace("_", "-")
    plugins.unload(str(path))


class Trainer:
    """Pretends to train: wider networks are more accurate, and each training is counted."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def __call__(self, asked: list) -> list[dict[str, float]]:
        self.asked += [(item.id, steps) for item, steps in asked]
        return [
            {"accuracy": item.architecture["embed_dim"] / 300 + steps * 1e-6, "steps": steps}
            for item, steps in asked
        ]


def searched(path: Path, strategy: str, trainer: Trainer | None, generations: int) -> list:
    space, bounds = open_space("hytas", "1M-params", offered=SHAPE.variables())
    settings = StrategySettings(strategy, population=6, generations=generations)
    with EvaluationStore(path) as store:
        search(
            Feasible(space, bounds),
            Evaluator("params", SHAPE),
            lambda items: [item.scores["params"] for item in items],
            settings,
            store,
            train=trainer,
        )
        return [(item.id, item.architecture, item.scores) for item in store.evaluations()]


def test_candidates_are_trained_longer_where_they_are_better(strategy: str, tmp_path: Path) -> None:
    trainer = Trainer()
    found = searched(tmp_path / "a.sqlite", strategy, trainer, 4)
    lengths = {steps for _, steps in trainer.asked}
    assert lengths == ({100, 300, 900} if strategy == "asha" else {200})
    longest = max(lengths)
    best = [scores for _, _, scores in found if scores.get("trained_steps") == longest]
    others = [scores for _, _, scores in found if scores.get("trained_steps", 0) < longest]
    if strategy == "asha":
        assert 0 < len(best) <= len(found) / 9 + 1
        accuracy = "trained_accuracy"
        assert min(one[accuracy] for one in best) >= sorted(one[accuracy] for one in others)[-3]
    else:
        assert len(best) == 24


def test_a_stopped_search_asks_for_the_same_trainings(strategy: str, tmp_path: Path) -> None:
    whole = searched(tmp_path / "whole.sqlite", strategy, Trainer(), 4)
    searched(tmp_path / "parts.sqlite", strategy, Trainer(), 2)
    assert searched(tmp_path / "parts.sqlite", strategy, Trainer(), 4) == whole


def test_a_search_that_cannot_train_refuses_the_strategy(strategy: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trains candidates, and nothing here trains them"):
        searched(tmp_path / "a.sqlite", strategy, None, 1)


def test_what_is_no_pair_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    text = (EXAMPLES / "two_objectives.py").read_text(encoding="utf-8")
    path.write_text(text.replace("(one, STEPS)", "one"), encoding="utf-8")
    plugins.load_plugins([str(path)])
    with refuses("strategy", "two-objectives", "pairs of an architecture and steps"):
        searched(tmp_path / "a.sqlite", "two-objectives", Trainer(), 1)
    plugins.unload(str(path))


def test_a_run_is_led_by_trained_accuracy(tmp_path: Path) -> None:
    from hytas.data import synthetic_scene

    text = (EXAMPLES / "asha.py").read_text(encoding="utf-8")
    path = tmp_path / "asha.py"
    path.write_text(text.replace("(100, 300, 900)", "(2, 4, 6)"), encoding="utf-8")
    config = RunConfig(
        budget="20K-params",
        space="hytas-tiny",
        plugins=[str(path)],
        strategy="asha",
        effort="quick",
        population=4,
        generations=2,
        finalists=2,
        self_training="none",
    ).with_epochs(0)
    run_pipeline(config, synthetic_scene(), tmp_path / "run", references=False, workers=1)
    rows = list(read_run(tmp_path / "run").candidates())
    trained = [row for row in rows if row.get("trained_steps")]
    assert len(trained) == 8
    assert {row["trained_steps"] for row in trained} >= {2, 4}
    plugins.unload(str(path))
