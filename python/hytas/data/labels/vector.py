"""A label map from a file of polygons or points."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.grid import Grid, crs_of, in_system
from hytas.data.labels.align import place_of
from hytas.data.labels.burn import Burner, check_rings, scene_without_place
from hytas.data.labels.formats import files_of, read_shapes
from hytas.data.labels.maps import LabelMap, LabelMaps
from hytas.data.labels.names import number_findings, renamed, unused
from hytas.data.labels.shapes import (
    COLOUR_FIELDS,
    PARTS,
    Geometries,
    Points,
    Shapes,
    find_field,
    parts_of,
)
from hytas.data.limits import by
from hytas.data.options import SceneOptions
from hytas.data.palette import Colour, colour_of
from hytas.data.record import naming
from hytas.types import Floats

MOST_COORDINATE = 1e15
"""Larger coordinates lose whole pixels, and become infinite when they are transformed."""
LEAST_CODE = 10**9
"""Numbers of ten digits are codes, such as those of EuroCrops, and names of classes."""


_Classes = tuple[
    npt.NDArray[np.int64], Mapping[int, str], Mapping[int, Colour], tuple[Finding, ...]
]
"""Class ids of the shapes, 0 where one labels nothing; names and colours by id; findings."""


def of_shapes(
    path: Path, options: SceneOptions, grid: Grid, class_ids: Mapping[str, int] | None = None
) -> LabelMaps:
    """Read a file of polygons or points as labels on the pixels of a scene.

    Args:
        class_ids: ids of classes by name, for shapes that are compared with a model.
    """
    options.refuse_colour(path)
    shapes = read_shapes(path, options)
    labels = polygons = np.zeros((grid.height, grid.width), np.int32)
    findings: Sequence[Finding] = ()
    class_names: Mapping[int, str] = {}
    colours: Mapping[int, Colour] = {}
    values, names = None, []
    if len(shapes.geometries):
        argument = "value_field" if options.are_values else "class_field"
        with naming("labels", path):
            names = [find_field(shapes.fields, one, argument) for one in options.fields or (None,)]
            shapes, of_fields = _with_class(shapes, names, options)
            _check_coordinates(shapes.geometries)
            placed = _in_the_scene(shapes, options.labels_crs, grid)
            check_rings(placed.geometries)
            values = _values(shapes.fields, names) if options.are_values else None
            if values is None:
                ids, class_names, colours, of_classes = _classes(shapes.fields, options, class_ids)
            else:
                ids, of_classes = np.ones(len(values), np.int64), ()
            burnt = _burn(placed, ids, class_names, grid)
            elsewhere = {} if burnt else _elsewhere(placed, grid)
            if elsewhere and options.least_classes:
                raise refusal("labels-elsewhere", "labels", **elsewhere)
        outside = [note("labels-elsewhere", **elsewhere)]
        labels, polygons, burning = burnt or (labels, polygons, outside)
        own = [*shapes.findings, *of_fields, *_from_1(shapes, grid)]
        given = options.labels_crs
        if given is not None and shapes.in_pixels:
            facts = {"system": given, "format": shapes.format}
            own.append(warning("not-used", case="system-of-pixels", **facts))
        elif shapes.crs and given is not None and crs_of(shapes.crs) != crs_of(given):
            facts = {"system": shapes.crs, "given": given}
            own.append(note("not-used", case="system-of-file", **facts))
        findings = [*own, *of_classes, *burning]
    return LabelMaps(
        (("classes", labels.astype(np.int64)),),
        class_names,
        colours,
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
                facts = {"shape": row + 1, "text": repr(value)}
                raise refusal("value-wrong", "value_field", name, "shape", **facts) from None
    return values


def _with_class(
    shapes: Shapes, names: Sequence[str], options: SceneOptions
) -> tuple[Shapes, list[Finding]]:
    """Return the shapes that have a class or value, and findings on the others and on codes."""
    field, findings = ", ".join(names), []
    columns = [[_stripped(one) for one in shapes.fields[name]] for name in names]
    has_class = [any(one not in (None, "") for one in row) for row in zip(*columns, strict=True)]
    if not options.are_values and any(_is_code(one) for column in columns for one in column):
        findings.append(warning("classes-are-codes", field=field, fields=list(shapes.texts)))
    if all(has_class):
        return shapes, findings
    first = has_class.index(False) + 1
    facts: dict[str, Any] = {"count": has_class.count(False), "field": field, "first": first}
    facts |= {"case": "shapes-without-class"}
    if not any(has_class):
        raise refusal("left-out", "labels", **facts)
    kept = {name: [*compress(column, has_class)] for name, column in shapes.fields.items()}
    shapes = replace(shapes, geometries=shapes.geometries[has_class], fields=kept)
    return shapes, [*findings, warning("left-out", **facts)]


def _is_code(value: Any) -> bool:
    if isinstance(value, str):
        return value.isdecimal() and int(value) >= LEAST_CODE
    return isinstance(value, int | float) and value >= LEAST_CODE


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _from_1(shapes: Shapes, grid: Grid) -> list[Finding]:
    """Return a finding if rows and columns fit the scene only if they count from 1."""
    import shapely

    if not shapes.in_pixels or shapes.size is not None:
        return []
    places = np.floor(shapely.get_coordinates(shapes.geometries))
    size = np.array([grid.width, grid.height])
    is_from_1 = places.min() >= 1 and (places <= size).all() and (places == size).any()
    return [warning("positions-from-1")] if is_from_1 else []


def _check_coordinates(geometries: Geometries) -> None:
    """Refuse geometries that are no polygons or points, and coordinates that are no numbers."""
    import shapely

    places, index = shapely.get_coordinates(geometries, return_index=True)
    wrong = ~(np.abs(places) < MOST_COORDINATE).all(axis=1)
    if wrong.any():
        first, place = int(index[wrong][0]) + 1, places[wrong][0].tolist()
        raise refusal("shape-invalid", "labels", first=first, reason=place)
    parts, index = parts_of(geometries)
    wrong = ~np.isin(shapely.get_type_id(parts), PARTS)
    if wrong.any():
        number = int(index[wrong].min())
        kind = geometries[number].geom_type
        raise refusal("shape-invalid", "labels", first=number + 1, reason=kind)


def _in_the_scene(shapes: Shapes, crs: str | None, grid: Grid) -> Shapes:
    if shapes.size not in (None, (grid.height, grid.width)):
        sizes = {"own": by(shapes.size or ()), "size": by((grid.height, grid.width))}
        raise refusal("sizes-differ", "labels", case="scene", **sizes)
    if shapes.in_pixels:
        return shapes
    if grid.transform is None and grid.location is None:
        raise scene_without_place("labels")
    if shapes.crs == "" and crs is None:
        return shapes
    source, target = crs or shapes.crs, grid.place_crs
    if source is None:
        raise refusal("shapes-without-place", "labels", case="no-system")
    if target is None:
        raise scene_without_place("labels")
    if source == target:
        return shapes
    systems = [crs_of(text) for text in (source, target)]
    if None in systems:
        wrong = source if systems[0] is None else target
        raise refusal("shapes-without-place", "labels", case="system-unknown", system=wrong)
    return shapes if systems[0] == systems[1] else _reprojected(shapes, systems)


def _reprojected(shapes: Shapes, systems: Sequence[Any]) -> Shapes:
    import shapely

    def moved(places: Points) -> Points:
        result = np.stack(in_system(places[:, 0], places[:, 1], *systems), axis=1)
        lost = ~np.isfinite(result).all(axis=1)
        if lost.any():
            place = ", ".join(f"{one:.10g}" for one in places[lost.argmax()])
            own, of_scene = (system.to_string() for system in systems)
            facts = {"place": place, "system": own, "of_scene": of_scene}
            raise refusal("shapes-without-place", "labels", case="other-system", **facts)
        return result

    return replace(shapes, geometries=shapely.transform(shapes.geometries, moved))


def _classes(
    fields: Mapping[str, Sequence[Any]],
    options: SceneOptions,
    class_ids: Mapping[str, int] | None,
) -> _Classes:
    name = find_field(fields, options.class_field)
    given_values = [_stripped(one) for one in fields[name]]
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
        names, findings = renamed(sorted(set(ids) - {0}), names, options.class_names, plus)
        if class_ids is not None:
            of_model = {number: name for name, number in class_ids.items()}
            own = {number: "" for number in names if number}
            names, findings = {}, (*findings, *number_findings(own, "", of_model))
    else:
        # 0 beside codes labels nothing.
        given = options.class_names
        texts = ["" if value == 0 else given.get(str(value), str(value)) for value in values]
        findings = unused(options.class_names.keys() - {str(value) for value in values})
        given_ids = class_ids or {}
        new = sorted(set(texts) - given_ids.keys() - {""})
        beyond = max(given_ids.values(), default=0) + 1
        numbers = {"": 0, **given_ids, **{text: i for i, text in enumerate(new, start=beyond)}}
        ids = [numbers[text] for text in texts]
        names = {numbers[text]: text for text in texts if text}
    return np.array(ids, np.int64), names, _colours(fields, ids, name), findings


def _is_number(value: Any) -> bool:
    text = value.removesuffix(".0") if isinstance(value, str) else ""
    return text.isdecimal() and len(text) < 10 and str(int(text)) == text


def _class_of(value: Any, name: str, number: int) -> int | str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not isinstance(value, str) and not (is_number and value >= 0):
        facts = {"field": name, "shape": number, "text": repr(value)}
        raise refusal("value-wrong", "labels", case="class", **facts)
    return str(value) if is_number and _is_code(value) else value


def _colours(
    fields: Mapping[str, Sequence[Any]], ids: Sequence[int], name: str
) -> dict[int, Colour]:
    field = next((n for n in fields if n.lower() in COLOUR_FIELDS and n != name), None)
    colours: dict[int, set[Colour | None]] = {}
    for value, number in zip(fields[field], ids, strict=True) if field is not None else ():
        colours.setdefault(number, set()).add(colour_of(value))
    one = {number: next(iter(each)) for number, each in colours.items() if len(each) == 1}
    return {number: colour for number, colour in one.items() if colour is not None}


def _burn(
    shapes: Shapes, ids: npt.NDArray[np.int64], names: Mapping[int, str], grid: Grid
) -> tuple[LabelMap, LabelMap, list[Finding]] | None:
    """Return classes, numbers of shapes and findings; None if no shape lies in the scene."""
    burner = Burner(shapes.geometries, grid, shapes.in_pixels)
    labels: LabelMap = np.zeros((grid.height, grid.width), np.int32)
    polygons: LabelMap = np.zeros_like(labels)
    torn = np.zeros(labels.shape, np.bool_)
    first: tuple[int, int, int, int] | None = None
    outside = 0
    for number in np.unique(ids).tolist():
        own = np.flatnonzero(ids == number)
        window, owners = burner.burn(own)
        owned = owners > 0
        outside += len(own) - len(np.unique(owners[owned]))
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
    facts: dict[str, Any] = {"count": outside, "of": len(ids)}
    findings = [note("left-out", case="shapes-outside", **facts)] if outside else []
    if first is not None:
        both = [names.get(number, str(number)) for number in first[2:]]
        place_facts: dict[str, Any] = {"row": first[0], "column": first[1], "classes": both}
        findings.append(warning("shapes-of-several-classes", count=int(torn.sum()), **place_facts))
    there = {0, *np.unique(labels).tolist()}
    if missing := [name for number, name in sorted(names.items()) if number not in there]:
        findings.append(note("classes-lost", classes=missing))
    return labels, polygons, findings


def _elsewhere(shapes: Shapes, grid: Grid) -> dict[str, Any]:
    """Return the facts of a finding on shapes of which none lies in the scene."""
    import shapely

    span = [f"{one:.8g}" for one in shapely.total_bounds(shapes.geometries)]
    size = f"{grid.height} x {grid.width} pixels"
    scene = size if shapes.in_pixels else place_of(grid)
    return {"own": span, "scene": scene, "key": "labels_crs"}
