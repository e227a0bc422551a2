"""Colours of classes."""

import colorsys
import re
from typing import Any

import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]
Palette = npt.NDArray[np.uint8]

UNLABELLED_COLOUR = (0, 0, 0)

# K. L. Kelly, "Twenty-two colors of maximum contrast" (1965), without its black and white.
_KELLY = bytes.fromhex(
    "F3C300 875692 F38400 A1CAF1 BE0032 C2B280 848482 008856 E68FAC 0067A5 "
    "F99379 604E97 F6A600 B3446C DCD300 882D17 8DB600 654522 E25822 2B3D26"
)


def palette(classes: int) -> Palette:
    """Return `classes` distinct colours, (classes, 3) RGB, without black, which is unlabelled."""
    colours = [tuple(_KELLY[i : i + 3]) for i in range(0, len(_KELLY), 3)][:classes]
    used = set(colours)
    step = 0
    while len(colours) < classes:
        # Hues in steps of the golden angle never repeat; value and saturation alternate.
        hue, step = (step * 0.61803398875) % 1.0, step + 1
        rgb = colorsys.hsv_to_rgb(hue, (0.95, 0.5, 0.7)[step % 3], (0.95, 0.8, 0.6)[step % 3])
        colour = tuple(round(255 * channel) for channel in rgb)
        if colour not in used:
            used.add(colour)
            colours.append(colour)
    return np.array(colours, dtype=np.uint8).reshape(classes, 3)


def colour_of(value: Any) -> Colour | None:
    """Return red, green and blue of a text such as "#1f77b4", or of three numbers, or None."""
    if isinstance(value, str):
        levels = re.fullmatch(r"#?([\da-fA-F]{6})([\da-fA-F]{2})?", value.strip(), re.ASCII)
        value = levels and tuple(bytes.fromhex(levels[1]))
    return value if isinstance(value, tuple) and len(value) == 3 else None
