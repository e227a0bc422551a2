"""Grids: the place of pixels on the earth, compared with another grid."""

import numpy as np
import pytest

from hytas.data.grid import Grid, crs_of, wkt_of_epsg
from hytas.errors import InputError

UTM33 = wkt_of_epsg(32633)
NORTH_UP = Grid((30.0, 0.0, 400000.0, 0.0, -30.0, 5800000.0), UTM33, 24, 30)


def grid(*transform: float, crs: str | None = UTM33, size: tuple[int, int] = (24, 30)) -> Grid:
    return Grid(transform, crs, *size)  # type: ignore[arg-type]


def test_coordinates_and_pixels_are_inverse() -> None:
    turned = grid(20.0, 5.0, 600000.0, 5.0, -20.0, 4000000.0)
    columns, rows = np.array([0, 3.5, 30]), np.array([0, 7.25, 24])
    x, y = turned.coordinates(columns, rows)
    np.testing.assert_allclose((x[0], y[0]), (600000, 4000000))
    np.testing.assert_allclose(turned.pixels(x, y), (columns, rows), atol=1e-6)


@pytest.mark.parametrize(
    ("transform", "facts"),
    [
        ((30, 0, 0, 0, -30, 0), ()),
        ((30, 0, 0, 0, 30, 0), ("south up",)),
        ((20, 5, 0, 5, -20, 0), ("rotated",)),
        ((20, 9, 0, 0, -20, 0), ("rotated",)),
    ],
)
def test_what_a_transform_does(transform: tuple[float, ...], facts: tuple[str, ...]) -> None:
    one = grid(*transform)
    properties = {"south up": one.is_south_up, "rotated": one.is_rotated}
    assert tuple(name for name, holds in properties.items() if holds) == facts


def test_the_same_pixels() -> None:
    assert NORTH_UP.is_same(grid(30, 0, 400000.1, 0, -30, 5800000))
    assert not NORTH_UP.is_same(grid(30, 0, 400001, 0, -30, 5800000))
    assert not NORTH_UP.is_same(grid(30, 0, 400000, 0, -30, 5800000, size=(24, 29)))
    assert not NORTH_UP.is_same(grid(30, 0, 400000, 0, -30, 5800000, crs=wkt_of_epsg(32632)))
    assert NORTH_UP.is_same(grid(30, 0, 400000, 0, -30, 5800000, crs=None))
    assert not NORTH_UP.is_same(Grid(None, None, 24, 30))
    assert Grid(None, None, 24, 30).is_same(Grid(None, None, 24, 30))
    # The same system in the words of another program.
    esri = crs_of(UTM33).to_wkt(version="WKT1_ESRI")
    assert NORTH_UP.is_same(grid(30, 0, 400000, 0, -30, 5800000, crs=esri))


def test_areas_that_overlap() -> None:
    assert NORTH_UP.overlaps(grid(30, 0, 400000 + 29 * 30, 0, -30, 5800000))
    assert not NORTH_UP.overlaps(grid(30, 0, 400000 + 30 * 30, 0, -30, 5800000))
    assert NORTH_UP.overlaps(grid(30, 0, 400000, 0, 30, 5800000 - 24 * 30))
    degrees = crs_of("EPSG:4326").to_wkt()
    assert NORTH_UP.overlaps(grid(1e-3, 0, 13.53, 0, -1e-3, 52.343, crs=degrees))
    assert not NORTH_UP.overlaps(grid(1e-3, 0, 17.0, 0, -1e-3, 52.3, crs=degrees))
    assert not NORTH_UP.overlaps(grid(1e9, 0, 1e12, 0, -1e9, 1e12, crs=degrees))


def test_codes_of_systems() -> None:
    assert NORTH_UP.epsg == 32633
    assert Grid(None, "no system", 2, 2).epsg is None
    assert Grid(None, None, 2, 2).epsg is None
    assert grid(30, 0, 0, 0, 0, 0).is_placed is False


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rasterio.crs", None)
    with pytest.raises(InputError) as caught:
        _ = Grid(None, "EPSG:32633", 2, 2).epsg
    assert caught.value.rule == "a coordinate system needs the package rasterio"


@pytest.mark.parametrize(
    ("epsg", "side", "metres"),
    [(32632, 30.0, 30.0), (2263, 100.0, 30.48), (4326, 0.001, 111.32)],
)
def test_a_pixel_has_a_side_in_metres(epsg: int, side: float, metres: float) -> None:
    wkt = wkt_of_epsg(epsg)
    assert Grid((side, 0, 8, 0, -side, 48), wkt, 9, 9).pixel_metres == pytest.approx(metres, 1e-4)
    assert Grid((side, 0, 8, 0, -side, 48), None, 9, 9).pixel_metres is None
    local = 'LOCAL_CS["plan",UNIT["metre",1]]'
    assert Grid((side, 0, 8, 0, -side, 48), local, 9, 9).pixel_metres is None
    assert Grid(None, wkt, 9, 9).pixel_metres is None
