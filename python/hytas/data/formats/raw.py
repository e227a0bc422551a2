"""Read windows of raw binary arrays with plain reads.

A memory map would use more memory, because the kernel maps far more than is read (measured: 460 MB
for windows of 20 MB in a band-sequential cube).
"""

from typing import Any, BinaryIO

import numpy as np

from hytas.data.contents import Array

# Interleaves as axes in the file (lines, samples, bands) -> how to turn them to (H, W, B).
LAYOUTS = {"bls": (1, 2, 0), "lbs": (0, 2, 1), "lsb": (0, 1, 2)}


def read_window(
    file: BinaryIO,
    dtype: np.dtype[Any],
    offset: int,
    shape: tuple[int, int, int],
    layout: str,
    rows: slice,
    columns: slice,
) -> Array:
    """Return the pixels (h, w, B) of a window, in the stored byte order.

    Args:
        file: opened for reading bytes.
        dtype: as stored.
        offset: of the first value, in bytes.
        shape: height, width, bands.
        layout: one of LAYOUTS.
        rows, columns: the window.

    Raises:
        ValueError: the file ends too early.
    """
    height, width, bands = shape
    count = rows.stop - rows.start
    if layout == "bls":
        planes = np.empty((bands, count, len(range(width)[columns])), dtype)
        for band in range(bands):
            first = (band * height + rows.start) * width
            lines = _values(file, dtype, offset, first, count * width).reshape(count, width)
            planes[band] = lines[:, columns]
        return planes.transpose(1, 2, 0)
    line = width * bands
    block = _values(file, dtype, offset, rows.start * line, count * line)
    if layout == "lsb":
        return block.reshape(count, width, bands)[:, columns]
    return block.reshape(count, bands, width)[:, :, columns].transpose(0, 2, 1)


def _values(file: BinaryIO, dtype: np.dtype[Any], offset: int, first: int, count: int) -> Array:
    file.seek(offset + first * dtype.itemsize)
    data = file.read(count * dtype.itemsize)
    if len(data) < count * dtype.itemsize:
        raise ValueError(f"the file ends {count * dtype.itemsize - len(data)} bytes too early")
    return np.frombuffer(data, dtype)
