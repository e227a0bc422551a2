"""What the tests of runs share: reference methods that fit at once."""

from collections.abc import Iterator

import pytest

from hytas.references import classical


@pytest.fixture(scope="package", autouse=True)
def quick_references() -> Iterator[None]:
    """A small forest, and an SVM that chooses among two widths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classical, "TREES", 10)
        patch.setattr(classical, "COSTS", (100.0,))
        patch.setattr(classical, "WIDTHS", (0.25, 1.0))
        yield
