"""Find the cube among the variables of a file, by their shapes."""

from collections.abc import Sequence

from hytas.data.contents import Array, Contents, Variable, reading
from hytas.data.limits import listed
from hytas.errors import InputError


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


def fits(labels: tuple[int, ...], cube: tuple[int, ...]) -> bool:
    """Return whether a map's height and width are two axes of the cube, in that order."""
    shape = map_shape(labels)
    return shape in ((cube[0], cube[1]), (cube[1], cube[2]), (cube[0], cube[2]))


def _require_number(variable: Variable, contents: Contents, argument: str) -> None:
    if variable.kind != "number":
        raise InputError(
            f"{argument}: {variable} in {contents.path} is {variable.kind}; real numbers are needed"
        )
