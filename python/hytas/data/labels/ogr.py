"""Vector files of the GIS, by OGR (pyogrio): GeoJSON, GeoPackage, Shapefile, FlatGeobuf, KML.

The child process of the guard reads them. OGR has one driver there, and no network.
"""

import json
import re
import shutil
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hytas.data.labels.options import LabelOptions
from hytas.data.labels.shapes import (
    CLASS_FIELDS,
    COLOUR_FIELDS,
    MOST_COORDINATES,
    Geometries,
    Shapes,
    check_amount,
    too_many,
)
from hytas.data.limits import listed, printable
from hytas.data.readers.guard import GUARD
from hytas.errors import InputError, library

MOST_ROWS = 2**16
"""Rows of a table of classes, at most."""
MOST_TEXT = 2**26
"""Bytes of all fields."""
_UNDEFINED = re.compile(r"\w+\[\"Undefined ", re.IGNORECASE)
# Every connection goes to a port where nothing listens; no file but the named one is opened.
_SAFE = {
    "GDAL_HTTP_PROXY": "http://127.0.0.1:9",
    "GDAL_HTTPS_PROXY": "http://127.0.0.1:9",
    "GDAL_HTTP_MAX_RETRY": "0",
    "GDAL_HTTP_CONNECTTIMEOUT": "1",
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "{none}",
    "PROJ_NETWORK": "OFF",
    "OGR_SQLITE_PRAGMA": "trusted_schema=OFF",
    "SHAPE_RESTORE_SHX": "NO",
}


