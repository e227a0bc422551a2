"""Coordinates from one system to another, by rasterio (extra `geo`)."""

import logging
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from hytas.data.drawn.shapes import Drawing, Points, Shape
from hytas.data.limits import shown
from hytas.errors import InputError


def reprojected(drawing: Drawing, source: str, target: str) -> Drawing:
    """Return a drawing in the coordinate system `target`.

    Args:
        drawing: to reproject.
        source: its system, as "EPSG:..." or well-known text.
        target: that of the scene, likewise.

    Raises:
        InputError: rasterio is missing, a system is unknown, or a coordinate has no place in it.
    """
    if source == target:
        return drawing
    try:
        rasterio, warp = import_module("rasterio"), import_module("rasterio.warp")
    except ImportError:
        raise InputError(
            f"shapes in {shown(source)}, scene in {shown(target)}: to reproject needs the package "
            "rasterio: pip install 'hytas[geo]'"
        ) from None
    # Within an Env, what PROJ says goes to this logger, not to standard error.
    logging.getLogger("rasterio").setLevel(logging.CRITICAL)
    with rasterio.Env():
        here, there = (_system(rasterio.crs.CRS, text) for text in (source, target))
        if here == there:
            return drawing
        move = _mover(warp.transform, (here, there), (source, target))
        return replace(drawing, shapes=tuple(_moved(shape, move) for shape in drawing.shapes))


def _mover(
    transform: Callable[..., Any], systems: tuple[Any, Any], names: tuple[str, str]
) -> Callable[[Points], Points]:
    source, target = (shown(name) for name in names)

    def moved(points: Points) -> Points:
        if not len(points):
            return points
        try:
            x, y = transform(*systems, points[:, 0].tolist(), points[:, 1].tolist())
            result = np.array([x, y]).T
        except Exception:  # rasterio raises several kinds, none of them its own base
            result = np.full((1, 2), np.nan)
        if not np.isfinite(result).all():
            raise InputError(
                f"a coordinate of the shapes, near {points[0, 0]:.10g}, {points[0, 1]:.10g}, has "
                f"no place in {target}: is their system {source}?"
            )
        return result

    return moved


def _moved(shape: Shape, move: Callable[[Points], Points]) -> Shape:
    polygons = tuple(tuple(move(ring) for ring in rings) for rings in shape.polygons)
    return replace(shape, polygons=polygons, points=move(shape.points))


def _system(crs: Any, text: str) -> Any:
    try:
        return crs.from_user_input(text)
    except ValueError:  # rasterio's CRSError is one
        raise InputError(f"no such coordinate system: {shown(text)}") from None
