"""A label map from a file of shapes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hytas.data.contents import Contents, Variable
from hytas.data.drawn.burn import Burner, Grid
from hytas.data.drawn.reproject import reprojected
from hytas.data.drawn.shapes import (
    COLOUR_FIELDS,
    Colour,
    Drawing,
    Reading,
    Shape,
    colour_of,
    find_field,
)
from hytas.data.drawn.table import read_drawing
from hytas.data.limits import listed, shown
from hytas.errors import InputError

Map = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Classes:
    """The classes of a drawing.

    Attributes:
        ids: of the shapes, one each; 0 where a shape labels nothing.
        names: by id.
        colours: by id, of the classes whose shapes have one and the same.
    """

    ids: tuple[int, ...]
    names: Mapping[int, str]
    colours: Mapping[int, Colour]


def drawn_labels(
    path: Path,
    reading: Reading,
    grid: Grid,
    *,
    unlabelled: int | None = None,
    zero_is_a_class: bool = False,
    known: Mapping[str, int] | None = None,
    argument: str = "labels",
) -> Contents:
    """Read a file of shapes as a file with one label map, (H, W) of the scene.

    Args:
        path: the file.
        reading: how to read it.
        grid: the pixels of the scene.
        unlabelled: the class of shapes that label nothing.
        zero_is_a_class: whether 0 is a class; ids are then one more than the file's numbers.
        known: ids of classes by name, for shapes that are compared with a model.
        argument: what the user calls the file.

    Returns:
        The contents; `meta` has names and colours by id, notes, and "polygons" (H, W): of each
        labelled pixel the number of its shape, from 1.

    Raises:
        InputError: a broken file, a shape without a class, shapes in an unknown coordinate system,
            a polygon that crosses itself, or no shape in the scene.
    """
    drawing = read_drawing(path, reading, argument)
    own = drawing.crs
    try:
        drawing = _in_the_scene(drawing, reading, grid)
        classes = _classes(drawing.shapes, reading, unlabelled, zero_is_a_class, known)
        labels, polygons, notes = _burn(drawing, classes, grid)
        notes = [*_overruled(own, reading), *notes]
    except InputError as error:
        raise InputError(f"{argument}: {path}: {error}") from None
    variable = Variable("classes", labels.shape, "int32", "number", lambda: labels)
    meta = {
        "class_names": classes.names,
        "class_colours": classes.colours,
        "notes": tuple(f"{path.name}: {note}" for note in notes),
        "polygons": polygons,
    }
    return Contents(path, drawing.format, (variable,), meta)


def _in_the_scene(drawing: Drawing, reading: Reading, grid: Grid) -> Drawing:
    """The drawing in pixels or in the coordinate system of the scene."""
    if drawing.size is not None and drawing.size != (grid.height, grid.width):
        raise InputError(
            f"drawn on {drawing.size[0]} x {drawing.size[1]} pixels, and the scene has "
            f"{grid.height} x {grid.width}"
        )
    if drawing.in_pixels:
        if reading.crs is not None:
            raise InputError(f"it counts in pixels, so --labels-crs {reading.crs} means nothing")
        return drawing
    if not grid.is_placed:
        raise InputError(
            "the scene has no place on the earth: only points with columns row and column, or ENVI "
            "regions of interest, can label it"
        )
    own_system = drawing.crs == "" and reading.crs is None
    source = grid.crs if own_system else reading.crs or drawing.crs
    if own_system:
        return drawing
    if source is None:
        raise InputError("it names no coordinate system: name one as --labels-crs EPSG:32632")
    if grid.crs is None:
        raise InputError(f"it is in {shown(source)}, and the scene names no coordinate system")
    return reprojected(drawing, source, grid.crs)


def _overruled(own: str | None, reading: Reading) -> list[str]:
    """Return a note if --labels-crs names another system than the file itself."""
    if not own or reading.crs is None or own.upper() == reading.crs.upper():
        return []
    return [f"read as {shown(reading.crs)}, as --labels-crs says; the file is in {shown(own)}"]


def _classes(
    shapes: Sequence[Shape],
    reading: Reading,
    unlabelled: int | None,
    zero_is_a_class: bool,
    known: Mapping[str, int] | None,
) -> Classes:
    name = find_field(shapes, reading.class_field)
    values = [_class_of(shape, name) for shape in shapes]
    if all(isinstance(value, int) for value in values):
        one = 1 if zero_is_a_class else 0
        ids = tuple(0 if value == unlabelled else int(value) + one for value in values)
        names = {i: f"label {i - 1}" if zero_is_a_class else f"class {i}" for i in set(ids)}
        if known is not None:
            names = {}
    else:
        texts = [str(value) for value in values]
        if known is None:
            found = {text: i for i, text in enumerate(sorted(set(texts)), start=1)}
        else:
            beyond = max(known.values()) + 1
            new = sorted(set(texts) - set(known))
            found = {**known, **{text: i for i, text in enumerate(new, start=beyond)}}
        ids = tuple(found[text] for text in texts)
        names = {found[text]: text for text in texts}
    return Classes(ids, names, _colours(shapes, ids, name))


def _class_of(shape: Shape, name: str) -> int | str:
    value = shape.fields.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        value = value.strip()
    if value is None or value == "":
        raise InputError(f"shape {shape.number} has no class in the field {shown(name)}")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InputError(
            f"shape {shape.number}: {shown(name)} is {shown(repr(value))}: a class is a text or a "
            "whole number"
        )
    if isinstance(value, int) and not 0 <= value < 2**31 - 1:
        raise InputError(
            f"shape {shape.number}: {shown(name)} is {value}: a class is 0 (unlabelled) or more, "
            "and below 2^31"
        )
    return value


def _colours(shapes: Sequence[Shape], ids: Sequence[int], name: str) -> dict[int, Colour]:
    found: dict[int, set[Colour | None]] = {}
    for shape, number in zip(shapes, ids, strict=True):
        texts = (v for n, v in shape.fields.items() if n.lower() in COLOUR_FIELDS and n != name)
        found.setdefault(number, set()).add(colour_of(next(texts, None)))
    one = {number: next(iter(each)) for number, each in found.items() if len(each) == 1}
    return {number: colour for number, colour in one.items() if colour is not None}


def _burn(drawing: Drawing, classes: Classes, grid: Grid) -> tuple[Map, Map, list[str]]:
    """The label map, the map of shapes, and remarks on what is in neither."""
    burner = Burner(grid, drawing.in_pixels)
    labels = np.zeros((grid.height, grid.width), np.int32)
    polygons = np.zeros_like(labels)
    torn = np.zeros(labels.shape, np.bool_)
    flat, owner, conflict = labels.ravel(), polygons.ravel(), torn.ravel()
    nowhere = 0
    first: tuple[int, int, int] | None = None
    for shape, number in zip(drawing.shapes, classes.ids, strict=True):
        pixels = burner.pixels(shape)
        nowhere += not len(pixels)
        if not number:
            continue
        others = pixels[(flat[pixels] != 0) & (flat[pixels] != number)]
        if len(others) and first is None:
            first = int(others[0]), int(flat[others[0]]), number
        conflict[others] = True
        free = pixels[flat[pixels] == 0]
        flat[free], owner[free] = number, shape.number
    if nowhere == len(drawing.shapes):
        raise InputError(_outside(drawing, grid))
    notes = [f"{nowhere} of {len(drawing.shapes)} shapes hold no pixel centre of the scene"]
    notes = notes if nowhere else []
    if first is not None:
        row, column = divmod(first[0], grid.width)
        names = [shown(classes.names.get(number, str(number))) for number in first[1:]]
        notes.append(
            f"{int(torn.sum())} pixels lie in shapes of several classes and are left unlabelled, "
            f"the first at row {row}, column {column}: {names[0]} and {names[1]}"
        )
    labels[torn], polygons[torn] = 0, 0
    missing = [
        shown(name)
        for number, name in sorted(classes.names.items())
        if number and not (labels == number).any()
    ]
    if missing:
        notes.append(f"no pixel of {listed(missing, len(missing))} in the scene")
    zeros = Counter(classes.ids)[0]
    if zeros:
        notes.append(f"{zeros} shapes of class 0 or the unlabelled class label nothing")
    return labels, polygons, notes


def _outside(drawing: Drawing, grid: Grid) -> str:
    points = [ring for shape in drawing.shapes for rings in shape.polygons for ring in rings]
    points += [shape.points for shape in drawing.shapes if len(shape.points)]
    if not points:
        return "its shapes have no coordinates"
    joined = np.concatenate(points)
    low, high = joined.min(axis=0), joined.max(axis=0)
    where = "column and row" if drawing.in_pixels else shown(grid.crs or "the scene's coordinates")
    return (
        f"no shape lies in the scene: in {where} they span {low[0]:.8g} to {high[0]:.8g} and "
        f"{low[1]:.8g} to {high[1]:.8g}, {_span(drawing, grid)}; --labels-crs names another system"
    )


def _span(drawing: Drawing, grid: Grid) -> str:
    if drawing.in_pixels:
        corners = np.array([[0.0, 0.0], [grid.width, grid.height]])
    elif grid.geo is not None and grid.geo.transform is not None:
        a, b, c, d, e, f = grid.geo.transform
        ends = np.array([[i * grid.width, j * grid.height] for i in (0, 1) for j in (0, 1)])
        corners = ends @ np.array([[a, d], [b, e]]) + (c, f)
    else:
        assert grid.location is not None  # else it was refused before
        corners = np.stack([each.ravel() for each in grid.location.read()], axis=1)
    low, high = np.nanmin(corners, axis=0), np.nanmax(corners, axis=0)
    return f"the scene {low[0]:.8g} to {high[0]:.8g} and {low[1]:.8g} to {high[1]:.8g}"
