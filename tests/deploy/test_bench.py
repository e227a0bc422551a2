"""How fast: figures that hang together, and a latency table that the engine reads."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_model import Exported

from hytas._engine import SearchSpace
from hytas.deploy.bench import ROUNDS, Setting, bench, repeat, settings_of
from hytas.errors import InputError
from hytas.export.latency import predict, profile


def test_every_setting_is_measured_in_turn(
    exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[int] = []

    def answer(setting: Setting) -> dict[str, object]:
        order.append(setting.batch)
        slow = 2.0 if len(order) > 2 else 1.0
        times = [slow * setting.batch * (1 + call / 100) for call in range(11)]
        return {"ms": times, "cpu_ms": times, "pixels": setting.batch, "peak_mb": 9, "run_mb": 1}

    monkeypatch.setattr("hytas.deploy.bench._measure_apart", answer)
    settings = settings_of(exported.onnx, batches=(1, 10))
    small, large = bench(settings)
    assert order == [1, 10] * ROUNDS
    assert large["ms"] == pytest.approx(10 * small["ms"])
    assert small["spread"] == pytest.approx(2.0)
    assert small["p10"] < small["ms"] <= small["p90"]
    assert small["pixels_per_second"] == pytest.approx(1000 / small["ms"])
    assert small["calls"] == 33


def test_a_real_measurement(exported: Exported) -> None:
    (run,) = bench(settings_of(exported.onnx, batches=(3,), seconds=0.05))
    assert 0 < run["p10"] <= run["ms"] <= run["p90"]
    assert run["cpu_ms"] > 0
    assert 20 < run["peak_mb"] < 500


def test_what_cannot_be_measured_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bench: .* failed: .*no such file"):
        bench(settings_of(tmp_path / "none.onnx"))


def test_repeat_counts_by_the_clock_it_is_given() -> None:
    ticks = iter(range(0, 1000, 7))
    calls: list[int] = []
    times = repeat(lambda: calls.append(1), 0.0, lambda: float(next(ticks)))
    assert times == [7000.0] * 3
    assert len(calls) == 5  # two of them to warm up


def test_the_command_sets_torch_beside_it(exported: Exported) -> None:
    code = "from hytas.cli.main import run; run()"
    arguments = ["bench", str(exported.onnx), "--batch", "2", "--seconds", "0.05", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    runs = json.loads(done.stdout)["runs"]
    assert [run["runtime"] for run in runs] == ["hytas.deploy.bench", "hytas.export.bench_torch"]
    assert runs[0]["peak_mb"] < runs[1]["peak_mb"]  # torch alone is larger than the whole runtime
    bad = subprocess.run(
        [sys.executable, "-c", code, "bench", str(exported.onnx), "--batch", "1,x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "batch: '1,x' is not a list of positive numbers" in bad.stderr


def test_the_latency_table_adds_up_to_a_model(
    exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With made-up times, the engine's sum is the sum by hand."""
    from hytas.export import latency

    monkeypatch.setattr(latency.Bench, "ends", lambda self, embed: 1.0)

    def part(self: latency.Bench, embed: int, build: object, *, last: bool = False) -> float:
        given = build.keywords  # type: ignore[attr-defined]
        if "tokens" in given:
            return 0.5
        if "heads" in given:
            return 0.1 * given["heads"] * (0.25 if last else 1.0)
        return 0.24 * given["ratio"]

    monkeypatch.setattr(latency.Bench, "part", part)
    card = exported.card
    architecture = {"space": "hytas", "depth": 4, "embed_dim": 32}
    architecture |= {"num_heads": [3, 4, 5, 6], "mlp_ratio": [1, 2, 3, 4]}
    object.__setattr__(card := type(card)(**vars(card)), "architecture", architecture)
    table = profile(card)
    tokens = 24
    attention = sum(0.1 * heads * (3 + 0.25) / 4 for heads in (3, 4, 5, 6))
    mlp = sum(0.24 * ratio * (3 + 1 / tokens) / 4 for ratio in (1, 2, 3, 4))
    assert predict(table, card) == pytest.approx(1.0 + 2 * 0.5 + attention + mlp, abs=1e-4)
    space = SearchSpace.builtin("hytas", table["variables"]).with_table("t", json.dumps(table))
    assert "latency@t" in space.cost_names


def test_parts_take_longer_when_they_are_larger(exported: Exported) -> None:
    from functools import partial

    from hytas.export.latency import Bench, mlp

    bench_here = Bench(exported.card, threads=1, batch=8, seconds=0.05)
    small, large = (bench_here.part(64, partial(mlp, embed=64, ratio=r)) for r in (1, 6))
    assert 0 < small < large
    assert bench_here.ends(32) > 0
