"""Every format on real pixels, and the rule that reduced precision must pass."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from small_model import CONVOLVED, Exported, small_model, small_scene, wide_architecture

from hytas.deploy import DeployedModel
from hytas.export import FORMATS, Evidence, ExportError, export_checked, export_formats

CHECKED = ["onnx-scene", "onnx-fp16", "onnx-int8", "onnx-w8", "pt2"]
CHECKED += ["onnx-scene-fp16", "onnx-scene-w8"]


def evidence_of(exported: Exported) -> Evidence:
    """Evidence whose true classes are the model's own wherever it is sure of them."""
    pixels = np.arange(exported.scene.labels.size)
    probabilities = exported.probabilities(exported.patches())
    second, first = np.sort(probabilities, axis=1)[:, -2:].T
    truth = (probabilities.argmax(1) + (first - second < 0.05)) % 4
    return Evidence(exported.model, exported.scene.reader(5), pixels, truth)


@pytest.fixture(scope="module")
def written(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    folder = tmp_path_factory.mktemp("formats")
    return export_checked(folder, exported.card, CHECKED, evidence_of(exported))


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A network of gated convolutions."""
    scene = small_scene()
    model, card = small_model(scene, wide_architecture("series", *CONVOLVED[1:]))
    folder = tmp_path_factory.mktemp("gated")
    return Exported(scene, model, card, folder, export_formats(model, folder, card, ["onnx"]))


@pytest.fixture(scope="module")
def reduced_files(
    exported: Exported,
    written: dict[str, dict],
    gated: Exported,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, tuple[Exported, dict[str, dict]]]:
    folder = tmp_path_factory.mktemp("gated formats")
    formats = ["onnx-fp16", "onnx-int8", "torchscript"]
    found = export_checked(folder, gated.card, formats, evidence_of(gated), force=True)
    return {"attention": (exported, written), "gated convolutions": (gated, found)}


@pytest.mark.parametrize(
    ("kind", "name"),
    [("attention", "onnx-fp16"), ("attention", "onnx-int8"), ("gated convolutions", "onnx-fp16")],
)
def test_reduced_precision_passes_with_figures(
    reduced_files: dict[str, tuple[Exported, dict[str, dict]]], kind: str, name: str
) -> None:
    exported, written = reduced_files[kind]
    found = written[name]
    assert found["pixels"] == 17 * 23
    assert 0.99 <= found["agreement"] <= 1.0
    assert found["OA"] == pytest.approx(found["OA_torch"], abs=0.005)
    # Reduced precision that changed nothing would be no reduced precision.
    assert 1e-6 < found["max_difference"] < 0.1
    assert found["bytes"] < 0.75 * exported.onnx.stat().st_size
    card = DeployedModel.load(found["file"], "cpu").card
    assert card.precision == ("float16" if name == "onnx-fp16" else "int8")
    assert not card.forced


def test_only_products_with_weights_are_quantised(written: dict[str, dict]) -> None:
    graph = onnx.load(written["onnx-int8"]["file"]).graph
    weights = {tensor.name: tensor.data_type for tensor in graph.initializer}
    int8 = [key for key, kind in weights.items() if kind == onnx.TensorProto.INT8]
    # Queries, keys, values, projection and two of the MLP, in three layers; and the head.
    assert len([key for key in int8 if "zero_point" not in key]) == 19
    float_products = [n for n in graph.node if n.op_type == "MatMul"]
    assert len(float_products) >= 8  # attention (6) and the fusion before the third layer (2)


@pytest.mark.slow
def test_the_program_runs_in_a_process_that_has_torch_alone(
    exported: Exported, written: dict[str, dict], tmp_path: Path
) -> None:
    """As on another computer: no hytas, any batch size, the answers of the ONNX file."""
    patches = exported.patches(70)
    np.save(tmp_path / "patches.npy", patches)
    code = (
        "import sys, numpy, torch\n"
        "program = torch.export.load(sys.argv[1]).module()\n"
        "patches = torch.from_numpy(numpy.load('patches.npy'))\n"
        "answers = [program(patches[start:stop]) for start, stop in ((0, 1), (1, 9), (9, 70))]\n"
        "numpy.save('answers.npy', torch.cat(answers).detach().numpy())\n"
        "assert not any(name.partition('.')[0] == 'hytas' for name in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, written["pt2"]["file"]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "answers.npy")
    expected = DeployedModel.load(exported.onnx, "cpu").predict_patches(patches)
    assert np.abs(found - expected).max() < 1e-5
    assert np.array_equal(found.argmax(axis=1), expected.argmax(axis=1))


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A model that int8 breaks: one channel is huge, and read by nothing."""
    scene = small_scene()
    model, card = small_model(scene)
    with torch.no_grad():
        for block in model.network.band_stream.blocks:
            for norm, reader in ((block.norm1, block.attention.qkv), (block.norm2, block.fc1)):
                norm.bias[0] = 3e4
                reader.weight[:, 0] = 0.0
    return Exported(scene, model, card, tmp_path_factory.mktemp("fragile"), {})


def test_a_model_that_breaks_is_refused_with_its_figures_and_others_are_written(
    fragile: Exported,
) -> None:
    name = "onnx-int8"
    target = fragile.folder / FORMATS[name].file
    target.write_text("an earlier file")
    with pytest.raises(ExportError) as refusal:
        export_checked(fragile.folder, fragile.card, [name, "onnx"], evidence_of(fragile))
    assert (refusal.value.argument, refusal.value.value) == ("formats", name)
    assert refusal.value.written["onnx"]["labels_changed"] == 0
    figures = r"\d+\.\d+ % of 391 labels agree and OA goes from 0\.\d+ to 0\.\d+"
    assert re.search(figures, refusal.value.rule)
    assert target.read_text() == "an earlier file"
    assert {path.name for path in fragile.folder.iterdir()} == {target.name, "model.onnx"}
    target.unlink()
