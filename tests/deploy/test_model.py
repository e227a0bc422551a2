"""Opening a model file, and refusing what is not one."""

import dataclasses
import warnings

import numpy as np
import onnxruntime
import pytest
from small_model import Exported

from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.providers import check_chosen
from hytas.errors import InputError


def test_patches_in_any_number(exported: Exported) -> None:
    deployed = DeployedModel.load(exported.onnx, "cpu")
    patches = exported.patches(71)
    assert deployed.micro_batch < 71
    found = deployed.predict_patches(patches)
    assert found.dtype == np.float32
    assert np.abs(found - exported.probabilities(patches)).max() < 1e-5
    assert deployed.predict_patches(patches[:0]).shape == (0, 4)


def test_parallel_calls_give_the_same_as_one_after_another(exported: Exported) -> None:
    single, parallel = (DeployedModel.load(exported.onnx, "cpu", threads=n) for n in (1, 3))
    assert (single.parallel, parallel.parallel) == (1, 3)
    assert DeployedModel.load(exported.onnx, "cpu", threads=3, one_call=True).parallel == 1
    patches = exported.patches(71)
    expected = single.predict_patches(patches)
    np.testing.assert_array_equal(parallel.predict_patches(patches), expected)


def test_values_of_another_type(exported: Exported) -> None:
    """A cube saved as double is welcome where its values are the sensor's."""
    deployed = DeployedModel.load(exported.onnx, "cpu")
    patches = exported.patches(5)
    wanted = deployed.predict_patches(patches)
    for dtype in ("float64", "int32", "uint8", ">u2", ">f4"):
        assert np.array_equal(deployed.predict_patches(patches.astype(dtype)), wanted)
    for bad in (0.5, -1.0, 70000.0, np.nan):
        broken = patches.astype(np.float64)
        broken[0, 0, 0, 0] = bad
        with pytest.raises(InputError, match=r"values are float64 and .* takes uint16"):
            deployed.predict_patches(broken)


def test_another_sensor_is_refused(exported: Exported) -> None:
    deployed = DeployedModel.load(exported.onnx, "cpu")
    trained = np.array(deployed.card.wavelengths)
    deployed.check_scene(24, trained + 2.0)
    deployed.check_scene(24, None)
    with pytest.raises(InputError, match=r"other.: has 103 bands, and .*model.onnx takes 24"):
        deployed.check_scene(103, None, "other")
    with pytest.raises(InputError, match=r"band 3 lies at 552\.2 nm .* at 452\.2 nm"):
        deployed.check_scene(24, trained + 100.0 * (np.arange(24) == 2))
    with pytest.raises(InputError, match="bands are the model's in another order: sort them"):
        deployed.check_scene(24, trained[::-1])
    with pytest.raises(InputError, match=r"patches: shape \(2, 7, 7, 24\); the model takes"):
        deployed.predict_patches(np.zeros((2, 7, 7, 24), np.uint16))
    one = dataclasses.replace(deployed.card, bands=1, wavelengths=(550.0,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one band has no spacing to compare with
        dataclasses.replace(deployed, card=one).check_scene(1, np.array([900.0]))


def test_a_gpu_asked_for_by_name_is_used_or_refused(exported: Exported) -> None:
    session = onnxruntime.InferenceSession(exported.onnx, providers=["CPUExecutionProvider"])
    check_chosen("cpu", session)
    check_chosen("auto", session)
    with pytest.raises(InputError, match="provider='cuda': could not be started: onnxruntime-gpu"):
        check_chosen("cuda", session)


def test_a_value_that_does_not_fit_is_named_with_its_place(exported: Exported) -> None:
    deployed = DeployedModel.load(exported.onnx, "cpu")
    for value, reason in (
        (0.5, r"0\.5 \(a fraction\)"),
        (70000.0, r"70000\.0 \(outside 0 to 65535\)"),
        (np.nan, r"nan \(not a finite number\)"),
    ):
        cube = exported.scene.cube.astype(np.float64)
        cube[6, 1, 9] = value
        for rows in (1, 5, None):
            with pytest.raises(
                InputError, match=f"{reason}, the value at row 6, column 1, band 10"
            ):
                classify_scene(deployed, cube, tile_rows=rows)
