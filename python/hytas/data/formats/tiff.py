"""Read GeoTIFF by windows with tifffile; only strips or tiles inside a window are read."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from hytas.data.contents import Array, Contents, Variable, kind_of, nanometres
from hytas.data.formats.raw import read_window
from hytas.data.formats.tiff_layout import check_pages, check_segment
from hytas.data.geo import TAGS, Geo, Tag
from hytas.data.limits import bytes_of
from hytas.errors import InputError

_GDAL_METADATA, _GDAL_NODATA = 42112, 42113
# Kinds of plain pages, and the one vendor format with many bands in one page.
_KINDS = {"frame", "gdal", "geotiff", "imagej", "multipage", "shaped", "uniform", "virtual"}


def matches(head: bytes, path: Path) -> bool:
    """Return whether the file has the magic of TIFF or BigTIFF, in either byte order."""
    return head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def read(path: Path) -> Contents:
    """Describe the first image of a file: one page with many samples, or one page for each band."""
    # tifffile logs every strange tag; serious errors are exceptions.
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    check_pages(path)
    with _open(path) as file:
        series = file.series[0]
        page = series.keyframe
        axes = series.axes
        kept = [i for i, size in enumerate(series.shape) if size > 1 or axes[i] in "YX"]
        axes = "".join(axes[i] for i in kept)
        shape = tuple(series.shape[i] for i in kept)
        if len(shape) not in (2, 3) or "YX" not in axes:
            raise InputError(f"{path}: a TIFF with axes {axes} and shape {shape} is not a scene")
        order: tuple[int, ...] = (0, 1, 2) if axes.index("Y") == 0 else (1, 2, 0)
        order = order[: len(shape)]
        dtype = np.dtype(series.dtype)
        tags: dict[int, Tag] = {
            tag.code: (tag.code, int(tag.dtype), tag.count, tag.value)
            for tag in page.tags
            if tag.code in (*TAGS, _GDAL_METADATA, _GDAL_NODATA)
        }
        colours = _colours(page)
        stored = dtype.newbyteorder(file.byteorder)
        offset = series.dataoffset  # None, unless the pixels are one uncompressed piece

    full = tuple(shape[i] for i in order)

    def window(rows: slice, columns: slice) -> Array:
        if offset is None:
            with _open(path) as file:
                return _segments(file.series[0], rows, columns, len(shape) == 2)
        size = (full[0], full[1], full[2] if len(full) == 3 else 1)
        layout = "bls" if order[0] == 1 else "lsb"
        with path.open("rb") as raw:
            pixels = read_window(raw, stored, offset, size, layout, rows, columns)
        return pixels if len(full) == 3 else pixels[:, :, 0]

    everything = slice(0, full[0]), slice(0, full[1])
    meta = _meta(tags, full[2] if len(full) == 3 else 1) | colours
    variable = Variable(
        path.stem,
        full,
        str(dtype),
        kind_of(dtype),
        lambda: window(*everything),
        window,
        meta.pop("nodata", None),
        meta.pop("geo", None),
        bytes_of(full, dtype.itemsize),
        path.stat().st_size,
    )
    return Contents(path, "GeoTIFF", (variable,), meta)


def _open(path: Path) -> Any:
    """Open the file as plain pages; other files that some vendors' files name are not read."""
    import tifffile

    vendors: dict[str, Any] = dict.fromkeys(
        (f"is_{kind}" for kind in tifffile.TIFF.FILE_FLAGS - _KINDS), False
    )
    return tifffile.TiffFile(path, **vendors)


def _colours(page: Any) -> dict[str, Any]:
    """Return the colours of a palette image by value; the file has 16 bits for each channel."""
    if page.colormap is None or page.colormap.shape[0] != 3:
        return {}
    table = (page.colormap.T >> 8).tolist()
    return {"class_colours": {number: tuple(colour) for number, colour in enumerate(table)}}


