"""A label map from a file of polygons or points."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.grid import Grid, crs_of, epsg_of, in_system
from hytas.data.labels.align import system_name
from hytas.data.labels.burn import Burner, check_rings
from hytas.data.labels.formats import files_of, read_shapes
from hytas.data.labels.maps import LabelMap, LabelMaps
from hytas.data.labels.names import alike, by_number, renamed, unused
from hytas.data.labels.options import LabelOptions
from hytas.data.labels.shapes import (
    COLOUR_FIELDS,
    NONE,
    POINT,
    POLYGON,
    Colour,
    Geometries,
    Points,
    Shapes,
    colour_of,
    find_field,
    naming,
    parts_of,
)
from hytas.data.limits import printable
from hytas.errors import InputError
from hytas.types import Floats

MOST_COORDINATE = 1e15
"""Larger coordinates lose whole pixels, and become infinite when they are transformed."""


class _Classes(NamedTuple):
    """Class ids of the shapes, 0 where one labels nothing; names and colours by id; findings."""

    ids: npt.NDArray[np.int64]
    names: Mapping[int, str]
    colours: Mapping[int, Colour]
    findings: tuple[Finding, ...]


def of_shapes(
    path: Path, options: LabelOptions, grid: Grid, class_ids: Mapping[str, int] | None = None
) -> LabelMaps:
    """Read a file of polygons or points as labels on the pixels of a scene.

    Args:
        class_ids: ids of classes by name, for shapes that are compared with a model.
    """
    options.refuse_colour(path)
    shapes = read_shapes(path, options)
    nothing = np.zeros((grid.height, grid.width), np.int32)
    if not len(shapes.geometries):
        maps, empty = (("classes", nothing.astype(np.int64)),), note("shapes-none", path.name)
        return LabelMaps(maps, findings=(empty,), polygons=nothing, files=files_of(path))
    with naming(path):
        argument = "value_field" if options.are_values else "class_field"
        names = [find_field(shapes.fields, one, argument) for one in options.fields or (None,)]
    shapes, of_fields = _with_class(shapes, names, options, path)
    with naming(path):
        _check_coordinates(shapes.geometries)
        overruled = _overruled(shapes.crs, options.crs)
        placed = _in_the_scene(shapes, options.crs, grid)
        check_rings(placed.geometries)
        values = _values(shapes.fields, names) if options.are_values else None
        classes = _classes(shapes.fields, options, class_ids, values)
        burnt = _burn(placed, classes, grid)
        if burnt is None and options.least_classes:
            raise _nothing_inside(shapes, placed, options.crs, grid)
        labels, polygons, burning = burnt or (nothing, nothing, [note("shapes-all-outside")])
    findings = (
        *(*shapes.findings, *of_fields, *overruled, *_from_1(shapes, grid)),
        *(*classes.findings, *burning),
    )
    return LabelMaps(
        (("classes", labels.astype(np.int64)),),
        classes.names,
        classes.colours,
        tuple(finding.at(path.name) for finding in findings),
        polygons,
        files_of(path),
        None if values is None else np.where(polygons[..., None] > 0, values[polygons - 1], np.nan),
        () if values is None else tuple(names),
    )


def _values(fields: Mapping[str, Sequence[Any]], names: Sequence[str]) -> Floats:
    """Return the continuous targets (n, T) of shapes, NaN where one is missing."""
    values = np.full((len(fields[names[0]]), len(names)), np.nan)
    for at, name in enumerate(names):
        for row, value in enumerate(fields[name]):
            if value in (None, ""):
                continue
            try:
                values[row, at] = float(value)
            except (TypeError, ValueError):
                rule = f"shape {row + 1} has {printable(repr(value))}, which is no number"
                raise InputError("value_field", name, rule) from None
    return values


def _with_class(
    shapes: Shapes, names: Sequence[str], options: LabelOptions, path: Path
) -> tuple[Shapes, tuple[Finding, ...]]:
    """Return the shapes that have a class, and findings on the others and on long codes."""
    field = ", ".join(names)
    values = [
        one.strip() if isinstance(one, str) else one
        for name in names
        for one in shapes.fields[name]
    ]
    there = np.array([one not in (None, "") for one in values], np.bool_)
    has_class = np.asarray(there.reshape(len(names), -1).any(axis=0))
    findings: list[Finding] = []
    if not options.are_values and any(
        isinstance(one, int | float) and one >= 2**31 - 1 for one in values
    ):
        findings.append(warning("classes-are-codes", field=field, fields=list(shapes.texts)))
    if has_class.all():
        return shapes, tuple(findings)
    first, count = int((~has_class).argmax()) + 1, int((~has_class).sum())
    if not has_class.any():
        raise refusal("shapes-without-class", "labels", path, count=count, first=first, field=field)
    findings.append(warning("shapes-without-class", count=count, first=first, field=field))
    kept = {
        name: [one for one, has in zip(column, has_class, strict=True) if has]
        for name, column in shapes.fields.items()
    }
    shapes = replace(shapes, geometries=shapes.geometries[has_class], fields=kept)
    return shapes, tuple(findings)


def _from_1(shapes: Shapes, grid: Grid) -> tuple[Finding, ...]:
    """Return a finding if rows and columns fit the scene only if they count from 1."""
    if shapes.format != "CSV" or not shapes.in_pixels:
        return ()
    import shapely

    places = np.floor(shapely.get_coordinates(shapes.geometries))
    size = np.array([grid.width, grid.height])
    if places.min() < 1 or (places > size).any() or not (places == size).any():
        return ()
    return (warning("positions-from-1"),)


def _check_coordinates(geometries: Geometries) -> None:
    """Refuse geometries that are no polygons or points, and coordinates that are no numbers."""
    import shapely

    places, index = shapely.get_coordinates(geometries, return_index=True)
    wrong = ~(np.abs(places) < MOST_COORDINATE).all(axis=1)
    if wrong.any():
        number = int(index[wrong][0]) + 1
        rule = f"shape {number}: its coordinates must be numbers below {MOST_COORDINATE:g}"
        raise InputError("labels", rule=rule)
    parts, index = parts_of(geometries)
    wrong = ~np.isin(shapely.get_type_id(parts), (NONE, POINT, POLYGON))
    if wrong.any():
        number = int(index[wrong].min())
        kind = geometries[number].geom_type
        raise InputError("labels", rule=f"shape {number + 1} is a {kind}: polygon or point needed")


def _in_the_scene(shapes: Shapes, crs: str | None, grid: Grid) -> Shapes:
    if shapes.size is not None and shapes.size != (grid.height, grid.width):
        raise InputError(
            "labels",
            rule=f"drawn on {shapes.size[0]} x {shapes.size[1]} pixels, and the scene has "
            f"{grid.height} x {grid.width}",
        )
    if shapes.in_pixels:
        if crs is not None:
            raise InputError("labels_crs", crs, f"the {shapes.format} file counts in pixels")
        return shapes
    if grid.transform is None and grid.location is None:
        raise InputError(
            "labels",
            rule="the scene has no place on the earth, so only points with columns row and "
            "column, or ENVI regions of interest, can label it",
        )
    if shapes.crs == "" and crs is None:
        return shapes
    source, target = crs or shapes.crs, grid.place_crs
    if source is None:
        rule = "names no coordinate system"
        hint = "name one, such as EPSG:32632, with `labels_crs`"
        raise InputError("labels", rule=rule, hint=hint)
    if target is None:
        rule = f"is in {printable(source)}, and the scene names no coordinate system"
        hint = "gdal_edit.py -a_srs names one in a raster, and spatial_ref in a DataArray"
        raise InputError("labels", rule=rule, hint=hint)
    return replace(shapes, geometries=_reprojected(shapes.geometries, source, target))


def _reprojected(geometries: Geometries, source: str, target: str) -> Geometries:
    import shapely

    if source == target:
        return geometries
    systems = [crs_of(text) for text in (source, target)]
    if None in systems:
        wrong = source if systems[0] is None else target
        raise InputError("labels", rule=f"no such coordinate system: {printable(wrong)}")
    if systems[0] == systems[1]:
        return geometries

    def moved(places: Points) -> Points:
        result = np.stack(in_system(places[:, 0], places[:, 1], *systems), axis=1)
        lost = ~np.isfinite(result).all(axis=1)
        if lost.any():
            x, y = places[lost.argmax()]
            codes = [epsg_of(system) for system in systems]
            names = [
                printable(text) if code is None else f"EPSG:{code}"
                for text, code in zip((source, target), codes, strict=True)
            ]
            rule = f"a coordinate near {x:.10g}, {y:.10g} has no place in {names[1]}"
            hint = f"is the system of the shapes {names[0]}? `labels_crs` names another"
            raise InputError("labels", rule=rule, hint=hint)
        return result

    transformed: Geometries = shapely.transform(geometries, moved)
    return transformed


def _overruled(own: str | None, crs: str | None) -> list[Finding]:
    if not own or crs is None or crs_of(own) == crs_of(crs):
        return []
    return [note("system-overruled", given=crs, own=own)]


def _classes(
    fields: Mapping[str, Sequence[Any]],
    options: LabelOptions,
    class_ids: Mapping[str, int] | None,
    targets: Floats | None,
) -> _Classes:
    if targets is not None:
        return _Classes(np.ones(len(targets), np.int64), {}, {}, ())
    name = find_field(fields, options.class_field)
    given_values = [one.strip() if isinstance(one, str) else one for one in fields[name]]
    if not (class_ids or {}).keys() >= {*given_values} and all(map(_is_number, given_values)):
        # A table may hold ids as texts, also of floating-point numbers.
        given_values = [int(float(value)) for value in given_values]
    unlabelled = options.unlabelled.number
    values = [
        int(value) if value == unlabelled else _class_of(value, name, number)
        for number, value in enumerate(given_values, start=1)
    ]
    if all(isinstance(value, int) for value in values):
        plus = int(options.zero_is_a_class)
        ids = [0 if value == unlabelled else int(value) + plus for value in values]
        names = {i: f"label {i - 1}" if plus else f"class {i}" for i in set(ids)}
        names, findings = renamed(sorted(set(ids) - {0}), names, options.names, plus)
        if class_ids is not None:
            of_model = {number: name for name, number in class_ids.items()}
            names, findings = {}, (*findings, *by_number("the model", of_model))
    else:
        texts = [options.names.get(str(value), str(value)) for value in values]
        findings = unused(options.names.keys() - {str(value) for value in values})
        given_ids = class_ids or {}
        new = sorted(set(texts) - given_ids.keys())
        beyond = max(given_ids.values(), default=0) + 1
        numbers = {**given_ids, **{text: i for i, text in enumerate(new, start=beyond)}}
        ids = [numbers[text] for text in texts]
        names = {numbers[text]: text for text in texts}
        findings = (*findings, *alike(sorted({*texts, *given_ids})))
    return _Classes(np.array(ids, np.int64), names, _colours(fields, ids, name), findings)


def _is_number(value: Any) -> bool:
    text = value.removesuffix(".0") if isinstance(value, str) else ""
    return text.isdecimal() and len(text) < 10 and str(int(text)) == text


def _class_of(value: Any, name: str, number: int) -> int | str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InputError(
            "labels",
            rule=f"shape {number}: {printable(name)} is {printable(repr(value))}: a class is "
            "a text or a whole number",
        )
    if isinstance(value, int) and value >= 2**31 - 1:  # a code, such as those of EuroCrops
        return str(value)
    if isinstance(value, int) and value < 0:
        raise InputError(
            "labels",
            rule=f"shape {number}: {printable(name)} is {value}: a class is 0 (unlabelled) or more",
            hint=f"if {value} marks shapes without a class, set `unlabelled`",
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


def _burn(
    shapes: Shapes, classes: _Classes, grid: Grid
) -> tuple[LabelMap, LabelMap, list[Finding]] | None:
    """Return classes, numbers of shapes and findings; None if no shape lies in the scene."""
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
        return None
    labels[torn], polygons[torn] = 0, 0
    return labels, polygons, _findings(classes, labels, outside, int(torn.sum()), first)


def _findings(
    classes: _Classes,
    labels: LabelMap,
    outside: int,
    torn: int,
    first: tuple[int, int, int, int] | None,
) -> list[Finding]:
    shapes = len(classes.ids)
    findings = [note("shapes-outside", count=outside, of=shapes)] if outside else []
    if first is not None:
        both = [classes.names.get(number, str(number)) for number in first[2:]]
        place: dict[str, Any] = {"row": first[0], "column": first[1], "classes": both}
        findings.append(warning("shapes-of-several-classes", count=torn, **place))
    there = set(np.unique(labels).tolist())
    missing = [name for number, name in sorted(classes.names.items()) if number not in {0, *there}]
    if missing:
        findings.append(note("classes-without-pixels", classes=missing))
    if zeros := int((classes.ids == 0).sum()):
        findings.append(note("shapes-unlabelled", count=zeros))
    return findings


def _nothing_inside(given: Shapes, shapes: Shapes, crs: str | None, grid: Grid) -> InputError:
    import shapely

    low_x, low_y, high_x, high_y = shapely.total_bounds(shapes.geometries).tolist()
    if not np.isfinite(low_x):
        return InputError("labels", rule="its shapes have no coordinates")
    left, bottom, right, top = _box(shapes, grid)
    if _overlap(shapes, grid):
        rule = f"none of its {len(shapes.geometries)} shapes holds the centre of a pixel"
        return InputError("labels", rule=rule, hint="draw larger polygons, or points")
    hint = "" if shapes.in_pixels else "`labels_crs` names another system"
    if _are_swapped(given, crs, grid):
        hint = "with x and y exchanged they lie in the scene: exchange them in the file"
    elif given.crs == "" and crs is None and max(-low_x, high_x, -2 * low_y, 2 * high_y) <= 180:
        hint = "if these are degrees, set `labels_crs` to EPSG:4326"
    where = "column and row" if shapes.in_pixels else system_name(grid)
    return InputError(
        "labels",
        rule=f"no shape lies in the scene: in {where} they span {low_x:.8g} to {high_x:.8g} and "
        f"{low_y:.8g} to {high_y:.8g}, the scene {left:.8g} to {right:.8g} and {bottom:.8g} to "
        f"{top:.8g}",
        hint=hint,
    )


def _box(shapes: Shapes, grid: Grid) -> tuple[float, float, float, float]:
    """Return the least and the largest coordinates of the scene, in the unit of the shapes."""
    box = grid.bounds
    if shapes.in_pixels or box is None:
        return 0.0, 0.0, float(grid.width), float(grid.height)
    return box


def _are_swapped(given: Shapes, crs: str | None, grid: Grid) -> bool:
    """Return whether shapes lie in the scene once x and y are exchanged."""
    import shapely

    exchanged = shapely.transform(given.geometries, lambda places: places[:, ::-1])
    try:
        moved = _in_the_scene(replace(given, geometries=exchanged), crs, grid)
    except InputError:
        return False
    return _overlap(moved, grid)


def _overlap(shapes: Shapes, grid: Grid) -> bool:
    """Return whether the rectangle around a shape overlaps that around the scene."""
    import shapely

    low_x, low_y, high_x, high_y = shapely.bounds(shapes.geometries).T
    left, bottom, right, top = _box(shapes, grid)
    inside = (low_x < right) & (high_x > left) & (low_y < top) & (high_y > bottom)
    return bool(inside.any())
