"""`hytas predict` and `hytas classify --probabilities`: maps of values, and how they resume."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio
import torch
from affine import Affine
from numpy.testing import assert_allclose
from small_model import ARCHITECTURE, Exported, small_scene
from test_updates import changed

from commands import Run
from hytas.data import PatchReader, Preprocessing, Scene, scene_from_arrays
from hytas.data.targets import checked_targets
from hytas.deploy import DeployedModel, journal
from hytas.deploy.delta import round_difference
from hytas.deploy.values import scene_values
from hytas.errors import InputError
from hytas.export import Evidence, ExportError, describe, export_checked, export_formats
from hytas.export.evidence import judge_predictions
from hytas.export.scene_graph import to_scene_onnx
from hytas.export.updates import check_rounded
from hytas.models import InputShape, SensorModel, build_network
from hytas.tasks import task_of, task_of_card
from hytas.types import Array


@pytest.fixture(scope="module")
def scene() -> Scene:
    cube = small_scene("float32").cube.copy()
    cube[3, 4] = -1
    values = np.stack([cube[..., 3] / 10, np.linspace(1, 2, cube[..., 0].size).reshape(17, 23)], -1)
    flat = values.reshape(-1, 2)
    targets, labelled = checked_targets("labels", ("carbon", "clay"), flat, ("%", "g/kg"))
    labels = labelled.reshape(17, 23).astype(np.int32)
    return scene_from_arrays(cube, labels, nodata=-1, targets=targets, name="soil")


def write(path: Path, cube: Array) -> Path:
    height, width, count = cube.shape
    profile = {"height": height, "width": width, "count": count, "dtype": cube.dtype}
    place = {"crs": "EPSG:32633", "transform": Affine(10, 0, 300000, 0, -10, 5000000)}
    with rasterio.open(path, "w", driver="GTiff", **profile, **place) as file:
        file.write(cube.transpose(2, 0, 1))
    return path


@pytest.fixture(scope="module")
def made(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SensorModel]:
    """A model of values of patches, with intervals of 90 %."""
    preprocessing = Preprocessing.fit_scene(scene, np.arange(0, 390, 3))
    shape = InputShape(len(preprocessing.bands), 2, 5, 3)
    task = task_of(scene).fitted(scene.targets(np.flatnonzero(scene.labels)))
    network = build_network(ARCHITECTURE, shape, seed=5)
    model = SensorModel(network, preprocessing, read_out=task.read_out()).eval()
    card = task.described(describe(scene, preprocessing, ARCHITECTURE, shape))
    facts = {**(card.targets or {}), "intervals": {"0.9": [0.5, 0.25]}}
    object.__setattr__(card, "targets", facts)
    folder = tmp_path_factory.mktemp("soil")
    write(folder / "cube.tif", scene.cube)
    return export_formats(model, folder, card, ["onnx"])["onnx"], model


@pytest.mark.parametrize("name", ["map.tif", "map.hdr"])
def test_a_map_of_values_resumes_where_it_was_killed(
    made: tuple[Path, SensorModel],
    scene: Scene,
    here: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    onnx, model = made
    out = tmp_path / name
    given = ["predict", onnx, onnx.parent / "cube.tif", "--out", out, "--interval", "0.9", "--json"]
    monkeypatch.setattr("hytas.deploy.values.TILE_PIXELS", 23 * 4)
    keep = journal.Journal.append

    def stop(self: journal.Journal, top: int, *fields: Array) -> None:
        keep(self, top, *fields)
        if top >= 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(journal.Journal, "append", stop)
        assert here(*given).returncode != 0
    assert [one.name for one in tmp_path.iterdir()] == [f".{name}.partial"]
    begun: list[int] = []

    def seen(*arguments: object) -> object:
        begun.append(int(str(arguments[3])))
        return scene_values(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("hytas.deploy.values.scene_values", seen)
    report = json.loads(here(*given).stdout)
    assert begun == [11]
    assert (report["predicted"], report["no_data"]) == (17 * 23 - 1, 1)
    with rasterio.open(out.with_suffix(".img") if name == "map.hdr" else out) as file:
        written, facts = file.read(), (file.descriptions[:2], file.units[:2], file.nodata)
        assert file.transform.c == 300000
    assert facts[0] == ("carbon", "clay")
    assert np.isnan(facts[2])
    assert name == "map.hdr" or facts[1] == ("%", "g/kg")
    with torch.no_grad():
        patches = torch.from_numpy(PatchReader(scene.cube, 5)(np.arange(17 * 23)))
        expected = model(patches).numpy().reshape(17, 23, 2)
    expected[3, 4] = np.nan
    assert_allclose(written[:2].transpose(1, 2, 0), expected, atol=1e-4)
    width = written[4] - written[0]
    assert_allclose(width[np.isfinite(width)], 0.5, atol=1e-4)


def test_files_of_values_give_values_or_say_their_error(
    made: tuple[Path, SensorModel], scene: Scene, tmp_path: Path
) -> None:
    onnx, model = made
    card, pixels = DeployedModel.load(onnx).card, np.flatnonzero(scene.labels)[::5]
    task = task_of_card(card)
    evidence = Evidence(model, scene.reader(5), pixels, scene.targets(pixels), task)
    with torch.no_grad():
        own = model(torch.from_numpy(evidence.reader(pixels))).numpy()
    evidence = replace(evidence, targets=own + 0.1 * np.array(task.scale))
    written = export_checked(tmp_path, card, ["c", "onnx-fp16", "onnx-int8"], evidence)
    assert written["c"]["max_difference"] < 1e-5
    assert "value of each target" in (tmp_path / "model.h").read_text()
    for name in ("onnx-fp16", "onnx-int8"):
        assert written[name]["R2"] > written[name]["R2_torch"] - 0.01
        assert 0 < max(written[name]["RMSE_of_torch"]) < 0.1 * max(task.scale)
    far = own + 0.5 * np.array(task.scale)
    with pytest.raises(ExportError, match="of R2, which goes from"):
        judge_predictions("onnx-int8", far, own, evidence.targets, task)
    with pytest.raises(InputError, match="is for classes"):
        export_checked(tmp_path, card, ["onnx-scene-smooth"], evidence)


@pytest.mark.parametrize("kind", ["patch", "scene"])
def test_a_rounded_model_of_values_is_checked(
    made: tuple[Path, SensorModel], scene: Scene, kind: str
) -> None:
    path, model = made
    old = path.read_bytes()
    if kind == "scene":
        graph = to_scene_onnx(model, DeployedModel.load(path).card)
        old = graph.SerializeToString(deterministic=True)
    new, pixels = changed(old, 0.01), np.flatnonzero(scene.labels)[::5]
    found = check_rounded(round_difference(old, new, 8)[0], new, scene, pixels, 8)
    assert found["R2"] > found["R2_torch"] - 0.01
    assert found["max_difference"] > 0
    with pytest.raises(ExportError, match="of R2, which goes from"):
        check_rounded(changed(old, 3.0), new, scene, pixels, 8)


def test_a_model_of_classes_gives_probabilities(
    exported: Exported, here: Run, tmp_path: Path
) -> None:
    cube = write(tmp_path / "cube.tif", exported.scene.cube)
    given = [exported.onnx, cube, "--smooth", "none"]
    out = tmp_path / "map.npz"
    done = here("classify", *given, "--out", out, "--probabilities", tmp_path / "chances.tif")
    assert done.returncode == 0, done.stderr
    with rasterio.open(tmp_path / "chances.tif") as file:
        assert file.descriptions == ("grass", "gravel", "roof", "water")
        chances = file.read()
    stored = np.load(out)
    assert_allclose(chances.sum(axis=0), 1, atol=1e-5)
    assert_allclose(chances.max(axis=0), stored["confidence"], atol=1e-6)
    ids = np.array(exported.card.class_ids)
    assert (ids[chances.argmax(axis=0)] == stored["labels"]).all()
    assert DeployedModel.load(exported.onnx).card.targets is None
