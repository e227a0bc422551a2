"""How fast: figures that hang together, and a latency table that the engine reads."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from small_model import CONVOLVED, Exported, small_model, small_scene, wide_architecture

from hytas._engine import Feasible
from hytas.cli.bench import bench as command
from hytas.deploy.bench import bench, bench_settings, repeat
from hytas.export.latency import predicted_latency, profile, time_models
from hytas.model_card import ModelCard
from hytas.spaces import open_space


def test_a_real_measurement(exported: Exported) -> None:
    (run,) = bench(bench_settings(exported.onnx, batches=(3,), seconds=0.05))
    assert 0 < run["ms"] <= run["p10"] <= run["p90"]
    assert run["cpu_ms"] > 0
    assert 20 < run["peak_mb"] < 500


def test_models_are_timed_in_turn() -> None:
    scene = small_scene()
    models = [
        small_model(scene, wide_architecture(*CONVOLVED) | {"embed_dim": width})
        for width in (16, 256)
    ]
    small, large = time_models(models, seconds=0.1)
    assert 0 < small < large


def test_repeat_counts_by_the_clock_it_is_given() -> None:
    ticks = iter(range(0, 1000, 7))
    calls: list[int] = []
    times = repeat(lambda: calls.append(1), 0.0, lambda: float(next(ticks)))
    assert times == [7000.0] * 3
    assert len(calls) == 5  # two of them to warm up


def test_the_command_compares_with_torch(
    exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.deploy.bench.ROUNDS", 1)
    arguments = [str(exported.onnx), "--batch", "2", "--seconds", "0.05", "--json"]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    runs = json.loads(done.stdout)["runs"]
    assert [run["runtime"] for run in runs] == ["hytas.deploy.bench", "hytas.export.bench_torch"]
    assert runs[0]["peak_mb"] < runs[1]["peak_mb"]  # torch alone is larger than the whole runtime


def made_up(monkeypatch: pytest.MonkeyPatch, microseconds: Callable[[Any], float]) -> None:
    """Give each network a time by its architecture."""

    def times(models: Any, **given: Any) -> list[float]:
        return [microseconds(card.architecture) / 1000 for _, card in models]

    monkeypatch.setattr("hytas.export.latency.time_models", times)


def wide_time(one: Any) -> float:
    """30 for band tokens, 20 for pixel tokens, 5 a convolution, 12 a gated attention layer."""
    time = 30.0 * (one["tokens"] != "pixel") + 20.0 * (one["tokens"] != "band")
    for stream in ("band", "pixel"):
        gated = one[f"{stream}_gate"] == "yes"
        mixers = {"none": 0.0, "attention": 12.0 * gated}
        time += one[f"{stream}_depth"] * mixers.get(one[f"{stream}_mixer"], 5.0)
    return time


def with_architecture(exported: Exported, architecture: dict[str, object]) -> ModelCard:
    return dataclasses.replace(exported.card, architecture=architecture)


@pytest.fixture(scope="module")
def wide_table(exported: Exported) -> dict[str, object]:
    with pytest.MonkeyPatch.context() as patch:
        made_up(patch, wide_time)
        return profile(with_architecture(exported, wide_architecture("band", "class")))


@pytest.mark.parametrize(
    "chosen",
    [
        ("band", "class"),
        ("pixel", "centre", "conv5", "no"),
        ("series", "mean", "conv3", "no"),
        ("parallel", "class", "attention", "yes"),
    ],
)
def test_formulas_of_the_wide_space(
    exported: Exported, wide_table: dict[str, object], chosen: tuple[str, ...]
) -> None:
    architecture = wide_architecture(*chosen)
    if chosen[0] == "pixel":  # which has no band tokens, so the space fixes their genes
        architecture |= {"band_width": 3, "band_stride": 2}
    expected = wide_time(architecture) / 1000
    card = with_architecture(exported, architecture)
    assert predicted_latency(wide_table, card) == pytest.approx(expected, abs=4e-3)


def test_a_budget_of_the_wide_space_holds_exactly(
    wide_table: dict[str, object], tmp_path: Path
) -> None:
    """`--budget 3ms-latency@table.json --space hytas-wide`: what is drawn costs at most that."""
    path = tmp_path / "table.json"
    path.write_text(json.dumps(wide_table))
    variables = {"bands": 23, "classes": 4, "patch_size": 5, "band_group": 3}
    space, budget = open_space("hytas-wide", f"50us..100us-latency@{path}", variables)
    feasible = Feasible(space, budget)
    drawn = feasible.sample(50, seed=0, uniform="choices")
    costs = space.costs(drawn, f"latency@{path}")
    assert (costs >= 50_000).all()
    assert (costs <= 100_000).all()
    assert len(np.unique(costs)) > 3
