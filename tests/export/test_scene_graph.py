"""What is traced, and the scene graph, against the model patch by patch."""

import dataclasses
import subprocess
import sys
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
from hytas.export import check_parity, export_formats
from hytas.export.onnx_file import inference_copy
from hytas.export.scene_graph import CHUNK, PIECES, StripModel, TileModel, piece_of, to_scene_onnx
from hytas.model_card import ModelCard
from hytas.models import InputShape, Network, SensorModel, build_network
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


@pytest.mark.parametrize("width", [5, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE])
def test_every_width(wide: Exported, width: int) -> None:
    deployed = DeployedModel.load(wide.files["onnx-scene"], "cpu")
    scene = small_scene("int16", height=6, width=width)
    found = classify_scene(deployed, scene.cube)
    expected = Exported(scene, wide.model, wide.card, wide.folder, {})
    answers = wide.probabilities(expected.patches())
    assert np.abs(found.confidence.ravel() - answers.max(1)).max() < 1e-5


def test_pieces_of_every_size_give_the_same_bits() -> None:
    """On a tile of several chunks, whose last chunk goes beyond it."""
    scene = small_scene("int16", height=6, width=2 * CHUNK + 7)
    model, card = small_model(scene, wide_architecture(*CONVOLVED))
    maps = []
    for piece in (8, 2 * CHUNK):
        graph = to_scene_onnx(model, card, piece=piece).SerializeToString()
        deployed = DeployedModel.from_bytes(graph, f"piece {piece}", "cpu", threads=1)
        maps.append(deployed.run_tile(scene.cube))
    for classes, confidence in maps[1:]:
        assert np.array_equal(classes, maps[0][0])
        assert np.array_equal(confidence, maps[0][1])
    expected = model(torch.from_numpy(PatchReader(scene.cube, 5)(_inside(scene.labels.shape))))
    assert np.abs(maps[0][1].ravel() - expected.detach().amax(1).numpy()).max() < 1e-5


def _inside(shape: tuple[int, ...], margin: int = 2) -> np.ndarray:
    """Return the flat indices of the pixels whose patches do not end at the border."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    return numbers[margin:-margin, margin:-margin].ravel()


def test_small_networks_take_larger_pieces() -> None:
    scene = small_scene("int16")
    sizes = []
    for width in (256, 48, 16):
        architecture = wide_architecture(*CONVOLVED) | {"embed_dim": width}
        model, card = small_model(scene, architecture)
        sizes.append(piece_of(TileModel(model), StripModel(model, card), card))
    assert sizes == sorted(set(sizes))
    assert PIECES[0] <= sizes[0] <= sizes[-1] <= PIECES[1]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_wide_line_takes_little_memory(tmp_path: Path) -> None:
    """8000 pixels of 72 bands are 8 MB; without chunks, running added 75 MB to the process."""
    scene = small_scene("int16", bands=72)
    model, card = small_model(scene, wide_architecture(*CONVOLVED))
    path = tmp_path / "scene.onnx"
    path.write_bytes(to_scene_onnx(model, card).SerializeToString())
    code = (
        "import sys, numpy\n"
        "from hytas.deploy import DeployedModel\n"
        "from hytas.deploy.bench import resident_mb\n"
        "model = DeployedModel.load(sys.argv[1], 'cpu', threads=1)\n"
        "tile = numpy.zeros((5, 8004, 72), 'int16')\n"
        "before = resident_mb()\n"
        "model.run_tile(tile)\n"
        "print(resident_mb() - before)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 25


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
def test_bands_cut_out_by_runs_or_gathered_are_scaled_as_numpy_does(
    bands: list[int], dtype: str, most_runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.models.sensor.MOST_RUNS", most_runs)
    rng = np.random.default_rng(0)
    kept = np.array(bands)
    offset, scale = rng.uniform(0, 9, (2, len(kept))).astype("f4") + 1
    preprocessing = Preprocessing(kept, offset, scale, "standard", 12, reach=4.0)
    model = SensorModel(nn.Flatten(), preprocessing)
    raw = rng.integers(-50, 50, (3, 5, 5, 12)).astype(dtype)
    if dtype == "float32":
        raw[0, 1, 1, kept[0]], raw[1, 2] = np.inf, np.nan
    expected = preprocessing.apply(raw)
    assert np.abs(expected).max() == 4.0
    shipped = inference_copy(model, dataclasses.replace(CARD, dtype=dtype))
    assert shipped.scaling.finite == (dtype == "int16")
    assert shipped.scaling.whole == (len(kept) == 12)
    for scaling in (model.scaling, shipped.scaling):
        assert np.array_equal(scaling(torch.from_numpy(raw).float()).numpy(), expected)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("group", [1, 3, 5])
def test_depth_and_group_of_what_is_traced(depth: int, group: int) -> None:
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
        expected = model(patches)
        with attention_written_out():
            assert torch.allclose(inference_copy(model, CARD)(patches), expected, atol=2e-6)
        tokens = network.band_embed(patches)
        for index in range(7):
            strip = network.band_embed.of_strip(patches[index])
            assert torch.allclose(strip[0], tokens[index], atol=1e-4)


class Silent(Network):
    """A network that overrides nothing of what it could do."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.mean(dim=(1, 2))[:, :4]


class Foreign(nn.Module):
    """A module that does not say what it can do."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.mean(dim=(1, 2))[:, :4]


@pytest.mark.parametrize("kind", [Silent, Foreign])
def test_a_patch_graph_asks_nothing_of_a_network(
    kind: type[nn.Module], wide: Exported, tmp_path: Path
) -> None:
    model = SensorModel(kind(), Preprocessing.from_dict(wide.card.preprocessing)).eval()
    files = export_formats(model, tmp_path, wide.card, ["onnx", "torchscript"])
    check_parity(model, files, [wide.patches(9)])


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
