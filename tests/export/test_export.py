"""Exported files against torch: values, types, bytes, and what is refused."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from small_model import SHALLOW, Exported, small_model, small_scene

from hytas.data import PatchReader
from hytas.deploy import DeployedModel, classify_scene
from hytas.export import check_parity, export_formats, export_onnx
from hytas.export.onnx_file import seal, take_dtype
from hytas.model_card import DTYPES


def batches(patches: np.ndarray, size: int = 50) -> list[np.ndarray]:
    return [patches[at : at + size] for at in range(0, len(patches), size)]


def test_the_files_agree_with_torch_on_every_pixel(exported: Exported) -> None:
    patches = exported.patches()
    parity = check_parity(exported.model, exported.files, batches(patches))
    expected = exported.probabilities(patches).argmax(1)
    assert len(np.unique(expected)) >= 3  # or equal labels would say little
    assert parity.pixels == 17 * 23
    assert np.array_equal(parity.predicted, expected)
    assert set(parity.formats) == {"onnx", "torchscript"}
    assert all(one["max_difference"] < 1e-5 for one in parity.formats.values())
    assert json.loads(json.dumps(parity.to_dict()))["formats"]["onnx"]["labels_changed"] == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_of_a_cube(exported: Exported, dtype: str, tmp_path: Path) -> None:
    """The graph retyped, and TorchScript as it is, against torch on the same values."""
    patches = exported.patches(60).astype(dtype)
    expected = exported.probabilities(patches.astype(np.float32))
    graph = onnx.load(exported.onnx)
    _back_to_float(graph)
    take_dtype(graph, dtype)
    card = dataclasses.replace(exported.card, dtype=dtype)
    del graph.metadata_props[:]
    for name, text in card.to_properties().items():
        graph.metadata_props.add(key=name, value=text)
    seal(graph)
    onnx.save(graph, tmp_path / "model.onnx")
    deployed = DeployedModel.load(tmp_path / "model.onnx", "cpu")
    assert np.abs(deployed.predict_patches(patches) - expected).max() < 1e-5
    script = torch.jit.load(str(exported.files["torchscript"]))
    with torch.no_grad():
        assert np.abs(script(torch.from_numpy(patches)).numpy() - expected).max() < 1e-5


def _back_to_float(graph: onnx.ModelProto) -> None:
    cast = graph.graph.node[0]
    assert (cast.op_type, cast.input[0]) == ("Cast", "patches")
    for node in graph.graph.node[1:]:
        node.input[:] = ["patches" if name == cast.output[0] else name for name in node.input]
    del graph.graph.node[0]
    graph.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def test_no_data_counts_as_the_centre_of_its_band(tmp_path: Path) -> None:
    scene = dataclasses.replace(small_scene("int16"), nodata=-9999.0)
    model, card = small_model(scene, SHALLOW)
    files = export_formats(model, tmp_path, card, ["onnx", "onnx-scene", "torchscript"])
    missing = np.array(scene.cube)
    missing[4:9, 3:6] = -9999  # beside pixels with data
    missing[12, 2, 8] = -9999  # one band that failed
    deployed = DeployedModel.load(files["onnx"], "cpu")
    assert deployed.card.nodata == -9999
    found = classify_scene(deployed, missing, nodata=-9999)
    other = np.where(missing == -9999, np.int16(-1), missing)
    as_other = classify_scene(deployed, other, nodata=-1)
    # The same values as floats, with the centres themselves where there are no data.
    centres = np.zeros(card.bands, np.float32)
    centres[model.scaling.bands] = model.scaling.offset
    centred = np.where(missing == -9999, centres, missing.astype(np.float32))
    patches = PatchReader(centred, card.patch_size)(np.arange(scene.labels.size))
    with torch.no_grad():
        wanted = model(torch.from_numpy(patches)).numpy()
    ids = np.asarray(card.class_ids)[wanted.argmax(axis=1)].reshape(scene.labels.shape)
    ids[4:9, 3:6] = 0
    assert (found.labels == 0).sum() == 15
    assert np.array_equal(found.labels, ids)
    assert np.array_equal(as_other.labels, found.labels)
    # What the caller does not say is as the model was trained.
    assert np.array_equal(classify_scene(deployed, missing).labels, found.labels)
    tiles = classify_scene(
        DeployedModel.load(files.pop("onnx-scene"), "cpu"), missing, nodata=-9999
    )
    assert np.array_equal(tiles.labels, found.labels)
    whole = PatchReader(missing, card.patch_size)(np.arange(scene.labels.size))
    check_parity(model, files, [whole])


def test_any_batch_size(exported: Exported) -> None:
    patches = exported.patches(41)
    session = onnxruntime.InferenceSession(exported.onnx, providers=["CPUExecutionProvider"])
    script = torch.jit.load(str(exported.files["torchscript"]))
    expected = exported.probabilities(patches)
    for count in (1, 2, 41):
        (found,) = session.run(None, {"patches": patches[:count]})
        assert np.abs(found - expected[:count]).max() < 1e-5
        with torch.no_grad():
            scripted = script(torch.from_numpy(patches[:count])).numpy()
        assert np.abs(scripted - expected[:count]).max() < 1e-5


def test_the_file_is_the_same_each_time_and_names_no_path(
    exported: Exported, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    exported.model.train()
    again = export_onnx(exported.model, tmp_path / "other_name.onnx", exported.card)
    assert exported.model.training  # left as it was found
    exported.model.eval()
    content = again.read_bytes()
    assert content == exported.onnx.read_bytes()
    assert b"site-packages" not in content
    assert b".py" not in content
    assert list(tmp_path.iterdir()) == [again]
    assert capfd.readouterr() == ("", "")


def test_a_file_has_the_oldest_version_that_its_operators_allow(exported: Exported) -> None:
    """Operator set 20 begins at version 9; onnxruntime 1.17 refuses version 10."""
    assert onnx.load(exported.onnx).ir_version == 9
