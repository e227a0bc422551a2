"""How fast: figures that hang together, and a latency table that the engine reads."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from small_model import CONVOLVED, Exported, small_model, small_scene, wide_architecture

from hytas._engine import Feasible, SearchSpace
from hytas.cli.bench import bench as command
from hytas.data import Preprocessing
from hytas.deploy.bench import ROUNDS, BenchSetting, bench, bench_settings, repeat
from hytas.errors import InputError
from hytas.export import bench_torch, describe, export_onnx
from hytas.export.latency import conditions, predict, profile, time_models
from hytas.export.onnx_file import set_card
from hytas.model_card import ModelCard
from hytas.models import SensorModel, build_network
from hytas.spaces import open_space
from hytas.spaces.shape import ImageShape


def test_every_setting_is_measured_in_turn(
    exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[int] = []

    def answer(setting: BenchSetting) -> dict[str, object]:
        order.append(setting.batch)
        slow = 2.0 if len(order) > 2 else 1.0  # a busy moment after the first round
        times = [slow * setting.batch * (1 + call / 100) for call in range(11)]
        return {"ms": times, "cpu_ms": times, "pixels": setting.batch, "peak_mb": 9, "run_mb": 1}

    monkeypatch.setattr("hytas.deploy.bench.measure_apart", answer)
    settings = bench_settings(exported.onnx, batches=(1, 10))
    small, large = bench(settings)
    assert order == [1, 10] * ROUNDS
    assert large["ms"] == pytest.approx(10 * small["ms"])
    assert small["spread"] == pytest.approx(2.0)
    assert small["ms"] == 1.0  # of the round that nothing disturbed
    assert small["ms"] < small["p10"] <= small["p90"]
    assert small["pixels_per_second"] == pytest.approx(1000 / small["ms"])
    assert small["calls"] == 11 * ROUNDS


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


def test_what_cannot_be_measured_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bench: .* failed: .*no such file"):
        bench(bench_settings(tmp_path / "none.onnx"))


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


def test_torch_runs_a_network_of_images_on_the_pixels_of_a_scene(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = small_scene()
    scaling = Preprocessing.fit_scene(scene, np.arange(0, scene.labels.size, 3))
    architecture = {"space": "autoformer-mini", "depth": 1, "embed_dim": 16}
    architecture |= {"num_heads": [2], "mlp_ratio": [1]}
    shape = ImageShape.of_pixels(len(scaling.bands), scene.classes, 5)
    model = SensorModel(build_network(architecture, shape), scaling).eval()
    card = describe(scene, scaling, architecture, shape)
    path = export_onnx(model, tmp_path / "model.onnx", card)
    setting = BenchSetting(str(path), bench_torch.__name__, "cpu", threads=1, batch=2, seconds=0.0)
    bench_torch.main(json.dumps(dataclasses.asdict(setting)))
    assert json.loads(capsys.readouterr().out)["pixels"] == 2


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


def test_formulas_find_what_the_parts_of_a_network_cost(
    exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    def microseconds(one: Any) -> float:
        return 40.0 + 7 * one["depth"] + 3 * sum(one["num_heads"]) + 2 * sum(one["mlp_ratio"])

    made_up(monkeypatch, microseconds)
    architecture: dict[str, Any] = {"space": "hytas", "depth": 4, "embed_dim": 32}
    architecture |= {"num_heads": [3, 4, 5, 6], "mlp_ratio": [1, 2, 3, 4]}
    card = with_architecture(exported, architecture)
    table = profile(card)
    assert predict(table, card) == pytest.approx((40 + 28 + 54 + 20) / 1000, abs=3e-3)
    space = SearchSpace.builtin("hytas", table["variables"]).with_table("t", json.dumps(table))
    assert "latency@t" in space.cost_names


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
    assert predict(wide_table, card) == pytest.approx(expected, abs=4e-3)


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


def test_a_table_of_any_space(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of AutoFormer, whose patches are images."""
    made_up(monkeypatch, lambda one: 50.0 + 9 * one["depth"] + 4 * sum(one["num_heads"]))
    architecture = {"space": "autoformer-mini", "depth": 2, "embed_dim": 48}
    architecture |= {"num_heads": [2, 3], "mlp_ratio": [1, 2]}
    card = with_architecture(exported, architecture)
    assert predict(profile(card), card) == pytest.approx((50 + 18 + 20) / 1000, abs=3e-3)


def made_up_run(setting: BenchSetting) -> dict[str, object]:
    figures = {"ms": 0.11234, "cpu_ms": 0.1, "p10": 0.09, "p90": 12.3, "spread": 1.1, "calls": 9}
    return {**dataclasses.asdict(setting), **figures, "pixels_per_second": 8901.4, "peak_mb": 68.2}


