"""How fast: figures that hang together, and a latency table that the engine reads."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from click.testing import CliRunner, Result
from small_model import Exported, small_model, small_scene, wide_architecture

from hytas._engine import Feasible, SearchSpace
from hytas.cli.bench import _text
from hytas.cli.bench import bench as command
from hytas.deploy.bench import ROUNDS, Setting, _reason, bench, repeat, settings_of
from hytas.errors import InputError
from hytas.export.latency import LAYOUTS, conditions, predict, profile
from hytas.export.latency_parts import Bench, WholeLayer, layer_parts, trace_parts
from hytas.export.latency_rows import Rows, anchors, between_widths, row
from hytas.export.onnx_file import set_card
from hytas.export.timing import time_models
from hytas.model_card import ModelCard
from hytas.models.blocks import KERNELS, MIXERS, Layers, layer_of
from hytas.models.network import as_network
from hytas.spaces import open_space


def test_every_setting_is_measured_in_turn(
    exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[int] = []

    def answer(setting: Setting) -> dict[str, object]:
        order.append(setting.batch)
        slow = 2.0 if len(order) > 2 else 1.0  # a busy moment after the first round
        times = [slow * setting.batch * (1 + call / 100) for call in range(11)]
        return {"ms": times, "cpu_ms": times, "pixels": setting.batch, "peak_mb": 9, "run_mb": 1}

    monkeypatch.setattr("hytas.deploy.bench._measure_apart", answer)
    settings = settings_of(exported.onnx, batches=(1, 10))
    small, large = bench(settings)
    assert order == [1, 10] * ROUNDS
    assert large["ms"] == pytest.approx(10 * small["ms"])
    assert small["spread"] == pytest.approx(2.0)
    assert small["ms"] == 1.0  # of the round that nothing disturbed
    assert small["ms"] < small["p10"] <= small["p90"]
    assert small["pixels_per_second"] == pytest.approx(1000 / small["ms"])
    assert small["calls"] == 11 * ROUNDS


def test_a_real_measurement(exported: Exported) -> None:
    (run,) = bench(settings_of(exported.onnx, batches=(3,), seconds=0.05))
    assert 0 < run["ms"] <= run["p10"] <= run["p90"]
    assert run["cpu_ms"] > 0
    assert 20 < run["peak_mb"] < 500


def test_models_are_timed_in_turn() -> None:
    scene = small_scene()
    models = [
        small_model(
            scene, wide_architecture("pixel", "mean", "conv3", "yes") | {"embed_dim": width}
        )
        for width in (16, 256)
    ]
    small, large = time_models(models, seconds=0.1)
    assert 0 < small < large


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
    assert "--batch 1,x: must be a list of positive numbers" in bad.stderr


def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of parts that can be added up by hand, in ms."""

    def ends(self: Bench, architectures: Sequence[Mapping[str, object]]) -> list[float]:
        return [end(one, self.card.patch_size) for one in architectures]

    def end(one: Mapping[str, Any], side: int) -> float:
        """1.5 that every model has; .1 for pixel tokens; band tokens by area, width and stride.

        .05 where a stream does not attend, .2 where the mean of a stream is read.
        """
        tokens = one.get("tokens", "band")
        if one["space"] == "hytas":
            return 1.5 + 0.02 * side
        cost = 1.5 if tokens == "band" else 1.6
        if tokens != "pixel":
            cost += 0.01 * one["band_width"] * one["patch"] ** 2 / one["band_stride"]
        cost += 0.0 if one["band_mixer"] == "attention" else 0.05
        return cost + (0.2 if one["pooling"] == "mean" else 0.0)

    def part(self: Bench, graph: Any, **sizes: int) -> float:
        if isinstance(graph, WholeLayer):
            return whole(graph)
        kind, value, last = graph
        if kind == "fusion":
            return 0.5
        if kind == "attention":
            return 0.1 * value * (0.25 if last else 1.0)
        return 0.01 * value * (0.1 if sizes["T"] == 1 else 1.0)

    def whole(layer: WholeLayer) -> float:
        """.1 a head, .2 for a convolution; a gate takes .3; .32 times the width over E."""
        mixed = {"attention": 0.1 * layer.heads, "none": 0.0}.get(layer.mixer, 0.2)
        mixed *= 0.25 if layer.last else 1.0
        expanded = 0.32 * layer.ratio + (0.3 if layer.gate else 0.0)
        return mixed + expanded * (0.1 if layer.last else 1.0)

    monkeypatch.setattr(Bench, "models", ends)
    monkeypatch.setattr(Bench, "layers", lambda self, one, stream: Itself())
    monkeypatch.setattr(Bench, "whole_layers", lambda self, embed, wanted: Itself())
    monkeypatch.setattr(Bench, "fusion", lambda self, tokens: ("fusion", tokens, False))
    monkeypatch.setattr(Bench, "part", part)
    monkeypatch.setattr(Bench, "chained", part)
    # A chain takes twice what its parts take alone.
    monkeypatch.setattr(
        Bench,
        "chain",
        lambda self, graphs, **sizes: 2 * sum(part(self, g, **sizes) for g in graphs),
    )


