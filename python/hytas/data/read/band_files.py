"""Rasters of one band each, on one grid: a cube, such as the bands of a satellite scene."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.findings import note, refusal
from hytas.data.interpret.wavelengths import in_descriptions, nanometres
from hytas.data.limits import by
from hytas.data.read import envi, rasters
from hytas.data.record import BandFacts, Contents, Key, Variable, with_nan
from hytas.types import Array

_BAND = re.compile(r"\d+a(?=[_.])|\d+")
"""The number of a band in a name; Sentinel-2 has a band 8A."""


def read(*paths: Path) -> Contents:
    """Describe rasters of one band each, on one grid, as one cube.

    The bands are in the order of their wavelengths if each file names one, else of their names.
    """
    files = [_one_band(path) for path in paths]
    waves = [each.variables[0].bands for each in files]
    listed = [
        None if facts is None or facts.wavelengths is None else float(facts.wavelengths[0])
        for facts in waves
    ]
    in_names, unit = in_descriptions([path.stem for path in paths])
    if None in listed and (named := nanometres(in_names or [], unit)[0]) is not None:
        listed = named.tolist()
        waves = [BandFacts(named[[number]]) for number in range(len(paths))]
    by_wave = None not in listed and len(set(listed)) == len(listed)
    keys: list[Any] = listed if by_wave else [_natural(path.name) for path in paths]
    order = sorted(range(len(paths)), key=lambda number: keys[number])
    ordered = [files[number].variables[0] for number in order]
    first = ordered[0]
    for number, each in zip(order, ordered, strict=True):
        _check_like(first, each, paths[number])
    names = [paths[number].name for number in order]
    order_by = "wavelengths" if by_wave else "names"
    joined = note("bands-of-files", count=len(paths), by=order_by, first=names[0], last=names[-1])
    dtype = np.result_type(*(each.dtype for each in ordered))

    def values(key: Key) -> Array:
        parts = [each.read((slice(0, 1), *key[1:]))[0] for each in ordered[key[0]]]
        return np.stack(parts).astype(dtype, copy=False)

    variable = replace(
        first,
        name=paths[0].parent.name,
        shape=(len(ordered), *first.shape[1:]),
        dtype=str(dtype),
        read=values,
        bands=_joined(waves, order),
        is_colour=False,
    )
    variable = with_nan(variable, [each.nodata for each in ordered])
    findings = (joined, *dict.fromkeys(own for each in files for own in each.findings))
    return Contents(paths[0].parent, "files of bands", (variable,), findings, sidecars=paths)


def files_in(folder: Path) -> list[Path]:
    """Return the rasters in a folder that are bands of one scene: their names differ by numbers."""
    groups: dict[str, list[Path]] = {}
    for path in rasters_in(folder):
        groups.setdefault(_BAND.sub("#", path.name.lower()), []).append(path)
    most = max(groups.values(), key=len, default=[])
    return most if len(most) > 1 else []


def rasters_in(folder: Path) -> list[Path]:
    """Return the files in a folder that may be bands of a scene, by their suffixes."""
    files = (path for path in sorted(folder.iterdir()) if path.is_file())
    ends = (".tif", ".tiff", ".img", ".bil", ".jp2")
    return [path for path in files if path.suffix.lower() in ends]


def _one_band(path: Path) -> Contents:
    driver = {".img": "HFA", ".bil": "EHdr", ".jp2": "JP2OpenJPEG"}.get(
        path.suffix.lower(), "GTiff"
    )
    contents = (
        rasters.read_envi(path) if envi.header_of(path) else rasters.read(path, driver, driver)
    )
    if 1 not in contents.variables[0].shape[:1]:
        count = contents.variables[0].shape[0]
        raise refusal("band-file-unfit", "", case="bands", name=path.name, count=count)
    return contents


def _check_like(first: Variable, other: Variable, path: Path) -> None:
    own, others = first.grid, other.grid
    is_same = own is None or others is None or own.is_same(others)
    if first.shape != other.shape or not is_same:
        sizes = {"size": by(other.shape[1:]), "of_first": by(first.shape[1:])}
        names = {"name": path.name, "first": first.name}
        raise refusal("band-file-unfit", "", case="grid", **names, **sizes)


def _joined(each: Sequence[BandFacts | None], order: Sequence[int]) -> BandFacts | None:
    facts = [each[number] or BandFacts() for number in order]

    def column(name: str) -> Any:
        values = [getattr(one, name) for one in facts]
        return None if any(value is None for value in values) else np.concatenate(values)

    return BandFacts(column("wavelengths"), column("fwhm"), column("good"))


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name.lower())]
