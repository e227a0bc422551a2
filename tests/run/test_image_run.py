"""The whole way with images: search, race, final training, export, and a folder of new images."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import tifffile
from onnx import numpy_helper
from PIL import Image

from hytas.cli.main import run
from hytas.data import ImageSet, load_images
from hytas.data.images.arrays import textures
from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.export import FORMATS
from hytas.job import export_run, run_pipeline
from hytas.run import Outcome, RunConfig
from hytas.run.context import open_run
from hytas.run.delivering.comparing import references_stage
from hytas.run.folder import read_json
from hytas.run.weights import load_weights
from hytas.supernet import Supernet
from hytas.train import Recipe
from refusals import refuses
from told import Told

CONFIG = RunConfig(
    budget="30K-params",
    space="autoformer-mini",
    population=4,
    generations=2,
    finalists=2,
    race_steps=2,
    presets="images-light",
    recipe=Recipe(steps=6, batch_size=32),
)


@pytest.fixture(scope="module")
def images() -> ImageSet:
    return textures(each=14, side=8)


@pytest.fixture(scope="module")
def finished(images: ImageSet, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_pipeline(CONFIG, images, tmp_path_factory.mktemp("runs") / "run", device="cpu")


@pytest.fixture(scope="module")
def folder(images: ImageSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images that no run has seen."""
    place = tmp_path_factory.mktemp("folder")
    fresh = textures(seed=7, each=2, side=8)
    for number, values in enumerate(fresh.read(np.arange(len(fresh.labels)))):
        name = fresh.class_names[fresh.labels[number] - 1]
        (place / name).mkdir(exist_ok=True)
        Image.fromarray(values).save(place / name / f"{number}.png")
    return place


