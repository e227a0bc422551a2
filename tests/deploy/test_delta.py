"""Delta files: the new model to the byte, in Python and on board, and nothing for another model."""

import hashlib
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onboard_program import Run
from onnx import numpy_helper
from small_model import Exported

from hytas.deploy.delta import (
    DELTA_MAGIC,
    DIGEST,
    apply_delta,
    deflated,
    make_delta,
    round_difference,
)
from hytas.deploy.model_file import check_model
from hytas.errors import InputError
from hytas.export.onnx_file import graphs_of, seal


def changed(old: bytes, generator: random.Random) -> bytes:
    """A file with parts inserted, removed, replaced and moved."""
    new = bytearray(old)
    for _ in range(generator.randrange(6)):
        at = generator.randrange(len(new) + 1)
        kind = generator.randrange(4)
        if kind == 0:
            new[at:at] = generator.randbytes(generator.randrange(40))
        elif kind == 1:
            del new[at : at + generator.randrange(60)]
        elif kind == 2:
            new[at : at + 5] = generator.randbytes(5)
        else:
            new[at:at] = new[: generator.randrange(100)]
    return bytes(new)


def test_any_file_comes_back() -> None:
    generator = random.Random(1)
    for length in (0, 1, 15, 16, 17, 200, 1000) * 20:
        symbols = generator.choice((2, 256))
        old = bytes(generator.randrange(symbols) for _ in range(length))
        new = changed(old, generator)
        assert apply_delta(old, make_delta(old, new)) == new


def test_a_delta_holds_what_changed_alone() -> None:
    generator = random.Random(2)
    old = generator.randbytes(50_000)
    new = bytearray(old)
    new[20_000:20_400] = generator.randbytes(400)
    new[300:310] = b"longer than it was"
    delta = make_delta(old, bytes(new))
    assert 400 < len(delta) < 400 + 18 + len(DELTA_MAGIC) + 3 * DIGEST + 200
    assert len(make_delta(old, old)) < 150


@pytest.fixture(scope="module")
def pair(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model file, and the same with another read-out."""
    old = exported.files["onnx"]
    new = tmp_path_factory.mktemp("delta") / "new.onnx"
    graph = onnx.load(old)
    for tensor in graph.graph.initializer:
        if "head" in tensor.name:
            values = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(values + np.float32(0.01), tensor.name))
    seal(graph)
    new.write_bytes(graph.SerializeToString(deterministic=True))
    assert new.read_bytes() != old.read_bytes()
    return old, new


def test_both_programs_make_the_same_file(
    pair: tuple[Path, Path], tmp_path: Path, onboard: Run, here: Run
) -> None:
    old, new = pair
    delta = tmp_path / "new.delta"
    done = here("update", "make", old, new, "--out", delta)
    assert done.returncode == 0, done.stderr
    assert delta.stat().st_size < 0.2 * new.stat().st_size
    done = here("update", "apply", old, delta, "--out", tmp_path / "there.onnx")
    assert done.returncode == 0, done.stderr
    done = onboard("--update", delta, old, tmp_path / "here.onnx")
    assert done.returncode == 0, done.stderr
    for name in ("here", "there"):
        assert (tmp_path / f"{name}.onnx").read_bytes() == new.read_bytes()


def fine_tuned(old: bytes, seed: int = 0) -> bytes:
    """The model with small changes of every tensor."""
    graph, rng = onnx.load_from_string(old), np.random.default_rng(seed)
    for tensor in (one for part in graphs_of(graph.graph) for one in part.initializer):
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size > 1:
            values = values + (0.01 * rng.standard_normal(values.shape)).astype("f4")
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    seal(graph)
    return graph.SerializeToString(deterministic=True)


@pytest.mark.parametrize("bits", [4, 8])
def test_a_rounded_difference_is_small_and_the_same_on_both_sides(
    bits: int, exported: Exported, tmp_path: Path, onboard: Run
) -> None:
    old = exported.files["onnx"].read_bytes()
    new = fine_tuned(old)
    rounded, what = round_difference(old, new, bits)
    delta = make_delta(old, rounded, what)
    exact = make_delta(old, new)
    assert apply_delta(old, delta) == rounded
    assert apply_delta(old, exact) == new
    assert len(exact) < 0.9 * len(new)
    assert len(delta) < len(new) * bits / 32 * 1.6
    largest = max(
        float(np.abs(numpy_helper.to_array(a) - numpy_helper.to_array(b)).max())
        for a, b in zip(
            *(onnx.load_from_string(each).graph.initializer for each in (new, rounded)),
            strict=True,
        )
        if a.data_type == onnx.TensorProto.FLOAT and a.dims
    )
    assert 0 < largest < (0.02 if bits == 4 else 0.001)
    for name, content in (("old", old), ("delta", delta), ("exact", exact)):
        (tmp_path / name).write_bytes(content)
    for name, wanted in (("delta", rounded), ("exact", new)):
        done = onboard("--update", tmp_path / name, tmp_path / "old", tmp_path / "here.onnx")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "here.onnx").read_bytes() == wanted
    check_model(rounded, Path("rounded"))  # its checksum is its own


def forged(old: bytes, new: bytes, tail: bytes, packed: bool = True) -> bytes:
    """A delta with right checksums of its own and other operations."""
    body = DELTA_MAGIC + hashlib.sha256(old).digest() + hashlib.sha256(new).digest()
    body += deflated(tail) if packed else tail
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("cut", "is damaged: its checksum"),
        ("flipped", "is damaged: its checksum"),
        ("no delta", "a delta of hytas"),
        ("empty", "a delta of hytas"),
        ("copies too far", "does not give the file that it promises"),
        ("longer than it says", "does not give the file that it promises"),
        ("endless number", "does not give the file that it promises"),
        ("huge", "does not give the file that it promises"),
        ("unknown", "does not give the file that it promises"),
        ("odd levels", "does not give the file that it promises"),
        ("not packed", "does not give the file that it promises"),
        ("bomb", "does not give the file that it promises"),
    ],
)
def test_damaged_deltas_are_refused(
    damage: str, words: str, pair: tuple[Path, Path], tmp_path: Path, onboard: Run
) -> None:
    old, new = pair
    before, after = old.read_bytes(), new.read_bytes()
    whole = make_delta(before, after)
    content = {
        "cut": whole[:-5],
        "flipped": whole[:200] + bytes([whole[200] ^ 1]) + whole[201:],
        "no delta": after,
        "empty": b"",
        "copies too far": forged(before, after, b"\x10\x00\x10\xff\xff\xff\x7f"),
        "longer than it says": forged(before, after, b"\x01\x01\x08abcdefgh"),
        "endless number": forged(before, after, b"\xff" * 20),
        "huge": forged(before, after, b"\xff\xff\xff\xff\x7f\x00\x00"),
        "unknown": forged(before, after, b"\x10\x07\x01\x00"),
        "odd levels": forged(before, after, b"\x10\x03\x01\x00\x05\0\0\0\0\0"),
        "not packed": forged(before, after, b"\x20" + b"\x77" * 40, packed=False),
        "bomb": forged(before, after, b"\xff\xff\xff\xff\x7f" + bytes(20), packed=False),
    }[damage]
    with pytest.raises(InputError, match=words):
        apply_delta(before, content)
    delta = tmp_path / "bad.delta"
    delta.write_bytes(content)
    done = onboard("--update", delta, old, tmp_path / "here.onnx")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "here.onnx").exists()
