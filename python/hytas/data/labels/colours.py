"""Label pictures: a colour is a class."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.findings import refusal
from hytas.data.palette import Colour

MOST_COLOURS = 64
"""Classes of a picture; one with more is a photograph, or was saved with smooth edges."""
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)


def by_colour(
    pictures: Sequence[npt.NDArray[Any]], name: str, unlabelled: Colour | None = None
) -> tuple[list[npt.NDArray[np.int64]], Mapping[int, str], Mapping[int, Colour]]:
    """Return maps of class ids from 1, the reddest colour first; their names, and their colours.

    One table holds for all pictures; 0 is unlabelled, and names are such as "#ff0000".

    Args:
        pictures: (H, W, 3 or 4) of 8 bits, red, green and blue, and opacity; transparent pixels
            are unlabelled.
        unlabelled: the colour of unlabelled pixels; None means black.
    """
    packed = [_packed(picture) for picture in pictures]
    red, green, blue = unlabelled or BLACK
    empty = red << 16 | green << 8 | blue
    there = np.unique(np.concatenate([np.unique(each) for each in packed]))
    there = there[(there >= 0) & (there != empty)]
    if len(there) > MOST_COLOURS:
        raise refusal("too-many", "labels", name, count=len(there), most=MOST_COLOURS)
    maps = []
    for each in packed:
        place = np.searchsorted(there, each).clip(0, max(0, len(there) - 1))
        matches = there[place] == each if len(there) else np.zeros(each.shape, np.bool_)
        maps.append(np.where(matches, len(there) - place, 0).astype(np.int64))
    colours = {
        number: (value >> 16, value >> 8 & 255, value & 255)
        for number, value in enumerate(there[::-1].tolist(), start=1)
    }
    names = {number: "#{:02x}{:02x}{:02x}".format(*rgb) for number, rgb in colours.items()}
    return maps, names, colours


def _packed(picture: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return one number for each colour (H, W); -1 where the picture is transparent."""
    parts = picture.astype(np.int64)
    packed: npt.NDArray[np.int64] = parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2]
    if picture.shape[2] == 4:
        packed[parts[..., 3] == 0] = -1
    return packed


def coloured_by(values: npt.NDArray[Any], table: Mapping[int, Colour]) -> npt.NDArray[np.uint8]:
    """Return the picture (H, W, 3) of numbers (H, W) with a colour each; black without one."""
    numbers, place = np.unique(values, return_inverse=True)
    colours = np.array([table.get(int(number), BLACK) for number in numbers], np.uint8)
    picture: npt.NDArray[np.uint8] = colours[place.reshape(values.shape)]
    return picture
