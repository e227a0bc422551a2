"""Read one image file, within limits."""

from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.contents import Array, reading
from hytas.data.readers import open_file
from hytas.errors import InputError

PILLOW = (".png", ".jpg", ".jpeg", ".bmp")
TIFF = (".tif", ".tiff")
SUFFIXES = PILLOW + TIFF
MOST_PIXELS = 2**26
"""Pixels of an image; a small file may say that it has more."""
MOST_VALUES = 2**28
_FORMATS = ("PNG", "JPEG", "BMP")
# Pillow's modes that are kept; every other one becomes RGB, and alpha is left out.
_KEPT = {"L": "L", "RGB": "RGB", "I;16": "I;16", "1": "L", "LA": "L", "I;16B": "I;16"}


def read_image(path: Path) -> Array:
    """Return an image (H, W, channels): PNG, JPEG or BMP by Pillow, any TIFF by tifffile.

    Palettes become RGB, and an alpha channel is left out.

    Raises:
        InputError: it cannot be read, or is too large; in one line.
        OSError: as the system gives it.
    """
    if path.suffix.lower() in TIFF:
        return _tiff(path)
    with reading("data", path, "image"):
        return _plain(path)


def _plain(path: Path) -> Array:
    from PIL import Image

    with Image.open(path, formats=_FORMATS) as opened:
        width, height = opened.size
        if width * height > MOST_PIXELS:
            raise InputError(
                f"{path}: has {width} x {height} pixels; at most {MOST_PIXELS} are read"
            )
        mode = _KEPT.get(opened.mode, "RGB")
        found = opened if opened.mode == mode else opened.convert(mode)
        values = np.asarray(found)
    return np.ascontiguousarray(values[..., None] if values.ndim == 2 else values)


def _tiff(path: Path) -> Array:
    contents = open_file(path, "data")
    variable = contents.variables[0]
    if np.prod(variable.shape, dtype=np.float64) > MOST_VALUES:
        raise InputError(f"data: {path}: has more than {MOST_VALUES} values, the most that is read")
    with reading("data", path, "TIFF"):
        values = variable.values()
    if values.dtype.kind not in "iuf":
        raise InputError(f"data: {path}: is of type {values.dtype}; real numbers are needed")
    if not np.isfinite(values).all():
        raise InputError(f"data: {path}: holds NaN or infinite values; all must be finite")
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(native[..., None] if native.ndim == 2 else native)


def resized(image: Array, side: int) -> Array:
    """Return an image (H, W, channels) at another size, (side, side, channels), in its type."""
    if image.shape[:2] == (side, side):
        return image
    from PIL import Image

    size: Any = (side, side)
    planes = [
        np.asarray(
            Image.fromarray(plane.astype(np.float32)).resize(size, Image.Resampling.BILINEAR)
        )
        for plane in np.moveaxis(image, 2, 0)
    ]
    found = np.stack(planes, axis=2)
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        found = np.clip(np.rint(found), limits.min, limits.max)
    return found.astype(image.dtype)


def as_colours(image: Array) -> Array:
    """Return an 8-bit image of one channel with three equal ones."""
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
