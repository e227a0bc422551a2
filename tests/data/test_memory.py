"""Too little memory to read a file is not taken for damage."""

from pathlib import Path

import numpy as np
import pytest

from hytas.data import load_scene
from hytas.data.record import Variable, reading
from hytas.errors import InputError


def test_memory_that_runs_out_is_said_with_the_size(tmp_path: Path) -> None:
    def fail(*_: object) -> np.ndarray:
        raise MemoryError

    path = tmp_path / "cube.mat"
    path.write_bytes(b"12345")
    variable = Variable("cube", (9, 9, 4), "uint16", "number", fail)
    message = r"cube.mat': memory ran out while reading it: cube \(9 x 9 x 4 uint16\)"
    with pytest.raises(InputError, match=message), reading("data", path, "MATLAB v5 file"):
        variable.values()
    with (
        pytest.raises(InputError, match=r"the file has 5 bytes"),
        reading("data", path, "MATLAB v5 file"),
    ):
        fail()


def test_a_scene_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scene.npz"
    np.savez(path, cube=np.ones((9, 8, 4)), labels=np.arange(72).reshape(9, 8) % 3)

    def fail(*_: object, **__: object) -> np.ndarray:
        raise MemoryError("Unable to allocate 2.25 KiB")

    monkeypatch.setattr(np.lib.format, "read_array", fail)
    with pytest.raises(InputError, match=r"memory ran out while reading it: labels"):
        load_scene(path)
