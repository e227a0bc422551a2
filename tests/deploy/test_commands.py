"""`hytas classify`, `inspect` and `doctor`, as the user runs them."""

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import rasterio
from click.testing import CliRunner
from PIL import Image
from rasterio.warp import reproject
from scipy.io import savemat
from small_model import Exported
from test_rasters import opened, write_cube

from commands import Run
from hytas.cli.classify import classify
from hytas.errors import InputError
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


def test_classify_lists_the_files_that_it_wrote(
    exported: Exported, scene: Path, tmp_path: Path, here: Run
) -> None:
    outputs = ("--out", tmp_path / "map.tif", "--confidence", tmp_path / "sure.tif")
    done = here("classify", exported.onnx, scene, *outputs, "--json")
    assert done.returncode == 0, done.stderr
    written = [Path(name).name for name in json.loads(done.stdout)["written"]]
    assert written == ["map.tif", "map.tif.aux.xml", "map.qml", "sure.tif"]
    assert {path.name for path in tmp_path.iterdir()} == set(written)
    lines = here("classify", exported.onnx, scene, *outputs).stdout.splitlines()
    assert lines[-4:] == [f"written   {tmp_path / written[0]}"] + [
        f"          {tmp_path / name}" for name in written[1:]
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--resize", 5), "resize 5: is for images, not for scenes"),
        (("--skip-unreadable",), "--skip-unreadable True: is for images"),
        (
            ("--class-field", "crop"),
            "--class-field crop: needs the ground truth; name it with --labels",
        ),
        (("--unlabelled", 5), "--unlabelled 5: needs the ground truth"),
        (("--zero-is-a-class",), "--zero-is-a-class: needs the ground truth"),
        (("--class-names", "1=a"), "--class-names 1=a: needs the ground truth"),
    ],
)
def test_options_that_cannot_apply_are_refused(
    options: tuple[object, ...], words: str, exported: Exported, scene: Path, tmp_path, here: Run
) -> None:
    out = tmp_path / "map.npy"
    done = here("classify", exported.onnx, scene, "--out", out, *options)
    assert (done.returncode, out.exists()) == (2, False)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_labels_without_data_cost_only_the_accuracy(
    exported: Exported, tmp_path: Path, here: Run
) -> None:
    cube = exported.scene.cube.copy()
    cube[:5] = 65535
    savemat(tmp_path / "partly.mat", {"cube": cube})
    labels = np.zeros(cube.shape[:2], np.uint8)
    labels[2, 3] = exported.card.class_ids[0]
    savemat(tmp_path / "gt.mat", {"gt": labels})
    out = tmp_path / "map.npy"
    where = ["--out", out, "--labels", tmp_path / "gt.mat", "--nodata", 65535]
    done = here("classify", exported.onnx, tmp_path / "partly.mat", *where)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --labels: none of the 1 labelled pixels holds data\n"
    assert set(np.unique(np.load(out)[5:])) <= set(exported.card.class_ids)


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
    assert "is not a run folder: it holds no config.json; for a scene, name a file" in of_scenes
    (tmp_path / "metrics.json").write_text('{"OA": 0.5}')
    folder = json.loads(here("inspect", tmp_path, "--json").stdout)
    assert folder["metrics"] == {"OA": 0.5}
    assert folder["files"] == {"metrics.json": 11}


