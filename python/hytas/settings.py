"""Settings that a program may compute, and JSON must hold."""

from dataclasses import fields
from typing import Any

import numpy as np


def plain_numbers(settings: Any) -> None:
    """Turn numpy's numbers in the fields of a frozen dataclass into Python's, which JSON holds."""
    for item in fields(settings):
        if isinstance(value := getattr(settings, item.name), np.generic):
            object.__setattr__(settings, item.name, value.item())
