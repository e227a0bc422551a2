"""The axes of rows, columns and bands in an array.

What the user says comes first, then the names of dimensions, then the number of bands that are
expected, the lists of wavelengths, and the shape of the label map. What is left open is read as
rows, columns, bands, in this order, or with the pages of a file as bands, and a finding says so.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hytas.data.findings import Finding, note, warning
from hytas.data.limits import by
from hytas.data.record import Variable
from hytas.errors import InputError

ROW, COLUMN, BAND = "y", "x", "band"
PAGE = "page"
"""Name of a dimension that probably holds the bands."""
_Shape = tuple[int, ...]

_BANDS = re.compile(r"band|wave|spectral|channel|lambda|^wl$|^nm$")
_ROWS = re.compile(
    r"^(y|lat|latitude|north\w*|ny|row|rows|nrows?|line|lines|nlines?|height|h|downtrack|\w*scan"
    r"|\w*scans|\w*scanlines?|along_?track|number_of_lines|number_of_rows|y_?dim\w*|ydim.*)$"
)
_COLUMNS = re.compile(
    r"^(x|lon|long|longitude|east\w*|nx|col|cols|column|columns|ncols?|sample|samples|nsamples?"
    r"|width|w|\w*pixels?|cross_?track|across_?track|number_of_samples|number_of_columns|x_?dim\w*)$"
)


def role_of(name: str) -> str:
    """Return ROW, COLUMN or BAND for the name of a dimension; "" for any other name."""
    plain = name.rsplit("/", 1)[-1].strip().lower()
    if _BANDS.search(plain):
        return BAND
    if _ROWS.match(plain):
        return ROW
    return COLUMN if _COLUMNS.match(plain) else ""


@dataclass(frozen=True)
class Axes:
    """The axes of a cube in its array.

    Attributes:
        row, column, band: of height, width and bands.
        is_settled: whether names, numbers of bands or the user determine the axis of the bands.
        finding: if another fact does, or nothing does.
    """

    row: int
    column: int
    band: int
    is_settled: bool = True
    finding: Finding | None = None

    @property
    def order(self) -> tuple[int, int, int]:
        """Return the axes of height, width and bands."""
        return self.row, self.column, self.band


def cube_axes(variable: Variable) -> tuple[int, ...]:
    """Return the axes of an array that may be a cube, without further ones of length 1.

    An array that is no cube has fewer or more than three.
    """
    shape, names = variable.shape, dimension_names(variable)
    spare = [axis for axis, size in enumerate(shape) if size == 1]
    spare = sorted(spare, key=lambda axis: bool(role_of(names[axis])))[: max(0, len(shape) - 3)]
    return tuple(axis for axis in range(len(shape)) if axis not in spare)


def map_axes(variable: Variable) -> tuple[int, int] | None:
    """Return the axes of rows and columns of a label map or a picture; None if it is neither.

    Names decide where there are some; else rows come before columns, and an axis of length 1 in
    front or behind is none of them.
    """
    shape, names = variable.shape, dimension_names(variable)
    roles = [role_of(name) for name in names]
    if roles.count(ROW) == roles.count(COLUMN) == 1:
        axes = roles.index(ROW), roles.index(COLUMN)
        rest = [size for axis, size in enumerate(shape) if axis not in axes]
        return axes if variable.is_colour or all(size == 1 for size in rest) else None
    kept = list(range(len(shape)))
    while len(kept) > 2 and (shape[kept[-1]] == 1 or shape[kept[0]] == 1):
        kept.pop(-1 if shape[kept[-1]] == 1 else 0)
    return (kept[0], kept[1]) if len(kept) == 2 else None


def are_axes_of(plane: _Shape, shape: _Shape) -> bool:
    """Return whether a map's height and width are two axes of a cube, in that order."""
    return tuple(plane) in ((shape[0], shape[1]), (shape[1], shape[2]), (shape[0], shape[2]))


def find_axes(
    variable: Variable,
    *,
    given: str | None = None,
    bands: int | None = None,
    wavelengths: Sequence[int] = (),
    maps: Sequence[_Shape] = (),
) -> Axes:
    """Return the axes of a cube.

    Args:
        variable: an array with three axes that matter (`cube_axes`).
        given: the user's order, such as "band,y,x".
        bands: the number of bands that is expected, or None.
        wavelengths: lengths of the lists of wavelengths in the file.
        maps: (height, width) of the label maps in use.
    """
    kept, shape = cube_axes(variable), variable.shape
    if given is not None:
        return _given_axes(variable, kept, given)
    roles = [role_of(name) for name in dimension_names(variable)]
    orders = [order for order in permutations(kept) if _fits_names(order, kept, roles)]
    if len({order[2] for order in orders}) == 1:
        return Axes(orders[0][0], orders[0][1], orders[0][2])
    evidence: dict[str, Callable[[_Shape], bool]] = {
        "bands": lambda order: shape[order[2]] == bands,
        "wavelengths": lambda order: shape[order[2]] in wavelengths,
        "labels": lambda order: (shape[order[0]], shape[order[1]]) in maps,
    }
    case = ""
    for name, fits in evidence.items():
        orders = [order for order in orders if fits(order)] or orders
        if len({order[2] for order in orders}) == 1:
            case = case or name
    best = max(orders, key=lambda order: (dimension_names(variable)[order[2]] == PAGE, order[2]))
    names = dict(zip(best, ("height", "width", "bands"), strict=True))
    facts: dict[str, Any] = {"sizes": by(shape[axis] for axis in kept), "key": "axes"}
    facts |= {"order": [names[axis] for axis in kept]}
    finding = None
    if not case:
        finding = warning("axes-guessed", case="nothing", **facts)
    elif best[2] != kept[-1]:
        finding = note("axes-guessed", case=case, **facts)
    return Axes(best[0], best[1], best[2], bool(case), finding)


def _fits_names(order: _Shape, kept: _Shape, roles: Sequence[str]) -> bool:
    """Return whether an order agrees with the names; unnamed rows come before columns."""
    wanted = dict(zip(order, (ROW, COLUMN, BAND), strict=True))
    named = {axis: roles[axis] for axis in kept if roles[axis]}
    if len(set(named.values())) < len(named):  # two dimensions of one kind are ambiguous
        named = {}
    if any(wanted[axis] != role for axis, role in named.items()):
        return False
    return bool(named.keys() & set(order[:2])) or order[0] < order[1]


def _given_axes(variable: Variable, kept: _Shape, order: str) -> Axes:
    roles = [role_of(name) for name in order.split(",")]
    if sorted(roles) != sorted((ROW, COLUMN, BAND)) or len(kept) != 3:
        rule = f"must name y, x and band in the order of {variable}, such as band,y,x"
        raise InputError("axes", order, rule)
    places = dict(zip(roles, kept, strict=True))
    return Axes(places[ROW], places[COLUMN], places[BAND])


def dimension_names(variable: Variable) -> Sequence[str]:
    """Return the names of the dimensions, "" where they have none."""
    return (
        variable.dims if len(variable.dims) == len(variable.shape) else [""] * len(variable.shape)
    )
