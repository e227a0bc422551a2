"""Find the label maps among the variables of a file, by their shapes and names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hytas.data.findings import Finding, note, refusal
from hytas.data.grid import Grid
from hytas.data.interpret.axes import are_axes_of, map_axes
from hytas.data.labels.align import is_placed
from hytas.data.labels.colours import BLACK, coloured_by
from hytas.data.labels.names import is_no_class
from hytas.data.limits import by, listed
from hytas.data.options import SceneOptions
from hytas.data.record import Contents, Variable, load, numbers_of, require_number, text_of
from hytas.errors import InputError
from hytas.types import Array, Mask

NO_MAP = "holds no label map"
"""Rule that a file with a cube alone breaks, if labels are needed."""

# Pairs of names of a training and a test map, in lower case, besides those of "train" and "test".
SPLIT_NAMES = (("tr", "te"), ("trlabel", "tslabel"))
_NAMES = ("class_names", "classnames", "label_names", "target_names")
_OF_SPLIT = re.compile(r"(?<![a-z])(train|test)")


@dataclass(frozen=True, eq=False)
class RawMap:
    """A label map as its file has it.

    Attributes:
        values: (h, w) labels, or (h, w, 3 or 4) colours of a picture.
        names: of classes by label, by the attributes of the array (CF conventions).
    """

    name: str
    values: Array
    nodata: float | None
    grid: Grid | None
    names: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_picture(self) -> bool:
        """Whether the classes are colours."""
        return self.values.ndim == 3


def find_maps(
    contents: Contents,
    options: SceneOptions,
    shape: tuple[int, ...] | None,
    grid: Grid | None,
    argument: str,
) -> list[RawMap]:
    """Return the label map, or the training and the test map, of a file.

    Args:
        shape: of the cube; a map without a place must match two of its axes. None accepts any.
        grid: of the cube, if it has a place; a map with a place may then have any shape.
    """
    if options.labels_key is not None:
        label_maps = named = [contents.get(name, argument) for name in _keys(options.labels_key)]
    else:
        maps = maps_in(contents, shape)
        named = split_pair(maps)
        label_maps = named or _fitting(maps, contents, shape, grid, argument)
    if options.zero_is_a_class and len(named) == 2:
        train, test = (variable.name for variable in named)
        raise refusal("maps-too-many", "zero_is_a_class", case="zero", train=train, test=test)
    loaded = [_raw_map(variable, contents, argument) for variable in label_maps]
    if named or len(loaded) == 1:
        return loaded
    fit = [raw for raw in loaded if _may_be_ground_truth(raw, options)]
    if len(fit) == 1:
        return fit
    # Only the user can choose one of several maps.
    names = [*map(str, label_maps)]
    raise refusal("several", argument, str(contents.path), "maps", names=names)


def maps_in(contents: Contents, shape: tuple[int, ...] | None = None) -> list[Variable]:
    """Return the arrays that may be label maps by their shapes."""
    maps = [v for v in contents.variables if v.kind == "number" and _is_map(v, shape)]
    return maps or [v for v in contents.variables if _is_picture(v)]


def _keys(key: str) -> list[str]:
    names = [name.strip() for name in key.split(",")]
    if len({*names}) != len(names) or len(names) > 2:
        raise InputError("labels_key", key, "must name one map, or two")
    return names


def _is_picture(variable: Variable) -> bool:
    return variable.is_colour and variable.dtype == "uint8"


def map_shapes(contents: Contents) -> list[tuple[int, int]]:
    """Return the height and width of each array that may be a label map, numeric or not."""
    planes = (_plane(each) for each in contents.variables if each.kind != "other" or not each.shape)
    return [plane for plane in planes if plane is not None]


def _plane(variable: Variable) -> tuple[int, int] | None:
    axes = map_axes(variable)
    return None if axes is None else (variable.shape[axes[0]], variable.shape[axes[1]])


def _is_map(variable: Variable, shape: tuple[int, ...] | None) -> bool:
    """Return whether an array has two axes; a row or a column must be one of the cube's."""
    plane = None if variable.is_colour else _plane(variable)
    if plane is None:
        return False
    return min(plane) > 1 or (shape is not None and are_axes_of(plane, shape))


def _fitting(
    maps: Sequence[Variable],
    contents: Contents,
    shape: tuple[int, ...] | None,
    grid: Grid | None,
    argument: str,
) -> list[Variable]:
    if not maps and argument == "data":
        raise InputError(argument, str(contents.path), NO_MAP, "name its file with `labels`")
    matches = [v for v in maps if shape is None or _fits(v, shape, grid)]
    if not matches:
        facts = {"arrays": listed(contents.variables), "size": by(shape or ())}
        raise refusal("array-missing", argument, str(contents.path), "labels", **facts)
    return matches


