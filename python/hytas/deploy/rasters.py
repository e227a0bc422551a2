"""Write class maps and confidences as GeoTIFF or ENVI rasters with rasterio, strip by strip."""

import errno
import itertools
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import numpy.typing as npt

from hytas.data import Rows
from hytas.data.grid import Grid, gdal
from hytas.deploy.scene import row_blocks
from hytas.errors import InputError, library
from hytas.files import atomic_write, write_text
from hytas.model_card import ModelCard

_LARGEST_TABLE = 4096
_CACHE_MEGABYTES = 32
_CONTROL_POINTS = 20
"""Ground control points along each side of a raster in sensor geometry."""
_IN_A_LIST = str.maketrans(",{}", ";()")
"""Characters that a name in an ENVI list cannot hold -> their substitutes."""


def write_geotiff(
    path: Path,
    values: Rows,
    dtype: np.dtype[Any],
    card: ModelCard,
    grid: Grid | None,
    classes: bool,
) -> None:
    """Write a GeoTIFF with one band; a class map has colours, and names in two more files.

    A TIFF has no place for the names of categories. GDAL keeps them in `<path>.aux.xml`; QGIS takes
    them from a style, `<stem>.qml`. The image is written last: if it is there, these are as well.
    """
    options: dict[str, Any] = {"driver": "GTiff", "bigtiff": "if_safer"}
    if classes and dtype == np.uint8:
        options["photometric"] = "palette"
    with atomic_write(path) as temporary:
        _write(temporary, values, dtype, grid, options, card if classes else None)
        if classes:
            write_text(names_file(path), _categories(card, dtype != np.uint8))
            write_text(style_file(path), _style(card))


def write_envi(
    path: Path,
    values: Rows,
    dtype: np.dtype[Any],
    card: ModelCard,
    grid: Grid | None,
    classes: bool,
) -> None:
    """Write an ENVI raster with one band: header `<stem>.hdr`, data `<stem>.img`.

    Both are first written under temporary names, so that a failure leaves an earlier map as it was.
    The header is renamed last: if it is there, its data are complete.
    """
    check_envi_place(path, grid)
    header, data = path.with_suffix(".hdr"), path.with_suffix(".img")
    with atomic_write(header) as described, atomic_write(data) as temporary:
        _write(temporary, values, dtype, grid, {"driver": "ENVI", "suffix": "replace"}, None)
        if classes:
            write_text(style_file(data), _style(card))
        more, kind = (_envi_classes(card), "Classification") if classes else ("", "Standard")
        _complete_header(described, header, more, kind)


def _complete_header(described: Path, header: Path, more: str, kind: str = "Standard") -> None:
    """Add lines to a staged ENVI header, without the temporary name that GDAL describes."""
    text = re.sub(r"description = \{.*?\}\n", "", described.read_text("utf-8"), flags=re.DOTALL)
    text = text.replace("= ENVI Standard", f"= ENVI {kind}") + more
    described.write_text(text, encoding="utf-8")
    header.unlink(missing_ok=True)  # the header of an earlier map does not fit the new data


def check_envi_place(path: Path, grid: Grid | None, argument: str = "out") -> None:
    """Refuse a grid that an ENVI header cannot describe."""
    if grid is None or grid.transform is None:
        return
    a, b, _, d, e, _ = grid.transform
    turned = a == -e and b == d
    if not (turned if grid.is_rotated else a > 0):
        raise InputError(
            argument,
            path,
            "an ENVI header cannot tell the place of pixels that are sheared, mirrored, or rotated "
            "and not square",
            "a name that ends in .tif writes a GeoTIFF, which can",
        )


def names_file(path: Path) -> Path:
    """Return the file in which GDAL looks for the category names of a GeoTIFF."""
    return path.with_name(path.name + ".aux.xml")


def style_file(path: Path) -> Path:
    """Return the file in which QGIS looks for the style of a raster."""
    return path.with_suffix(".qml")


