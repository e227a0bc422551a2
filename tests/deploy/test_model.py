"""Opening a model file, and refusing what is not one."""

import dataclasses
import json
import os
import re
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from small_model import Exported

from hytas.cli.bench import bench
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.providers import check_chosen
from hytas.errors import InputError
from hytas.export.onnx_file import seal


def rewritten(exported: Exported, path: Path, **properties: str) -> Path:
    graph = onnx.load(exported.onnx)
    for entry in list(graph.metadata_props):
        if entry.key.removeprefix("hytas.") in properties:
            entry.value = properties[entry.key.removeprefix("hytas.")]
    seal(graph)
    onnx.save(graph, path)
    return path


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


def test_a_failure_among_parallel_calls_is_raised_and_ends_them(exported: Exported) -> None:
    deployed, seen = DeployedModel.load(exported.onnx, "cpu", threads=2), list[int]()

    def work(number: int) -> int:
        seen.append(number)
        time.sleep(0.01)
        return 1 // (number - 1)

    with pytest.raises(ZeroDivisionError):
        list(deployed.in_parallel(work, range(1000)))
    assert len(seen) < 100


def test_files_that_are_no_model(exported: Exported, tmp_path: Path) -> None:
    def refused(path: Path, message: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            DeployedModel.load(path)
        assert "\n" not in str(caught.value)

    refused(tmp_path / "none.onnx", "no such file")
    text = tmp_path / "text.onnx"
    text.write_text("not a model")
    refused(text, "not an ONNX")
    empty = tmp_path / "empty.onnx"
    empty.write_bytes(b"")
    refused(empty, "not an ONNX")
    content = exported.onnx.read_bytes()
    for size in (100, len(content) // 2, len(content) - 5):
        text.write_bytes(content[:size])
        refused(text, "not an ONNX")
    graph = onnx.load(exported.onnx)
    del graph.metadata_props[:]
    onnx.save(graph, text)
    refused(text, "is not an ONNX file of `hytas export`, or is damaged: it has no checksum")
    refused(rewritten(exported, text, format="7"), "hytas format 7; this version reads format 2")
    refused(rewritten(exported, text, class_ids="[1, 2"), "broken metadata")
    refused(rewritten(exported, text, patch_size="8"), "patch_size: 8 is not a positive odd")
    refused(rewritten(exported, text, patch_size="7"), "its metadata say")


def test_weights_outside_the_file_are_refused(exported: Exported, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    graph = onnx.load(exported.onnx)
    path = tmp_path / "inner" / "model.onnx"
    onnx.save(graph, path, save_as_external_data=True, location="weights.bin", size_threshold=64)
    apart = onnx.load(path, load_external_data=False)
    seal(apart)
    path.write_bytes(apart.SerializeToString())
    with pytest.raises(InputError, match="is not an ONNX model that runs here"):
        DeployedModel.load(path)


def test_a_card_of_another_element_type_than_the_graph_s(
    exported: Exported, tmp_path: Path
) -> None:
    """Refused when it is opened, not when the first patch is classified."""
    path = rewritten(exported, tmp_path / "model.onnx", dtype="float32")
    with pytest.raises(InputError, match=r"'tensor\(uint16\)', .* its metadata say .*\(float\)'"):
        DeployedModel.load(path, "cpu")


def test_class_names_that_no_file_could_hold(exported: Exported, tmp_path: Path) -> None:
    names = json.dumps(["a\nb", "\ud800", "水田", "\x00"])
    path = rewritten(exported, tmp_path / "model.onnx", class_names=names)
    found = DeployedModel.load(path, "cpu").card.class_names
    assert found == ("a b", "\N{REPLACEMENT CHARACTER}", "水田", " ")


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


def test_providers(exported: Exported) -> None:
    assert DeployedModel.load(exported.onnx, "cpu").provider == "CPUExecutionProvider"
    with pytest.raises(InputError, match="provider='npu': must be one of auto, cpu, cuda"):
        DeployedModel.load(exported.onnx, "npu")
    if not Path("/dev/nvidia0").exists() and not os.environ.get("CUDA_VISIBLE_DEVICES"):
        with pytest.raises(
            InputError, match="'cuda': does not work on this machine, which has cpu"
        ):
            DeployedModel.load(exported.onnx, "cuda")


def test_a_gpu_asked_for_by_name_is_used_or_refused(exported: Exported) -> None:
    session = onnxruntime.InferenceSession(exported.onnx, providers=["CPUExecutionProvider"])
    check_chosen("cpu", session)
    check_chosen("auto", session)
    with pytest.raises(InputError, match="provider='cuda': could not be started: onnxruntime-gpu"):
        check_chosen("cuda", session)


def test_the_card_refuses_nothing_that_export_writes(exported: Exported) -> None:
    plain = dataclasses.replace(exported.card, wavelengths=None)
    assert type(plain).from_properties(plain.to_properties()) == plain


def test_a_card_with_impossible_values_is_refused(exported: Exported, tmp_path: Path) -> None:
    marked = json.dumps({**exported.card.preprocessing, "nodata": "abc"})
    unheld = json.dumps({**exported.card.preprocessing, "nodata": -9999})
    colours = json.dumps([[300, 0, 0], *exported.card.palette[1:]])
    for properties, message in (
        ({"preprocessing": marked}, "preprocessing: nodata is 'abc'; a number or null is needed"),
        (
            {"preprocessing": unheld},
            "preprocessing: nodata is -9999, which no value of",
        ),
        ({"palette": colours}, r"palette: \[300, 0, 0\] of class 'grass' is not three numbers"),
        ({"class_ids": "[3, 4, 9, 4294967296]"}, "class_ids: 4294967296 is not a whole number"),
    ):
        path = rewritten(exported, tmp_path / "model.onnx", **properties)
        with pytest.raises(InputError, match=f"model.onnx.: has broken metadata: {message}"):
            DeployedModel.load(path, "cpu")
    for properties in ({"bands": "1e999"}, {"wavelengths": "[" * 3000}):
        path = rewritten(exported, tmp_path / "model.onnx", **properties)
        with pytest.raises(InputError, match=r"model.onnx.: has broken metadata \("):
            DeployedModel.load(path, "cpu")
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(InputError, match=r"run.model\.onnx.: no such file; an exported \.onnx"):
        DeployedModel.load(folder, "cpu")


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


def test_a_scene_smaller_than_a_patch_is_named(exported: Exported) -> None:
    deployed = DeployedModel.load(exported.onnx, "cpu")
    with pytest.raises(InputError, match=r"s\.hdr.: 4 x 9 pixels, and .* at least 5"):
        deployed.check_scene(24, None, "s.hdr", size=(4, 9))


def test_bench_looks_at_its_table_first(exported: Exported, tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none" / "x.json", "profile_table=.*: the folder .* does not exist"),
        (tmp_path, "profile_table=.*: is a folder"),
        (exported.onnx, "profile_table=.* is the model"),
    ):
        arguments = [str(exported.onnx), "--profile-table", str(path)]
        done = CliRunner().invoke(bench, arguments)
        assert isinstance(done.exception, InputError)
        assert re.search(message, str(done.exception))


def test_texts_of_the_card_are_one_line_each(exported: Exported, tmp_path: Path) -> None:
    evil = "1.0\x1b[2J\nerror: no\u202e"
    path = rewritten(exported, tmp_path / "model.onnx", version=evil, precision=evil)
    card = DeployedModel.load(path, "cpu").card
    assert card.version == card.precision
    assert card.version.startswith("1.0 ")
    assert not set("\x1b\n") & set(card.version)
