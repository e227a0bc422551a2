"""What all tests share."""

import os
import signal
from pathlib import Path

import pytest

# A shell without job control starts its background jobs deaf to Ctrl-C, and their children inherit
# that; the commands that tests interrupt shall hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real scenes and published results, beside the repository."""
    folder = Path(os.environ.get("HYTAS_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no real scenes: {folder} is missing (HYTAS_SHARED names another place)")
    return folder
