"""The parameters of `HSIClassifier`, and the arguments of its methods."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state, column_or_1d

from hytas.data import SplitSettings
from hytas.data.data_array import ArrayCube, cube_of, is_data_array, map_record
from hytas.data.findings import Finding
from hytas.data.labels.align import aligned
from hytas.data.labels.find import labels_in
from hytas.data.limits import by
from hytas.data.options import GivenNames, read_class_names
from hytas.data.scene import unmasked
from hytas.data.splits.cross_validation import CubePixels
from hytas.errors import InputError
from hytas.plugins import load_plugins
from hytas.run.config import RunConfig
from hytas.settings import OneOf, setting, settings_of
from hytas.train.recipe import Recipe
from hytas.types import Array

DEVICES = ("auto", "cpu", "cuda")


@dataclass
class _Own:
    """The parameters that differ from the settings of a run."""

    budget: str = setting("500K-params", "Limits of the search.", example="2M-params,500M-macs")
    epochs: int | None = setting(
        None, "Epochs of the final training; None takes the recipe's number of steps."
    )
    recipe: Recipe | None = setting(
        None, "`hytas.Recipe` of the race and the final training.", usual="that of `effort`"
    )
    random_state: int | np.random.RandomState | None = setting(
        0, "Seed of search, proxies and training; None draws one."
    )
    device: str = setting("auto", "Where to score and train.", rule=OneOf(DEVICES))
    work_dir: str | Path | None = setting(
        None,
        "Folder that keeps the runs, one for each scene and set of settings. There a `fit` that "
        "was killed goes on, and a finished one is read.",
        usual="a temporary folder, which is removed with the estimator",
    )
    verbose: bool = setting(
        False, "Whether progress is shown, on standard error or below the cell of a notebook."
    )


SHARED = {
    declared.name: declared
    for owner in (RunConfig, SplitSettings)
    for declared in settings_of(owner).values()
    if declared.facts.estimator
}
"""The parameters that are settings of a run."""
_NAMES = {
    "data": "cube",
    "scene": "cube",
    "patches": "cube",
    "provider": "device",
    "supernet": "proxy",
    "out": "work_dir",
    "group_column": "groups",
}
"""Name of an argument in the library -> its name in the estimator."""
_OF_ROWS = ("patch_size", "labels")
"""Arguments that do not fit rows of a cube."""
_ROWS = (
    "a cube cannot be cut into rows: for cross_val_score or GridSearchCV give "
    "hytas.BlockSplit.samples(cube, labels) and cv=hytas.BlockSplit()"
)
_OWN = settings_of(_Own)
PARAMETERS = {"budget": _OWN["budget"], "proxy": SHARED["proxy"], **SHARED, **_OWN}
"""All parameters, the positional ones first."""
Parameters: Any = make_dataclass(
    "Parameters",
    [
        (name, Any, field(default=one.default, kw_only=name not in ("budget", "proxy")))
        for name, one in PARAMETERS.items()
    ],
    eq=False,
    repr=False,
)
"""A class whose constructor takes them, as scikit-learn wants it: nothing is checked."""


def checked(estimator: object) -> dict[str, Any]:
    """Return the parameters in their plain forms."""
    load_plugins(vars(estimator)["plugins"])  # they bring names of other settings
    values = {name: one.checked(getattr(estimator, name)) for name, one in PARAMETERS.items()}
    if values["epochs"] is not None and values["epochs"] < 1:
        raise InputError("epochs", values["epochs"], "must be 1 or more")
    return values


def described() -> str:
    """Return the documentation of all parameters."""
    lines = []
    for name, one in PARAMETERS.items():
        example = f" Example: {one.facts.example}." if one.facts.example else ""
        usual = f" None means {one.facts.usual}." if one.facts.usual else ""
        lines.append(f"    {name}: {one.facts.help}{example}{usual}")
    return "\n".join(lines)


def seed_of(state: int | np.random.RandomState | None) -> int:
    """Return the seed for scikit-learn's `random_state`; None draws one."""
    if isinstance(state, int | np.integer):
        if state < 0:
            raise InputError("random_state", state, "must be 0 or more")
        return int(state)
    return int(check_random_state(state).randint(2**31 - 1))


def names_by_id(given: GivenNames) -> dict[int, str]:
    """Return the names of classes by id."""
    names = read_class_names(given)
    for key in names:
        if not (key.isascii() and key.isdigit()):
            raise InputError("class_names", key, "must be the id of a class, a whole number")
    return {int(key): name for key, name in names.items()}