def _fits(variable: Variable, shape: tuple[int, ...], grid: Grid | None) -> bool:
    plane = _plane(variable)
    same_shape = plane is not None and are_axes_of(plane, shape)
    return same_shape or (is_placed(grid) and is_placed(grid_of(variable)))


def grid_of(variable: Variable) -> Grid | None:
    """Return where a map lies, or None."""
    plane = _plane(variable)
    if variable.grid is None or variable.grid.transform is None or plane is None:
        return None
    return replace(variable.grid, height=plane[0], width=plane[1])


def split_pair(maps: Sequence[Variable]) -> list[Variable]:
    """Return the training and the test map, by their names; [] if there is no such pair."""
    by_name = {variable.last_name: variable for variable in maps}
    # A mask says which pixels train, and not their classes.
    like_train = [(name, name.replace("train", "test")) for name in by_name if "mask" not in name]
    for train, test in (*SPLIT_NAMES, *like_train):
        if train in by_name and test in by_name and train != test:
            return [by_name[train], by_name[test]]
    return []


def unused_split(contents: Contents, raws: Sequence[RawMap]) -> list[Finding]:
    """Return a finding on arrays that are named like a split, if a single other map is used."""
    others = [each for each in contents.variables if _OF_SPLIT.search(each.last_name)]
    if len(raws) > 1 or not others or raws[0].name in [each.name for each in others]:
        return []
    return [note("not-used", case="maps-of-a-split", names=[str(each) for each in others])]


def _raw_map(variable: Variable, contents: Contents, argument: str) -> RawMap:
    require_number(variable, contents, argument)
    axes = map_axes(variable)
    if axes is None:
        raise refusal("array-unfit", argument, str(contents.path), "two-axes", array=str(variable))
    values = load(variable, contents, argument)
    colours = [axis for axis in range(values.ndim) if axis not in axes]
    values = values.transpose(*axes, *colours)
    values = values if _is_picture(variable) else values.reshape(values.shape[:2])
    # Colours of a palette are the classes, unless the first one is black.
    if contents.is_picture and contents.class_colours.get(0, BLACK) != BLACK:
        values = coloured_by(values, contents.class_colours)
    return RawMap(variable.name, values, variable.nodata, grid_of(variable), _flags(variable))


def _flags(variable: Variable) -> dict[int, str]:
    """Return the names that the attributes flag_values and flag_meanings give."""
    values = numbers_of(variable.attributes, "flag_values")
    names = (text_of(variable.attributes, "flag_meanings") or "").replace(",", " ").split()
    if values is None or len(values) != len(names) or (values % 1).any():
        return {}
    return dict(zip(values.astype(np.int64).tolist(), names, strict=True))


def listed_names(contents: Contents, labels: Sequence[int]) -> dict[int, str]:
    """Return the names of classes from a list of texts next to the map, such as `class_names`.

    The list has a name for each label, or for each number from 0 to the largest label; or for
    each from 0, of which some are not there.
    """
    for each in contents.variables:
        if each.last_name in _NAMES and each.kind == "text" and len(each.shape) == 1:
            names = [str(name).strip() for name in load(each, contents, "labels")]
            from_0 = range(len(names) if names and is_no_class(names[0]) else 0)
            for numbers in (labels, range(max(labels, default=0) + 1), from_0):
                if len(names) == len(numbers):
                    return dict(zip(numbers, names, strict=True))
    return {}


def _may_be_ground_truth(raw: RawMap, options: SceneOptions) -> bool:
    """Return whether values can be labels: whole numbers with at least two classes.

    This excludes masks, which have one class, and coordinates, which are not whole.
    """
    if raw.is_picture:
        return True
    values = raw.values[~empty_of(raw, options)]
    if values.dtype.kind == "f" and not np.array_equal(values, np.floor(values)):
        return False
    ids = np.unique(values)
    return bool(ids.size and ids[0] >= 0 and (ids > 0).sum() >= 2)


def labels_in(contents: Contents) -> tuple[Array, Grid | None]:
    """Return the values (h, w) of the label map in a record, 0 without a label, and their place."""
    (raw,) = find_maps(contents, SceneOptions(), None, None, "labels")
    return np.where(empty_of(raw, SceneOptions()), 0, raw.values), raw.grid


def empty_of(raw: RawMap, options: SceneOptions) -> Mask:
    """Return (h, w), True where the file or the user marks a pixel as unlabelled."""
    empty: Mask = np.zeros(raw.values.shape[:2], np.bool_)
    if raw.values.dtype.kind == "f":
        empty |= np.isnan(raw.values)
    for value in (raw.nodata, options.unlabelled.number):
        if value is not None and value == value:  # NaN is there already
            empty |= raw.values == value
    return empty
