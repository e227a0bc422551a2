"""One export serves every test."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "export"))

from small_model import Exported, export_small


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return export_small(tmp_path_factory.mktemp)
