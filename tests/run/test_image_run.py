"""The whole way with images: search, race, final training, export, and a folder of new images."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hytas.cli.main import run
from hytas.data import ImageSet, load_images
from hytas.data.images.load import textures
from hytas.deploy import DeployedModel
from hytas.job import run_pipeline
from hytas.run import Outcome, RunConfig
from hytas.run.weights import load_weights
from hytas.train import Recipe

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
    assert "test images (AA" in page
    assert "There is no map" not in page


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
