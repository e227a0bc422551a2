"""Rasters by GDAL (rasterio): ENVI, GeoTIFF, ERDAS Imagine, ESRI BIL and others.

Only the driver of the format opens a file. A raster whose pixels lie in a file of another name is
refused, so that no file can make hytas read another one.
"""

import json
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.grid import Grid, gdal
from hytas.data.interpret.axes import PAGE
from hytas.data.interpret.wavelengths import (
    band_items,
    in_descriptions,
    items_of,
    wavelength_facts,
)
from hytas.data.read import envi
from hytas.data.read.tiff_pages import like_pages
from hytas.data.record import (
    OPACITY,
    OPACITY_IS_A_BAND,
    UNSCALED,
    BandFacts,
    Contents,
    Key,
    Variable,
    is_opacity,
    masked,
    with_alpha,
    with_nan,
)
from hytas.types import Array

FACTOR = "reflectance scale factor"
"""Header field: stored values are reflectance times this factor."""
CACHE_BYTES = 64 * 2**20
"""Of decoded blocks that GDAL keeps."""
OPEN_FILES = 300
_LOCK = threading.RLock()
"""No two threads may read one dataset of GDAL."""
_COMPOSED = ("HFA", "PCIDSK", "ISIS3", "PDS4")
"""Drivers of formats whose files may name other files with pixels."""
_PLAIN = ("EHdr", "PCIDSK", "ISIS3", "PDS4")
"""Drivers that read values beyond the end of a file as 0."""
_ESRI = (".bil", ".bip", ".bsq", ".flt")
_LETTERS = {"Y": "y", "X": "x", "C": "band", "S": "band"}
"""Axes in descriptions by tifffile -> names of dimensions."""


def read(path: Path, driver: str, name: str) -> Contents:
    """Describe a raster.

    Args:
        driver: GDAL's name of its driver.
    """
    header = envi.header_of(path)
    with _opened(path, driver) as dataset:
        if driver in _PLAIN:
            _check_size(dataset, path, driver)
        if driver in _COMPOSED:
            _check_files(dataset, path)
        values = partial(_values, str(path), driver)
        fields, indexes = _fields(dataset, header), dataset.indexes
        of_opacity: tuple[Finding, ...] = ()
        if _has_alpha(dataset) and not _is_colour(dataset):  # cube_in asks this of a picture
            whole = _variable(dataset, indexes, path.stem, values)
            of_opacity = (OPACITY if is_opacity(whole) else OPACITY_IS_A_BAND,)
            indexes = indexes[:-1] if OPACITY in of_opacity else indexes
        bands, findings = _band_facts(dataset, indexes, fields)
        class_names, colours = envi.classes_of(fields, findings)
        nodata_of_header = envi.ignored_value(fields, findings)
        findings += [*_unused(dataset, fields), *of_opacity]
        colours = colours or _palette(dataset)
        names, units = _texts(dataset, "descriptions"), _texts(dataset, "units")
        bands = replace(bands, names=names, units=units)
        unmarked = _variable(dataset, indexes, path.stem, values)
        nodata_values, has_alpha = dataset.nodatavals[: len(indexes)], len(indexes) < dataset.count
        has_mask = [flag.name for flag in dataset.mask_flag_enums[0]] == ["per_dataset"]
    # GDAL reads any text of an ENVI header as 0.
    nodata_values = (nodata_of_header,) if driver == "ENVI" else nodata_values
    attributes = {key: fields[key] for key in (FACTOR,) if key in fields}
    unmarked = replace(unmarked, bands=bands, attributes=attributes)
    variable = with_nan(unmarked, nodata_values)
    if has_alpha:
        behind = slice(len(indexes), len(indexes) + 1)
        variable = masked(variable, lambda key: values((behind, *key[1:]))[0])
    elif has_mask:
        with_mask = with_alpha if variable.is_colour else masked
        variable = with_mask(variable, partial(_mask, str(path), driver))
    if driver == "GTiff" and variable.shape[0] == 1 and len(pages := like_pages(path)) > 1:
        variable = _stack(path, variable, pages)
    sidecars = () if header is None else (header,)
    own = Contents(path, name, (variable,), tuple(findings), class_names, colours)
    return replace(own, sidecars=sidecars, is_picture=driver in ("PNG", "BMP"))


