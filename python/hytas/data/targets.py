"""Continuous targets of samples, such as the carbon of a soil or the cover of a pixel."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hytas.errors import InputError
from hytas.types import Array, Floats, Pixels


@dataclass(frozen=True, eq=False)
class Targets:
    """Values of T targets.

    Attributes:
        names: of the targets.
        units: of each target; "" where it is not known.
        pixels: (n,) flat indices of the samples, ascending.
        values: (n, T); NaN where a target is missing.
        fractions: whether the targets of a sample are shares that sum to one.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    pixels: Pixels
    values: Floats
    fractions: bool = False

    def of(self, pixels: Pixels) -> Floats:
        """Return the values (m, T) of samples, which must be among those with targets."""
        return self.values[np.searchsorted(self.pixels, pixels)]

    @property
    def digest(self) -> str:
        """SHA-256 of all that it holds, in hex."""
        facts = f"{self.names} {self.units} {self.fractions}".encode()
        return hashlib.sha256(
            facts + self.pixels.astype("<i8").tobytes() + self.values.astype("<f8").tobytes()
        ).hexdigest()


def checked_targets(
    argument: str,
    names: Sequence[str],
    values: Array,
    units: Sequence[str] = (),
    fractions: bool = False,
) -> tuple[Targets, Array]:
    """Return the targets of samples (N, T), and which samples (N,) have one."""
    if len(units) not in (0, len(names)):
        rule = f"{len(units)} given for {len(names)} targets; one for each is needed"
        raise InputError("units", ",".join(units), rule)
    values = np.asarray(values, np.float64)
    for name, column in zip(names, values.T, strict=True):
        known = column[~np.isnan(column)]
        if np.isinf(known).any():
            raise InputError(argument, name, "holds infinite values")
        if len(np.unique(known)) < 2:
            raise InputError(argument, name, "holds fewer than two different values")
    labelled = np.asarray(~np.isnan(values).all(axis=1))
    if fractions:
        labelled &= ~np.isnan(values).any(axis=1)
        known = values[labelled]
        if len(names) < 2 or (known < -0.01).any() or (abs(known.sum(axis=1) - 1) > 0.02).any():
            rule = "must be two or more shares of each sample that sum to one"
            raise InputError("fractions", rule=rule)
    pixels = np.flatnonzero(labelled)
    texts = tuple(units) or ("",) * len(names)
    return Targets(tuple(names), texts, pixels, values[labelled], fractions), labelled
