"""The C++ onboard runner and model files that were damaged, or made to do harm."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onboard_program import Run
from small_model import Exported
from test_rasters import write_cube

from hytas.export.onnx_file import seal
from hytas.model_card import CHECKSUM


def test_no_flipped_bit_goes_unnoticed(
    onboard: Run, models: dict[str, Exported], tmp_path: Path
) -> None:
    content = models["uint16"].files["onnx-scene"].read_bytes()
    scene = write_cube(tmp_path / "scene", models["uint16"].scene.cube, "bil", "<")
    model, rng = tmp_path / "model.onnx", np.random.default_rng(3)
    behind = content.index(b"hytas.sha256") - 4
    for place in (*rng.integers(0, len(content), 60), *range(behind, len(content), 5), 0, 1):
        damaged = bytearray(content)
        damaged[int(place)] ^= 1 << int(rng.integers(8))
        model.write_bytes(damaged)
        done = onboard(model, scene, tmp_path / "map.hdr")
        assert (done.returncode, done.stdout) == (2, ""), (place, done.stderr)
        assert done.stderr.startswith("error: model: ")
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("map*"))


def test_a_model_without_its_checksum_is_refused(
    onboard: Run, models: dict[str, Exported], tmp_path: Path
) -> None:
    graph = onnx.load(models["uint16"].files["onnx-scene"])
    for entry in list(graph.metadata_props):
        if entry.key == CHECKSUM:
            graph.metadata_props.remove(entry)
    model = tmp_path / "model.onnx"
    scene = write_cube(tmp_path / "scene", models["uint16"].scene.cube, "bil", "<")
    onnx.save(graph, model)
    done = onboard(model, scene, tmp_path / "map.hdr")
    assert done.returncode == 2
    assert "has lost its checksum" in done.stderr


def test_a_sealed_file_is_looked_through_before_it_runs(
    onboard: Run, models: dict[str, Exported], tmp_path: Path
) -> None:
    """The library does not exist: it would be asked for after the file was found in order."""
    model = tmp_path / "model.onnx"
    scene = write_cube(tmp_path / "scene", models["uint16"].scene.cube, "bil", "<")
    wide = onnx.TensorProto(name="w", dims=[2**31], data_type=1)
    short = onnx.TensorProto(name="w", dims=[4], data_type=1, raw_data=b"123")
    outside = onnx.TensorProto(name="w", dims=[1], data_type=1, data_location=1)

    def refused(change: Callable[[onnx.ModelProto], object], message: str) -> None:
        graph = onnx.load(models["uint16"].files["onnx-scene"])
        change(graph)
        seal(graph)
        onnx.save(graph, model)
        done = onboard(model, scene, tmp_path / "map.hdr", library="/no/library")
        assert (done.returncode, done.stdout) == (2, ""), (message, done.stderr)
        assert message in done.stderr
        assert done.stderr.count("\n") == 1

    add = onnx.helper.make_node
    sizes = onnx.numpy_helper.from_array(np.array([2**11, 2**10]), "sizes")
    refused(lambda m: m.graph.initializer.append(wide), "a shape of more than 134217728 values")
    refused(lambda m: m.graph.initializer.append(short), "of 4 values that are not all there")
    refused(lambda m: m.graph.initializer.append(outside), "keeps weights in another file")
    refused(lambda m: m.graph.node.append(add("If", ["tile"], ["o"])), "an operator that hytas")
    refused(lambda m: m.graph.node.append(add("Add", [], ["o"], domain="x")), "of another domain")
    refused(lambda m: m.opset_import.append(onnx.helper.make_opsetid("", 99)), "operator set 99")
    refused(
        lambda m: (
            m.graph.initializer.append(sizes),
            m.graph.node.append(add("Expand", ["tile", "sizes"], ["o"])),
        ),
        "makes more than 1048576 values",
    )
    wide_split = add("Split", ["tile"], ["a", "b"], num_outputs=2**27)
    refused(lambda m: m.graph.node.append(wide_split), "more or fewer parts of a tensor than")
    tile = "take and give what its metadata say"
    size = onnx.load(models["uint16"].files["onnx-scene"]).graph.input[0]
    size.type.tensor_type.shape.dim[2].dim_value = 25
    refused(lambda m: m.graph.input[0].CopyFrom(size), tile)
    refused(lambda m: None, "library: ")

    def later(m: onnx.ModelProto) -> None:
        (entry,) = (entry for entry in m.metadata_props if entry.key == "hytas.format")
        entry.value = "9\n\x1b[2J"

    refused(later, "is of hytas format 9  [2J, this program reads format 2")
