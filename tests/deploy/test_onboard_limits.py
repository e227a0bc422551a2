"""The tables of the C++ onboard program are those of the Python package."""

import importlib
import re
from collections.abc import Mapping
from typing import Any

import pytest
from onboard_program import SOURCE

from hytas.data.interpret.wavelengths import BY_NAME, UNITS

TABLE = (SOURCE / "limits.hpp").read_text(encoding="utf-8")
ENTRY = re.compile(r"^constexpr [^=]*?(\w+)\s*(?:=\s*|(?=\{))([^;]*?);\s*// (hytas[\w.]+)$", re.M)
ENTRIES = {match[1]: (match[2], match[3]) for match in ENTRY.finditer(TABLE)}


def value_of(text: str) -> Any:
    """A number, a text, or a tuple; suffixes of C++ numbers go."""
    text = re.sub(r"\b(\d+)(?:ULL|U)\b", r"\1", text.replace("'", "_") if '"' not in text else text)
    text = re.sub(r'"\s+"', "", text)
    return eval(text.replace("{", "(").replace("}", ")"))  # our own header


def python_value(path: str) -> Any:
    names = path.split(".")
    for length in range(len(names) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(names[:length]))
        except ModuleNotFoundError:
            continue
        for name in names[length:]:
            value = getattr(value, name)
        return value
    raise AssertionError(path)


def comparable(value: Any) -> Any:
    """Tables as sorted pairs, bytes as text."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Mapping):
        return {comparable(key): item for key, item in value.items()}
    return value


OF_UNITS: dict[str, Any] = {
    "length_units": {text: u.nanometres for u in UNITS if not u.inverse for text in u.texts},
    "wavenumber_units": {text for u in UNITS if u.inverse for text in u.texts},
    **{f"safe_{name}": BY_NAME[name].bare for name in ("nm", "um", "m")},
}
"""What the program reads from the table of units."""


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_a_limit_is_that_of_python(name: str) -> None:
    text, path = ENTRIES[name]
    here, there = value_of(text), comparable(OF_UNITS.get(name) or python_value(path))
    if isinstance(there, set | frozenset):
        assert set(here) == there
    elif isinstance(there, dict):
        assert dict(here) == there
    else:
        assert here == there