def _write(
    path: Path,
    values: Rows,
    dtype: np.dtype[Any],
    grid: Grid | None,
    options: dict[str, Any],
    coloured: ModelCard | None,
) -> None:
    """Write the values (H, W) of a raster; `coloured` gives a colour table."""
    height, width = values.shape
    profile = {"height": height, "width": width, "count": 1, "dtype": dtype.name, "nodata": 0}
    with _opened(path, {**profile, **options}, grid) as file:
        if coloured is not None and dtype == np.uint8:
            file.write_colormap(1, dict(enumerate(map(tuple, colour_table(coloured)))))
        for top, block in row_blocks(values):
            window = ((top, top + len(block)), (0, block.shape[1]))
            file.write(np.ascontiguousarray(block, dtype), 1, window=window)


class RasterBand(NamedTuple):
    """Name and unit of a band of values; "" for a value without a unit."""

    name: str
    unit: str = ""


def write_bands(
    path: Path,
    blocks: Iterable[tuple[int, npt.NDArray[np.float32]]],
    size: tuple[int, int],
    bands: Sequence[RasterBand],
    grid: Grid | None,
) -> None:
    """Write a float32 raster, .tif or ENVI (by lines), whose pixels without data are NaN.

    Args:
        blocks: first row and values (h, W, len(bands)) of consecutive rows.
        size: height and width.
    """
    is_envi = path.suffix.lower() in (".hdr", ".img")
    data = path.with_suffix(".img") if is_envi else path
    if is_envi:
        check_envi_place(path, grid)
    of_envi = {"driver": "ENVI", "suffix": "replace", "interleave": "bil"}
    options = of_envi if is_envi else {"driver": "GTiff"}
    profile: dict[str, Any] = {"height": size[0], "width": size[1], "count": len(bands)}
    names = path.with_suffix(".hdr")
    profile |= {"dtype": "float32", "nodata": math.nan, **options}
    if is_envi:
        bands = [RasterBand(*(text.translate(_IN_A_LIST) for text in band)) for band in bands]
    header = atomic_write(names) if is_envi else nullcontext()
    with header as described, atomic_write(data) as staged:
        with _opened(staged, profile, grid) as file:
            for number, band in enumerate(bands, start=1):
                file.set_band_description(number, band.name)
                file.set_band_unit(number, band.unit)
            for top, block in blocks:
                window = ((top, top + len(block)), (0, size[1]))
                file.write(np.ascontiguousarray(block.transpose(2, 0, 1)), window=window)
        if described is not None:
            units = f"band units = {{{', '.join(band.unit for band in bands)}}}\n"
            _complete_header(described, names, units if any(b.unit for b in bands) else "")


@contextmanager
def _opened(path: Path, profile: dict[str, Any], grid: Grid | None) -> Iterator[Any]:
    """Yield an open raster; a failure of GDAL is one of the file."""
    rasterio = library("rasterio", "out", "a GeoTIFF or ENVI map")
    if grid is not None and grid.transform is not None:
        profile["transform"] = rasterio.Affine(*grid.transform)
    if grid is not None and grid.system is not None:
        profile["crs"] = grid.system
    if grid is not None and grid.transform is None and profile["driver"] == "GTiff":
        profile |= _control_points(grid)
    # ENVI's driver looks for the header that it has written, in the folder.
    limits = {"GDAL_CACHEMAX": _CACHE_MEGABYTES, "GDAL_DISABLE_READDIR_ON_OPEN": "TRUE"}
    with gdal(**limits), warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        try:
            with rasterio.open(path, "w", **profile) as file:
                yield file
            rasterio.open(path).close()  # GDAL reports no failure of an ENVI header
        except (rasterio.errors.RasterioError, SystemError) as error:
            raise OSError(
                errno.EIO, f"not written ({' '.join(str(error).split())})", str(path)
            ) from (error)


