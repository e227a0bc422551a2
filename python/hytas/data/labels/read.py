"""Read labels of any form as maps on the pixels of a cube."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.data_array import is_data_array, map_record
from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.grid import Grid
from hytas.data.interpret.axes import map_axes
from hytas.data.labels import find
from hytas.data.labels.align import aligned
from hytas.data.labels.colours import WHITE, by_colour
from hytas.data.labels.formats import NAMES, are_shapes, files_of, format_of
from hytas.data.labels.maps import LabelMaps, check_map
from hytas.data.labels.names import classes_next_to, is_no_class, number_findings, renamed
from hytas.data.labels.values import values_in
from hytas.data.labels.vector import of_shapes
from hytas.data.limits import by
from hytas.data.options import SceneOptions
from hytas.data.palette import Colour
from hytas.data.read.table import open_file
from hytas.data.record import Contents, Variable
from hytas.errors import InputError

Map = npt.NDArray[np.int64]


def labels_on_grid(
    path: str | Path, grid: Grid, class_ids: Mapping[str, int] | None = None, **given: Any
) -> LabelMaps:
    """Read a label raster, a label picture, or polygons and points, on the pixels of a cube.

    A raster with a place on the earth is brought onto the grid of a cube with a place, by nearest
    neighbour; a finding says so. Without a place it must have the height and width of the cube.

    Args:
        grid: the pixels of the cube, and their place.
        class_ids: ids of classes by name, as those of a model; classes with these names get them.
        given: arguments of `load_scene` about labels.

    Raises:
        InputError: the file holds no labels, or none in the cube; or a colour of a picture is no
            known class.
    """
    return labels_of(path, SceneOptions.of(**given), grid, class_ids)


def labels_of(
    labels: Any, options: SceneOptions, grid: Grid, class_ids: Mapping[str, int] | None = None
) -> LabelMaps:
    """Return the labels of a file, or of a `DataArray`, on the pixels of a cube."""
    if are_shapes(labels):
        return of_shapes(Path(labels), options, grid, class_ids)
    if options.are_values:
        return values_in(without_dark_frames(label_record(labels), grid), options, grid)
    refuse_options_of_shapes(options, str(labels))
    record = without_dark_frames(label_record(labels), grid)
    shape = (grid.height, grid.width, 0)
    return of_rasters([record], options, shape, grid, class_ids=class_ids)


def label_record(labels: Any) -> Contents:
    """Return the record of a label map in a file, or in a `DataArray`."""
    return map_record(labels) if is_data_array(labels) else open_file(labels, "labels")


def without_dark_frames(contents: Contents, grid: Grid) -> Contents:
    """Return labels that may cover a capture with its dark frames without these."""
    whole = (grid.height + grid.left_out, grid.width)

    def cut(each: Variable) -> Variable:
        axes = map_axes(each)
        if axes is None or (each.shape[axes[0]], each.shape[axes[1]]) != whole:
            return each
        shape = [grid.height if at == axes[0] else size for at, size in enumerate(each.shape)]
        return replace(each, shape=tuple(shape))

    if not grid.left_out:
        return contents
    return replace(contents, variables=tuple(map(cut, contents.variables)))


def refuse_options_of_shapes(options: SceneOptions, labels: str | None) -> None:
    """Refuse options of polygons and points together with other labels."""
    where = "`labels` names no file" if labels is None else f"`labels` names {labels}"
    rule = f"is for polygons and points ({NAMES}), and {where}"
    options.refuse(("class_field", "labels_crs"), rule)


def of_rasters(
    sources: Sequence[Contents],
    options: SceneOptions,
    shape: tuple[int, ...] | None,
    grid: Grid | None,
    *,
    argument: str = "labels",
    class_ids: Mapping[str, int] | None = None,
) -> LabelMaps:
    """Return the labels in the arrays of one file, or of a training and a test file.

    Args:
        shape: of the cube's array; None accepts any map.
        grid: of the cube; None leaves each map on its own grid.
        class_ids: as for `labels_on_grid`.
    """
    if options.unlabelled.number == 0 and options.zero_is_a_class:
        raise InputError("unlabelled", 0, "cannot be given together with `zero_is_a_class`")
    raws = [raw for each in sources for raw in find.find_maps(each, options, shape, grid, argument)]
    if len(raws) > 2:
        names = " and ".join(raw.name for raw in raws)
        raise refusal("maps-too-many", argument, names, "maps", given=len(raws))
    # Findings on the file of the cube are the cube's.
    of_files = [one.at(each.path.name) for each in sources for one in each.findings]
    classes = _classes(raws, sources, options, argument)
    classes.findings[:0] = of_files if argument == "labels" else []
    classes.findings.extend(find.unused_split(sources[0], raws))
    if class_ids is not None:
        classes = _with_class_ids(classes, class_ids, raws[0])
    maps = classes.maps
    if grid is not None:
        on_grid = [
            aligned(raw.name, values, raw.grid, grid, classes.names, not options.least_classes)
            for raw, values in zip(raws, classes.maps, strict=True)
        ]
        classes.findings.extend(one for each in on_grid for one in each.findings)
        maps = [each.values for each in on_grid]
        for raw, values in zip(raws, maps, strict=True):
            _check_size(raw.name, values, grid, argument)
    named = tuple((raw.name, values) for raw, values in zip(raws, maps, strict=True))
    files = tuple(file for each in sources for file in each.files)
    return LabelMaps(named, classes.names, classes.colours, tuple(classes.findings), None, files)


class _Classes(NamedTuple):
    """Maps of class ids on their own grids; names and colours by id; findings."""

    maps: list[Map]
    ids: list[int]
    names: Mapping[int, str]
    colours: Mapping[int, Colour]
    findings: list[Finding]


def _classes(
    raws: Sequence[find.RawMap], sources: Sequence[Contents], options: SceneOptions, argument: str
) -> _Classes:
    findings: list[Finding] = []
    plus = 0
    if any(raw.is_picture for raw in raws):
        maps, names, colours = _coloured(raws, options)
        if WHITE in colours.values() and all((each > 0).all() for each in maps):
            findings.append(warning("mark-is-a-class", name="#ffffff", mark="'#ffffff'"))
    else:
        options.refuse_colour(sources[0].path)
        plus = int(_zero_is_a_class(raws, options, findings))
        mark = options.unlabelled.number
        if mark and not any((raw.values == mark).any() for raw in raws):
            findings.append(warning("not-used", case="mark", mark=mark))
        maps = [_numbered(raw, options, bool(plus), argument) for raw in raws]
        labels = [i - plus for i in _ids(maps)]
        own_names, own_colours = _legend(raws[0], sources[0], labels)
        if len(raws) == 2:
            _refuse_other_numbers(raws, own_names, _legend(raws[1], sources[-1], labels)[0])
        names = {label + plus: name for label, name in own_names.items()}
        colours = {label + plus: colour for label, colour in own_colours.items()}
        name = names.get(0, "")
        if name and not is_no_class(name) and any((raw.values == 0).any() for raw in raws):
            findings.append(warning("zero-is-unlabelled", case="named", name=name))
    ids = _ids(maps)
    if plus:
        names = {i: names.get(i) or f"label {i - 1}" for i in ids}
    findings += [
        warning("mark-is-a-class", name=names[i], mark=str(i - plus))
        for i in ids
        if i != plus and is_no_class(names.get(i, ""))
    ]
    names, others = renamed(ids, names, options.class_names, plus)
    return _Classes(maps, ids, names, colours, [*findings, *others])


def _legend(
    raw: find.RawMap, source: Contents, labels: Sequence[int]
) -> tuple[Mapping[int, str], Mapping[int, Colour]]:
    """Return names and colours by label, by the file of a map or those next to it."""
    is_file = source.path.exists()  # and no `DataArray`
    of_files, colours = classes_next_to(source.path) if is_file else ({}, {})
    names = source.class_names or raw.names or of_files or find.listed_names(source, labels)
    return names, source.class_colours or colours


def _refuse_other_numbers(
    raws: Sequence[find.RawMap], train: Mapping[int, str], test: Mapping[int, str]
) -> None:
    """Refuse a training and a test map that name a class by two numbers."""
    numbers = {name: i for i, name in train.items() if name and not is_no_class(name)}
    for number, name in test.items():
        if name in numbers and train.get(number) != name:
            maps = " and ".join(raw.name for raw in raws)
            facts: dict[str, Any] = {"what": name, "first": numbers[name], "second": number}
            raise refusal("two-classes", "labels", maps, **facts)


def _ids(maps: Sequence[Map]) -> list[int]:
    return [i for i in np.unique(np.concatenate([np.unique(each) for each in maps])).tolist() if i]


def _check_size(name: str, values: Map, grid: Grid, argument: str) -> None:
    if values.shape != (grid.height, grid.width):
        facts = {"own": by(values.shape), "size": by((grid.height, grid.width))}
        raise refusal("sizes-differ", argument, name, "cube", **facts)


def _coloured(
    raws: Sequence[find.RawMap], options: SceneOptions
) -> tuple[list[Map], Mapping[int, str], Mapping[int, Colour]]:
    names = " and ".join(raw.name for raw in raws)
    for argument, value in (
        ("labels", None if all(raw.is_picture for raw in raws) else names),
        ("unlabelled", options.unlabelled.number),
        ("zero_is_a_class", options.zero_is_a_class or None),
    ):
        if value is not None:
            raise refusal("picture-of-colours", argument, value, picture=names)
    return by_colour([raw.values for raw in raws], names, options.unlabelled.colour)


def _zero_is_a_class(
    raws: Sequence[find.RawMap], options: SceneOptions, findings: list[Finding]
) -> bool:
    """Return whether 0 is a class: because the user says it, or the file declares -1 as no data."""
    if options.zero_is_a_class:
        findings.append(note("zero-is-a-class"))
        return True
    name, values, declared = raws[0].name, raws[0].values, raws[0].nodata
    nodata, given = declared, options.unlabelled.number
    if declared is None and given is not None and (values == given).any():
        nodata = given
    elif declared is None and values.dtype.kind == "f" and np.isnan(values).any():
        nodata = np.nan
    if len(raws) != 1 or not (values == 0).any() or nodata in (None, 0):
        return False
    if declared == -1 and (not raws[0].names or 0 in raws[0].names):
        findings.append(warning("zero-is-a-class", name, nodata=declared))
        return True
    findings.append(warning("zero-is-unlabelled", name, "marked", nodata=nodata))
    return False


def _numbered(raw: find.RawMap, options: SceneOptions, plus: bool, argument: str) -> Map:
    empty = find.empty_of(raw, options)
    whole = check_map(raw.name, np.where(empty, 0, raw.values), argument)
    return np.where(empty, 0, whole + 1) if plus else whole


def _with_class_ids(classes: _Classes, class_ids: Mapping[str, int], raw: find.RawMap) -> _Classes:
    """Return maps in which classes with known names have the known ids, and others further ones.

    Ids decide if no name is known.
    """
    own = [classes.names.get(number, "") for number in classes.ids]
    others = [name for name in own if name not in class_ids]
    # The number of a colour means nothing, because another picture may lack a colour.
    if others and raw.is_picture:
        facts = {"names": others, "classes": list(class_ids)}
        raise refusal("classes-unknown", "labels", raw.name, "model", **facts)
    if len(others) == len(own):
        numbers = dict.fromkeys(classes.ids, "")
        of_model = {number: name for name, number in class_ids.items()}
        findings = number_findings(numbers, "", of_model)
        return classes._replace(findings=[*classes.findings, *findings])
    further = {name: i for i, name in enumerate(others, start=max(class_ids.values()) + 1)}
    ids = [{**further, **class_ids}[name] for name in own]
    old, new = np.array([0, *classes.ids]), np.array([0, *ids])
    maps = [new[np.searchsorted(old, values)] for values in classes.maps]
    pairs = zip(classes.ids, ids, strict=True)
    colours = {number: classes.colours[i] for i, number in pairs if i in classes.colours}
    return _Classes(maps, ids, dict(zip(ids, own, strict=True)), colours, classes.findings)


def label_files(path: str | Path) -> tuple[Path, ...]:
    """Return every file that labels are read from: maps, and shapes with their sidecar files.

    Raises:
        InputError: no such file, or it is of no known format.
    """
    path = Path(path)
    return open_file(path, "labels").files if format_of(path) is None else files_of(path)
