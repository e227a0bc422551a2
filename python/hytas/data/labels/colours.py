"""Label pictures: a colour is a class."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.labels.shapes import Colour
from hytas.errors import InputError

MOST_COLOURS = 64
"""Classes of a picture; one with more is a photograph, or was saved with smooth edges."""
MOST_PIXELS = 2**28
"""Pixels of a PNG file; a small file may say that it has more."""
BLACK: Colour = (0, 0, 0)


class Coloured(NamedTuple):
    """Maps made of label pictures.

    Attributes:
        maps: (H, W) class ids from 1, the reddest colour first; 0 unlabelled.
        names: by id, such as "#ff0000".
        colours: by id.
    """

    maps: list[npt.NDArray[np.int64]]
    names: Mapping[int, str]
    colours: Mapping[int, Colour]


def by_colour(
    pictures: Sequence[npt.NDArray[Any]], name: str, unlabelled: Colour | None = None
) -> Coloured:
    """Return maps of the colours of pictures (H, W, 3 or 4); one table for all of them.

    Args:
        pictures: red, green and blue of 8 bits, and opacity: what is transparent is unlabelled.
        name: of the maps, for messages.
        unlabelled: the colour of unlabelled pixels; None means black.

    Raises:
        InputError: there are more than 64 colours.
    """
    packed = [_packed(picture) for picture in pictures]
    red, green, blue = unlabelled or BLACK
    empty = red << 16 | green << 8 | blue
    there = np.unique(np.concatenate([np.unique(each) for each in packed]))
    there = there[(there >= 0) & (there != empty)]
    if len(there) > MOST_COLOURS:
        raise InputError(
            "labels",
            rule=f"{name} holds {len(there)} colours, and a colour is a class: at most "
            f"{MOST_COLOURS} are read",
            hint="save classes without smooth edges and not as JPEG, or as a map of whole numbers",
        )
    maps = []
    for each in packed:
        place = np.searchsorted(there, each).clip(0, max(0, len(there) - 1))
        known = there[place] == each if len(there) else np.zeros(each.shape, np.bool_)
        maps.append(np.where(known, len(there) - place, 0).astype(np.int64))
    colours = {
        number: (value >> 16, value >> 8 & 255, value & 255)
        for number, value in enumerate(there[::-1].tolist(), start=1)
    }
    names = {number: "#{:02x}{:02x}{:02x}".format(*rgb) for number, rgb in colours.items()}
    return Coloured(maps, names, colours)


def _packed(picture: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return one number for each colour (H, W); -1 where the picture is transparent."""
    parts = picture.astype(np.int64)
    packed: npt.NDArray[np.int64] = parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2]
    if picture.shape[2] == 4:
        packed[parts[..., 3] == 0] = -1
    return packed


class Picture(NamedTuple):
    """A PNG file: whole numbers (H, W) with the colours of some, or colours (H, W, 3 or 4)."""

    values: npt.NDArray[Any]
    colours: Mapping[int, Colour]


def read_png(path: Path) -> Picture:
    """Read a PNG file.

    Numbers in a file with a palette are class ids if 0 is black, and thus unlabelled; else the
    colours are the classes.

    Raises:
        InputError: it has too many pixels.
    """
    from PIL import Image

    with Image.open(path, formats=("PNG",)) as opened:
        width, height = opened.size
        if width * height > MOST_PIXELS:
            raise InputError(
                "labels",
                str(path),
                f"has {width} x {height} pixels; at most {MOST_PIXELS} are read",
            )
        if opened.mode in ("1", "L", "I", "I;16", "I;16B"):
            return Picture(np.asarray(opened).astype(np.int64), {})
        if opened.mode == "P" and (table := _palette(opened)).get(0) == BLACK:
            return Picture(np.asarray(opened), table)
        transparent = opened.mode in ("RGBA", "LA") or "transparency" in opened.info
        return Picture(np.asarray(opened.convert("RGBA" if transparent else "RGB")), {})


def _palette(opened: Any) -> Mapping[int, Colour]:
    levels = opened.getpalette("RGB") or []
    return {i // 3: (*levels[i : i + 3],) for i in range(0, len(levels) - 2, 3)}
