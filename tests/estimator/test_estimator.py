"""`HSIClassifier` by the conventions of scikit-learn, and beside the command's own road."""

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import xarray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError

from hytas import HSIClassifier, Recipe, RunConfig, scene_from_arrays, train_architecture
from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from refusals import refuses
from tiny import SPACE

SETTINGS: dict[str, Any] = {
    "space": "hytas",
    "finalists": 1,
    "population": 6,
    "generations": 2,
    "epochs": 12,
    "patch_size": 5,
}
SMALL = {**SETTINGS, "space": SPACE, "epochs": 1, "budget": "1K..6K-params"}


def fields() -> tuple[np.ndarray, np.ndarray]:
    """A cube (24, 30, 20) int16 of three fields, ids 2, 5 and 9, with a strip unlabelled."""
    rng = np.random.default_rng(3)
    labels = np.full((24, 30), 2, np.uint8)
    labels[:, 10:20], labels[12:, 20:] = 5, 9
    spectra = dict(zip((2, 5, 9), rng.uniform(200, 900, (3, 20)), strict=True))
    mean = np.stack([spectra[int(number)] for number in labels.ravel()])
    cube = (mean + rng.normal(0, 60, mean.shape)).reshape(24, 30, 20).astype(np.int16)
    labels[::6] = 0
    return cube, labels


@pytest.fixture(scope="module")
def halves() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cube, labels of its even columns, labels of its odd columns."""
    cube, labels = fields()
    even, odd = labels.copy(), labels.copy()
    even[:, 1::2], odd[:, ::2] = 0, 0
    return cube, even, odd


@pytest.fixture(scope="module")
def fitted(halves: tuple[np.ndarray, ...]) -> HSIClassifier:
    cube, train, _ = halves
    return HSIClassifier("40K..60K-params", "dss", **SETTINGS).fit(cube, train)


def test_it_learns(fitted: HSIClassifier, halves: tuple[np.ndarray, ...]) -> None:
    cube, _, test = halves
    predicted = fitted.predict(cube)
    assert (predicted.shape, predicted.dtype) == ((24, 30), np.uint8)
    assert set(np.unique(predicted)) == {2, 5, 9}
    by_hand = float((predicted == test)[test != 0].mean())
    assert fitted.score(cube, test) == by_hand
    assert by_hand > 0.9


def test_ground_of_no_class_gets_no_class(
    fitted: HSIClassifier, halves: tuple[np.ndarray, ...]
) -> None:
    cube = halves[0].copy()
    cube[:8, :8] = cube[:8, :8].mean()  # as bright in all bands
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the values are doubtful, too
        assert (fitted.predict(cube) != 0).all()
        unknown = fitted.predict(cube, unknown=0.05) == 0
    assert unknown[:6, :6].mean() > 0.8
    assert unknown[10:, 10:].mean() < 0.2


def test_probabilities_belong_to_the_classes(
    fitted: HSIClassifier, halves: tuple[np.ndarray, ...]
) -> None:
    cube = halves[0]
    probabilities = fitted.predict_proba(cube)
    assert probabilities.shape == (24, 30, 3)
    assert np.allclose(probabilities.sum(2), 1, atol=1e-5)
    assert np.array_equal(fitted.classes_[probabilities.argmax(2)], fitted.predict(cube))


def test_it_is_the_road_of_the_command(
    fitted: HSIClassifier, halves: tuple[np.ndarray, ...], tmp_path: Path
) -> None:
    """The same folder of files; its network, trained by `hytas train`'s code, is the same."""
    names = {path.name for path in fitted.run_dir_.iterdir()}
    assert {"config.json", "evaluations.sqlite", "model.onnx", "model.pt", "metrics.json"} <= names
    config = json.loads((fitted.run_dir_ / "config.json").read_text())["config"]["search"]
    assert (config["budget"], config["proxy"], config["seed"]) == ("40K..60K-params", "dss", 0)
    scene = scene_from_arrays(halves[0], train=halves[1], test=halves[2])
    assert scene.classes == 3
    again = RunConfig(space="hytas", split="fixed", patch_size=5, recipe=Recipe(epochs=12))
    train_architecture(fitted.architecture_, again, scene, tmp_path / "run")
    model = DeployedModel.load(tmp_path / "run" / "model.onnx")
    assert np.array_equal(classify_scene(model, halves[0]).labels, fitted.predict(halves[0]))


