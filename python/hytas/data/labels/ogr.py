"""Vector files of the GIS, by OGR (pyogrio): GeoJSON, GeoPackage, Shapefile, FlatGeobuf, KML."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from hytas.data.labels import ogr_child
from hytas.data.labels.shapes import (
    CLASS_FIELDS,
    COLOUR_FIELDS,
    MOST_COORDINATES,
    MOST_SHAPES,
    Geometries,
    Shapes,
    VectorOptions,
    too_many,
)
from hytas.data.limits import listed, shown
from hytas.errors import InputError

WALL_SECONDS = 120.0
_UNDEFINED = re.compile(r"\w+\[\"Undefined ", re.IGNORECASE)
_PYTHON = (sys.executable, "-P")


class Answer(NamedTuple):
    """What the child process says, and the well-known binary of all geometries."""

    facts: dict[str, Any]
    coordinates: bytes


def read_geojson(path: Path, options: VectorOptions) -> Shapes:
    """Read GeoJSON; degrees on WGS 84, unless the file names another system."""
    return _shapes("GeoJSON", path, options, open_options={"DATE_AS_STRING": "YES"})


def read_flatgeobuf(path: Path, options: VectorOptions) -> Shapes:
    """Read a FlatGeobuf file."""
    return _shapes("FlatGeobuf", path, options)


def read_kml(path: Path, options: VectorOptions) -> Shapes:
    """Read a KML file."""
    return _shapes("KML", path, options, driver="LIBKML")


def read_geopackage(path: Path, options: VectorOptions) -> Shapes:
    """Read a layer of a GeoPackage.

    Raises:
        InputError: another program has not yet written all its changes into the file.
    """
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise InputError(
            "labels",
            str(path),
            f"{log.name} beside it holds changes that are not in the file yet",
            "close the file in other programs",
        )
    return _shapes("GeoPackage", path, options, "GPKG", open_options={"IMMUTABLE": "YES"})


def read_shapefile(path: Path, options: VectorOptions) -> Shapes:
    """Read a Shapefile, with the table beside it.

    Raises:
        InputError: there is no table.
    """
    beside = beside_shapefile(path)
    if ".dbf" not in beside:
        raise InputError(
            "labels",
            str(path),
            "has no table of classes beside it",
            f"looked for {path.stem}.dbf",
        )
    # A file without .cpg does not say its encoding: modern programs write UTF-8.
    encoding = None if ".cpg" in beside else "UTF-8"
    with ExitStack() as stack:
        if ".shx" not in beside:  # GDAL makes the index again, in a folder of its own
            folder = Path(stack.enter_context(TemporaryDirectory()))
            for end, file in {**beside, ".shp": path}.items():
                shutil.copyfile(file, folder / f"shapes{end}")
            path = folder / "shapes.shp"
        restore = {"SHAPE_RESTORE_SHX": "YES"} if ".shx" not in beside else {}
        return _shapes("Shapefile", path, options, "ESRI Shapefile", restore, encoding=encoding)


def beside_shapefile(path: Path) -> dict[str, Path]:
    """Return the files beside a Shapefile that belong to it, by their suffix."""
    ends = [end for suffix in (".dbf", ".shx", ".prj", ".cpg") for end in (suffix.upper(), suffix)]
    files = {end.lower(): path.with_suffix(end) for end in ends if path.with_suffix(end).is_file()}
    return files


def _shapes(
    name: str,
    path: Path,
    options: VectorOptions,
    driver: str | None = None,
    config: dict[str, str] | None = None,
    open_options: dict[str, str] | None = None,
    encoding: str | None = None,
) -> Shapes:
    """Read a layer.

    Args:
        name: the format's, for messages.
        path: the file.
        options: how to read it.
        driver: OGR's name of the format, if it is another.
        config: of GDAL.
        open_options: of the driver.
        encoding: of texts; None leaves it to the driver.

    Raises:
        InputError: there are too many shapes, no layer, or several and none is named.
        ValueError: the file is broken; the message says how.
    """
    field = options.class_field
    request = {
        "driver": driver or name,
        "config": config or {},
        # A name of a file that begins with `/vsi...` would be one of GDAL's own file systems.
        "path": str(path.absolute()),
        "layer": options.layer,
        "most_shapes": MOST_SHAPES,
        "most_coordinates": MOST_COORDINATES,
        "options": open_options or {},
        "class_fields": [field.lower()] if field is not None else list(CLASS_FIELDS),
        "colour_fields": list(COLOUR_FIELDS),
        "encoding": encoding,
    }
    facts, coordinates = ask_child(request)
    if facts.get("undecodable") and encoding is not None:
        facts, coordinates = ask_child({**request, "encoding": None})
    if facts.get("undecodable"):
        raise ValueError("its texts are not of the encoding that it names")
    if "error" in facts:
        raise ValueError(facts["error"])
    if facts.get("many"):
        raise too_many()
    if facts.get("wide"):
        raise InputError(
            "labels",
            str(path),
            f"its fields hold more than {ogr_child.MOST_TEXT} bytes",
            "name the one of classes with `class_field`",
        )
    if "layers" in facts:
        raise _no_layer(path, facts["layers"], options.layer)
    crs = facts["crs"]
    return Shapes(
        name,
        geometries_of(coordinates, facts["sizes"]),
        facts["fields"],
        None if crs is None or _UNDEFINED.match(crs) else crs,
        notes=tuple(f"GDAL: {shown(text)}" for text in facts["warnings"]),
    )


def ask_child(request: dict[str, Any]) -> Answer:
    """Let a child process read a file with the arguments of `ogr_child.read`.

    Raises:
        ValueError: the child crashed, or took too much time or memory.
        OSError: no process can be started.
    """
    # One thread is enough; a pool of threads is slow to start.
    few = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GDAL_", "OGR_", "CPL_"))}
    for proxy in ("no_proxy", "NO_PROXY"):
        kept.pop(proxy, None)
    try:
        done = subprocess.run(
            [*_PYTHON, str(Path(ogr_child.__file__)), json.dumps(request)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, **few, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            timeout=WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"reading it takes more than {WALL_SECONDS:g} s") from None
    size = int.from_bytes(done.stdout[:8], "little")
    if done.returncode or len(done.stdout) < 8 + size:
        raise ValueError(_why(done.returncode))
    return Answer(json.loads(done.stdout[8 : 8 + size]), done.stdout[8 + size :])


def _why(status: int) -> str:
    import signal

    if -status in (signal.SIGXCPU, signal.SIGKILL):
        most = ogr_child.MOST_BYTES >> 20
        return f"reading it takes more than {ogr_child.MOST_SECONDS} s or {most} MB"
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    return f"GDAL crashes on it ({name})"


def geometries_of(coordinates: bytes, sizes: list[int]) -> Geometries:
    """Return the geometries of shapely from well-known binary; None where the size is -1.

    Raises:
        InputError: a geometry is broken, or has a ring of fewer than 3 corners.
    """
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
        raise InputError(f"shape {int(lost.argmax()) + 1}: a ring of a polygon needs 3 corners")
    return geometries


def _no_layer(path: Path, layers: list[str], wanted: str | None) -> InputError:
    if wanted is not None:
        held = listed((shown(name) for name in layers), len(layers))
        return InputError("labels_key", wanted, f"{path} has no such layer", f"it has {held}")
    held = listed((shown(name) for name in layers), len(layers))
    hint = "name one with `labels_key`" if layers else ""
    return InputError("labels", str(path), f"holds the layers {held}", hint)
