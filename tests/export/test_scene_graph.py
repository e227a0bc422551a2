"""The scene graph and the lean network, against the plain model patch by patch."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from small_model import TOKENS, Exported, small_model, small_scene, wide_architecture
from torch import nn

from hytas.data import PatchReader, Preprocessing
from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from hytas.export import export_formats, lean
from hytas.export.lean import LeanModel
from hytas.export.scene_graph import PIECE, StripBands, StripModel, TileModel
from hytas.model_card import ModelCard
from hytas.models import InputShape, SensorModel, build_network


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A scene wider than two pieces, of a width that pieces do not divide."""
    scene = small_scene("int16", height=9, width=2 * PIECE + 7)
    model, card = small_model(scene)
    folder = tmp_path_factory.mktemp("wide")
    files = export_formats(model, folder, card, ["onnx-scene"])
    return Exported(scene, model, card, folder, files)


def test_the_scene_graph_is_the_patch_graph(wide: Exported) -> None:
    deployed = DeployedModel.load(wide.files["onnx-scene"], "cpu")
    assert deployed.card.graph == "scene"
    found = classify_scene(deployed, wide.scene.cube)
    expected = wide.probabilities(wide.patches())
    ids = np.array(wide.card.class_ids)[expected.argmax(1)]
    assert len(np.unique(ids)) >= 3
    assert np.array_equal(found.labels.ravel(), ids)
    assert np.abs(found.confidence.ravel() - expected.max(1)).max() < 1e-5


def test_every_tile_size_gives_the_same_bits(wide: Exported) -> None:
    deployed = DeployedModel.load(wide.files["onnx-scene"], "cpu")
    whole = classify_scene(deployed, wide.scene.cube, tile_rows=9)
    for rows in (1, 2, 5):
        tiled = classify_scene(deployed, wide.scene.cube, tile_rows=rows)
        assert np.array_equal(tiled.labels, whole.labels)
        assert np.array_equal(tiled.confidence, whole.confidence)


@pytest.mark.parametrize("width", [5, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE])
def test_every_width(wide: Exported, width: int) -> None:
    deployed = DeployedModel.load(wide.files["onnx-scene"], "cpu")
    scene = small_scene("int16", height=6, width=width)
    found = classify_scene(deployed, scene.cube)
    expected = Exported(scene, wide.model, wide.card, wide.folder, {})
    answers = wide.probabilities(expected.patches())
    assert np.abs(found.confidence.ravel() - answers.max(1)).max() < 1e-5


def test_no_data_is_taken_out_of_the_scene_graph_s_map(wide: Exported) -> None:
    deployed = DeployedModel.load(wide.files["onnx-scene"], "cpu")
    cube = wide.scene.cube.copy()
    cube[4, 3:9] = -99
    found = classify_scene(deployed, cube, nodata=-99)
    empty = np.zeros(cube.shape[:2], bool)
    empty[4, 3:9] = True
    assert np.array_equal(found.labels == 0, empty)
    assert np.array_equal(found.confidence == 0, empty)


def test_a_scene_graph_takes_no_patches(wide: Exported) -> None:
    deployed = DeployedModel.load(wide.files["onnx-scene"], "cpu")
    with pytest.raises(InputError, match=r"is a scene graph: it takes tiles"):
        deployed.predict_patches(wide.patches(3))


