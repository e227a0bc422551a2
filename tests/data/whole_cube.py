"""A cube that is read as a whole."""

from types import SimpleNamespace
from typing import Any

from hytas.data.cube import empty_pixels, open_cube
from hytas.data.interpret.nodata import valid_pixels
from hytas.data.scene import check_cube


def load_cube(*place: Any, **how: Any) -> SimpleNamespace:
    """Return the values of a cube and its facts; arguments are those of `open_cube`."""
    opened = open_cube(*place, **how)
    cube = opened.whole()
    check_cube(cube, "scene")
    findings = (*opened.findings, *empty_pixels(opened))
    facts = ("wavelengths", "nodata", "bad_bands", "fwhm", "grid", "name")
    return SimpleNamespace(
        cube=cube,
        valid=valid_pixels(cube, opened.nodata),
        findings=findings,
        codes=tuple(one.code for one in findings),
        **{one: getattr(opened, one) for one in facts},
    )
