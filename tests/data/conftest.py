"""Small scenes on disk, and the real ones where they are at hand."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of the real scenes."""
    folder = Path(os.environ.get("HYTAS_SHARED", ROOT.parent / "shared")) / "data"
    if not (folder / "IndianPine.mat").is_file():
        pytest.skip(f"the real scenes are not at {folder}")
    return folder


@pytest.fixture
def cube() -> np.ndarray:
    """An int16 cube that is not square, (9, 11, 6)."""
    return np.random.default_rng(0).integers(-300, 4000, (9, 11, 6)).astype(np.int16)


@pytest.fixture
def labels() -> np.ndarray:
    """Labels of the cube: the classes 2, 5 and 7, and unlabelled pixels, (9, 11) uint8."""
    return np.random.default_rng(1).choice(np.array([0, 2, 5, 7], np.uint8), (9, 11))


@pytest.fixture
def mat(tmp_path: Path) -> Callable[..., Path]:
    """Write a MATLAB v5 file of the given variables."""
    from scipy.io import savemat

    def write(name: str = "scene.mat", **variables: Any) -> Path:
        savemat(tmp_path / name, variables, do_compression=True)
        return tmp_path / name

    return write
