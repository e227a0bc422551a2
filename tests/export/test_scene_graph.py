"""What is traced, and the scene graph, against the model patch by patch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_model import CONVOLVED, TOKENS, Exported, small_model, small_scene, wide_architecture
from torch import nn

from hytas.data import PatchReader, Preprocessing
from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from hytas.export import export_formats
from hytas.export.onnx_file import inference_copy
from hytas.export.scene_graph import PIECES, StripModel, TileModel
from hytas.models import Network, SensorModel
from hytas.models.layers import attention_written_out

PIECE = PIECES[0]


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


@pytest.mark.parametrize(
    "chosen",
    [
        ("series", *CONVOLVED[1:]),
        ("parallel", "mean", "attention", "no", 1),
        pytest.param(("pixel", "mean"), marks=pytest.mark.slow),
        pytest.param(("parallel", "mean"), marks=pytest.mark.slow),
    ],
)
def test_the_scene_graph_of_pixel_tokens(chosen: tuple[Any, ...], tmp_path: Path) -> None:
    scene = small_scene("int16", height=7, width=PIECE + 3)
    model, card = small_model(scene, wide_architecture(*chosen))
    files = export_formats(model, tmp_path, card, ["onnx", "onnx-scene"])
    pair = [DeployedModel.load(files[name], "cpu") for name in ("onnx", "onnx-scene")]
    patch, whole = (classify_scene(one, scene.cube) for one in pair)
    assert len(np.unique(patch.labels)) >= 3
    assert np.array_equal(patch.labels, whole.labels)
    assert np.abs(patch.confidence - whole.confidence).max() < 1e-5


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize(
    "layers",
    [
        ("class",),
        ("mean",),
        ("centre",),
        ("class", "attention", "yes"),
        ("mean", "conv5", "no"),
        ("mean", "none", "yes"),
        ("centre", "conv3", "yes"),
    ],
)
def test_what_is_traced_is_the_network(tokens: str, layers: tuple[str, ...]) -> None:
    """The copy for the patch graph, and tile and strip, pixel by pixel."""
    scene = small_scene("int16", height=5, width=9)
    model, card = small_model(scene, wide_architecture(tokens, *layers))
    read = PatchReader(scene.cube, card.patch_size)
    patches = torch.from_numpy(read(np.arange(2 * 9, 3 * 9))).float()
    rows = np.pad(scene.cube, ((0, 0), (2, 2), (0, 0)), mode="reflect").astype("f4")
    plain = inference_copy(model, card)
    with torch.no_grad():
        expected = model(patches)
        with attention_written_out():
            assert torch.allclose(plain(patches), expected, atol=2e-6)
            features = TileModel(plain)(torch.from_numpy(rows))
            classes, confidence, _ = StripModel(plain, card)(features)
    assert torch.allclose(confidence, expected.amax(1), atol=2e-6)
    assert classes.tolist() == np.array(card.class_ids)[expected.argmax(1).numpy()].tolist()


class Silent(Network):
    """A network that overrides nothing of what it could do."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.mean(dim=(1, 2))[:, :4]


class Foreign(nn.Module):
    """A module that does not say what it can do."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.mean(dim=(1, 2))[:, :4]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Silent, "a Silent has no embedding that the patches of a tile share"),
        (Foreign, "a Foreign does not say what it can do"),
    ],
)
def test_a_network_that_shares_nothing_has_no_scene_graph(
    kind: type[nn.Module], message: str, wide: Exported, tmp_path: Path
) -> None:
    model = SensorModel(kind(), Preprocessing.from_dict(wide.card.preprocessing))
    with pytest.raises(InputError, match=f"scene.graph: {message}"):
        export_formats(model, tmp_path, wide.card, ["onnx-scene"])
    assert list(tmp_path.iterdir()) == []
