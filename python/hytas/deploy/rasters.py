"""Write class maps and confidences as GeoTIFF or ENVI rasters, row by row."""

import os
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

from hytas.data import Geo, Rows
from hytas.deploy.scene import BLOCK_ROWS, row_blocks
from hytas.files import atomic_write, write_text
from hytas.model_card import ModelCard

_TIFF_ASCII, _GDAL_NODATA = 2, 42113
_LARGEST_TABLE = 4096
_IN_A_LIST = str.maketrans(",{}", ";()")
"""Characters that a name in an ENVI list cannot hold -> their substitutes."""
# ENVI's numbers for element types.
_ENVI_TYPES = {"u1": 1, "i2": 2, "i4": 3, "f4": 4, "u2": 12, "u4": 13}


def write_geotiff(
    path: Path,
    values: Rows,
    dtype: np.dtype[Any],
    card: ModelCard,
    geo: Geo | None,
    classes: bool,
) -> None:
    """Write a GeoTIFF with one band; a class map has colours, and names in `<path>.aux.xml`.

    A TIFF has no place for category names, so GDAL keeps them in that file. The image is written
    last: if it is there, its names are there as well.
    """
    import tifffile

    options: dict[str, Any] = {"photometric": "minisblack"}
    if classes and dtype == np.uint8:
        options = {"photometric": "palette", "colormap": colour_table(card).T.astype("u2") * 257}
    tags = [(*tag, True) for tag in geo.to_tags()] if geo is not None else []
    tags.append((_GDAL_NODATA, _TIFF_ASCII, 0, "0", True))
    with atomic_write(path) as temporary:
        tifffile.imwrite(
            temporary,
            (np.ascontiguousarray(block, dtype) for _, block in row_blocks(values)),
            shape=values.shape,
            dtype=dtype,
            rowsperstrip=BLOCK_ROWS,
            metadata=None,
            software=False,
            extratags=tags,
            **options,
        )
        if classes:
            write_text(names_file(path), _category_names(card))


def names_file(path: Path) -> Path:
    """Return the file in which GDAL looks for the category names of a GeoTIFF."""
    return path.with_name(path.name + ".aux.xml")


def write_envi(
    path: Path,
    values: Rows,
    dtype: np.dtype[Any],
    card: ModelCard,
    geo: Geo | None,
    classes: bool,
) -> None:
    """Write an ENVI raster with one band: header `<stem>.hdr`, data `<stem>.img`.

    Both are first written under temporary names, so that a failure leaves an earlier map as it was.
    The header is renamed last: if it is there, its data are complete.
    """
    header, data = path.with_suffix(".hdr"), path.with_suffix(".img")
    stored = dtype.newbyteorder("<")
    with atomic_write(header) as described:
        fields = _envi_fields(values.shape, stored, card, geo, classes)
        lines = "".join(f"{name} = {text}\n" for name, text in fields.items())
        described.write_text("ENVI\n" + lines, encoding="utf-8")
        with atomic_write(data) as temporary, temporary.open("wb") as file:
            for _, block in row_blocks(values):
                file.write(block.astype(stored, copy=False).tobytes())
            file.flush()
            os.fsync(file.fileno())
            header.unlink(missing_ok=True)  # the header of an earlier map does not fit the new data


def _envi_fields(
    shape: tuple[int, ...],
    stored: np.dtype[Any],
    card: ModelCard,
    geo: Geo | None,
    classes: bool,
) -> dict[str, Any]:
    """Return the header's fields for a map (H, W), by ENVI's names."""
    fields: dict[str, Any] = {
        "samples": shape[1],
        "lines": shape[0],
        "bands": 1,
        "header offset": 0,
        "file type": "ENVI Classification" if classes else "ENVI Standard",
        "data type": _ENVI_TYPES[stored.str[1:]],
        "interleave": "bsq",
        "byte order": 0,
        "data ignore value": 0,
    }
    if classes and max(card.class_ids) < _LARGEST_TABLE and min(card.class_ids) >= 0:
        names = category_names(card)
        fields["classes"] = len(names)
        listed = (name.translate(_IN_A_LIST) for name in names)
        fields["class names"] = "{" + ", ".join(listed) + "}"
        colours = colour_table(card)[: len(names)].ravel().tolist()
        fields["class lookup"] = "{" + ", ".join(map(str, colours)) + "}"
    for name, text in (geo.to_envi() if geo is not None else {}).items():
        fields[name] = text if text.startswith("{") else f"{{{text}}}"
    return fields


def category_names(card: ModelCard) -> list[str]:
    """Return names for the values 0 to the largest class id; unused values are "unused"."""
    names = dict(zip(card.class_ids, card.class_names, strict=True))
    return ["none", *(names.get(n, f"unused {n}") for n in range(1, max(card.class_ids) + 1))]


def colour_table(card: ModelCard) -> npt.NDArray[np.uint8]:
    """Return colours (n, 3) for the values 0 to the largest class id, n >= 256; 0 is black."""
    table = np.zeros((max(256, max(card.class_ids) + 1), 3), np.uint8)
    for number, colour in zip(card.class_ids, card.palette, strict=True):
        if number > 0:
            table[number] = colour
    return table


def _category_names(card: ModelCard) -> str:
    names = category_names(card) if 0 < max(card.class_ids) < _LARGEST_TABLE else []
    lines = [f"      <Category>{escape(name)}</Category>" for name in names]
    return "\n".join(
        [
            "<PAMDataset>",
            '  <PAMRasterBand band="1">',
            "    <CategoryNames>",
            *lines,
            "    </CategoryNames>",
            "  </PAMRasterBand>",
            "</PAMDataset>",
            "",
        ]
    )