class Itself(dict[Any, Any]):
    """Every key is its own value."""

    def __missing__(self, key: Any) -> Any:
        return key


def with_architecture(exported: Exported, architecture: dict[str, object]) -> ModelCard:
    return dataclasses.replace(exported.card, architecture=architecture)


def test_the_latency_table_adds_up_to_a_model(
    exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With made-up times, the engine's sum is the sum by hand."""
    made_up(monkeypatch)
    architecture = {"space": "hytas", "depth": 4, "embed_dim": 32}
    architecture |= {"num_heads": [3, 4, 5, 6], "mlp_ratio": [1, 2, 3, 4]}
    card = with_architecture(exported, architecture)
    table = profile(card)
    attention = sum(2 * 0.1 * heads * (3 + 0.25) / 4 for heads in (3, 4, 5, 6))
    mlp = sum(2 * 0.32 * ratio * (3 + 0.1) / 4 for ratio in (1, 2, 3, 4))
    assert predict(table, card) == pytest.approx(1.6 + 2 * 1.0 + attention + mlp, abs=5e-3)
    space = SearchSpace.builtin("hytas", table["variables"]).with_table("t", json.dumps(table))
    assert "latency@t" in space.cost_names


@pytest.fixture(scope="module")
def wide_table(exported: Exported) -> dict[str, object]:
    with pytest.MonkeyPatch.context() as patch:
        made_up(patch)
        return profile(with_architecture(exported, wide_architecture("band", "class")))


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        # ends 1.5 and .1 for pixels; band tokens .01 * 7 * 25 / 4; .2 for a mean; a fusion (.5) a
        # stream; layers of four heads (.4 each) and of ratios 1, 2, 3 or 2, 1, 4 (.32 each), the
        # last a quarter or a tenth of its own.
        (("band", "class"), 1.5 + 0.4375 + 0.5 + 1.2 * 2.25 / 3 + 1.92 * 2.1 / 3),
        (("band", "mean"), 1.7 + 0.4375 + 0.5 + 1.2 + 1.92),
        (("pixel", "centre"), 1.6 + 0.5 + 1.2 * 2.25 / 3 + 2.24 * 2.1 / 3),
        (("parallel", "mean"), 2.0 + 0.4375 + 1 + 2.4 + 1.92 + 2.24),
        (
            ("series", "mean"),
            1.8 + 0.4375 + 1 + 1.2 * 2.25 / 3 + 1.92 * 2.1 / 3 + 1.2 + 2.24,
        ),
        # Without attention there is neither fusion nor a class token: .05 more a stream.
        (("pixel", "centre", "conv5", "no"), 1.65 + 0.6 * 2.25 / 3 + 2.24 * 2.1 / 3),
        (("pixel", "mean", "none", "yes"), 1.85 + 0.9 + 2.24),
        (("band", "mean", "conv3", "yes"), 1.75 + 0.4375 + 0.6 + 0.9 + 1.92),
        (("series", "mean", "conv3", "no"), 2.1 + 0.4375 + 1.2 + 1.92 + 2.24),
        (("parallel", "class", "attention", "yes"), 1.6 + 0.4375 + 1.8 + 5.96 * 0.7),
    ],
)
def test_the_table_of_the_wide_space_adds_up(
    exported: Exported,
    wide_table: dict[str, object],
    chosen: tuple[str, ...],
    expected: float,
) -> None:
    architecture = wide_architecture(*chosen)
    if chosen[0] == "pixel":  # which has no band tokens, so the space fixes their genes
        architecture |= {"band_width": 3, "band_stride": 2}
    card = with_architecture(exported, architecture)
    assert predict(wide_table, card) == pytest.approx(expected, abs=5e-3)


