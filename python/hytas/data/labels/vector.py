"""A label map from a file of polygons or points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.grid import Grid, crs_of, epsg_of, gdal
from hytas.data.labels.burn import Burner, check_rings
from hytas.data.labels.formats import read_shapes
from hytas.data.labels.maps import LabelMap
from hytas.data.labels.names import ClassNames, renamed, unused
from hytas.data.labels.shapes import (
    COLOUR_FIELDS,
    Colour,
    Geometries,
    Points,
    Shapes,
    VectorOptions,
    colour_of,
    find_field,
    naming,
)
from hytas.data.limits import listed, printable
from hytas.errors import InputError
from hytas.lazy import library

WGS_84 = "EPSG:4326"
MOST_COORDINATE = 1e15
"""Larger coordinates lose whole pixels, and become infinite when they are transformed."""


@dataclass(frozen=True)
class Classes:
    """The classes of shapes.

    Attributes:
        ids: of the shapes, one each; 0 where a shape labels nothing.
        names: by id.
        colours: by id, of the classes whose shapes all have the same.
        notes: on given names.
    """

    ids: npt.NDArray[np.int64]
    names: Mapping[int, str]
    colours: Mapping[int, Colour]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class VectorMap:
    """The label map of a file of shapes.

    Attributes:
        labels: (H, W) class ids, 0 unlabelled.
        polygons: (H, W) the number of the shape that labels a pixel, from 1; 0 without one.
        names: of the classes, by id.
        colours: of classes, by id.
        notes: remarks on shapes and classes that are not in the map.
    """

    labels: LabelMap
    polygons: LabelMap
    names: Mapping[int, str]
    colours: Mapping[int, Colour]
    notes: tuple[str, ...]


def vector_map(
    path: Path,
    options: VectorOptions,
    grid: Grid,
    *,
    unlabelled: int | None = None,
    zero_is_a_class: bool = False,
    given: ClassNames | None = None,
    class_ids: Mapping[str, int] | None = None,
) -> VectorMap:
    """Read a file of polygons or points as a label map (H, W) of the scene.

    Args:
        path: the file.
        options: of vector labels.
        grid: the pixels of the scene.
        unlabelled: the class of shapes that label nothing.
        zero_is_a_class: whether 0 is a class; ids are then one more than the file's numbers.
        given: names by number or by name in the file; see `read_class_names`.
        class_ids: ids of classes by name, for shapes that are compared with a model.

    Raises:
        InputError: a broken file, a shape without a class, shapes in an unknown coordinate system,
            a polygon that crosses itself, or no shape in the scene.
    """
    shapes = read_shapes(path, options)
    with naming(path):
        _check_coordinates(shapes.geometries)
        overruled = _overruled(shapes.crs, options)
        shapes = _in_the_scene(shapes, options, grid)
        check_rings(shapes.geometries)
        classes = _classes(
            shapes.fields, options, unlabelled, zero_is_a_class, class_ids, given or {}
        )
        labels, polygons, notes = _burn(shapes, classes, grid)
    remarks = tuple(
        f"{path.name}: {note}" for note in (*shapes.notes, *overruled, *classes.notes, *notes)
    )
    return VectorMap(labels, polygons, classes.names, classes.colours, remarks)


def _check_coordinates(geometries: Geometries) -> None:
    import shapely

    places, index = shapely.get_coordinates(geometries, return_index=True)
    wrong = ~(np.abs(places) < MOST_COORDINATE).all(axis=1)
    if wrong.any():
        number = int(index[wrong][0]) + 1
        raise InputError(
            "labels",
            rule=f"shape {number}: its coordinates must be numbers below {MOST_COORDINATE:g}",
        )
    parts, index = geometries, np.arange(len(geometries))
    while (collection := shapely.get_type_id(parts) == _COLLECTION).any():
        inner, place = shapely.get_parts(parts[collection], return_index=True)
        index = np.concatenate([index[~collection], index[collection][place]])
        parts = np.concatenate([parts[~collection], inner])
    wrong = ~np.isin(shapely.get_type_id(parts), _KINDS)
    if wrong.any():
        number = int(index[wrong].min())
        kind = geometries[number].geom_type
        raise InputError("labels", rule=f"shape {number + 1} is a {kind}: polygon or point needed")


_COLLECTION = 7
_KINDS = (-1, 0, 3, 4, 6)
"""None, points, polygons, and several of them, as shapely numbers its types."""


def system_of(grid: Grid) -> str | None:
    """Return the coordinate system of a scene; that of its latitudes, where it has no transform."""
    return WGS_84 if grid.transform is None and grid.location is not None else grid.crs


def _in_the_scene(shapes: Shapes, options: VectorOptions, grid: Grid) -> Shapes:
    if shapes.size is not None and shapes.size != (grid.height, grid.width):
        raise InputError(
            "labels",
            rule=f"drawn on {shapes.size[0]} x {shapes.size[1]} pixels, and the scene has "
            f"{grid.height} x {grid.width}",
        )
    if shapes.in_pixels:
        if options.crs is not None:
            raise InputError(
                "labels_crs", options.crs, f"the {shapes.format} file counts in pixels"
            )
        return shapes
    if grid.transform is None and grid.location is None:
        raise InputError(
            "labels",
            rule="the scene has no place on the earth, so only points with columns row and "
            "column, or ENVI regions of interest, can label it",
        )
    if shapes.crs == "" and options.crs is None:
        return shapes
    source, target = options.crs or shapes.crs, system_of(grid)
    if source is None:
        raise InputError(
            "labels",
            rule="names no coordinate system",
            hint="name one, such as EPSG:32632, with `labels_crs`",
        )
    if target is None:
        raise InputError(
            "labels", rule=f"is in {printable(source)}, and the scene names no coordinate system"
        )
    return replace(shapes, geometries=reprojected(shapes.geometries, source, target))


def reprojected(geometries: Geometries, source: str, target: str) -> Geometries:
    """Return geometries in the coordinate system `target`.

    Args:
        geometries: to reproject.
        source: their system, as "EPSG:..." or well-known text.
        target: system of the scene.

    Raises:
        InputError: a system is unknown, or a coordinate has no place in `target`.
    """
    import shapely

    if source == target:
        return geometries
    systems = [crs_of(text) for text in (source, target)]
    if None in systems:
        wrong = source if systems[0] is None else target
        raise InputError("labels", rule=f"no such coordinate system: {printable(wrong)}")
    if systems[0] == systems[1]:
        return geometries
    codes = [epsg_of(system) for system in systems]
    names = [
        text if code is None else f"EPSG:{code}"
        for text, code in zip((source, target), codes, strict=True)
    ]
    moved: Geometries = shapely.transform(geometries, _mover(systems, names))
    return moved


def _mover(systems: Sequence[Any], names: Sequence[str]) -> Callable[[Points], Points]:
    warp = library("rasterio.warp", "labels", "another coordinate system")

    def moved(places: Points) -> Points:
        if not len(places):
            return places
        try:
            with gdal():
                x, y = warp.transform(*systems, places[:, 0].tolist(), places[:, 1].tolist())
            result = np.array([x, y]).T
        except Exception:  # rasterio has no base class for the errors of PROJ
            result = np.full((1, 2), np.nan)
        if not np.isfinite(result).all():
            first = places[int((~np.isfinite(result)).any(axis=1).argmax())]
            raise InputError(
                "labels",
                rule=f"a coordinate near {first[0]:.10g}, {first[1]:.10g} has no place in "
                f"{printable(names[1])}",
                hint=f"is the system of the shapes {printable(names[0])}?",
            )
        return result

    return moved


def _overruled(own: str | None, options: VectorOptions) -> list[str]:
    if not own or options.crs is None or crs_of(own) == crs_of(options.crs):
        return []
    return [f"read as {printable(options.crs)}, as given; the file says {printable(own)}"]


def _classes(
    fields: Mapping[str, Sequence[Any]],
    options: VectorOptions,
    unlabelled: int | None,
    zero_is_a_class: bool,
    class_ids: Mapping[str, int] | None,
    given: ClassNames,
) -> Classes:
    name = find_field(fields, options.class_field)
    given_values = [one.strip() if isinstance(one, str) else one for one in fields[name]]
    if empty := [at for at, one in enumerate(given_values, start=1) if one in (None, "")]:
        several = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        rule = f"shape {empty[0]}{several} has no class in the field {printable(name)}"
        raise InputError("labels", rule=rule, hint="give it one, or remove the shape")
    values = [_class_of(value, name, number) for number, value in enumerate(given_values, start=1)]
    if all(isinstance(value, int) for value in values):
        one = 1 if zero_is_a_class else 0
        ids = [0 if value == unlabelled else int(value) + one for value in values]
        names = {i: f"label {i - 1}" if zero_is_a_class else f"class {i}" for i in set(ids)}
        names, notes = renamed(sorted(set(ids) - {0}), names, given, one)
        if class_ids is not None:
            names = {}
    else:
        texts = [given.get(str(value), str(value)) for value in values]
        notes = unused(given.keys() - {str(value) for value in values})
        if class_ids is None:
            numbers = {text: i for i, text in enumerate(sorted(set(texts)), start=1)}
        else:
            beyond = max(class_ids.values()) + 1
            new = sorted(set(texts) - set(class_ids))
            numbers = {**class_ids, **{text: i for i, text in enumerate(new, start=beyond)}}
        ids = [numbers[text] for text in texts]
        names = {numbers[text]: text for text in texts}
    return Classes(np.array(ids, np.int64), names, _colours(fields, ids, name), notes)


def _class_of(value: Any, name: str, number: int) -> int | str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InputError(
            "labels",
            rule=f"shape {number}: {printable(name)} is {printable(repr(value))}: a class is "
            "a text or a whole number",
        )
    if isinstance(value, int) and not 0 <= value < 2**31 - 1:
        raise InputError(
            "labels",
            rule=f"shape {number}: {printable(name)} is {value}: a class is 0 (unlabelled) or "
            "more, and below 2^31",
        )
    return value


def _colours(
    fields: Mapping[str, Sequence[Any]], ids: Sequence[int], name: str
) -> dict[int, Colour]:
    field = next((n for n in fields if n.lower() in COLOUR_FIELDS and n != name), None)
    if field is None:
        return {}
    colours: dict[int, set[Colour | None]] = {}
    for value, number in zip(fields[field], ids, strict=True):
        colours.setdefault(number, set()).add(colour_of(value))
    one = {number: next(iter(each)) for number, each in colours.items() if len(each) == 1}
    return {number: colour for number, colour in one.items() if colour is not None}


def _burn(shapes: Shapes, classes: Classes, grid: Grid) -> tuple[LabelMap, LabelMap, list[str]]:
    burner = Burner(shapes.geometries, grid, shapes.in_pixels)
    labels: LabelMap = np.zeros((grid.height, grid.width), np.int32)
    polygons: LabelMap = np.zeros_like(labels)
    torn = np.zeros(labels.shape, np.bool_)
    first: tuple[int, int, int, int] | None = None
    outside = 0
    for number in np.unique(classes.ids).tolist():
        own = np.flatnonzero(classes.ids == number)
        window, owners = burner.burn(own)
        owned = owners > 0
        # Another shape of the class may cover all pixels of one that is not seen.
        outside += burner.count_outside(np.setdiff1d(own, owners[owned] - 1))
        if not number:
            continue
        mine, others = labels[window], torn[window]
        conflict = owned & (mine > 0)
        if conflict.any():
            row, column = (int(i) for i in np.argwhere(conflict)[0])
            place = row + window[0].start, column + window[1].start
            here = (*place, int(mine[row, column]), number)
            first = here if first is None else min(first, here)
        others |= conflict
        free = owned & (mine == 0)
        mine[free], polygons[window][free] = number, owners[free]
    if outside == len(shapes.geometries):
        raise _nothing_inside(shapes, grid)
    labels[torn], polygons[torn] = 0, 0
    return labels, polygons, _notes(classes, labels, outside, int(torn.sum()), first)


def _notes(
    classes: Classes,
    labels: LabelMap,
    outside: int,
    torn: int,
    first: tuple[int, int, int, int] | None,
) -> list[str]:
    shapes = len(classes.ids)
    notes = [f"{outside} of {shapes} shapes hold no pixel centre of the scene"] if outside else []
    if first is not None:
        names = [printable(classes.names.get(number, str(number))) for number in first[2:]]
        notes.append(
            f"{torn} pixels lie in shapes of several classes and are left unlabelled, the first "
            f"at row {first[0]}, column {first[1]}: {names[0]} and {names[1]}"
        )
    there = set(np.unique(labels).tolist())
    missing = [
        printable(name)
        for number, name in sorted(classes.names.items())
        if number not in {0, *there}
    ]
    if missing:
        notes.append(f"no pixel of {listed(missing, len(missing))} in the scene")
    if zeros := int((classes.ids == 0).sum()):
        notes.append(f"{zeros} shapes of class 0 or the unlabelled class label nothing")
    return notes


def _nothing_inside(shapes: Shapes, grid: Grid) -> InputError:
    import shapely

    low_x, low_y, high_x, high_y = shapely.total_bounds(shapes.geometries).tolist()
    if not np.isfinite(low_x):
        return InputError("labels", rule="its shapes have no coordinates")
    where = (
        "column and row" if shapes.in_pixels else printable(system_of(grid) or "its coordinates")
    )
    return InputError(
        "labels",
        rule=f"no shape lies in the scene: in {where} they span {low_x:.8g} to {high_x:.8g} and "
        f"{low_y:.8g} to {high_y:.8g}, {_span(shapes, grid)}",
        hint="" if shapes.in_pixels else "`labels_crs` names another system",
    )


def _span(shapes: Shapes, grid: Grid) -> str:
    if shapes.in_pixels:
        left, bottom, right, top = 0.0, 0.0, float(grid.width), float(grid.height)
    elif grid.bounds is not None:
        left, bottom, right, top = grid.bounds
    else:
        assert grid.location is not None  # else it was refused before
        x, y = grid.location.read()
        left, right = float(np.nanmin(x)), float(np.nanmax(x))
        bottom, top = float(np.nanmin(y)), float(np.nanmax(y))
    return f"the scene {left:.8g} to {right:.8g} and {bottom:.8g} to {top:.8g}"
