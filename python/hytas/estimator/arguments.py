"""Check the arguments of `HSIClassifier`."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from hytas.data import CubePixels
from hytas.errors import InputError

Array = npt.NDArray[Any]
DEVICES = ("auto", "cpu", "cuda")
_REAL = (int, float, np.integer, np.floating)
# Names of settings, the types they may have, and the rule in words.
_TYPES: tuple[tuple[tuple[str, ...], tuple[type, ...], str], ...] = (
    (
        ("budget", "proxy", "space", "strategy", "scaling", "smooth", "self_training"),
        (str,),
        "text",
    ),
    (("bands",), (str, type(None)), "text such as 1-103,110-148, or None"),
    (
        ("population", "generations", "patch_size", "band_group"),
        (int, np.integer),
        "a whole number",
    ),
    (("finalists", "epochs"), (int, np.integer, type(None)), "a whole number, or None"),
    (("validation_fraction",), _REAL, "a number"),
    (("nodata",), (*_REAL, type(None)), "a number, or None"),
)


def check_types(settings: object) -> None:
    """Refuse an attribute of the wrong type, which would fail later with another message.

    Raises:
        InputError: naming the setting, its value and the rule.
    """
    for names, types, rule in _TYPES:
        for name in names:
            value = getattr(settings, name)
            if not isinstance(value, types) or isinstance(value, bool):
                raise InputError(f"{name}: {value!r} must be {rule}")


def seed_of(state: int | np.random.RandomState | None) -> int:
    """Return the seed for scikit-learn's `random_state`; None draws one.

    Raises:
        InputError: not a whole number of 0 or more, a RandomState or None.
    """
    if not isinstance(state, int | np.integer | np.random.RandomState | None):
        raise InputError(f"random_state: {state!r} must be a whole number, a RandomState or None")
    if isinstance(state, int | np.integer):
        if state < 0:
            raise InputError(f"random_state: {state} must be 0 or more")
        return int(state)
    return int(check_random_state(state).randint(2**31 - 1))


def as_cube(given: Any) -> Array:
    """Return the cube as an array (H, W, bands).

    Raises:
        InputError: not three axes, or not real numbers.
    """
    cube: Array = np.asarray(given)
    if cube.ndim != 3 or cube.dtype.kind not in "iufb":
        raise InputError(
            f"cube: {by(cube.shape)} {cube.dtype}: three axes (height, width, bands) of real "
            "numbers are needed"
        )
    return cube


def pixels_and_cube(cube: Any) -> tuple[Array | None, Array]:
    """Return the flat indices of the wanted pixels, None for all, and the cube (H, W, bands).

    Raises:
        InputError: as `as_cube`.
    """
    if isinstance(cube, CubePixels):
        return cube.pixels, as_cube(cube.cube)
    return None, as_cube(cube)


def by(shape: tuple[int, ...]) -> str:
    """Return a shape as text, such as "24 x 30"."""
    return " x ".join(map(str, shape))
