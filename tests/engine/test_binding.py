"""The engine as Python sees it; what it computes is tested in engine/tests."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hytas import _engine
from hytas._engine import Budget, Evolution, Feasible, SearchSpace

STUB = Path(__file__).parents[2] / "python/hytas/_engine.pyi"
SCENES = {"indian": (200, 16, 3), "houston": (144, 15, 3), "pavia": (103, 9, 7)}


def hytas_space(bands: int = 200, classes: int = 16, band_group: int = 3) -> SearchSpace:
    shape = {"bands": bands, "classes": classes, "patch_size": 7, "band_group": band_group}
    return SearchSpace.builtin("hytas", shape)


def test_committed_stub_is_the_modules(tmp_path: Path) -> None:
    pytest.importorskip("pybind11_stubgen")
    command = [sys.executable, "-m", "pybind11_stubgen", "hytas._engine", "-o", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    made = (tmp_path / "hytas/_engine.pyi").read_text(encoding="utf-8")
    assert made == STUB.read_text(encoding="utf-8"), "run pybind11-stubgen hytas._engine -o python"


def test_values_that_no_architecture_can_hold_are_refused() -> None:
    space = hytas_space()
    endless: list[object] = []
    endless.append(endless)
    looped: dict[str, object] = {}
    looped["depth"] = looped
    for value in (endless, looped):
        with pytest.raises(ValueError, match="must not be nested deeper than 32"):
            space.pack([{"depth": value}])
    with pytest.raises(ValueError, match=r"text '\\udc80': must be Unicode"):
        space.pack([{"depth": "\udc80"}])
    with pytest.raises(ValueError, match=r"text '\\udc80': must be Unicode"):
        space.cost({"\udc80": 4})


@pytest.mark.parametrize("scene", SCENES)
def test_reference_count_equals_every_published_row(scene: str, shared: Path) -> None:
    space = hytas_space(*SCENES[scene])
    with (shared / f"hytas2000/{scene}.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    architectures = [
        {
            "depth": int(row["depth"]),
            "embed_dim": int(row["embed_dim"]),
            "num_heads": json.loads(row["num_heads"]),
            "mlp_ratio": json.loads(row["mlp_ratio"]),
        }
        for row in rows
    ]
    counts = space.costs(space.pack(architectures), "reference_params")
    assert counts.tolist() == [int(row["params"]) for row in rows]
    assert len(rows) > 1900


def test_genomes_and_costs_cross_the_edge() -> None:
    space = hytas_space()
    feasible = Feasible(space, Budget.parse("1.5M..2M-params"))
    genomes = feasible.sample(50, seed=1)
    assert genomes.dtype == np.uint8
    assert genomes.shape == (50, space.genome_length)
    architectures = space.unpack(genomes)
    assert (space.pack(architectures) == genomes).all()
    params = space.costs(genomes, "params")
    assert params.dtype == np.int64
    assert [space.cost(a)["params"] for a in architectures] == params.tolist()
    assert ((params >= 1_500_000) & (params <= 2_000_000)).all()
    assert feasible.contains(genomes).all()
    assert (genomes == feasible.sample(50, seed=1)).all()
    assert feasible.unrank(feasible.rank(architectures[0])) == architectures[0]
    assert (feasible.enumerate(10**9, 3)[2] == space.pack([feasible.unrank(10**9 + 2)])[0]).all()
    assert len(feasible.enumerate(feasible.count() - 2, 5)) == 2


@pytest.mark.parametrize(
    ("genomes", "why"),
    [
        (np.zeros((2, 22), np.int64), "must be a C-contiguous uint8 array"),
        (np.zeros((2, 21), np.uint8), r"of shape \(N, 22\)"),
        (np.zeros((22, 2), np.uint8).T, "C-contiguous"),
        (np.full((1, 22), 200, np.uint8), "depth index 200"),
    ],
)
def test_wrong_genomes_are_refused(genomes: np.ndarray, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        hytas_space().costs(genomes, "params")


def search(evolution: Evolution, evaluations: int, interrupted: bool) -> Evolution:
    """Ask, score (minus the distance to 150M MACs), tell; optionally through bytes every time."""
    feasible = evolution.feasible
    while evolution.evaluated < evaluations:
        ids, genomes = evolution.ask(17)
        if interrupted:
            evolution = Evolution.restore(feasible, evolution.state())
            ids, genomes = evolution.pending()
        scores = -np.abs(feasible.space.costs(genomes, "macs") - 1.5e8)
        evolution.tell(ids[::-1], scores[::-1])
    return evolution


@pytest.mark.parametrize("strategy", _engine.strategies())
def test_interrupted_equals_uninterrupted(strategy: str) -> None:
    feasible = Feasible(hytas_space(), Budget.parse("0.5M..1M-params"))
    whole = search(Evolution(feasible, strategy, population=30, seed=3), 150, False)
    parts = search(Evolution(feasible, strategy, population=30, seed=3), 150, True)
    assert whole.state() == parts.state()
    assert whole.best() == parts.best()


def test_tell_leaves_the_scores_alone_and_takes_rows() -> None:
    feasible = Feasible(hytas_space())
    evolution = Evolution(feasible, "nsga2", population=8)
    ids, genomes = evolution.ask()
    scores = np.stack([-feasible.space.costs(genomes, n) for n in ("params", "macs")], 1) * 1.0
    scores[0] = np.nan
    kept = scores.copy()
    evolution.tell(ids, scores)
    assert np.array_equal(scores, kept, equal_nan=True)
    front, _, points = evolution.front()
    assert 0 not in front
    assert points.shape == (len(front), 2)
    with pytest.raises(ValueError, match="must have shape"):
        evolution.tell(ids, scores[:2])


def test_exhaustion_is_an_empty_batch() -> None:
    space = SearchSpace.builtin("autoformer-tiny")
    feasible = Feasible(space, Budget.parse("5.40M..5.41M-params"))
    evolution = Evolution(feasible, population=50)
    ids, _ = evolution.ask()
    assert len(ids) == feasible.count() == 12
    evolution.tell(ids, np.zeros(12))
    assert evolution.exhausted
    assert len(evolution.ask()[0]) == 0
