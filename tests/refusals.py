"""What a refusal says, by its fields; `tests/test_errors.py` tests how they are worded."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hytas.errors import InputError

_ANY: Any = object()


@contextmanager
def refuses(argument: str, value: Any = _ANY, rule: str = "") -> Iterator[None]:
    """Expect an `InputError` of this argument and value whose rule or hint matches `rule`."""
    with pytest.raises(InputError) as caught:
        yield
    error = caught.value
    assert error.argument == argument
    assert value is _ANY or error.value == value
    assert re.search(rule, f"{error.rule}; {error.hint}"), (error.rule, error.hint)