def _control_points(grid: Grid) -> dict[str, Any]:
    """Return ground control points of pixels in sensor geometry, by which gdalwarp places them."""
    if grid.location is None:
        return {}
    control, (x, y) = library("rasterio.control", "out", "a GeoTIFF"), grid.location.read()
    places = (
        np.unique(np.linspace(0, size - 1, _CONTROL_POINTS).astype(int)).tolist()
        for size in (grid.height, grid.width)
    )
    points = [
        control.GroundControlPoint(row + 0.5, column + 0.5, x[row, column], y[row, column])
        for row, column in itertools.product(*places)
        if np.isfinite(x[row, column] + y[row, column])
    ]
    return {"gcps": points, "crs": grid.place_crs} if points else {}


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


def _has_table(card: ModelCard) -> bool:
    return min(card.class_ids) >= 0 and 0 < max(card.class_ids) < _LARGEST_TABLE


def _envi_classes(card: ModelCard) -> str:
    if not _has_table(card):
        return ""
    names = [name.translate(_IN_A_LIST) for name in category_names(card)]
    colours = ", ".join(map(str, colour_table(card)[: len(names)].ravel()))
    return (
        f"classes = {len(names)}\nclass names = {{{', '.join(names)}}}\n"
        f"class lookup = {{{colours}}}\n"
    )


def _categories(card: ModelCard, coloured: bool) -> str:
    """Return names and colours of the classes as GDAL stores them.

    Category names are for older programs; QGIS from 3.30 on and ArcGIS read the attribute table.

    Args:
        coloured: whether the raster has no colour table of its own.
    """
    names = category_names(card) if _has_table(card) else []
    lines = [f"      <Category>{escape(name)}</Category>" for name in names]
    lines = ["    <CategoryNames>", *lines, "    </CategoryNames>"]
    if coloured and names:
        table = colour_table(card)[: len(names)]
        entries = [f'      <Entry c1="{r}" c2="{g}" c3="{b}" c4="255" />' for r, g, b in table]
        lines += ["    <ColorInterp>Palette</ColorInterp>"]
        lines += ["    <ColorTable>", *entries, "    </ColorTable>"]
    lines = ["<PAMDataset>", '  <PAMRasterBand band="1">', *lines, *_attribute_table(card)]
    return "\n".join([*lines, "  </PAMRasterBand>", "</PAMDataset>", ""])


def _attribute_table(card: ModelCard) -> list[str]:
    """Return the lines of an attribute table: types and usages are numbers of GDAL."""
    columns = (("Value", 0, 5), ("Class", 2, 2), ("Red", 0, 6), ("Green", 0, 7), ("Blue", 0, 8))
    fields = [
        f'      <FieldDefn index="{place}"><Name>{name}</Name><Type>{kind}</Type>'
        f"<Usage>{usage}</Usage></FieldDefn>"
        for place, (name, kind, usage) in enumerate(columns)
    ]
    classes = zip(card.class_ids, card.class_names, card.palette, strict=True)
    rows = [
        f'      <Row index="{place}">{"".join(f"<F>{cell}</F>" for cell in cells)}</Row>'
        for place, cells in enumerate((n, escape(name), *rgb) for n, name, rgb in classes)
    ]
    head = '    <GDALRasterAttributeTable tableType="thematic">'
    return [head, *fields, *rows, "    </GDALRasterAttributeTable>"]


def _style(card: ModelCard) -> str:
    entries = [
        f'        <paletteEntry value="{number}" color="#{bytes(colour).hex()}" alpha="255" '
        f"label={quoteattr(name)} />"
        for number, name, colour in zip(card.class_ids, card.class_names, card.palette, strict=True)
    ]
    return "\n".join(
        [
            "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>",
            '<qgis version="3.22" styleCategories="Symbology">',
            "  <pipe>",
            '    <rasterrenderer type="paletted" band="1" opacity="1" alphaBand="-1">',
            "      <rasterTransparency />",
            "      <colorPalette>",
            *entries,
            "      </colorPalette>",
            "    </rasterrenderer>",
            "  </pipe>",
            "</qgis>",
            "",
        ]
    )