def test_settings_are_scikit_learn_s() -> None:
    made = HSIClassifier(budget="1M-params", proxy="snip", generations=3, random_state=7)
    assert is_classifier(made)
    settings = made.get_params()
    assert (settings["budget"], settings["proxy"]) == ("1M-params", "snip")
    assert settings["random_state"] == 7
    assert HSIClassifier(**settings).get_params() == settings
    assert made.set_params(proxy="dss") is made
    assert made.get_params()["proxy"] == "dss"
    with pytest.raises(ValueError, match="Invalid parameter 'prxy'"):
        made.set_params(prxy="dss")
    assert repr(HSIClassifier(budget="2M-params")) == "HSIClassifier(budget='2M-params')"


def test_a_clone_is_not_fitted(fitted: HSIClassifier, halves: tuple[np.ndarray, ...]) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    for call in (copy.predict, copy.predict_proba):
        with pytest.raises(NotFittedError):
            call(halves[0])
    with pytest.raises(NotFittedError):
        copy.score(halves[0], halves[2])
    with pytest.raises(NotFittedError):
        copy.export("model.onnx")
    recipe = HSIClassifier(recipe=Recipe(steps=9))
    assert clone(recipe).recipe == Recipe(steps=9)


def test_exports(fitted: HSIClassifier, halves: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    found = fitted.export(tmp_path / "winner.onnx")
    assert found["file"] == str(tmp_path / "winner.onnx")
    assert found["max_difference"] < 1e-4
    model = DeployedModel.load(found["file"])
    assert np.array_equal(classify_scene(model, halves[0]).labels, fitted.predict(halves[0]))
    scene = fitted.export(tmp_path, "onnx-scene")
    assert scene["file"] == str(tmp_path / "scene.onnx")
    assert scene["labels_changed"] == 0
    assert DeployedModel.load(scene["file"]).card.graph == "scene"
    with refuses("path", tmp_path / "winner", r"must end in one of \.onnx, \.pt"):
        fitted.export(tmp_path / "winner")
    with pytest.raises(InputError, match="must be one of onnx, ") as refusal:
        fitted.export(tmp_path / "winner", "tflite")
    assert (refusal.value.argument, refusal.value.value) == ("as_format", "tflite")


def test_a_pickle_predicts_and_exports(
    fitted: HSIClassifier, halves: tuple[np.ndarray, ...], tmp_path: Path
) -> None:
    content = pickle.dumps(fitted)
    again = pickle.loads(content)
    assert np.array_equal(again.predict(halves[0]), fitted.predict(halves[0]))
    files = [one.export(tmp_path / f"{one is again}.onnx")["file"] for one in (fitted, again)]
    assert Path(files[0]).read_bytes() == Path(files[1]).read_bytes()
    with refuses("as_format", "torchscript", "needs the scene and the run"):
        again.export(tmp_path / "model.pt")
    assert halves[0].tobytes()[:2000] not in content


def test_columns_of_a_table_are_those_of_fit() -> None:
    rng = np.random.default_rng(0)
    classes = np.arange(60) % 3
    spectra = rng.uniform(0, 1, (3, 12))[classes] + rng.normal(0, 0.02, (60, 12))
    table = pandas.DataFrame(spectra, columns=[f"{400 + 10 * band} nm" for band in range(12)])
    model = HSIClassifier(**SMALL).fit(table, classes)
    assert model.feature_names_in_.tolist() == list(table)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    others = {
        "same order": table[table.columns[::-1]],
        "unseen at fit time": table.rename(columns={"400 nm": "red"}),
        "now missing": table.iloc[:, 1:],
    }
    for words, columns in others.items():
        for estimator in (model, again):
            calls = (estimator.predict, estimator.predict_proba)
            for call in (*calls, lambda x, e=estimator: e.score(x, classes)):
                with pytest.raises(ValueError, match=f"feature names should match(.|\n)*{words}"):
                    call(columns)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(spectra), model.predict(table))
    with pytest.raises(TypeError, match="string"):  # the fit before stays
        model.fit(table.rename(columns={"400 nm": 400}), classes)
    assert model.feature_names_in_.tolist() == list(table)
    numbered = table.set_axis(range(400, 520, 10), axis=1)
    with pytest.raises(ValueError, match="same order"):
        model.fit(numbered, classes).predict(numbered[numbered.columns[::-1]])
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model.fit(spectra, classes[:, None])
    assert not hasattr(model, "feature_names_in_")
    assert model.classes_.tolist() == [0, 1, 2]


