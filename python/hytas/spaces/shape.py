"""What a scene fixes about every network searched for it."""

from dataclasses import asdict, dataclass
from typing import Any

from hytas.errors import InputError


def check_band_group(band_group: int, bands: int) -> None:
    """Refuse a token of more bands than there are.

    Raises:
        InputError: the group is wider than the bands that enter the network.
    """
    if band_group > bands:
        raise InputError(
            f"band group {band_group}: must be odd and at most {bands}, the scene's usable bands"
        )


@dataclass(frozen=True)
class InputShape:
    """The sizes that a scene and the tokenisation fix, whatever the architecture.

    Attributes:
        bands: bands that enter the network, after band selection.
        classes: classes to tell apart.
        patch_size: side of the square patch around the pixel, in pixels; odd.
        band_group: neighbouring bands stacked into one token (the width of HyTAS's group-wise
            spectral embedding); odd.
    """

    bands: int
    classes: int
    patch_size: int = 7
    band_group: int = 3

    @property
    def tokens(self) -> int:
        """Tokens of one patch: one a band, and the class token."""
        return self.bands + 1

    def variables(self) -> dict[str, int]:
        """The names and values that a search space's cost expressions may use."""
        return {name: int(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "InputShape":
        """Rebuild from the JSON form, which is `variables()`."""
        return cls(**{name: int(values[name]) for name in cls.__dataclass_fields__})