def test_doctor_always_answers(here: Run) -> None:
    done = here("doctor", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["cores"] >= 1
    assert "cpu" in found["onnxruntime"]["working"]
    assert found["packages"]["torch"]
    assert here("doctor").returncode == 0


def test_a_picture_is_a_ground_truth(
    exported: Exported, scene: Path, tmp_path: Path, here: Run
) -> None:
    names = exported.scene.class_names
    levels = [0, *(40 * (len(names) - i) for i in range(len(names)))]
    picture = np.repeat(np.array(levels, np.uint8)[exported.scene.labels][..., None], 3, axis=2)
    Image.fromarray(picture).save(tmp_path / "gt.png")
    right, turned = (
        ",".join(f"#{level:02x}{level:02x}{level:02x}={name}" for level, name in pairs)
        for pairs in (zip(levels[1:], order, strict=True) for order in (names, names[::-1]))
    )
    arguments = ["classify", exported.onnx, scene, "--out", tmp_path / "map.npy", "--json"]
    expected = json.loads(here(*arguments, "--labels", scene.with_name("gt.mat")).stdout)
    truth = ["--labels", tmp_path / "gt.png", "--class-names"]
    found = json.loads(here(*arguments, *truth, right).stdout)
    assert found["accuracy"] == expected["accuracy"]
    wrong = json.loads(here(*arguments, *truth, turned).stdout)
    assert wrong["accuracy"]["OA"] < found["accuracy"]["OA"]
    done = here(*arguments, *truth[:2])
    assert done.returncode == 2
    assert "are not among the classes" in done.stderr
    assert "name the class of each colour with --class-names" in done.stderr


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


def changed(exported: Exported, path: Path, change: str) -> Path:
    """The scene with other values, as ENVI; with wavelengths unless the change is that."""
    cube = exported.scene.cube
    values = {"ten": cube * 10, "zeros": cube * 0, "plain": cube, "no wavelengths": cube}[change]
    waves = "" if change == "no wavelengths" else ", ".join(map(str, exported.card.wavelengths))
    header = write_cube(path, values, "bil", "<")
    if waves:
        text = header.read_text()
        header.write_text(f"{text}wavelength units = nm\nwavelength = {{{waves}}}\n")
    return header


@pytest.mark.parametrize("change", ["plain", "ten", "zeros", "no wavelengths"])
def test_values_unlike_the_training_s_are_told_and_refused_if_strict(
    exported: Exported, tmp_path: Path, change: str
) -> None:
    scene, out = changed(exported, tmp_path / "scene", change), tmp_path / "map.npy"
    given = [str(exported.onnx), str(scene), "--out", str(out)]
    runner = CliRunner()
    done = runner.invoke(classify, [*given, "--json"])
    assert done.exit_code == 0, done.output
    usual = exported.card.preprocessing["usual"]
    told = f"and {usual['low']:.6g} to {usual['high']:.6g} in training"
    assert (told in done.output) == (change in ("ten", "zeros"))
    out.unlink()
    strict = runner.invoke(classify, [*given, "--strict"])
    assert (strict.exit_code == 0, out.exists()) == ((change == "plain"),) * 2
    if change != "plain":
        assert isinstance(strict.exception, InputError)
        assert strict.exception.argument == "strict"
        words = "no wavelengths" if change == "no wavelengths" else told
        assert words in strict.exception.rule


def label_raster(exported: Exported, path: Path, east: int, south: int, far: float = 0) -> Path:
    """The truth as a GeoTIFF that lies some pixels to the east and south of the scene."""
    values = np.array((0, *exported.card.class_ids), np.uint8)[exported.scene.labels]
    moved = rasterio.Affine(30, 0, 500000 + 30 * east + far, 0, -30, 4100000 - 30 * south)
    with rasterio.open(
        path, "w", "GTiff", 23, 17, 1, "EPSG:32633", moved, "uint8", nodata=0
    ) as file:
        file.write(np.roll(values, (-south, -east), (0, 1)), 1)
    return path


def test_labels_are_compared_where_they_lie(exported: Exported, tmp_path: Path) -> None:
    scene = write_cube(tmp_path / "scene", exported.scene.cube, "bil", "<")
    given = [str(exported.onnx), str(scene), "--out", str(tmp_path / "map.npy"), "--json"]

    def told(*place: int) -> dict[str, Any]:
        labels = label_raster(exported, tmp_path / "gt.tif", *place)
        done = CliRunner().invoke(classify, [*given, "--labels", str(labels)])
        assert done.exit_code == 0, done.exception
        return json.loads(done.output)

    right, moved = told(0, 0), told(2, 3)
    assert not any("no better than chance" in note for note in right["notes"])
    assert not any("nearest neighbour" in note for note in right["notes"])
    assert any("nearest neighbour" in note for note in moved["notes"])
    labels = exported.scene.labels[3:, 2:] - 1  # what both have
    expected = exported.probabilities(exported.patches()).argmax(1).reshape(17, 23)[3:, 2:]
    assert moved["accuracy"]["pixels"] == labels.size
    assert moved["accuracy"]["OA"] == pytest.approx(float((labels == expected).mean()))
    far = label_raster(exported, tmp_path / "far.tif", 0, 0, far=300_000.0)
    done = CliRunner().invoke(classify, [*given, "--labels", str(far)])
    assert isinstance(done.exception, InputError)
    assert (done.exception.argument, "lies elsewhere" in done.exception.rule) == ("labels", True)


def test_a_run_s_folder_is_a_model(exported: Exported, scene: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    given = [str(tmp_path / "run"), str(scene), "--out", str(tmp_path / "map.npy")]
    missing = CliRunner().invoke(classify, given)
    assert "run/model.onnx" in str(missing.exception)
    shutil.copy(exported.onnx, tmp_path / "run" / "model.onnx")
    done = CliRunner().invoke(classify, [*given, "--json"])
    assert json.loads(done.output)["model"] == str(tmp_path / "run" / "model.onnx")


@pytest.mark.parametrize(
    ("out", "words"), [("map.png", "must end in .tif"), ("map.tif", "has no lookup table")]
)
def test_classify_refuses_a_grid_that_is_not_there(
    exported: Exported, scene: Path, tmp_path: Path, out: str, words: str, here: Run
) -> None:
    done = here("classify", exported.onnx, scene, "--ortho", "--out", tmp_path / out)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / out).exists()
