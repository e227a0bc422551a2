"""Read one image file, within limits."""

from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from hytas.data.findings import refusal
from hytas.data.read.table import open_file
from hytas.data.record import reading
from hytas.errors import InputError
from hytas.types import Array

PILLOW = (".png", ".jpg", ".jpeg", ".bmp")
TIFF = (".tif", ".tiff")
IMAGE_SUFFIXES = PILLOW + TIFF
MOST_SIDE = 4096
"""Of an image that is brought to another size."""
_FORMATS = ("PNG", "JPEG", "BMP")
# Pillow's modes that are kept; every other one becomes RGB, and alpha is left out.
_KEPT = {"L": "L", "RGB": "RGB", "I;16": "I;16", "1": "L", "LA": "L", "I;16B": "I;16"}


def read_image(path: Path) -> Array:
    """Return an image (H, W, channels): PNG, JPEG or BMP by Pillow, any TIFF by GDAL.

    Palettes become RGB, and an alpha channel is left out.
    """
    if not S_ISREG(path.stat().st_mode):  # a pipe would be waited for
        raise InputError("data", rule=f"{path} is not a file")
    if path.suffix.lower() in TIFF:
        return _tiff(path)
    with reading("data", path, "image"):
        return _plain(path)


def _plain(path: Path) -> Array:
    from PIL import Image

    with Image.open(path, formats=_FORMATS) as opened:
        mode = _KEPT.get(opened.mode, "RGB")
        if opened.format == "PNG" and mode != "I;16" and _sixteen_bits(opened):
            raise refusal("unreadable", "", case="png-of-16-bits")
        converted = opened if opened.mode == mode else opened.convert(mode)
        values = np.asarray(converted)
    return np.ascontiguousarray(values[..., None] if values.ndim == 2 else values)


def _sixteen_bits(png: Any) -> bool:
    """Whether the values of an opened PNG have 16 bits; its mode has it for one channel only."""
    return any("16" in part[3] for part in png.tile)


def _tiff(path: Path) -> Array:
    contents = open_file(path, "data")
    variable = contents.variables[0]
    with reading("data", path, "TIFF"):
        values = variable.values()
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise refusal("array-unfit", "data", path, "image", array=str(values.dtype))
    order = [variable.dims.index(name) for name in ("y", "x", "band") if name in variable.dims]
    turned = values.transpose(order) if len(order) == values.ndim else values
    return np.ascontiguousarray(turned[..., None] if turned.ndim == 2 else turned)


def check_side(side: int | None) -> None:
    """Refuse a side that images cannot be brought to."""
    if side is not None and not 1 <= side <= MOST_SIDE:
        raise InputError("resize", side, f"must be 1 to {MOST_SIDE} pixels")


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
    scaled = np.stack(planes, axis=2)
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        scaled = np.clip(np.rint(scaled), limits.min, limits.max)
    return scaled.astype(image.dtype)


def as_colours(image: Array) -> Array:
    """Return an 8-bit image of one channel with three equal ones."""
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
