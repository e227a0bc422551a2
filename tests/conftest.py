"""What all tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real scenes and published results, beside the repository."""
    folder = Path(os.environ.get("HYTAS_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no real scenes: {folder} is missing (HYTAS_SHARED names another place)")
    return folder
