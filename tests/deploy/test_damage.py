"""Model files that were damaged, or made to do harm: refused in one line, before they run."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from small_model import Exported

from hytas.deploy import DeployedModel
from hytas.deploy.bench import example
from hytas.deploy.graph import check_graph
from hytas.deploy.model_file import MOST_BYTES, checksum_of, examine
from hytas.deploy.protobuf import Fields
from hytas.errors import InputError
from hytas.export.onnx_file import seal
from hytas.model_card import CHECKSUM


def refusal(content: bytes) -> str:
    with pytest.raises(InputError) as caught:
        DeployedModel.from_bytes(content, "m.onnx", "cpu", threads=1)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_no_flipped_bit_goes_unnoticed(exported: Exported) -> None:
    """Somewhere in the file, in each byte of its metadata, and of its first bytes."""
    content = exported.onnx.read_bytes()
    behind = content.index(b"hytas.format") - 4
    rng = np.random.default_rng(7)
    places = [*rng.integers(0, len(content), 400), *range(20), *range(behind, len(content))]
    for place in places:
        damaged = bytearray(content)
        damaged[int(place)] ^= 1 << int(rng.integers(8))
        with pytest.raises(InputError) as caught:
            examine(bytes(damaged), Path("m.onnx"))
        assert "\n" not in str(caught.value)


def test_flipped_weights_are_told_as_damage(exported: Exported, tmp_path: Path) -> None:
    content = bytearray(exported.onnx.read_bytes())
    content[len(content) // 2] ^= 64
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"model.onnx.: is damaged or was changed: its SHA-256 is"):
        DeployedModel.load(path, "cpu")


def test_the_checksum_is_that_of_the_file_without_its_entry(exported: Exported) -> None:
    model = onnx.load(exported.onnx)
    told = {entry.key: entry.value for entry in model.metadata_props}[CHECKSUM]
    (entry,) = (entry for entry in model.metadata_props if entry.key == CHECKSUM)
    model.metadata_props.remove(entry)
    plain = model.SerializeToString(deterministic=True)
    content = exported.onnx.read_bytes()
    assert told == checksum_of(content) == checksum_of(plain)
    assert DeployedModel.load(exported.onnx, "cpu").checksum == told
    assert "has lost its checksum" in refusal(plain)


Change = Callable[[onnx.ModelProto], None]


def tensor(dims: list[int], element: int = TensorProto.FLOAT, raw: bytes = b"") -> onnx.TensorProto:
    return onnx.TensorProto(name="more", dims=dims, data_type=element, raw_data=raw)


def add(part: str, value: object) -> Change:
    return lambda model: getattr(model.graph, part).append(value)


def node(kind: str, *inputs: str, domain: str = "") -> onnx.NodeProto:
    return helper.make_node(kind, list(inputs), ["out"], domain=domain)


def sized(size: int) -> Change:
    def change(model: onnx.ModelProto) -> None:
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = size

    return change


def expanded(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(
        tensor([2], TensorProto.INT64, np.array([2**11, 2**10]).tobytes())
    )
    model.graph.node.append(node("Expand", "patches", "more"))


def split(model: onnx.ModelProto) -> None:
    wide = helper.make_node("Split", ["patches"], ["a", "b"], axis=1, num_outputs=2**27)
    model.graph.node.append(wide)


def opset(domain: str, version: int) -> Change:
    def change(model: onnx.ModelProto) -> None:
        del model.opset_import[:]
        model.opset_import.append(helper.make_opsetid(domain, version))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (sized(2**31), "declares a shape of more than 134217728 values"),
        (sized(-1), "declares a shape of more than 134217728 values"),
        (sized(7), "its metadata say"),
        (add("initializer", tensor([2**31])), "declares a shape of more than"),
        (add("initializer", tensor([2**14, 2**14])), "declares a shape of more than"),
        (add("initializer", tensor([4], raw=b"1234")), "a tensor of 4 values in 4 bytes: 16"),
        (add("initializer", tensor([4], 8)), "has a tensor of element type 8, which hytas never"),
        (add("node", node("If", "patches")), "uses the operator b'If', which hytas never writes"),
        (add("node", node("Add", domain="com.evil\n")), "uses an operator of domain b'com.evil"),
        (expanded, "makes more than 1048576 values by a constant"),
        (split, "makes 134217728 parts of a tensor, and has 2 outputs for them"),
        (opset("com.evil", 20), "needs operators of domain b'com.evil'; hytas writes those of"),
        (opset("", 99), "has operator set 99; must be 18 to 24"),
        (lambda model: model.ClearField("opset_import"), "names no operator set"),
        (lambda model: model.ClearField("graph"), "has 0 graphs; one is needed"),
    ],
)
def test_a_sealed_file_is_looked_through_before_it_runs(
    exported: Exported, change: Change, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnx.load(exported.onnx)
    change(model)
    seal(model)
    monkeypatch.setattr("onnxruntime.InferenceSession", None)  # it must never be asked
    assert message in refusal(model.SerializeToString())


def test_an_entry_that_stands_twice(exported: Exported) -> None:
    model = onnx.load(exported.onnx)
    model.metadata_props.add(key="hytas.bands", value="7")
    assert "its metadata have 'hytas.bands' twice" in refusal(model.SerializeToString())


def test_metadata_that_are_no_text(exported: Exported) -> None:
    content = exported.onnx.read_bytes().replace(b"hytas.version", b"hytas.versio\xff", 1)
    assert "its metadata are not UTF-8" in refusal(content)


def test_a_graph_that_fails_while_it_runs(exported: Exported) -> None:
    """A reshape to more values than there are: it opens, and onnxruntime fails on a batch."""
    model = onnx.load(exported.onnx)
    (last,) = (n for n in model.graph.node if "probabilities" in n.output)
    last.output[0] = "inner"
    sizes = np.array([-1, 4, 1000003], np.int64)
    model.graph.initializer.append(tensor([3], TensorProto.INT64, sizes.tobytes()))
    model.graph.node.append(helper.make_node("Reshape", ["inner", "more"], ["tall"]))
    sums = helper.make_node("ReduceSum", ["tall", "axes"], ["probabilities"], keepdims=0)
    axes = tensor([1], TensorProto.INT64, np.array([2]).tobytes())
    axes.name = "axes"
    model.graph.initializer.append(axes)
    model.graph.node.append(sums)
    seal(model)
    deployed = DeployedModel.from_bytes(model.SerializeToString(), "m.onnx", "cpu", threads=1)
    with pytest.raises(InputError, match=r"m.onnx.: fails while it runs \(") as caught:
        deployed.predict_patches(exported.patches(5))
    assert "\n" not in str(caught.value)


def test_an_output_of_another_shape(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed = DeployedModel.load(exported.onnx, "cpu", threads=1)
    patches = example(deployed, (2, *[deployed.card.patch_size] * 2, deployed.card.bands))
    monkeypatch.setattr(onnxruntime.InferenceSession, "run", lambda *_: [np.zeros((3, 4))])
    with pytest.raises(InputError, match=r"returned shape \(3, 4\), but its metadata say"):
        deployed.run(patches)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("preprocessing", "{}", r"broken metadata: preprocessing \(KeyError: 'bands'\)"),
        ("preprocessing", '{"bands": [99]}', "broken metadata"),
        ("bands", "1e999", "broken metadata"),
        ("bands", "1000000000", "and a patch at most 16777216 values"),
        ("patch_size", "99999", "and a patch at most 16777216 values"),
        ("architecture", "[" * 100_000, "broken metadata"),
        ("class_names", "[]", "broken metadata"),
        ("class_shares", "[1]", "broken metadata"),
        ("class_shares", '{"labels": [1]}', r"broken metadata \(KeyError: 'assumed'\)"),
        *(
            ("class_shares", f'{{"labels": {labels}, "assumed": {assumed}}}', f"shares: {wrong}: ")
            for labels, assumed, wrong in (
                ([1], [1] * 4, "labels"),
                ([1] * 4, [1, 1, 0, 1], "assumed"),
            )
        ),
    ],
)
def test_a_card_that_asks_for_too_much(
    exported: Exported, name: str, value: str, message: str
) -> None:
    model = onnx.load(exported.onnx)
    for entry in model.metadata_props:
        entry.value = value if entry.key == f"hytas.{name}" else entry.value
    seal(model)
    assert re.search(message, refusal(model.SerializeToString()))


def test_too_many_fields_are_no_model() -> None:
    with pytest.raises(ValueError, match="more than 1000000 fields"):
        examine(b"\x08\x01" * 1_000_001, Path("m.onnx"))


def test_devices_pipes_and_huge_files_are_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.onnx"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(InputError, match="is a device or a pipe"):
            DeployedModel.load(path)
    huge = tmp_path / "huge.onnx"
    with huge.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(InputError, match=f"has {MOST_BYTES + 1} bytes; at most {MOST_BYTES}"):
        DeployedModel.load(huge)


def test_packed_and_loose_numbers_are_the_same_shape(exported: Exported) -> None:
    loose = b"\x08\x02\x08\x03\x10\x01\x4a\x18" + bytes(24)  # dims 2, 3; float; 24 bytes
    packed = b"\x0a\x02\x02\x03\x10\x01\x4a\x18" + bytes(24)
    for content in (loose, packed):
        graph = b"\x2a" + bytes([len(content)]) + content
        check_graph(Fields(), memoryview(graph))
        short = content.replace(b"\x4a\x18", b"\x4a\x17")[:-1]
        graph = b"\x2a" + bytes([len(short)]) + short
        with pytest.raises(ValueError, match="a tensor of 6 values in 23 bytes"):
            check_graph(Fields(), memoryview(graph))


def test_damage_is_one_line_of_the_command(exported: Exported, tmp_path: Path) -> None:
    content = bytearray(exported.onnx.read_bytes())
    content[len(content) // 3] ^= 1
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    command = "from hytas.cli.main import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", command, "classify", path, "synthetic", "--out", tmp_path / "m.npy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: model ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "m.npy").exists()
