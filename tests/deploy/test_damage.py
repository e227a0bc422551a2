"""Model files that were damaged, or made to do harm: refused in one line, before they run."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from small_model import Exported

from hytas.deploy import DeployedModel
from hytas.deploy.model_file import check_model, checksum_of
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
