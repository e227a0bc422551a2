"""`hytas classify`, `inspect` and `doctor`, as the user runs them."""

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import rasterio
from click.testing import CliRunner
from rasterio.warp import reproject
from scipy.io import loadmat, savemat
from small_model import Exported
from test_rasters import opened, write_cube

from commands import Run
from hytas.cli.classify import classify
from hytas.export.onnx_file import set_card


@pytest.fixture(scope="module")
def scene(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scene") / "quarters.mat"
    savemat(path, {"cube": exported.scene.cube})
    labels = np.array((0, *exported.card.class_ids))[exported.scene.labels]
    savemat(path.with_name("gt.mat"), {"gt": labels.astype(np.uint8)})
    return path


def test_classify_imports_no_torch(
    exported: Exported, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home := tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY"):
        monkeypatch.delenv(name, raising=False)
    home.mkdir()
    arguments = ["classify", exported.onnx, scene, "--out", tmp_path / "map.npy", "--json"]
    code = (
        "import sys\nfrom hytas.cli.main import run\n"
        f"try: run({[str(value) for value in arguments]!r})\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules and 'onnx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=1800)
    written = np.load(tmp_path / "map.npy")
    assert written.shape == (17, 23)
    assert set(np.unique(written)) <= {3, 4, 9, 200}
    assert not list(home.rglob("*"))  # onnxruntime keeps no figures of its use


LACKING = ("torch", "sklearn", "scipy", "h5py", "xarray", "pandas", "matplotlib", "PIL", "onnx")
LACKING += ("shapely", "pyogrio", "cloudpickle", "jinja2", "pooch", "zarr", "defusedxml", "bsdiff4")


def test_classify_needs_few_packages(exported: Exported, tmp_path: Path) -> None:
    """Of an ENVI scene to a GeoTIFF: the packages of `docs/board.md`."""
    path = write_cube(tmp_path / "scene", exported.scene.cube, "bil", "<")
    arguments = ["classify", exported.onnx, path, "--out", tmp_path / "map.tif"]
    code = (
        f"import sys\nsys.modules |= dict.fromkeys({LACKING})\n"
        f"from hytas.cli.main import run; run({[str(value) for value in arguments]!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    with rasterio.open(tmp_path / "map.tif") as file:
        assert set(np.unique(file.read(1))) <= {3, 4, 9, 200}


def test_inspect_a_model_a_scene_and_a_folder(
    exported: Exported, scene: Path, tmp_path: Path, here: Run
) -> None:
    counts = list(exported.scene.class_counts().values())
    model = json.loads(here("inspect", exported.onnx, "--json").stdout)
    assert model["input"] == "patches (N, 5, 5, 24) uint16"
    assert model["bands kept"] == "23 of 24"
    assert model["classes"] == {"grass": 3, "gravel": 4, "roof": 9, "water": 200}
    assert model["bytes"] == exported.onnx.stat().st_size
    assert model["sha256"] == hashlib.sha256(exported.onnx.read_bytes()).hexdigest()
    with_labels = here("inspect", scene, "--labels", scene.with_name("gt.mat"), "--json")
    found = json.loads(with_labels.stdout)
    assert (found["size"], found["bands"], found["type"]) == ("17 x 23 pixels", 24, "uint16")
    assert found["class ids"] == [3, 4, 9, 200]
    assert found["values"].startswith(f"{exported.scene.cube.min()} to ")
    bare = here("inspect", scene)
    assert "--labels" in bare.stdout
    assert bare.returncode == 0
    labels = json.loads(here("inspect", scene.with_name("gt.mat"), "--json").stdout)
    assert (labels["what"], labels["unlabelled"]) == ("label map", 0)
    assert labels["classes"] == dict(zip(["3", "4", "9", "200"], counts, strict=True))
    embedded = json.loads(here("inspect", "synthetic", "--json").stdout)
    assert embedded["labelled pixels"] > 0
    assert "problems" not in embedded
    # Options of the cube alone do not need labels, and are checked.
    marked = here("inspect", scene, "--nodata", 7)
    assert (marked.returncode, "17 x 23 pixels" in marked.stdout) == (0, True)
    assert here("inspect", scene, "--bands", "2-5").returncode == 0
    for option, value, words in (
        ("--nodata", 70000, "nodata 70000"),
        ("--bands", "500-600", "bands"),
        ("--unlabelled", 5, "holds no label map"),
    ):
        wrong = here("inspect", scene, option, value)
        assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
        assert words in wrong.stderr
    empty = here("inspect", tmp_path)
    assert empty.returncode == 2
    assert "is not a run folder" in empty.stderr
    of_scenes = here("inspect", scene.parent).stderr
    assert "is not a run folder: it holds no config.json; of a scene, name its file" in of_scenes
    (tmp_path / "metrics.json").write_text('{"OA": 0.5}')
    folder = json.loads(here("inspect", tmp_path, "--json").stdout)
    assert folder["metrics"] == {"OA": 0.5}
    assert folder["files"] == {"metrics.json": 11}


def test_labels_of_no_class_or_one(
    exported: Exported, scene: Path, tmp_path: Path, here: Run
) -> None:
    gt = loadmat(scene.with_name("gt.mat"))["gt"]
    for name, few in (("none", gt * 0), ("one", gt == 3)):
        np.save(tmp_path / f"{name}.npy", few.astype(np.uint8))
        told = json.loads(
            here("inspect", scene, "--labels", tmp_path / f"{name}.npy", "--json").stdout
        )
        assert told["size"] == "17 x 23 pixels"
        assert f"--labels {name}: holds" in told["problems"][0]
    point = {"type": "Point", "coordinates": [2.5, 3.5]}
    one = {"type": "Feature", "properties": {"class": "a"}, "geometry": point}
    placed = tmp_path / "placed.tif"
    facts = {"height": 17, "width": 23, "count": 2, "dtype": "uint8", "crs": "EPSG:4326"}
    with rasterio.open(placed, "w", transform=rasterio.Affine(1, 0, 0, 0, -1, 17), **facts):
        pass
    for features, holds in (([], "no shapes"), ([one], "labels of a: 2 classes are needed")):
        collection = {"type": "FeatureCollection", "features": features}
        (tmp_path / "few.geojson").write_text(json.dumps(collection))
        told = json.loads(
            here("inspect", placed, "--labels", tmp_path / "few.geojson", "--json").stdout
        )
        assert f"holds {holds}" in told["problems"][0]
    empty = {"type": "FeatureCollection", "features": []}
    (tmp_path / "none.geojson").write_text(json.dumps(empty))
    arguments = ("classify", exported.onnx, scene, "--out", tmp_path / "map.npy", "--json")
    for name in ("none.npy", "none.geojson"):
        report = json.loads(here(*arguments, "--labels", tmp_path / name).stdout)
        assert report["findings"][-1]["code"] == "empty"
        assert "accuracy" not in report
    assert np.load(tmp_path / "map.npy").any()
    (tmp_path / "none.csv").touch()
    assert here(*arguments, "--labels", tmp_path / "none.csv").returncode == 2
    cube = exported.scene.cube.copy()
    cube[:5] = 7
    np.save(tmp_path / "cut.npy", cube)
    np.save(tmp_path / "cut_gt.npy", np.where(np.arange(17)[:, None] < 5, gt, 0))
    cut = ("classify", exported.onnx, tmp_path / "cut.npy", "--out", tmp_path / "cut_map.npy")
    done = here(*cut, "--nodata", 7, "--json", "--labels", tmp_path / "cut_gt.npy")
    report = json.loads(done.stdout)
    assert (done.returncode, "accuracy" in report) == (0, False)
    found = report["findings"][-1]
    assert (found["code"], found["case"]) == ("empty", "truth-without-data")
    assert found["where"] == "cut_gt.npy"
    assert np.load(tmp_path / "cut_map.npy")[5:].any()
    refused = here(*cut, "--labels", "synthetic")
    assert (refused.returncode, "they must agree" in refused.stderr) == (2, True)


def test_doctor_always_answers(here: Run) -> None:
    done = here("doctor", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["cores"] >= 1
    assert "cpu" in found["onnxruntime"]["working"]
    assert found["packages"]["torch"]
    assert here("doctor").returncode == 0


def emit_like(exported: Exported, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The scene as an EMIT product whose table turns it by a quarter; the table."""
    import h5py

    height, width, bands = exported.scene.cube.shape
    rows, columns = np.mgrid[0:height, 0:width]
    with h5py.File(path, "w") as file:
        file["reflectance"] = exported.scene.cube
        file["sensor_band_parameters/wavelengths"] = np.linspace(400, 2400, bands)
        file["location/lat"], file["location/lon"] = rows * 0.1, columns * 0.1
        file["location/glt_x"], file["location/glt_y"] = columns.T + 1, rows.T + 1
        file.attrs["geotransform"] = np.array([20.0, 0.1, 0.0, 40.0, 0.0, -0.1])
    return rows.T, columns.T


def test_classify_on_the_map_grid_of_a_product(exported: Exported, tmp_path: Path) -> None:
    rows, columns = emit_like(exported, tmp_path / "emit.nc")
    model = tmp_path / "model.onnx"
    graph = onnx.load(exported.onnx)
    set_card(graph, dataclasses.replace(exported.card, wavelengths=None))
    onnx.save(graph, model)
    runner = CliRunner()
    command = [str(model), str(tmp_path / "emit.nc"), "--out"]
    for extra, out in (([], "plain.tif"), (["--ortho"], "ortho.tif")):
        sure = ["--confidence", str(tmp_path / f"sure-{out}")]
        done = runner.invoke(classify, [*command, str(tmp_path / out), *sure, *extra])
        assert done.exit_code == 0, done.output
    for name in ("", "sure-"):
        with opened(tmp_path / f"{name}plain.tif") as plain:
            values = plain.read(1)
            expected = values[rows, columns]
            points, system = plain.gcps
            grid = {"dst_transform": rasterio.Affine(0.1, 0, -0.05, 0, 0.1, -0.05)}
            grid |= {"dst_crs": system, "destination": np.zeros_like(values)}
            placed, _ = reproject(values, src_crs=system, gcps=points, **grid)
            np.testing.assert_array_equal(placed, values)
        with rasterio.open(tmp_path / f"{name}ortho.tif") as ortho:
            np.testing.assert_array_equal(ortho.read(1), expected)
            assert ortho.transform == rasterio.Affine(0.1, 0.0, 20.0, 0.0, -0.1, 40.0)


def test_a_run_s_folder_is_a_model(exported: Exported, scene: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    given = [str(tmp_path / "run"), str(scene), "--out", str(tmp_path / "map.npy")]
    missing = CliRunner().invoke(classify, given)
    assert "run/model.onnx" in str(missing.exception)
    shutil.copy(exported.onnx, tmp_path / "run" / "model.onnx")
    done = CliRunner().invoke(classify, [*given, "--json"])
    assert json.loads(done.output)["model"] == str(tmp_path / "run" / "model.onnx")
