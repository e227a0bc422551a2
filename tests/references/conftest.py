"""Here the reference methods are as users have them."""

from collections.abc import Iterator

import pytest

from hytas.references import classical

WHOLE = {name: getattr(classical, name) for name in ("TREES", "COSTS", "WIDTHS")}


@pytest.fixture(scope="module", autouse=True)
def whole_references() -> Iterator[None]:
    """All trees, and all widths and costs to choose among."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WHOLE.items():
            patch.setattr(classical, name, value)
        yield