def test_a_budget_of_the_wide_space_holds_exactly(
    wide_table: dict[str, object], tmp_path: Path
) -> None:
    """`--budget 3ms-latency@table.json --space hytas-wide`: what is drawn costs at most that."""
    path = tmp_path / "table.json"
    path.write_text(json.dumps(wide_table))
    variables = {"bands": 23, "classes": 4, "patch_size": 5, "band_group": 3}
    space, budget = open_space("hytas-wide", f"1.9ms..2ms-latency@{path}", variables)
    feasible = Feasible(space, budget)
    costs = space.costs(feasible.sample(50, seed=0), f"latency@{path}")
    assert (costs >= 1_900_000).all()
    assert (costs <= 2_000_000).all()
    assert len(np.unique(costs)) > 5


def test_a_space_of_other_layers_has_no_table(exported: Exported) -> None:
    known = ", ".join(LAYOUTS)
    with pytest.raises(InputError, match=f"space='s3': has no layout; must be one of {known}"):
        profile(with_architecture(exported, {"space": "s3"}))


def answer_of(graph: onnx.ModelProto, *inputs: Any) -> Any:
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    names = [source.name for source in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]


def test_parts_are_those_of_the_network(exported: Exported) -> None:
    """Cut apart and put together again, they compute what a layer of the network does."""
    architecture = {"space": "hytas", "embed_dim": 32, "num_heads": [4, 3], "mlp_ratio": [2, 1]}
    here = Bench(exported.card, threads=1, batch=3, seconds=0.01)
    network = as_network(here.network(architecture), "test")
    first, second = network.token_streams["band"].blocks
    tokens = torch.randn(3, 9, 32)
    graphs = trace_parts(layer_parts([first, second], torch.zeros(2, 5, 32)))
    for block, heads, width in ((first, 4, 64), (second, 3, 32)):
        for read in (None, slice(0, 1)):
            attended = answer_of(graphs["attention", heads, read is not None], tokens.numpy())
            found = answer_of(graphs["mlp", width, False], attended)
            with torch.no_grad():
                assert np.allclose(found, block(tokens, read).numpy(), atol=1e-5)


def test_a_whole_layer_is_that_of_the_network(exported: Exported) -> None:
    """Of every kind that a table measures, as it asks for it: with a grid for convolutions only."""
    here = Bench(exported.card, threads=1, batch=3, seconds=0.01)
    keys = [
        WholeLayer(mixer, gate, 2, 2, (3, 3) if mixer in KERNELS else (), last)
        for mixer, gate, last in product(MIXERS, (False, True), (False, True))
    ]
    torch.manual_seed(0)
    graphs = here.whole_layers(16, keys)
    torch.manual_seed(0)
    tokens = torch.randn(3, 9, 16, generator=torch.Generator().manual_seed(1))
    for key in keys:
        layer = layer_of(Layers([2], [2], key.mixer, key.gate), 0, 16, key.grid).eval()
        with torch.no_grad():
            expected = layer(tokens, slice(0, 1) if key.last else None).numpy()
        assert np.allclose(answer_of(graphs[key], tokens.numpy()), expected, atol=1e-5), key
    assert here.chained(graphs[keys[0]], T=9) > 0


