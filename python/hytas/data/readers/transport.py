"""Records as JSON, for the way from the child process that reads a file."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.grid import Grid
from hytas.data.record import Array, BandFacts, Contents, Key, Raw, Variable

_KEPT: tuple[str, ...] = ("name", "shape", "dtype", "kind", "dims", "nodata", "size", "stored")
_KEPT = (*_KEPT, "is_colour", "has_parts")


def plain_contents(contents: Contents) -> dict[str, Any]:
    """Return a record as values that JSON holds, without `further`, which only products have."""
    return {
        "path": str(contents.path),
        "format": contents.format,
        "variables": [_plain_variable(each) for each in contents.variables],
        "notes": contents.notes,
        "class_names": list(contents.class_names.items()),
        "class_colours": list(contents.class_colours.items()),
        "attributes": _plain_attributes(contents.attributes),
        "beside": [str(path) for path in contents.beside],
    }


def contents_from(plain: Mapping[str, Any]) -> Contents:
    """Return the record that `plain_contents` made; its arrays cannot be read yet."""
    return Contents(
        path=Path(plain["path"]),
        format=plain["format"],
        variables=tuple(_variable(each) for each in plain["variables"]),
        notes=tuple(plain["notes"]),
        class_names=dict(plain["class_names"]),
        class_colours={label: tuple(colour) for label, colour in plain["class_colours"]},
        attributes=_attributes(plain["attributes"]),
        beside=tuple(Path(each) for each in plain["beside"]),
    )


def _plain_variable(variable: Variable) -> dict[str, Any]:
    found = {name: getattr(variable, name) for name in _KEPT}
    bands, grid = variable.bands, variable.grid
    if bands is not None:
        each = (bands.wavelengths, bands.fwhm, bands.good)
        found["bands"] = [None if values is None else values.tolist() for values in each]
    if grid is not None:
        found["grid"] = [grid.transform, grid.crs, grid.height, grid.width]
    found["attributes"] = _plain_attributes(variable.attributes)
    found["raw"] = None if variable.raw is None else asdict(variable.raw)
    return found


def _variable(plain: Mapping[str, Any]) -> Variable:
    facts = {name: plain[name] for name in _KEPT}
    facts |= {"shape": tuple(facts["shape"]), "dims": tuple(facts["dims"])}
    if "bands" in plain:
        waves, fwhm, good = plain["bands"]
        facts["bands"] = BandFacts(
            None if waves is None else np.array(waves, np.float64),
            None if fwhm is None else np.array(fwhm, np.float64),
            None if good is None else np.array(good, np.bool_),
        )
    if "grid" in plain:
        transform, crs, height, width = plain["grid"]
        facts["grid"] = Grid(None if transform is None else tuple(transform), crs, height, width)
    raw = plain["raw"]
    if raw is not None:
        shapes = {key: tuple(raw[key]) for key in ("shape", "axes")}
        facts["raw"] = Raw(**{**raw, **shapes})
    facts["attributes"] = _attributes(plain["attributes"])
    return Variable(read=_unread, **facts)


def _unread(key: Key) -> Array:
    raise ValueError("the array cannot be read")


def _plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str) else np.asarray(value).tolist()
        for name, value in attributes.items()
    }


def _attributes(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str) else np.asarray(value)
        for name, value in plain.items()
    }