def read_envi(path: Path) -> Contents:
    """Describe an ENVI image, given its header or its data file."""
    is_header = envi.is_header(path)
    header = path if is_header else envi.header_of(path)
    assert header is not None  # the format was recognised by it
    fields = envi.fields_of(header)
    if "library" in fields.get("file type", "").lower():
        raise refusal("unreadable", "", case="spectral-library")
    data = envi.data_of(path) if is_header else path
    contents = read(data, "ENVI", "ENVI")
    variable = contents.variables[0]
    raw, findings = envi.raw_of(fields, variable.shape, data)
    if raw is None:
        return contents
    layout = envi.interleave_of(fields)
    dims = envi.INTERLEAVES[layout]
    variable = replace(variable, read=raw.read, raw=raw, dims=dims, shape=raw.shape, block=())
    if dark := envi.dark_frames(fields):
        at = dims.index("y")
        shape = tuple(size - dark * (axis == at) for axis, size in enumerate(raw.shape))
        variable = replace(variable, shape=shape, raw=None, left_out=dark)
        findings.insert(0, warning("left-out", case="dark-frames", count=dark, first=shape[at]))
    findings = [*contents.findings, *findings]
    name = f"ENVI {layout.upper()}"
    return replace(contents, format=name, variables=(variable,), findings=tuple(findings))


def is_esri(path: Path) -> bool:
    """Return whether a file is a raster with a header of ESRI, or that header."""
    suffix, header = path.suffix.lower(), path.with_suffix(".hdr")
    return suffix in (*_ESRI, ".hdr") and header.is_file() and not envi.is_header(header)


def read_esri(path: Path) -> Contents:
    """Describe an ESRI BIL, BIP, BSQ or FLT raster, given its header or its data file."""
    is_header = path.suffix.lower() == ".hdr"
    data = [one for end in _ESRI if (one := path.with_suffix(end)).is_file()]
    if is_header and not data:
        raise refusal("file-missing", "", name=f"{path.stem}.bil")
    return read(data[0] if is_header else path, "EHdr", "ESRI BIL")


@contextmanager
def gdal_settings() -> Iterator[None]:
    """Let GDAL keep few blocks, list no folder and use no network; no place is no warning."""
    options = {"GDAL_DISABLE_READDIR_ON_OPEN": "TRUE", "GDAL_PAM_ENABLED": "YES"}
    # GDAL's fast way for PNG gives arbitrary values, and no error, if the file is truncated.
    options["GDAL_PNG_WHOLE_IMAGE_OPTIM"] = "NO"
    with _LOCK, warnings.catch_warnings(), gdal(GDAL_CACHEMAX=CACHE_BYTES, **options):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _opened(path: Path | str, driver: str) -> Iterator[Any]:
    import rasterio

    with gdal_settings(), rasterio.open(str(path), driver=driver) as dataset:
        yield dataset


@lru_cache(maxsize=OPEN_FILES)
def _dataset(path: str, driver: str, state: int) -> Any:
    import rasterio

    return rasterio.open(path, driver=driver)


def _values(path: str, driver: str, key: Key) -> Array:
    """Return a part (bands, rows, columns)."""
    bands, rows, columns = key
    where = path.split(":", 3)[-1] if path.startswith("GTIFF_DIR:") else path
    with gdal_settings():
        dataset = _dataset(path, driver, Path(where).stat().st_mtime_ns)
        window = ((rows.start, rows.stop), (columns.start, columns.stop))
        numbers = list(range(bands.start + 1, bands.stop + 1))
        try:
            return np.asarray(dataset.read(numbers, window=window))
        except OSError as error:  # the text of rasterio's error says only that there is a cause
            raise ValueError(str(error.__cause__ or error)) from None


def _mask(path: str, driver: str, key: Key) -> Array:
    """Return (rows, columns), 0 where the mask of the raster says that there is no data."""
    window = tuple((part.start, part.stop) for part in key[1:])
    with gdal_settings():
        dataset = _dataset(path, driver, Path(path).stat().st_mtime_ns)
        return np.asarray(dataset.read_masks(1, window=window))


def _is_colour(dataset: Any) -> bool:
    colours = [each.name for each in dataset.colorinterp]
    return colours[:3] == ["red", "green", "blue"] and len(colours) <= 4


def _has_alpha(dataset: Any) -> bool:
    return bool(dataset.count > 1 and dataset.colorinterp[-1].name == "alpha")


