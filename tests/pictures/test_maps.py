"""A drawn map shows the classes that it was given."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from hytas.data.palette import palette
from hytas.pictures import Legend, colour_map, draw_map, map_png

COLOURS = [(int(red), int(green), int(blue)) for red, green, blue in palette(4)]
LEGEND = Legend((9, 3, 4, 200), ("grass", "roof", "gravel", "water"), COLOURS)


def test_colours_follow_class_ids() -> None:
    colours = colour_map(np.array([[200, 9, 0, 5]], np.int32), LEGEND)
    white = [255, 255, 255]
    assert colours[0].tolist() == [list(COLOURS[3]), list(COLOURS[0]), white, white]


def test_a_picture_holds_both_maps(tmp_path: Path) -> None:
    for height, width in ((10, 60), (60, 10), (30, 30)):
        labels = np.full((height, width), 9, np.int32)
        truth = np.full((height, width), 200, np.int32)
        path = draw_map(tmp_path / "map.png", labels, LEGEND, truth=truth)
        with Image.open(path) as drawn:
            pixels = np.asarray(drawn.convert("RGB")).reshape(-1, 3)
        areas = [int((pixels == COLOURS[index]).all(axis=1).sum()) for index in (0, 3, 1)]
        assert areas[0] > 20 * areas[2]  # the second class is in the legend alone
        assert areas[1] > 20 * areas[2]


def test_a_map_whose_first_row_is_the_southernmost_is_drawn_north_above(tmp_path: Path) -> None:
    labels = np.repeat([[3], [4]], 20, axis=0) * np.ones(20, np.int32)
    path = draw_map(tmp_path / "map.png", labels, LEGEND)
    turned = draw_map(tmp_path / "turned.png", labels[::-1], LEGEND, south_up=True)
    assert path.read_bytes() == turned.read_bytes()


def test_a_large_map_is_thinned_to_the_dots_of_the_page(tmp_path: Path) -> None:
    read: list[slice] = []

    class Map:
        shape = (4000, 30)

        def __getitem__(self, rows: slice) -> np.ndarray:
            read.append(rows)
            return np.full((4000, 30), 9, np.int32)[rows]

    draw_map(tmp_path / "map.png", Map(), LEGEND)
    assert read == [slice(None, None, 3)]


def test_a_map_as_png_has_a_pixel_for_a_pixel_and_is_clear_without_a_class() -> None:
    legend = Legend([1, 2], ["", ""], [(255, 0, 0), (0, 0, 255)])
    content = map_png(np.array([[0, 1, 1], [2, 2, 9]], np.int32), legend)
    picture = np.asarray(Image.open(io.BytesIO(content)))
    assert picture.shape == (2, 3, 4)
    assert picture[..., 3].tolist() == [[0, 255, 255], [255, 255, 0]]
    assert picture[0, 1, :3].tolist() == [255, 0, 0]
    assert picture[1, 0, :3].tolist() == [0, 0, 255]
    assert content == map_png(np.array([[0, 1, 1], [2, 2, 9]], np.int32), legend)
