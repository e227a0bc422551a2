"""Vector files of the GIS, by OGR (pyogrio): GeoJSON, GeoPackage, Shapefile, FlatGeobuf, KML."""

import re
import shutil
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.labels.shapes import CLASS_FIELDS, COLOUR_FIELDS, Geometries, Shapes, plain_value
from hytas.data.options import SceneOptions
from hytas.data.read.untrusted import call
from hytas.errors import InputError

MOST_ROWS = 2**16
"""Rows of a table of classes, at most."""
_UNDEFINED = re.compile(r"\w+\[\"Undefined ", re.IGNORECASE)


def read_ogr_shapes(
    name: str,
    path: Path,
    options: SceneOptions,
    *,
    open_options: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> Shapes:
    """Read a layer of a format.

    Args:
        encoding: of texts; None leaves it to OGR.

    Raises:
        ValueError: the file is broken; the message says how.
    """
    chosen = options.labels_key, tuple(name.lower() for name in options.fields or CLASS_FIELDS)
    crs, fields, geometries, findings, text_fields = call(
        read_layer, name, path.absolute(), *chosen, dict(open_options or {}), encoding
    )
    return Shapes(
        name,
        geometries_of(geometries),
        fields,
        None if crs is None or _UNDEFINED.match(crs) else crs,
        findings=tuple(findings),
        texts=tuple(text_fields),
    )


def read_shapefile(path: Path, options: SceneOptions) -> Shapes:
    """Read a Shapefile, with the table next to it."""
    parts = parts_of_shapefile(path)
    if ".dbf" not in parts:
        raise refusal("file-missing", "labels", str(path), name=f"{path.stem}.dbf")
    # A file without .cpg does not say its encoding: modern programs write UTF-8.
    encoding = None if ".cpg" in parts else "UTF-8"
    if ".shx" in parts:
        return read_ogr_shapes("Shapefile", path, options, encoding=encoding)
    with TemporaryDirectory() as folder:  # `read_layer` makes the index again, next to the file
        copy = Path(folder) / "shapes.shp"
        for end, file in {**parts, ".shp": path}.items():
            shutil.copyfile(file, copy.with_suffix(end))
        return read_ogr_shapes("Shapefile", copy, options, encoding=encoding)


def read_dbase(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a dBASE table, by name.

    Raises:
        InputError, ValueError: the file is broken, or has more than `MOST_ROWS` rows.
    """
    fields: dict[str, list[Any]] = call(table_fields, path.absolute())
    return fields


def parts_of_shapefile(path: Path) -> dict[str, Path]:
    """Return the other files of a Shapefile, by their suffix."""
    ends = [end for suffix in (".dbf", ".shx", ".prj", ".cpg") for end in (suffix.upper(), suffix)]
    return {end.lower(): path.with_suffix(end) for end in ends if path.with_suffix(end).is_file()}


_Layer = tuple[str | None, dict[str, list[Any]], list[bytes | None], list[Finding], list[str]]
"""Coordinate system, values by field, geometries as well-known binary, findings, text fields."""


def read_layer(
    name: str,
    path: Path,
    layer: str | None,
    class_fields: Sequence[str],
    open_options: Mapping[str, str],
    encoding: str | None,
) -> _Layer:
    """Read a layer; if it has a field of classes, no others are read, except colours.

    Args:
        layer: its name; None for the only one.
        class_fields: names of the fields of classes or values, in lower case.

    Raises:
        ValueError: the file is broken.
    """
    import pyogrio

    has_no_index = name == "Shapefile" and not path.with_suffix(".shx").exists()
    pyogrio.set_gdal_config_options({"SHAPE_RESTORE_SHX": has_no_index or None})
    read = partial(_layer, str(path), layer, open_options, class_fields)
    try:
        return read(encoding)
    except UnicodeDecodeError:
        crs, fields, geometries, findings, texts = read(None)
        return crs, fields, geometries, [*findings, warning("texts-not-utf-8")], texts
    except Exception as error:
        if "not recognized as being in a supported file format" in str(error):
            raise InputError(rule=f"its content is not {name}") from None
        raise


def table_fields(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a table without geometries, as `read_dbase` does."""
    import pyogrio
    from pyogrio import raw

    def columns(encoding: str | None) -> Any:
        if pyogrio.read_info(path, encoding=encoding)["features"] > MOST_ROWS:
            raise ValueError(f"has more than {MOST_ROWS} rows")
        return raw.read(path, read_geometry=False, encoding=encoding)

    try:  # as in a Shapefile, no encoding is named
        meta, _, _, values = columns("UTF-8")
    except UnicodeDecodeError:
        meta, _, _, values = columns(None)
    named = zip(meta["fields"], values, strict=True)
    return {str(name): [plain_value(value) for value in column.tolist()] for name, column in named}


def _layer(
    path: str,
    layer: str | None,
    open_options: Mapping[str, str],
    class_fields: Sequence[str],
    encoding: str | None,
) -> _Layer:
    import pyogrio
    from pyogrio import raw

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
        if (layer is None and len(layers) != 1) or (layer is not None and layer not in layers):
            if layer is not None:
                raise refusal("missing", "labels_key", layer, "layer", names=layers)
            if not layers:
                raise refusal("empty", "", case="layers")
            raise refusal("several", "", case="layers", names=layers)
        layer = layer or layers[0]
        how: dict[str, Any] = {"layer": layer, "encoding": encoding, **open_options}
        info = pyogrio.read_info(path, force_feature_count=True, **how)
        names = info["fields"].tolist()
        chosen = [name for name in names if name.lower() in class_fields]
        chosen += [name for name in names if chosen and name.lower() in COLOUR_FIELDS]
        how |= {"columns": chosen or None, "force_2d": True, "datetime_as_string": True}
        meta, _, geometries, columns = raw.read(path, **how)
    # A table without geometries has none at all.
    parts = [None] * len(columns[0]) if geometries is None and columns else geometries
    parts = [] if parts is None else list(parts)
    fields = {
        str(name): [plain_value(value) for value in column.tolist()]
        for name, column in zip(meta["fields"], columns, strict=True)
    }
    texts = list(dict.fromkeys(str(warning.message) for warning in caught))[:3]
    findings = [note("gdal-warning", text=text) for text in texts]
    kinds = zip(names, info["dtypes"], strict=True)
    return meta["crs"], fields, parts, findings, [name for name, kind in kinds if kind == "object"]


def geometries_of(binary: Sequence[bytes | None]) -> Geometries:
    """Return the geometries of shapely from well-known binary."""
    import shapely

    parts = np.array([*binary, None], object)[:-1]
    geometries: Geometries = shapely.from_wkb(parts, on_invalid="fix")  # closes open rings
    lost = (geometries == None) & (parts != None)  # noqa: E711 - compares each element
    if lost.any():
        first = int(lost.argmax()) + 1
        raise refusal("shape-invalid", "labels", case="few-corners", first=first)
    return geometries