def read_shapes(
    name: str,
    path: Path,
    options: LabelOptions,
    *,
    driver: str | None = None,
    config: Mapping[str, str] | None = None,
    open_options: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> Shapes:
    """Read a layer of a format; arguments that are not listed are those of `read_layer`.

    Args:
        driver: OGR's name of the format, if it is another.

    Raises:
        ValueError: the file is broken; the message says how.
    """
    field = options.class_field
    request = {
        "driver": driver or name,
        "config": dict(config or {}),
        # A name of a file that begins with `/vsi...` would be one of GDAL's own file systems.
        "path": str(path.absolute()),
        "layer": options.key,
        "open_options": dict(open_options or {}),
        "class_fields": [field.lower()] if field is not None else list(CLASS_FIELDS),
        "encoding": encoding,
    }
    facts, coordinates = GUARD.call(".labels.ogr:read_layer", path, request, MOST_COORDINATES)
    crs = facts["crs"]
    return Shapes(
        name,
        geometries_of(coordinates, facts["sizes"]),
        facts["fields"],
        None if crs is None or _UNDEFINED.match(crs) else crs,
        notes=tuple(f"GDAL: {printable(text)}" for text in facts["warnings"]),
    )


def read_geopackage(path: Path, options: LabelOptions) -> Shapes:
    """Read a layer of a GeoPackage."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        rule = f"{log.name} next to it holds changes that are not in the file yet"
        raise InputError("labels", str(path), rule, "close the file in other programs")
    return read_shapes(
        "GeoPackage", path, options, driver="GPKG", open_options={"IMMUTABLE": "YES"}
    )


def read_shapefile(path: Path, options: LabelOptions) -> Shapes:
    """Read a Shapefile, with the table next to it."""
    parts = parts_of_shapefile(path)
    if ".dbf" not in parts:
        rule = "has no table of classes next to it"
        raise InputError("labels", str(path), rule, f"looked for {path.stem}.dbf")
    # A file without .cpg does not say its encoding: modern programs write UTF-8.
    encoding = None if ".cpg" in parts else "UTF-8"
    with ExitStack() as stack:
        if ".shx" not in parts:  # GDAL makes the index again, in a folder of its own
            folder = Path(stack.enter_context(TemporaryDirectory()))
            for end, file in {**parts, ".shp": path}.items():
                shutil.copyfile(file, folder / f"shapes{end}")
            path = folder / "shapes.shp"
        restore = {"SHAPE_RESTORE_SHX": "YES"} if ".shx" not in parts else {}
        return read_shapes(
            "Shapefile", path, options, driver="ESRI Shapefile", config=restore, encoding=encoding
        )


def read_table(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a dBASE table, by name.

    Raises:
        InputError, ValueError: the file is broken, or has more than `MOST_ROWS` rows.
    """
    request = {"path": str(path.absolute())}
    fields: dict[str, list[Any]] = GUARD.call(".labels.ogr:table_fields", path, request, 0)[0]
    return fields


def parts_of_shapefile(path: Path) -> dict[str, Path]:
    """Return the other files of a Shapefile, by their suffix."""
    ends = [end for suffix in (".dbf", ".shx", ".prj", ".cpg") for end in (suffix.upper(), suffix)]
    files = {end.lower(): path.with_suffix(end) for end in ends if path.with_suffix(end).is_file()}
    return files


def read_layer(
    path: str,
    layer: str | None,
    driver: str,
    config: Mapping[str, str],
    open_options: Mapping[str, str],
    class_fields: list[str],
    encoding: str | None,
) -> tuple[dict[str, Any], bytes]:
    """Return the facts of a layer, and its geometries as well-known binary, one after the other.

    Args:
        layer: its name; None for the only one.
        driver: the only one that OGR may use.
        class_fields: names of fields of classes, in lower case; if one is there, no others are
            read, except colours.
        encoding: of texts; None leaves it to the driver.

    Returns:
        "crs", "fields" (name -> values), "sizes" (bytes of each geometry, -1 where there is none)
        and "warnings"; and the bytes.

    Raises:
        ValueError: the file is broken.
    """
    _allow(driver, config)
    try:
        return _layer(path, layer, open_options, class_fields, encoding)
    except UnicodeDecodeError:
        pass
    except Exception as error:
        if "not recognized as being in a supported file format" in str(error):
            hint = (
                "if it annotates a picture (labelme, COCO), export it as a label map, such as PNG"
            )
            rule = f"its content is not {driver}"
            raise InputError(rule=rule, hint=hint if driver == "GeoJSON" else "") from None
        raise
    try:
        facts, geometries = _layer(path, layer, open_options, class_fields, None)
    except UnicodeDecodeError:
        raise ValueError("its texts are not of the encoding that it names") from None
    facts["warnings"].append(
        "its texts are no UTF-8: read as Latin-1, or as its .dbf says; a .cpg next to it with the "
        "name of the encoding, such as GBK, decides"
    )
    return facts, geometries


def table_fields(path: str) -> tuple[dict[str, Any], bytes]:
    """Return the columns of a table without geometries, and no bytes; see `read_table`."""
    _allow("ESRI Shapefile", {})
    pyogrio = library("pyogrio", "labels", "a table of classes")
    raw = library("pyogrio.raw", "labels", "a table of classes")

    def columns(encoding: str | None) -> Any:
        if pyogrio.read_info(path, encoding=encoding)["features"] > MOST_ROWS:
            raise ValueError(f"has more than {MOST_ROWS} rows")
        return raw.read(path, read_geometry=False, encoding=encoding)

    try:  # as in a Shapefile, no encoding is named
        meta, _, _, values = columns("UTF-8")
    except UnicodeDecodeError:
        meta, _, _, values = columns(None)
    named = zip(meta["fields"], values, strict=True)
    return {str(name): [_plain(value) for value in column.tolist()] for name, column in named}, b""


def _allow(driver: str, config: Mapping[str, str]) -> None:
    """Remove all drivers of OGR except one, and set its configuration.

    Raises:
        RuntimeError: another driver is still there.
    """
    pyogrio = library("pyogrio", "labels", "a file of polygons")
    from pyogrio._ogr import _register_drivers

    pyogrio.set_gdal_config_options({"OGR_SKIP": ""})
    _register_drivers()
    others = sorted(set(pyogrio.list_drivers()) - {driver})
    pyogrio.set_gdal_config_options({**_SAFE, **config, "OGR_SKIP": ",".join(others)})
    _register_drivers()
    if extra := set(pyogrio.list_drivers()) - {driver}:
        raise RuntimeError(f"drivers of GDAL cannot be removed: {', '.join(sorted(extra))}")


def _layer(
    path: str,
    layer: str | None,
    open_options: Mapping[str, str],
    class_fields: list[str],
    encoding: str | None,
) -> tuple[dict[str, Any], bytes]:
    pyogrio = library("pyogrio", "labels", "a file of polygons")
    raw = library("pyogrio.raw", "labels", "a file of polygons")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
        if (layer is None and len(layers) != 1) or (layer is not None and layer not in layers):
            raise _no_layer(path, layers, layer)
        layer = layer or layers[0]
        info = pyogrio.read_info(
            path, layer=layer, encoding=encoding, force_feature_count=True, **open_options
        )
        check_amount(info["features"])
        names = info["fields"].tolist()
        chosen = [name for name in names if name.lower() in class_fields]
        chosen += [name for name in names if chosen and name.lower() in COLOUR_FIELDS]
        meta, _, geometries, columns = raw.read(
            path,
            layer=layer,
            encoding=encoding,
            columns=chosen or None,
            force_2d=True,
            datetime_as_string=True,
            **open_options,
        )
    # A table without geometries has none at all.
    parts = [None] * len(columns[0]) if geometries is None and columns else geometries
    parts = [] if parts is None else list(parts)
    if sum(len(part or b"") for part in parts) > MOST_COORDINATES:
        raise too_many()
    fields = {
        str(name): [_plain(value) for value in column.tolist()]
        for name, column in zip(meta["fields"], columns, strict=True)
    }
    if len(json.dumps(fields)) > MOST_TEXT:
        rule = f"its fields hold more than {MOST_TEXT} bytes"
        raise InputError(rule=rule, hint="name the one of classes with `class_field`")
    facts = {
        "crs": meta["crs"],
        "fields": fields,
        "sizes": [-1 if part is None else len(part) for part in parts],
        "warnings": list(dict.fromkeys(str(each.message) for each in caught))[:3],
    }
    return facts, b"".join(part for part in parts if part is not None)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; NaN, which pyogrio writes for no number, is None."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    return str(value)


def geometries_of(coordinates: bytes, sizes: list[int]) -> Geometries:
    """Return the geometries of shapely from well-known binary; None where the size is -1."""
    import shapely

    ends = np.cumsum(np.maximum(sizes, 0))
    parts = np.array(
        [
            None if size < 0 else coordinates[end - size : end]
            for size, end in zip(sizes, ends.tolist(), strict=True)
        ],
        object,
    )
    geometries: Geometries = shapely.from_wkb(parts, on_invalid="fix")  # closes open rings
    lost = (geometries == None) & (parts != None)  # noqa: E711 - compares each element
    if lost.any():
        number = int(lost.argmax()) + 1
        raise InputError("labels", rule=f"shape {number}: a ring of a polygon needs 3 corners")
    return geometries


def _no_layer(path: str, layers: list[str], wanted: str | None) -> InputError:
    layer_names = listed(layers)
    if wanted is not None:
        return InputError(
            "labels_key", wanted, f"{path} has no such layer", f"it has {layer_names}"
        )
    hint = "name one with `labels_key`" if layers else ""
    return InputError(rule=f"holds the layers {layer_names}", hint=hint)
