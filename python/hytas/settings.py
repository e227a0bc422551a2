"""Convert settings that a program computed, so that JSON can hold them."""

from dataclasses import fields
from typing import Any

import numpy as np


def plain_numbers(settings: Any) -> None:
    """Convert numpy's numbers in the fields of a frozen dataclass to Python's, for JSON."""
    for item in fields(settings):
        if isinstance(value := getattr(settings, item.name), np.generic):
            object.__setattr__(settings, item.name, value.item())