def _variable(dataset: Any, indexes: Sequence[int], name: str, values: Any) -> Variable:
    dtype = np.result_type(*(_numpy(dataset.dtypes[index - 1]) for index in indexes))
    shape = (len(indexes), dataset.height, dataset.width)
    return Variable.of_type(
        name,
        shape,
        dtype,
        values,
        dims=("band", "y", "x"),
        grid=_grid(dataset),
        block=(1, *map(int, dataset.block_shapes[0])),
        is_colour=_is_colour(dataset),
        has_alpha=_is_colour(dataset) and _has_alpha(dataset),
    )


def _numpy(text: str) -> "np.dtype[Any]":
    return np.dtype({"complex_int16": "complex64"}.get(text, text))


def _grid(dataset: Any) -> Grid | None:
    a, b, c, d, e, f = tuple(dataset.transform)[:6]
    is_known = (a, b, c, d, e, f) != (1, 0, 0, 0, 1, 0)
    crs = dataset.crs.to_wkt() if dataset.crs else None
    if not is_known and crs is None:
        return None
    transform = (a, b, c, d, e, f) if is_known and np.isfinite((a, b, c, d, e, f)).all() else None
    return Grid(transform, crs, dataset.height, dataset.width)


def _check_size(dataset: Any, path: Path, driver: str) -> None:
    """Refuse a file that ends before its last value.

    Raises:
        ValueError: it does.
    """
    in_tiff = any(name.lower().endswith((".tif", ".tiff")) for name in dataset.files)
    if in_tiff or (driver == "PCIDSK" and dataset.profile["tiled"]):
        return  # GDAL refuses the end of a TIFF itself; tiles may lie in any order, or be left out
    bits = [_tags(dataset, band, ns="IMAGE_STRUCTURE").get("NBITS") for band in dataset.indexes]
    sizes = (int(n or 8 * _numpy(t).itemsize) for n, t in zip(bits, dataset.dtypes, strict=True))
    needed = dataset.height * dataset.width * sum(sizes) // 8
    held = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4096)
    if driver == "PCIDSK":  # its values may be compressed; the header has the size in blocks
        needed = 512 * int(head[16:32])
    elif driver == "ISIS3" and (start := re.search(rb"StartByte\s*=\s*(\d+)", head)):
        needed += int(start[1]) - 1
    if driver in ("ISIS3", "PDS4"):  # the values may lie next to the label
        held = max(Path(file).stat().st_size for file in dataset.files)
    if held < needed:
        raise ValueError(f"it holds {held} bytes, and its values end at byte {needed}")


def _check_files(dataset: Any, path: Path) -> None:
    own = path.name.split(".")[0].lower()
    for file in map(Path, dataset.files):
        if file.parent != path.parent or not file.name.lower().startswith(own):
            raise refusal("values-in-other-files", "", array=path.name, files=[file.name])


def _fields(dataset: Any, header: Path | None) -> dict[str, str]:
    """Return header fields: of the header, or those that programs write into other rasters."""
    fields = {key.lower().replace("_", " "): text for key, text in _tags(dataset).items()}
    kept = ("wavelength", "wavelengths", "wavelength units", "fwhm", "bbl", "class names")
    fields = {
        key: text
        for key, text in fields.items()
        if key in kept and (text.startswith("{") or envi.is_list_of_numbers(text))
    }
    units = _tags(dataset).get("wavelength_units")
    fields |= {} if units is None else {"wavelength units": units}
    domain = _tags(dataset, ns="ENVI") if header is None else {}
    fields |= {key.lower().replace("_", " "): text for key, text in domain.items()}
    return fields if header is None else {**fields, **envi.fields_of(header)}


def _tags(dataset: Any, band: int = 0, **domain: str) -> dict[str, str]:
    try:
        return dict(dataset.tags(band, **domain))
    except UnicodeDecodeError:
        return {}


def _texts(dataset: Any, name: str) -> tuple[str, ...]:
    """Return the descriptions or units of all bands; () if they are no UTF-8."""
    try:
        return tuple(text or "" for text in getattr(dataset, name))
    except UnicodeDecodeError:
        return ()


