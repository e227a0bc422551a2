"""Bring settings into plain forms, which JSON and TOML can hold."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

Listed = str | Sequence[str] | None
"""One text, several, or none."""
SCALE_BY = ("training", "scene")
"""What scales a scene: statistics of the training pixels, or first of all its own."""


def plain_numbers(settings: Any) -> None:
    """Convert numpy's numbers in the fields of a frozen dataclass to Python's, for JSON."""
    import numpy as np  # here, because the help of commands needs no numpy

    for item in fields(settings):
        if isinstance(value := getattr(settings, item.name), np.generic):
            object.__setattr__(settings, item.name, value.item())


def listed(value: Listed) -> tuple[str, ...]:
    """Return one text, several or none as a tuple."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def plain_if_one(value: Listed) -> str | tuple[str, ...] | None:
    """Return several texts as a tuple, one as it is, and None for none."""
    texts = listed(value)
    return texts if len(texts) > 1 else (texts[0] if texts else None)
