"""Find the cube and the label maps among the variables of a file, by their shapes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hytas.data.contents import Array, Contents, Variable, reading
from hytas.data.labels import check_map
from hytas.data.limits import listed, shown
from hytas.errors import InputError

# Pairs of names of a training and a test map, in lower case.
SPLIT_NAMES = (
    ("tr", "te"),
    ("train", "test"),
    ("trlabel", "tslabel"),
    ("train_gt", "test_gt"),
    ("train_labels", "test_labels"),
    ("train_map", "test_map"),
)


def load(variable: Variable, contents: Contents, argument: str) -> Array:
    """Read a variable, and return it in the machine's byte order."""
    with reading(argument, contents.path, f"{contents.format} file"):
        array = variable.values()
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def map_shape(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return (H, W) if the shape is that of a map, (H, W, 1) and (1, H, W) included, else None."""
    if len(shape) == 3 and 1 in (shape[0], shape[2]):
        shape = shape[:2] if shape[2] == 1 else shape[1:]
    # A row or a column is a list of wavelengths or of ids, not a map.
    return (shape[0], shape[1]) if len(shape) == 2 and min(shape) > 1 else None


def numbers(variables: Sequence[Variable]) -> list[Variable]:
    """Return the variables that may be label maps: numeric, two axes."""
    return [v for v in variables if map_shape(v.shape) and v.kind == "number"]


def of_map_shape(variables: Sequence[Variable]) -> list[Variable]:
    """Return the arrays with two axes, numeric or not."""
    return [v for v in variables if map_shape(v.shape) and v.kind != "other"]


def find_cube(
    contents: Contents,
    key: str | None,
    argument: str = "data",
    maps: Sequence[Variable] = (),
) -> Variable:
    """Return the variable of the cube: the named one, or the only one with three axes.

    If there are several, it is the only one that fits a variable of `maps`.

    Raises:
        InputError: no such variable, no cube, or several cubes without a key.
    """
    if key is not None:
        variable = contents.get(key, argument)
        _require_number(variable, contents, argument)
        if len(variable.shape) != 3:
            raise InputError(
                f"{argument}: {variable} in {contents.path} is not a cube; three axes are needed"
            )
        return variable
    cubes = [v for v in contents.variables if len(v.shape) == 3 and map_shape(v.shape) is None]
    # One line of a cube has the shape of a map with a leading axis of one.
    cubes = cubes or [v for v in contents.variables if _one_line(v.shape)]
    numeric = [v for v in cubes if v.kind == "number"]
    if len(numeric) > 1:
        fitting = [v for v in numeric if any(fits(m.shape, v.shape) for m in numbers(maps))]
        numeric = fitting if len(fitting) == 1 else numeric
    if len(numeric) > 1:
        names = listed(numeric, len(numeric))
        raise InputError(
            f"{argument}: {contents.path} holds several cubes ({names}): name one with --cube-key"
        )
    if numeric:
        return numeric[0]
    if cubes:
        _require_number(cubes[0], contents, argument)
    flat = [v for v in contents.variables if map_shape(v.shape) is not None]
    one_band = flat if len(contents.variables) == 1 else [v for v in flat if len(v.shape) == 3]
    if len(one_band) == 1:
        raise InputError(
            f"{argument}: {one_band[0]} in {contents.path} has one band; a scene needs at least 2"
        )
    names = listed(contents.variables, len(contents.variables))
    raise InputError(
        f"{argument}: {contents.path} is not a scene: it holds {names}, but no numeric cube with "
        "three axes (height, width, bands)"
    )


def _one_line(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[0] == 1 and min(shape[1:]) > 1


def find_maps(
    contents: Contents,
    key: str | None,
    cube_shape: tuple[int, ...] | None,
    argument: str,
    unlabelled: int | None = None,
    zero_is_a_class: bool = False,
) -> list[tuple[str, Array]]:
    """Return the label map, or the training and the test map, of a file, each (H, W).

    Args:
        contents: the file.
        key: the map's name, or two names separated by a comma (training, test).
        cube_shape: the shape of the cube in the file; a map must match two of its axes. None
            accepts any map.
        argument: name of the file in messages.
        unlabelled: another label of unlabelled pixels, which becomes 0; or None.
        zero_is_a_class: whether 0 is a class; the ids are then one more than in the file.

    Raises:
        InputError: no map, no map that fits, or several maps without a key.
    """

    def read(variables: Sequence[Variable]) -> list[tuple[str, Array]]:
        if zero_is_a_class and len(variables) == 2:
            names = " and ".join(shown(variable.name) for variable in variables)
            raise InputError(
                f"zero is a class: needs a single label map, not {names}, where 0 is ambiguous"
            )
        marks = _Marks(unlabelled, zero_is_a_class)
        return [_load_map(variable, contents, argument, marks) for variable in variables]

    if key is not None:
        keys = [name.strip() for name in key.split(",")]
        if len(keys) > 2:
            raise InputError(f"--labels-key: {key!r} names {len(keys)} maps; one or two are needed")
        if len(set(keys)) < len(keys):
            raise InputError(f"--labels-key: {key!r} names one map twice")
        return read([contents.get(name, argument) for name in keys])
    maps = numbers(contents.variables)
    pair = _split_pair(maps)
    if pair:
        return read(pair)
    fitting = _fitting(maps, contents, cube_shape, argument)
    loaded = [each for variable in fitting for each in read([variable])]
    if len(loaded) == 1:
        return loaded
    fit = [(name, values) for name, values in loaded if _may_be_ground_truth(values)]
    if len(fit) == 1:
        return fit
    # Only the user can choose one of several maps.
    names = listed(fitting, len(fitting))
    raise InputError(
        f"{argument}: {contents.path} holds several maps ({names}): name one with --labels-key"
    )


def _fitting(
    maps: Sequence[Variable],
    contents: Contents,
    cube_shape: tuple[int, ...] | None,
    argument: str,
) -> list[Variable]:
    """Return the maps of a file that fit the cube; refuse a file without such a map."""
    if not maps:
        names = listed(contents.variables, len(contents.variables))
        if unfit := of_map_shape(contents.variables):
            _require_number(unfit[0], contents, argument)
        raise InputError(f"{argument}: no label map in {contents.path}, which holds {names}")
    found = [v for v in maps if cube_shape is None or fits(v.shape, cube_shape)]
    if not found and cube_shape is not None:
        names = listed(maps, len(maps))
        raise InputError(
            f"{argument}: {names} in {contents.path} must have the cube's height and width, "
            f"which is {' x '.join(map(str, cube_shape))}"
        )
    return found


def fits(labels: tuple[int, ...], cube: tuple[int, ...]) -> bool:
    """Return whether a map's height and width are two axes of the cube, in that order."""
    shape = map_shape(labels)
    return shape in ((cube[0], cube[1]), (cube[1], cube[2]), (cube[0], cube[2]))


def _split_pair(maps: Sequence[Variable]) -> tuple[Variable, Variable] | None:
    by_name = {variable.name.rsplit("/", 1)[-1].lower(): variable for variable in maps}
    for train, test in SPLIT_NAMES:
        if train in by_name and test in by_name:
            return by_name[train], by_name[test]
    return None


def _may_be_ground_truth(values: Array) -> bool:
    """Return whether values can be labels: whole numbers with at least two classes.

    This excludes masks, which have one class, and coordinates, which are not whole.
    """
    if values.dtype.kind == "f" and not np.array_equal(values, np.floor(values)):
        return False
    ids = np.unique(values)
    return bool(ids[0] >= 0 and (ids > 0).sum() >= 2)


class _Marks(NamedTuple):
    """How the user wants labels read: another unlabelled value, and whether 0 is a class."""

    unlabelled: int | None
    zero_is_a_class: bool


def _load_map(
    variable: Variable, contents: Contents, argument: str, marks: _Marks
) -> tuple[str, Array]:
    _require_number(variable, contents, argument)
    unlabelled = marks.unlabelled
    if unlabelled is not None and not -(2**63) <= unlabelled < 2**63:
        raise InputError(f"unlabelled {unlabelled}: must be a label, a whole number of 64 bits")
    if unlabelled == 0 and marks.zero_is_a_class:
        raise InputError("unlabelled 0: cannot be given together with zero is a class")
    shape = map_shape(variable.shape)
    if shape is None:
        raise InputError(
            f"{argument}: {variable} in {contents.path} is not a map; two axes are needed"
        )
    values = load(variable, contents, argument).reshape(shape)
    empty = np.zeros(shape, np.bool_)
    for mark in (variable.nodata, unlabelled):
        if mark is not None:
            empty |= np.isnan(values) if np.isnan(mark) else values == mark
    values = np.where(empty, 0, values)
    if marks.zero_is_a_class:
        values = np.where(empty, 0, check_map(variable.name, values, argument) + 1)
    return variable.name, values


def _require_number(variable: Variable, contents: Contents, argument: str) -> None:
    if variable.kind != "number":
        raise InputError(
            f"{argument}: {variable} in {contents.path} is {variable.kind}; real numbers are needed"
        )