class GivenCube(NamedTuple):
    """A cube that a method was given.

    Attributes:
        cube: (H, W, bands).
        pixels: flat indices of the wanted pixels; None for all.
        array: the cube as it lies in a `DataArray`, or None.
        are_spectra: whether the pixels have no neighbours.
    """

    cube: Array
    pixels: npt.NDArray[np.int64] | None = None
    array: ArrayCube | None = None
    are_spectra: bool = False

    @property
    def wavelengths(self) -> npt.NDArray[np.float64] | None:
        """Return the band centres in nm, if they are known."""
        return None if self.array is None else self.array.wavelengths

    @property
    def nodata(self) -> float | None:
        """Return the no-data value, if it is known."""
        return None if self.array is None else self.array.nodata

    def shaped(self, values: Array, name: str, classes: Array | None = None) -> Any:
        """Return values (H, W) or (H, W, C) as the cube was given: of pixels, or on its grid."""
        if self.pixels is not None:
            return values.reshape(-1, *values.shape[2:])[self.pixels]
        if self.array is None:
            return values
        missing = {"_FillValue": 0} if classes is None else {}
        return self.array.of_pixels(values, name, missing, classes)


def given_cube(cube: Any) -> GivenCube:
    """Return the cube that a method was given: an array, a `DataArray` or pixels of a cube."""
    if isinstance(cube, CubePixels):
        return GivenCube(_checked(cube.cube), cube.pixels)
    if is_data_array(cube):
        array = cube_of(cube)
        return GivenCube(_checked(array.whole()), array=array)
    if np.ndim(cube) == 2:  # spectra, which are pixels without neighbours
        return GivenCube(
            _checked(unmasked("cube", cube)[:, None]), np.arange(len(cube)), are_spectra=True
        )
    return GivenCube(_checked(cube))


def _checked(given: Any) -> Array:
    cube = unmasked("cube", given)
    if cube.ndim != 3 or cube.dtype.kind not in "iufb":
        raise InputError(
            "cube",
            rule=f"{by(cube.shape)} {cube.dtype}: must have three axes (height, width, bands), "
            "or two (spectra, bands), of real numbers",
        )
    return cube


def with_names(table: Any) -> Any:
    """Return a table of pandas whose columns are named by numbers, such as wavelengths, with texts.

    scikit-learn compares texts alone. Numbers that pandas gives are no names.
    """
    columns: Any = getattr(table, "columns", None)
    is_named = getattr(columns, "dtype", np.dtype(object)).kind in "iuf"
    if not is_named or np.array_equal(columns, range(len(columns))):
        return table
    return table.set_axis(columns.astype(str), axis=1)


def labels_of_rows(labels: Any, rows: int) -> Array:
    """Return the labels (n,) of spectra or pixels; a column (n, 1) warns, as in scikit-learn."""
    values = unmasked("labels", labels)
    if values.shape == (rows, 1):
        return np.asarray(column_or_1d(values, warn=True))
    if values.shape == (rows,):
        return values
    hint = "of one-hot labels, take labels.argmax(axis=1)" if values.ndim == 2 else ""
    given = by(values.shape) or "nothing"
    rule = f"{given} given, and one value for each of the {rows} spectra is needed"
    raise InputError("labels", rule=rule, hint=hint)


def label_map(labels: Any, given: GivenCube) -> tuple[Array, tuple[Finding, ...]]:
    """Return labels as an array, of pixels or (H, W), and findings if they lay on another grid."""
    if not is_data_array(labels):
        return unmasked("labels", labels), ()
    values, own = labels_in(map_record(labels))
    cube = None if given.array is None else given.array.grid
    if cube is None or own is None or values.dtype.kind not in "iu":
        return values, ()
    if own.is_placed and cube.is_placed and not cube.overlaps(own):
        raise InputError("labels", rule="no pixel of them lies in the cube")
    placed = aligned("labels", values.astype(np.int64), own, cube)
    return placed.values.astype(values.dtype), placed.findings


@contextmanager
def python_arguments(*, rows: bool = False) -> Iterator[None]:
    """Name the estimator's arguments in the `InputError` of the library.

    Args:
        rows: also hint that a cube cannot be cut into rows, as scikit-learn does.
    """
    try:
        yield
    except InputError as error:
        named = error.renamed(_NAMES)
        raise (named.hinted(_ROWS) if rows and error.argument in _OF_ROWS else named) from None