def run_bench(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Result:
    monkeypatch.setattr(
        "hytas.deploy.bench.bench", lambda settings, advance=None: list(map(made_up_run, settings))
    )
    return CliRunner().invoke(command, list(map(str, arguments)))


def test_the_table_of_figures_is_readable(
    exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--threads", "1,2", "--batch", "1,8,1", "--no-torch"]
    done = run_bench(monkeypatch, exported.onnx, *arguments)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == f"{exported.onnx}: patch graph, float32"
    assert len({len(line) for line in lines[1:]}) == 1  # columns stand under their heads
    assert lines[1].split() == (
        ["runtime", "device", "threads", "batch", "ms", "p10..p90", "CPU", "ms", "pixels/s", "MB"]
    )
    settings = [line.split()[2:4] for line in lines[2:]]
    assert settings == [["1", "1"], ["1", "8"], ["2", "1"], ["2", "8"]]
    assert lines[2].split()[4:] == ["0.112", "0.090..12.3", "0.100", "8901", "68"]


@pytest.mark.parametrize("graph", ["scene", "smooth-scene"])
def test_scene_graphs_are_measured_in_rows(
    graph: str, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = SimpleNamespace(card=dataclasses.replace(exported.card, graph=graph))
    monkeypatch.setattr("hytas.deploy.DeployedModel.load", lambda *_: loaded)
    done = run_bench(monkeypatch, exported.onnx)
    assert done.exit_code == 0, done.output
    first, head = done.output.splitlines()[:2]
    assert first == f"{exported.onnx}: {graph} graph, float32, in tiles 64 pixels wide"
    assert "rows" in head.split()


def test_a_table_written_before_is_set_beside_the_model(
    exported: Exported,
    wide_table: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(wide_table))
    card = with_architecture(exported, wide_architecture("band", "class"))
    graph = onnx.load(exported.onnx)
    model = tmp_path / "model.onnx"

    def write(card: ModelCard) -> None:
        set_card(graph, card)
        onnx.save(graph, model)

    def compare(*arguments: object) -> Result:
        return run_bench(monkeypatch, model, "--no-torch", "--table", path, *arguments)

    write(card)
    (found,) = [json.loads(compare("--json").output)["table"]]
    assert found["predicted_ms"] == pytest.approx(predict(wide_table, card))
    assert (found["threads"], found["batch"]) == conditions(wide_table) == (1, 1)
    assert found["error"] == pytest.approx(found["predicted_ms"] / 0.1 - 1)
    assert "table.json predicts 0.030 ms for this model; measured 0.100 ms (" in compare().output
    assert conditions({**wide_table, "conditions": {"threads": 2, "batch": 32}}) == (2, 32)
    assert conditions({}) == (1, 1)
    for changed, message in (
        ({"conditions": {"threads": "two"}}, '"conditions" is {"threads": "two"}; must hold'),
        ({"variables": {"bands": 99}}, "was measured with bands 99, not 23"),
        ({"unit": "mJ"}, "its unit is 'mJ'; must be time"),
        ({"space": "hytas"}, "is of space 'hytas', not of 'hytas-wide'"),
    ):
        path.write_text(json.dumps({**wide_table, **changed}))
        done = compare()
        assert isinstance(done.exception, InputError), done.output
        assert message in str(done.exception)
    path.write_text("[1]")
    assert "must be a latency table" in str(compare().exception)
    write(dataclasses.replace(card, precision="int8"))
    assert "must be a patch graph in float32" in str(compare().exception)


def test_a_written_table_says_how_to_take_it(
    exported: Exported,
    wide_table: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {**wide_table, "conditions": {"threads": 2, "batch": 8}}
    monkeypatch.setattr("hytas.export.latency.profile", lambda card, **given: table)
    monkeypatch.setattr("hytas.export.latency.predict", lambda table, card, name: 0.2)
    path = tmp_path / "out.json"
    done = run_bench(monkeypatch, exported.onnx, "--no-torch", "--profile-table", path)
    assert f"use it as --budget 3ms-latency@{path}" in done.output
    assert "--space hytas-wide --variable bands=23 --variable classes=4" in done.output
    assert "predicts 0.200 ms for this model; measured 0.112 ms (+78 %) at batch 8" in done.output
    assert json.loads(path.read_text()) == table


def test_the_folder_of_a_run_names_its_model(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").write_bytes(exported.onnx.read_bytes())
    measured: list[str] = []

    def watching(settings: Any, advance: Any) -> list[Any]:
        measured.extend(setting.model for setting in settings)
        return []

    monkeypatch.setattr("hytas.deploy.bench.bench", watching)
    done = CliRunner().invoke(command, [str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    assert set(map(str, measured)) == {str(tmp_path / "model.onnx")}


def test_what_bench_refuses(exported: Exported) -> None:
    for arguments, message in (
        (["--threads", "100000"], "threads=100000: must be at most 1024"),
        (["--threads", "0"], "threads='0': must be a list of positive numbers"),
        (["--batch", "1,x"], "batch='1,x': must be a list of positive numbers"),
        (["--provider", "npu"], "provider='npu': must be one of auto, cpu, cuda"),
        (["--table", "none.json"], "table='none.json': must be a file; there is none"),
    ):
        done = CliRunner().invoke(command, [str(exported.onnx), *arguments])
        assert isinstance(done.exception, InputError), done.output
        assert message in str(done.exception)


def test_why_a_measurement_failed(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = dataclasses.replace(bench_settings(exported.onnx)[0], batch=10**13)
    with pytest.raises(InputError, match=r"at batch 10{13} and 1 thread\(s\) failed: Unable to al"):
        bench([setting])
    (tmp_path / "killed.py").write_text("import os; os.kill(os.getpid(), 9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(InputError, match=r"failed: signal 9 ended it: is there too little memory"):
        bench([dataclasses.replace(setting, runtime="killed")])
