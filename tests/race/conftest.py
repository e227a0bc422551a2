"""A store for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hytas.search import EvaluationStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EvaluationStore]:
    with EvaluationStore(tmp_path / "evaluations.sqlite") as store:
        yield store