def _band_facts(
    dataset: Any, indexes: Sequence[int], fields: Mapping[str, str]
) -> tuple[BandFacts, list[Finding]]:
    """Return the facts of bands by the lists of header fields, else by the items of each band."""
    of_envi = (_tags(dataset, band, ns="ENVI") for band in indexes)
    named = [{key.replace(" ", "_"): text for key, text in own.items()} for own in of_envi]
    items = [
        own | _tags(dataset, band) | _tags(dataset, band, ns="IMAGERY")
        for own, band in zip(named, indexes, strict=True)
    ]

    def listed(*names: str) -> list[str] | None:
        found, count = items_of(envi.first_of(fields, *names) or ""), len(indexes)
        # A map often has the list of the cube that it comes from.
        return found if found and (count > 1 or len(found) == count) else None

    waves, unit = listed("wavelength", "wavelengths"), envi.first_of(fields, "wavelength units")
    if waves is None and "wavelength" not in fields:  # GDAL gives its items to each band, too
        waves, unit = _listed(dataset, items)
    widths, unit_of_widths = listed("fwhm") or band_items(items, "fwhm"), None
    if widths is None and (widths := band_items(items, "fwhm_um")) is not None:
        unit_of_widths = "um"
    flags = listed("bbl", "bad band multiplier", "bad bands list")
    flags = flags or band_items(items, "bbl", "good", "bad_band_multiplier")
    return wavelength_facts(len(indexes), waves, unit, widths, unit_of_widths, flags)


def _unused(dataset: Any, fields: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding on each fact of a raster that changes neither its values nor its place."""
    scales = {*zip(dataset.scales, dataset.offsets, strict=True)} - {(1.0, 0.0)}
    factor = fields.get(FACTOR, "1").strip()
    if scales or not re.fullmatch(r"1(\.0*)?", factor):
        yield UNSCALED
    if dataset.gcps[0]:
        yield note("not-used", case="control-points")


def _listed(
    dataset: Any, items: Sequence[Mapping[str, str]]
) -> tuple[list[str] | None, str | None]:
    """Return a text for each band with its wavelength, and their unit."""
    for name, unit in (
        ("wavelength", None),
        ("wavelength_nm", "nm"),
        ("central_wavelength_nm", "nm"),
        ("central_wavelength", None),
        ("center_wavelength", None),
        ("wavelength_um", "um"),
        ("central_wavelength_um", "um"),
    ):
        texts = band_items(items, name)
        if texts is not None:
            named = band_items(items, "wavelength_units", "wavelength_unit", "units")
            units = set(named or ())
            return texts, unit or (units.pop() if len(units) == 1 else None)
    return in_descriptions(_texts(dataset, "descriptions")[: len(items)])


def _palette(dataset: Any) -> dict[int, tuple[int, int, int]]:
    if dataset.count != 1 or dataset.colorinterp[0].name != "palette":
        return {}
    return {int(value): tuple(rgba[:3]) for value, rgba in dataset.colormap(1).items()}


def _stack(path: Path, page: Variable, offsets: Sequence[int]) -> Variable:
    """Return the pages of a TIFF as one array of three dimensions.

    Args:
        page: the first one, (1, rows, columns).
        offsets: of all pages, in bytes.
    """
    places = [f"GTIFF_DIR:off:{offset}:{path}" for offset in offsets]

    def values(key: Key) -> Array:
        parts = [_values(place, "GTiff", (slice(0, 1), *key[1:]))[0] for place in places[key[0]]]
        return np.stack(parts)

    shape, text = (len(places), *page.shape[1:]), _description(places[0], path)
    dims, bands = _stack_dims(text, shape), None
    if in_descriptions([text])[0] is not None:  # a description for each page
        listed, unit = in_descriptions([_description(place, path) for place in places])
        bands = None if listed is None else wavelength_facts(len(places), listed, unit)[0]
    return replace(page, shape=shape, read=values, dims=dims, bands=bands)


def _description(place: str, path: Path) -> str:
    with gdal_settings():
        dataset = _dataset(place, "GTiff", path.stat().st_mtime_ns)
        return _tags(dataset).get("TIFFTAG_IMAGEDESCRIPTION", "")


def _stack_dims(text: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    if text.startswith("ImageJ="):
        return ("band", "y", "x")
    try:
        axes = json.loads(text)["axes"]
    except (ValueError, KeyError, TypeError):
        return (PAGE, "", "")
    dims = [_LETTERS.get(letter, "") for letter in str(axes)]
    return tuple(dims) if len(dims) == len(shape) else (PAGE, "", "")
