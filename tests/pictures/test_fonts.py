"""Class names in every script: drawn where a font has them, listed once where none has."""

import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.font_manager import fontManager
from PIL import Image

from hytas.files import legible
from hytas.metrics import accuracy_report
from hytas.pictures import Legend, draw_confusion, draw_map, font_note

SCRIPTS = ("水田", "玉米-免耕", "ماء", "पानी")


def legend(*names: str) -> Legend:
    return Legend(range(1, len(names) + 1), names, [(9 * i, 200, 90) for i in range(len(names))])


@pytest.fixture(autouse=True)
def no_other_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the fonts of this machine: only those of matplotlib are left."""
    folder = matplotlib.get_data_path()
    fonts = [font for font in fontManager.ttflist if font.fname.startswith(folder)]
    monkeypatch.setattr(fontManager, "ttflist", fonts)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
@pytest.mark.parametrize(
    "names",
    [SCRIPTS, ("cost $\\frac$", "a$b$c", "_x", "50 % & <more>"), ("\udcff", "\x00", "a\nb", "")],
)
def test_no_name_stops_a_picture_or_warns(
    tmp_path: Path, suffix: str, names: tuple[str, ...]
) -> None:
    report = accuracy_report([0, 1, 2, 3], [0, 1, 2, 2], names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ids = np.full((9, 9), 3, np.int32)
        drawn = draw_map(tmp_path / f"map.{suffix}", ids, legend(*names))
        matrix = draw_confusion(tmp_path / f"confusion.{suffix}", report)
    if suffix == "svg":
        for path in (drawn, matrix):
            texts = {element.text for element in ElementTree.parse(path).iter()}
            assert {legible(name) for name in names if len(name) > 1} <= texts


def test_one_note_names_what_cannot_be_drawn() -> None:
    assert font_note(["grass", "Ä", "Пшеница", "νερό", "a\nb", "\udcff", ""]) is None
    note = font_note(["grass", *SCRIPTS])
    assert note is not None
    assert note.startswith(
        "no font here has all characters of 水田, 玉米-免耕, पानी: pictures show"
    )
    many = font_note([f"田{number}" for number in range(9)])
    assert many is not None
    assert "田3, 田4 and 4 more: pictures" in many


def test_an_installed_font_with_the_characters_is_taken(tmp_path: Path) -> None:
    def draw(name: str) -> bytes:
        path = draw_map(tmp_path / "map.png", np.ones((4, 4), np.int32), legend(name))
        with Image.open(path) as picture:
            return picture.tobytes()

    boxes = draw("水")
    assert boxes == draw("田")  # no font has either
    fontManager.addfont(square_font(tmp_path / "square.ttf", "水"))
    assert font_note(["水"]) is None
    assert font_note(["田"]) is not None
    assert draw("水") != boxes
    assert draw("田") == boxes


def square_font(path: Path, character: str) -> Path:
    """Write a font with a square for one character."""
    pen = TTGlyphPen(None)
    for place, corner in enumerate([(100, 0), (100, 700), (800, 700), (800, 0)]):
        (pen.lineTo if place else pen.moveTo)(corner)
    pen.closePath()
    builder = FontBuilder(1000)
    builder.setupGlyphOrder([".notdef", "square"])
    builder.setupCharacterMap({ord(character): "square"})
    builder.setupGlyf({".notdef": TTGlyphPen(None).glyph(), "square": pen.glyph()})
    builder.setupHorizontalMetrics({".notdef": (900, 0), "square": (900, 100)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Square", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)
    return path