def test_a_network_without_such_an_embedding_is_refused(wide: Exported, tmp_path: Path) -> None:
    class Other(nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return pixels.mean(dim=(1, 2))[:, :4]

    preprocessing = Preprocessing.from_dict(wide.card.preprocessing)
    other = SensorModel(Other(), preprocessing)
    with pytest.raises(InputError, match="a Other has no embedding that is shared"):
        export_formats(other, tmp_path, wide.card, ["onnx-scene"])


@pytest.mark.parametrize("tokens", ["pixel", "series", "parallel"])
def test_the_scene_graph_of_pixel_tokens(tokens: str, tmp_path: Path) -> None:
    scene = small_scene("int16", height=7, width=PIECE + 3)
    model, card = small_model(scene, wide_architecture(tokens, "mean"))
    files = export_formats(model, tmp_path, card, ["onnx", "onnx-scene"])
    pair = [DeployedModel.load(files[name], "cpu") for name in ("onnx", "onnx-scene")]
    patch, whole = (classify_scene(one, scene.cube) for one in pair)
    assert len(np.unique(patch.labels)) >= 3
    assert np.array_equal(patch.labels, whole.labels)
    assert np.abs(patch.confidence - whole.confidence).max() < 1e-5


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("pooling", ["class", "mean", "centre"])
def test_lean_and_strip_models_are_the_network(tokens: str, pooling: str) -> None:
    scene = small_scene("int16", height=5, width=9)
    model, card = small_model(scene, wide_architecture(tokens, pooling))
    read = PatchReader(scene.cube, card.patch_size)
    patches = torch.from_numpy(read(np.arange(2 * 9, 3 * 9))).float()
    rows = np.pad(scene.cube, ((0, 0), (2, 2), (0, 0)), mode="reflect").astype("f4")
    with torch.no_grad():
        expected = model(patches)
        assert torch.allclose(LeanModel(model, card)(patches), expected, atol=2e-6)
        features = TileModel(model, card)(torch.from_numpy(rows))
        classes, confidence = StripModel(model, card)(features)
    assert torch.allclose(confidence, expected.amax(1), atol=2e-6)
    assert classes.tolist() == np.array(card.class_ids)[expected.argmax(1).numpy()].tolist()


CARD = ModelCard(
    class_names=tuple("abcde"),
    class_ids=(1, 2, 3, 4, 5),
    patch_size=5,
    bands=12,
    dtype="float32",
    preprocessing={},
    architecture={},
    band_group=3,
    palette=((0, 0, 0),) * 5,
)


@pytest.mark.parametrize(
    "bands", [range(12), [0, 1, 2, 5, 6, 11], range(3, 9), [1, 3, 5, 7, 9, 11], [0]]
)
@pytest.mark.parametrize("dtype", ["int16", "float32"])
@pytest.mark.parametrize("most_runs", [16, 2])
def test_lean_scaling_is_the_scaling(
    bands: list[int], dtype: str, most_runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lean, "MOST_RUNS", most_runs)
    rng = np.random.default_rng(0)
    kept = np.array(bands)
    offset, scale = rng.uniform(0, 9, (2, len(kept))).astype("f4") + 1
    scaling = Preprocessing(kept, offset, scale, "standard", 12, reach=4.0)
    model = SensorModel(nn.Flatten(), scaling)
    raw = rng.integers(-50, 50, (3, 5, 5, 12)).astype(dtype)
    if dtype == "float32":
        raw[0, 1, 1, kept[0]], raw[1, 2] = np.inf, np.nan
    card = dataclasses.replace(CARD, dtype=dtype)
    found = lean.Scaling(model, card)(torch.from_numpy(raw).float()).numpy()
    assert np.array_equal(found, scaling.apply(raw))
    assert np.abs(found).max() == 4.0


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("group", [1, 3, 5])
def test_the_lean_network_is_the_network(depth: int, group: int) -> None:
    architecture = {
        "space": "hytas",
        "depth": depth,
        "embed_dim": 20,
        "num_heads": [3, 4, 6, 3, 1][:depth],
        "mlp_ratio": [1, 2, 3.5, 1, 2][:depth],
    }
    network = build_network(architecture, InputShape(12, 5, 5, group), seed=depth)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3.0)
    bands = np.arange(12)
    scaling = Preprocessing(bands, np.zeros(12, "f4"), np.ones(12, "f4"), "standard", 12)
    model = SensorModel(network, scaling).eval()
    patches = torch.randn(7, 5, 5, 12, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(LeanModel(model, CARD)(patches), model(patches), atol=2e-6)
        tokens = network.band_embed(patches)
        strip = StripBands(network.band_embed, 5)
        for index in range(7):
            assert torch.allclose(strip(patches[index])[0], tokens[index], atol=1e-4)
