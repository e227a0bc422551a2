"""A whole run with a race: the same on any number of workers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from one_candidate import CONFIG

from hytas.data import Scene
from hytas.job import run_pipeline
from hytas.search import EvaluationStore
from hytas.train import Recipe

RACE = replace(
    CONFIG,
    proxy="dss,snip",
    population=6,
    generations=2,
    finalists=4,
    race_steps=2,
    train_per_class=12,
    recipe=Recipe(steps=8, batch_size=8),
)
DECIDED = ("architecture.json", "recipe.json", "split.npz")
TRAINED = ("weights.safetensors", "model.onnx", "map.png")


def outcome(scene: Scene, out: Path, workers: int) -> tuple[list[Any], dict[str, bytes]]:
    """Candidates and trainings of a run without their times, and its files by name."""
    run_pipeline(RACE, scene, out, device="cpu", workers=workers)
    with EvaluationStore(out / "evaluations.sqlite") as store:
        kept = [*store.evaluations(), *store.trainings()]
    files = [path for name in (*DECIDED, *TRAINED) for path in out.glob(name)]
    return [replace(each, seconds=0.0) for each in kept], {p.name: p.read_bytes() for p in files}


@pytest.mark.slow
def test_two_workers_decide_and_train_as_one_does(scene: Scene, tmp_path: Path) -> None:
    alone, files = outcome(scene, tmp_path / "one", 1)
    assert len(alone) > 12 + 2 * RACE.finalists
    assert {"architecture.json", "model.onnx", "map.png"} <= files.keys()
    parallel, same = outcome(scene, tmp_path / "two", 2)
    assert parallel == alone
    assert same.keys() == files.keys()
    assert [name for name, content in files.items() if same[name] != content] == []
