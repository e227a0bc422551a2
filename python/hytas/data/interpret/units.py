"""The units of wavelengths, from the table `units.toml`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hytas.types import Floats


@dataclass(frozen=True)
class Unit:
    """A unit of wavelengths; `units.toml` says what its fields mean."""

    name: str
    nanometres: float
    texts: tuple[str, ...]
    inverse: bool = False
    bare: tuple[float, float] | None = None
    misnamed: tuple[float, float] | None = None
    means: str | None = None

    def nanometres_of(self, values: Floats) -> Floats:
        """Return values (B,) of this unit in nm."""
        return self.nanometres / values if self.inverse else values * self.nanometres

    def other(self, values: Floats) -> "Unit | None":
        """Return the unit that values (B,) have which a file gives in this one, if it is another"""
        if self.misnamed is None:
            return None
        low, high = self.misnamed
        return BY_NAME[str(self.means)] if low <= values.min() and values.max() < high else None


_TABLE = tomllib.loads(Path(__file__).with_name("units.toml").read_text(encoding="utf-8"))
NO_UNIT = frozenset(_TABLE["no_unit"])
_ROWS: list[dict[str, Any]] = [
    {key: tuple(one) if isinstance(one, list) else one for key, one in row.items()}
    for row in _TABLE["units"]
]
UNITS = tuple(Unit(**row) for row in _ROWS)
BY_NAME = {unit.name: unit for unit in UNITS}
_BY_TEXT = {text: unit for unit in UNITS for text in unit.texts}


def plain_unit(text: str) -> str:
    """Return the name of a unit in lower case, without brackets and without a plural s."""
    name = " ".join(text.strip().strip("[]()").lower().split())
    return name[:-1] if name.endswith("s") and len(name) > 2 else name


def unit_of(text: str) -> Unit | None:
    """Return the unit that a text names, or None."""
    return _BY_TEXT.get(plain_unit(text))