def _segments(series: Any, rows: slice, columns: slice, flat: bool) -> Array:
    """Decode the segments of a window, page by page, into (h, w, bands)."""
    page = series.keyframe
    samples = page.samplesperpixel
    height, width = rows.stop - rows.start, columns.stop - columns.start
    pages = [p for p in series.pages if p is not None]
    result = np.zeros((height, width, samples * len(pages)), dtype=np.dtype(series.dtype))
    for number, one in enumerate(pages):
        for plane, top, left, part in _touched(one, rows, columns):
            up, down = max(top, rows.start), min(top + part.shape[0], rows.stop)
            first, last = max(left, columns.start), min(left + part.shape[1], columns.stop)
            target = result[
                up - rows.start : down - rows.start, first - columns.start : last - columns.start
            ]
            start = number * samples + plane
            target[..., start : start + part.shape[2]] = part[
                up - top : down - top, first - left : last - left
            ]
    return result[:, :, 0] if flat else result


def _touched(page: Any, rows: slice, columns: slice) -> Iterator[tuple[int, int, int, Array]]:
    """Yield (first sample, row, column, pixels (h, w, samples)) of the segments in a window."""
    key = page.keyframe
    if key.is_tiled:
        tall, wide = key.tilelength, key.tilewidth
    else:
        tall, wide = key.rowsperstrip, key.imagewidth
    down, across = -(-key.imagelength // tall), -(-key.imagewidth // wide)
    planes = key.samplesperpixel if key.planarconfig == 2 else 1
    handle = page.parent.filehandle
    for plane in range(planes):
        for i in range(rows.start // tall, -(-rows.stop // tall)):
            for j in range(columns.start // wide, -(-columns.stop // wide)):
                index = (plane * down + i) * across + j
                handle.seek(page.dataoffsets[index])
                data = handle.read(page.databytecounts[index])
                if len(data) < page.databytecounts[index]:
                    raise ValueError(f"the file ends inside segment {index}")
                pixels = _decode(key, data, index)
                if pixels is not None:  # None is a missing segment, which means zeros
                    yield plane, i * tall, j * wide, pixels[0]


def _decode(key: Any, data: bytes, index: int) -> Array | None:
    check_segment(key, data)
    try:
        pixels: Array | None = key.decode(data, index)[0]
    except (ImportError, ValueError) as error:
        if isinstance(error, ImportError) or "imagecodecs" in str(error):
            raise InputError(
                f"{key.parent.filehandle.path} is compressed with {_packing(key)}, which needs the "
                "package imagecodecs: pip install imagecodecs"
            ) from error
        raise
    return pixels


def _packing(key: Any) -> str:
    """Return the name of a page's compression, or of its predictor if it has none."""
    compression = str(getattr(key.compression, "name", key.compression))
    return compression if compression != "NONE" else f"predictor {int(key.predictor)}"


def _meta(tags: dict[int, Tag], bands: int) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    geo = Geo.from_tags(tags)
    if geo is not None:
        meta["geo"] = geo
    if _GDAL_NODATA in tags:
        try:
            meta["nodata"] = float(str(tags[_GDAL_NODATA][3]).strip("\0 "))
        except ValueError:
            meta.pop("nodata", None)
    found = _wavelengths(str(tags[_GDAL_METADATA][3]), bands) if _GDAL_METADATA in tags else None
    if found is not None:
        meta["wavelengths"] = found
    return meta


def _wavelengths(xml: str, bands: int) -> Array | None:
    """Read <Item name="wavelength" sample="i">, which GDAL writes for each band."""
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError:
        return None
    values = np.full(bands, np.nan)
    for item in root.iter("Item"):
        name, sample = item.get("name", "").lower(), item.get("sample", "")
        if name in ("wavelength", "wavelength_nm", "central_wavelength_nm") and sample.isdigit():
            try:
                values[int(sample)] = float((item.text or "").split()[0])
            except (IndexError, ValueError):
                return None
    return nanometres(values, bands)