def test_arrays_that_are_no_scene(fitted: HSIClassifier, halves: tuple[np.ndarray, ...]) -> None:
    cube, train, _ = halves
    model = HSIClassifier(**SETTINGS)
    for arrays, message in (
        ((cube[0], train[0]), "two classes or more"),  # the first line, as spectra
        ((cube, train[:-1]), "they must agree"),
        ((cube, train * 0), "no labelled pixel"),
        ((cube, (train > 0).astype(int)), "labels of class 1"),
        ((cube, train - 0.5), "labels must be whole numbers"),
        ((cube.astype(complex), train), "real numbers are needed"),
        ((np.where(cube > 500, np.nan, cube), train), "NaN"),
    ):
        with pytest.raises(InputError, match=message):
            model.fit(*arrays)
    with pytest.raises(InputError, match="class_names='corn': must be the id of a class"):
        HSIClassifier(**SETTINGS, class_names={"corn": "maize"}).fit(cube, train)
    assert not hasattr(model, "classes_")
    for call, message in (
        (lambda: fitted.predict(cube[..., :9]), "has 9 bands, and the fitted model takes 20"),
        (lambda: fitted.predict(cube[0, 0]), "cube: 20 int16: must have three axes"),
        (lambda: fitted.predict(cube[:3]), "classifies patches of 5 x 5"),
        (lambda: fitted.score(cube, train[:-1]), "labels: 23 x 30, and the cube 24 x 30 x 20"),
        (lambda: fitted.score(cube, train * 0), "no pixel is labelled"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_data_arrays_in_and_out(halves: tuple[np.ndarray, ...]) -> None:
    cube, train, test = halves
    plain = HSIClassifier(**SMALL).fit(cube, train)
    places = {"y": np.arange(24.0)[::-1], "x": np.arange(30.0)}
    array = xarray.DataArray(cube, places, ("y", "x", "band"), attrs={"_FillValue": -1})
    labels = xarray.DataArray(train, places, ("y", "x"))
    again = HSIClassifier(**SMALL)
    again.fit(array.transpose("band", "x", "y"), labels.transpose("x", "y"))
    found = again.predict(array)
    assert found.dims == ("y", "x")
    assert found.dtype == np.uint8
    assert found.y.equals(array.y)
    assert np.array_equal(found.values, plain.predict(cube))
    probabilities = again.predict_proba(array)
    assert probabilities.dims == ("y", "x", "class")
    assert probabilities["class"].values.tolist() == [2, 5, 9]
    assert np.allclose(probabilities.values, plain.predict_proba(cube), atol=1e-5)
    tested = xarray.DataArray(test, places, ("y", "x"))
    assert again.score(array, tested) == plain.score(cube, test)
    shifted = tested.isel(x=slice(3, 30))  # a part of it, on the same grid
    assert again.score(array, shifted) == plain.score(cube, np.where(np.arange(30) < 3, 0, test))
    with pytest.raises(InputError, match="no pixel of them lies in the cube"):
        again.score(array, tested.assign_coords(x=places["x"] + 300))
