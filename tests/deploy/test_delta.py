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

from hytas.deploy.delta import DIGEST, MAGIC, apply_delta, make_delta
from hytas.errors import InputError
from hytas.export.onnx_file import seal


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
    assert 400 + 18 < len(delta) < 400 + 18 + len(MAGIC) + 3 * DIGEST + 60
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
    pair: tuple[Path, Path], tmp_path: Path, onboard: Run, hytas: Run
) -> None:
    old, new = pair
    delta = tmp_path / "new.delta"
    done = hytas("update", "make", old, new, "--out", delta)
    assert done.returncode == 0, done.stderr
    assert delta.stat().st_size < 0.2 * new.stat().st_size
    done = hytas("update", "apply", old, delta, "--out", tmp_path / "there.onnx")
    assert done.returncode == 0, done.stderr
    done = onboard("--update", delta, old, tmp_path / "here.onnx")
    assert done.returncode == 0, done.stderr
    for name in ("here", "there"):
        assert (tmp_path / f"{name}.onnx").read_bytes() == new.read_bytes()


def test_a_delta_for_another_model_is_refused(
    pair: tuple[Path, Path], tmp_path: Path, onboard: Run, hytas: Run
) -> None:
    old, new = pair
    delta = tmp_path / "new.delta"
    delta.write_bytes(make_delta(old.read_bytes(), new.read_bytes()))
    found = hashlib.sha256(new.read_bytes()).hexdigest()
    for done in (
        hytas("update", "apply", new, delta, "--out", tmp_path / "there.onnx"),
        onboard("--update", delta, new, tmp_path / "here.onnx"),
    ):
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "is for another model: it needs the file with SHA-256" in done.stderr
        assert found in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["new.delta"]


def forged(old: bytes, new: bytes, tail: bytes) -> bytes:
    """A delta with right checksums of its own and other pieces."""
    body = MAGIC + hashlib.sha256(old).digest() + hashlib.sha256(new).digest() + tail
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("cut", "is damaged: its checksum"),
        ("flipped", "is damaged: its checksum"),
        ("no delta", "is not a delta of hytas"),
        ("empty", "is not a delta of hytas"),
        ("copies too far", "does not give the file that it promises"),
        ("longer than it says", "does not give the file that it promises"),
        ("endless number", "does not give the file that it promises"),
        ("huge", "does not give the file that it promises"),
    ],
)
def test_damaged_deltas_are_refused(
    damage: str, words: str, pair: tuple[Path, Path], tmp_path: Path, onboard: Run, hytas: Run
) -> None:
    old, new = pair
    before, after = old.read_bytes(), new.read_bytes()
    whole = make_delta(before, after)
    content = {
        "cut": whole[:-5],
        "flipped": whole[:200] + bytes([whole[200] ^ 1]) + whole[201:],
        "no delta": after,
        "empty": b"",
        "copies too far": forged(before, after, b"\x10\x10\xff\xff\xff\x7f\x00"),
        "longer than it says": forged(before, after, b"\x01\x08\x00\x08abcdefgh"),
        "endless number": forged(before, after, b"\xff" * 20),
        "huge": forged(before, after, b"\xff\xff\xff\xff\x7f\x00\x00"),
    }[damage]
    with pytest.raises(InputError, match=words):
        apply_delta(before, content)
    delta = tmp_path / "bad.delta"
    delta.write_bytes(content)
    done = onboard("--update", delta, old, tmp_path / "here.onnx")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "here.onnx").exists()


def test_outputs_are_files_of_their_own(
    pair: tuple[Path, Path], tmp_path: Path, onboard: Run, hytas: Run
) -> None:
    old, new = pair
    before = old.read_bytes()
    done = hytas("update", "make", old, new, "--out", old)
    assert done.returncode == 2
    assert "is also an input" in done.stderr
    delta = tmp_path / "new.delta"
    delta.write_bytes(make_delta(before, new.read_bytes()))
    done = onboard("--update", delta, old, old)
    assert done.returncode == 2
    assert "is also an input" in done.stderr
    assert old.read_bytes() == before
    done = hytas("update", "make", old, delta, "--out", tmp_path / "x.delta")
    assert done.returncode == 2
    assert "is not an ONNX file" in done.stderr
