"""Regions of interest that ENVI writes as text: pixels under the name and colour of a region."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.labels.options import LabelOptions
from hytas.data.labels.shapes import Points, Shapes
from hytas.errors import InputError

_FIRST = b"; ENVI Output of ROIs"
NAME, COLOUR = "ROI name", "color"


def matches(head: bytes, path: Path) -> bool:
    """Return whether the file begins as ENVI writes it."""
    return head.startswith(_FIRST)


def read(path: Path, options: LabelOptions) -> Shapes:
    """Read the pixels of each region; ENVI counts them from 1."""
    import shapely

    regions: list[dict[str, Any]] = []
    columns: list[str] = []
    size = None
    numbers: list[list[str]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.startswith(";"):
            if line.strip():
                numbers.append(line.split())
            continue
        name, colon, value = line[1:].partition(":")
        name, value = name.strip().lower(), value.strip()
        if name == "roi name":
            regions.append({NAME: value, COLOUR: None, "npts": 0})
        elif regions and name == "roi rgb value":
            regions[-1][COLOUR] = _colour(value)
        elif regions and name == "roi npts":
            regions[-1]["npts"] = int(value) if value.isascii() and value.isdigit() else 0
        elif name == "file dimension":
            match = re.fullmatch(r"(\d{1,9}) x (\d{1,9})", value)
            size = (int(match[2]), int(match[1])) if match else None
        elif not colon and {"X", "Y"} <= set(line[1:].split()):
            columns = line[1:].split()
    if not columns:
        rule = "has no columns X and Y"
        raise InputError("labels", str(path), rule, "export the regions with their pixels")
    at = columns.index("X"), columns.index("Y")
    places = [shapely.multipoints(points) for points in _places(regions, numbers, at)]
    fields = {name: [region[name] for region in regions] for name in (NAME, COLOUR)}
    return Shapes("ENVI ROI", np.array(places, object), fields, None, True, size)


def _colour(text: str) -> tuple[int, int, int] | None:
    match = re.fullmatch(r"\{\s*(\d{1,3}),\s*(\d{1,3}),\s*(\d{1,3})\s*\}", text)
    levels = [int(level) for level in match.groups()] if match else []
    if len(levels) != 3 or max(levels) > 255:
        return None
    return levels[0], levels[1], levels[2]


def _places(
    regions: list[dict[str, Any]], numbers: list[list[str]], at: tuple[int, int]
) -> Iterator[Points]:
    start = 0
    for region in regions:
        lines = numbers[start : start + region["npts"]]
        start += region["npts"]
        if len(lines) < region["npts"]:
            raise InputError(rule=f"region {region[NAME]!r} has fewer pixels than it says")
        points = np.array([[float(line[i]) - 0.5 for i in at] for line in lines])
        yield points.reshape(-1, 2)