def test_costs_between_measured_widths() -> None:
    """Exact where they are quadratic in the width; never beyond the widths beside it."""

    def rows(width: int, cost: float) -> Rows:
        (one,) = [row(cost, embed_dim=width, kind="a")]
        return Rows([one], {"depth": [one]})

    quadratic = {width: rows(width, 1 + 0.1 * width + 0.01 * width**2) for width in (16, 64, 256)}
    found = between_widths(quadratic, 96)
    expected = {"when": {"embed_dim": 96, "kind": "a"}, "cost": 102_760}
    assert found.whole == found.layers["depth"] == [expected]
    steep = {16: rows(16, 1.0), 64: rows(64, 1.0), 256: rows(256, 9.0)}
    assert between_widths(steep, 32).whole[0]["cost"] == 1000
    assert between_widths(steep, 64) is steep[64]
    assert anchors([1, 9, 25, 49, 81], 3.0) == [1, 9, 49, 81]


def test_parts_take_longer_when_they_are_larger(exported: Exported) -> None:
    here = Bench(exported.card, threads=1, batch=8, seconds=0.05)
    architecture = {"space": "hytas", "embed_dim": 64, "num_heads": [4, 4], "mlp_ratio": [1, 6]}
    graphs = here.layers(architecture, "band")
    small, large = (here.part(graphs["mlp", width, False], T=24) for width in (64, 384))
    assert 0 < small < large
    one, all_tokens = (here.part(graphs["attention", 4, last], T=24) for last in (True, False))
    assert one < all_tokens
    layer = [graphs["attention", 4, False], graphs["mlp", 64, False]]
    assert here.chain(layer, T=24) < here.chain(layer * 4, T=24)
    assert here.part(here.fusion(24), E=64) > 0
    shallow = {"space": "hytas-wide", "embed_dim": 32, "pooling": "class", "fusion": "no"}
    shallow |= {"patch": 5, "band_width": 7, "band_stride": 4, "band_heads": 2, "band_mlp": []}
    shallow |= {"pixel_heads": 2, "pixel_mlp": []}
    shallow |= {f"{stream}_mixer": "attention" for stream in ("band", "pixel")}
    shallow |= {f"{stream}_gate": "no" for stream in ("band", "pixel")}
    times = here.models([shallow | {"tokens": tokens} for tokens in ("band", "parallel")])
    assert 0 < times[0] < times[1]


def made_up_run(setting: Setting) -> dict[str, object]:
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
def test_scene_graphs_are_measured_in_rows(graph: str) -> None:
    runs = [made_up_run(Setting("m.onnx", "hytas.deploy.bench", "cpu", 1, 4, 0.1))]
    runs[0]["provider"] = "cpu"
    text = _text({"model": "m.onnx", "graph": graph, "precision": "float32", "runs": runs})
    first, head = text.splitlines()[:2]
    assert first == f"m.onnx: {graph} graph, float32, in tiles 64 pixels wide"
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
    assert "table.json predicts 4.68 ms for this model; measured 0.100 ms (" in compare().output
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
        (["--provider", "npu"], "provider='npu': must be one of auto, cpu, cuda"),
        (["--table", "none.json"], "table='none.json': must be a file; there is none"),
    ):
        done = CliRunner().invoke(command, [str(exported.onnx), *arguments])
        assert isinstance(done.exception, InputError), done.output
        assert message in str(done.exception)


def test_why_a_measurement_failed(exported: Exported) -> None:
    setting = dataclasses.replace(settings_of(exported.onnx)[0], batch=10**13)
    with pytest.raises(InputError, match=r"at batch 10{13} and 1 thread\(s\) failed: Unable to al"):
        bench([setting])
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", killed], capture_output=True, text=True)
    assert _reason(done) == "signal 9 ended it: is there too little memory?"
