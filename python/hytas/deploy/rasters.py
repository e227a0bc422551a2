"""Class maps and confidences as georeferenced rasters: GeoTIFF and ENVI, written row by row."""

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
"""What a name in a list of an ENVI header cannot hold, and what stands for it."""
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
    """A GeoTIFF of one band; class maps with colours inside and names in `<path>.aux.xml`.

    GDAL keeps category names in that file beside the image, as the TIFF has no place for them.
    The image comes last: where there is one, its names are beside it.
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
    """Where GDAL looks for the category names of a GeoTIFF."""
    return path.with_name(path.name + ".aux.xml")


def write_envi(
    path: Path,
    values: Rows,
    dtype: np.dtype[Any],
    card: ModelCard,
    geo: Geo | None,
    classes: bool,
) -> None:
    """An ENVI raster of one band: header `<stem>.hdr`, data `<stem>.img`.

    Both are written before either has its name, so that what fails leaves an earlier map; then the
    header comes last: where there is one, the data beside it are whole.
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
            header.unlink(missing_ok=True)  # an earlier map's would speak of these data


def _envi_fields(
    shape: tuple[int, ...],
    stored: np.dtype[Any],
    card: ModelCard,
    geo: Geo | None,
    classes: bool,
) -> dict[str, Any]:
    """What the header of a map (H, W) says, by ENVI's names."""
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
    """Names for the values 0 to the largest class id; values that are no class are "unused"."""
    names = dict(zip(card.class_ids, card.class_names, strict=True))
    return ["none", *(names.get(n, f"unused {n}") for n in range(1, max(card.class_ids) + 1))]


def colour_table(card: ModelCard) -> npt.NDArray[np.uint8]:
    """Colours of the values 0 to the largest class id, at least 256: (n, 3); 0 is black."""
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