def hytas(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_a_run_writes_a_checked_model(finished: Outcome) -> None:
    assert finished.metrics is not None
    assert finished.costs["params"] <= 30_000
    assert finished.metrics["test"]["pixels"] == 18
    assert finished.metrics["smoothed"] is None
    assert finished.metrics["split"]["kind"] == "random"
    kept = {"model.onnx", "predictions.csv", "references.json", "report.html"}
    assert kept <= finished.files.keys()
    assert "map.png" not in finished.files
    worst = [one["max_difference"] for one in finished.metrics["parity"]["formats"].values()]
    assert max(worst) < 1e-4


def test_the_file_takes_raw_images_and_gives_what_torch_gives(
    finished: Outcome, images: ImageSet
) -> None:
    deployed = DeployedModel.load(finished.folder / "model.onnx", "cpu")
    assert deployed.card.of_images
    assert deployed.card.class_names == images.class_names
    raw = images.read(np.arange(40))
    import torch

    with torch.no_grad():
        model = load_weights(finished.folder / "weights.safetensors").sensor_model()
        expected = model(torch.from_numpy(raw)).numpy()
    assert np.abs(deployed.predict_patches(raw) - expected).max() < 1e-5


def test_relative_positions_are_not_written_out(finished: Outcome) -> None:
    weights = (finished.folder / "weights.safetensors").stat().st_size
    for name in ("model.onnx", "model.pt"):
        assert (finished.folder / name).stat().st_size < 1.5 * weights + 120_000, name
    graph = onnx.load(finished.folder / "model.onnx").graph
    parameters = load_weights(finished.folder / "weights.safetensors").network.parameters()
    most = max(each.numel() for each in parameters)
    assert max(numpy_helper.to_array(each).size for each in graph.initializer) <= most


@pytest.mark.parametrize("name", ["onnx-fp16", "onnx-int8"])
def test_smaller_formats_take_images_too(finished: Outcome, images: ImageSet, name: str) -> None:
    told = Told()
    export_run(CONFIG, images, finished.folder, formats=[name], force=True, report=told)
    assert told.stages[-2:] == ["report", "further formats"]
    deployed = DeployedModel.load(finished.folder / FORMATS[name].file, "cpu")
    assert deployed.card.of_images
    assert deployed.predict_patches(images.read(np.arange(3))).shape == (3, 6)


def test_predictions_are_those_of_the_metrics(finished: Outcome) -> None:
    with (finished.folder / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert finished.metrics is not None
    right = sum(row["class"] == row["label"] for row in rows)
    assert right / len(rows) == pytest.approx(finished.metrics["test"]["OA"])


def test_an_svm_and_a_forest_stand_beside_the_winner(finished: Outcome, images: ImageSet) -> None:
    assert finished.metrics is not None
    methods = finished.metrics["references"]["methods"]
    assert [one["title"] for one in methods.values()] == [
        "SVM (RBF) on pixel values",
        "random forest on pixel values",
    ]
    for one in methods.values():
        assert one["test"]["pixels"] == 18
        assert one["of_pixels"] == 66
        assert "smoothed" not in one
    from sklearn.svm import SVC

    split = np.load(finished.folder / "split.npz")
    learnt = np.union1d(split["train"], split["validation"])
    values = images.read(np.arange(len(images.labels))).astype(np.float64)
    flat = (values - values[learnt].mean((0, 1, 2))) / values[learnt].std((0, 1, 2))
    flat = flat.reshape(len(flat), -1)
    chosen = methods["svm"]["details"]
    machine = SVC(C=chosen["C"], gamma=chosen["gamma"]).fit(flat[learnt], images.labels[learnt])
    right = machine.predict(flat[split["test"]]) == images.labels[split["test"]]
    assert methods["svm"]["test"]["OA"] == pytest.approx(right.mean(), abs=0.06)


def test_large_images_have_no_svm_and_the_run_says_so(tmp_path: Path) -> None:
    large, told = textures(each=4, side=40), Told()
    with open_run(tmp_path / "run", CONFIG, large, "cpu", told) as run:
        references_stage(run)
        found = read_json(run.folder.references)
    assert found["reason"].startswith("images of 40 x 40 pixels have 4800 values")
    assert told.lines[-1].startswith("no reference methods: images of 40 x 40 pixels")


def test_the_report_shows_images_and_the_worst_errors(finished: Outcome) -> None:
    page = (finished.folder / "report.html").read_text()
    with (finished.folder / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = [row for row in rows if row["class"] != row["label"]]
    assert page.count("<li><img src=") == 6 * 3 + len(wrong)  # three test images a class
    errors = page[page.index("Worst errors") :]
    places = [errors.index(f"{row['class']}</bdi></b></span>") for row in wrong]
    assert len(places) == len(wrong)
    assert "Classify a folder of images." in page
    assert "test images correctly" in page
    assert "There is no map" not in page


def test_a_finished_run_is_shown_again(finished: Outcome, images: ImageSet) -> None:
    before = (finished.folder / "model.onnx").read_bytes()
    again = run_pipeline(CONFIG, images, finished.folder, device="cpu")
    assert again.metrics == finished.metrics
    assert (finished.folder / "model.onnx").read_bytes() == before


def test_a_folder_is_classified_to_a_table(
    finished: Outcome, folder: Path, tmp_path, capsys
) -> None:
    out = tmp_path / "classes.csv"
    model = finished.folder / "model.onnx"
    code, text, _ = hytas(capsys, "classify", model, folder, "--out", out, "--json")
    assert code == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = load_images(folder)
    assert [row["file"] for row in rows] == list(found.files)
    deployed = DeployedModel.load(model, "cpu")
    chances = deployed.predict_patches(found.read(np.arange(12)))
    names = [deployed.card.class_names[number] for number in chances.argmax(1)]
    assert [row["class"] for row in rows] == names
    right = np.mean([row["class"] == row["label"] for row in rows])
    assert json.loads(text)["accuracy"] == pytest.approx(right)


def test_what_does_not_fit_a_model_of_images_is_refused(
    finished: Outcome, folder: Path, tmp_path, capsys
) -> None:
    model = finished.folder / "model.onnx"

    def told(*arguments: object) -> str:
        code, _, error = hytas(capsys, "classify", model, *arguments)
        assert code == 2
        assert error.count("\n") == 1
        return error

    assert "synthetic: holds no images, and" in told("synthetic", "--out", tmp_path / "a.csv")
    assert "must end in .csv" in told(folder, "--out", tmp_path / "map.png")
    assert "smooth none: is for scenes" in told(folder, "--smooth", "none")
    other = tmp_path / "other" / "1.png"
    other.parent.mkdir()
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(other)
    out = tmp_path / "a.csv"
    assert "1.png: has 9 x 9 pixels, and" in told(other.parent, "--out", out)
    assert not out.exists()
    code, _, _ = hytas(capsys, "classify", model, other.parent, "--resize", 8, "--out", out)
    assert (code, len(out.read_text().splitlines())) == (0, 2)
    for side in (0, -1, 4097):
        assert f"resize {side}: must be 1 to 4096" in told(other.parent, "--resize", side)
    other.write_bytes(b"\x89PNG broken")
    other.with_name("2.png").write_bytes(b"")
    assert "2 of 2 images cannot be read" in (error := told(other.parent, "--out", out))
    assert "1.png is truncated" in error
    assert "; also 2.png; --skip" in error


def test_any_name_of_a_file_can_be_classified(
    finished: Outcome, folder: Path, tmp_path, capsys
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    one = next(folder.glob("rows/*.png")).read_bytes()
    for name in (b"a\nb\x1b[31m.png", b"\xff.png"):  # the second is no UTF-8
        (other / os.fsdecode(name)).write_bytes(one)
    (other / "c\n.png").write_bytes(b"")
    out = tmp_path / "classes.csv"
    model = finished.folder / "model.onnx"
    code, text, _ = hytas(capsys, "classify", model, other, "--skip-unreadable", "--out", out)
    assert code == 0
    assert "1 of 3 images cannot be read and are left out: c" in text
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == ["a\nb\x1b[31m.png", "\\udcff.png"]
    assert rows[0]["class"] == rows[1]["class"]


def test_images_of_another_type_are_noted(
    finished: Outcome, folder: Path, tmp_path, capsys
) -> None:
    for number, path in enumerate(sorted(folder.glob("*/*.png"))[:3]):
        with Image.open(path) as image:
            values = np.asarray(image).astype(np.uint16 if number else np.uint8)
        tifffile.imwrite(tmp_path / f"{number}.tif", values)
    model, out = finished.folder / "model.onnx", tmp_path / "classes.csv"
    code, text, _ = hytas(capsys, "classify", model, tmp_path, "--out", out)
    assert code == 0
    assert "2 of 3 images hold uint16 values, and the model was trained on uint8" in text
    code, text, _ = hytas(capsys, "classify", model, folder, "--out", out)
    assert (code, "trained on" in text) == (0, False)


@pytest.mark.parametrize("method", ["uniform", "sandwich"])
def test_a_supernet_of_images_takes_their_space(method: str, tmp_path: Path, capsys) -> None:
    out = tmp_path / "sup"
    options = ["--budget", "20K..30K-params", "--steps", 2, "--recipe", "batch_size=96"]
    code, _, error = hytas(
        capsys, "supernet", "train", "--data", "digits", "--train-per-class", 12, *options,
        "--method", method, "--out", out,
    )  # fmt: skip
    assert code == 0, error
    assert (
        json.loads((out / "config.json").read_text())["config"]["search"]["space"]
        == "autoformer-mini"
    )
    assert Supernet.load(out / "supernet.safetensors").space == "autoformer-mini"


def test_spaces_and_data_that_do_not_fit_are_refused(images: ImageSet, tmp_path: Path) -> None:
    wrong = RunConfig(budget="30K-params", space="hytas-wide", presets="plain")
    with pytest.raises(InputError, match="its networks take scenes, and the data are a set of"):
        run_pipeline(wrong, images, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
    for name, value in {
        "labels": "classes",
        "test_data": ["synthetic"],
        "resample": True,
        "scale_by": "scene",
        "zero_is_a_class": True,
        "patch_size": 5,
        "band_group": 1,
        "nodata": 0.0,
    }.items():
        with refuses(name, rule="is for scenes, and digits is a set of images"):
            RunConfig(data="digits", **{name: value}).load_scene()
    with refuses("resize", 32, "is for images, and synthetic is a scene"):
        RunConfig(resize=32).load_scene()
    wrong_settings = {
        "cutmix": 0.5,
        "shift": 0.1,
        "crop": 0.5,
        "mirror": True,
        "rand_augment": 2,
        "erasing": 0.1,
    }
    for name, value in wrong_settings.items():
        changed = Recipe(**{name: value})
        with refuses("recipe", f"{name}={value}", "is for images, and synthetic is a scene"):
            RunConfig(recipe=changed).load_scene()
        assert isinstance(RunConfig(data="digits", recipe=changed).load_scene(), ImageSet)
    for preset in ("images", "autoformer-paper", "s3-paper"):
        with refuses("recipe", preset, "is for images.*it sets .*choose from full"):
            RunConfig(presets=f"plain,{preset}").load_scene()
    with refuses("recipe", "magnitude=5.0", "add rand_augment=2"):
        RunConfig(data="digits", recipe=Recipe(magnitude=5.0))
    RunConfig(data="digits", presets="s3-paper", recipe=Recipe(magnitude=5.0))
    assert RunConfig(data="digits").presets == "images-light,images"
    assert RunConfig().presets == "full,plain,unwhitened"
