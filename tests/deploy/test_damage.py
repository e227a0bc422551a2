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
from hytas.deploy.model_file import MOST_MODEL_BYTES, check_model, checksum_of, sealed
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
            check_model(bytes(damaged), Path("m.onnx"))
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
    assert "it has no checksum" in refusal(plain)


Change = Callable[[onnx.ModelProto], None]
RUNS_NOT = "is not an ONNX model that runs here"


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


def opset(domain: str, version: int) -> Change:
    def change(model: onnx.ModelProto) -> None:
        del model.opset_import[:]
        model.opset_import.append(helper.make_opsetid(domain, version))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (sized(7), "its metadata say"),
        (add("node", node("Add", domain="com.evil\n")), RUNS_NOT),
        (opset("", 99), RUNS_NOT),
        (lambda model: model.ClearField("graph"), RUNS_NOT),
    ],
)
def test_a_sealed_file_that_is_no_model(exported: Exported, change: Change, message: str) -> None:
    model = onnx.load(exported.onnx)
    change(model)
    seal(model)
    assert message in refusal(model.SerializeToString())


@pytest.mark.parametrize("text", [b"hytas.preprocessing", b"probabilities", b"patches"])
def test_a_text_that_is_not_utf_8(exported: Exported, text: bytes) -> None:
    content = exported.onnx.read_bytes()
    damaged = sealed(content.replace(text, text[:-1] + b"\xff"))
    assert re.search(f"is not UTF-8|{RUNS_NOT}|broken metadata|say", refusal(damaged))


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


def test_devices_pipes_and_huge_files_are_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.onnx"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(InputError, match="is a device or a pipe"):
            DeployedModel.load(path)
    huge = tmp_path / "huge.onnx"
    with huge.open("wb") as file:
        file.truncate(MOST_MODEL_BYTES + 1)
    with pytest.raises(
        InputError, match=f"has {MOST_MODEL_BYTES + 1} bytes; at most {MOST_MODEL_BYTES}"
    ):
        DeployedModel.load(huge)


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
