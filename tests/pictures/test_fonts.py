"""Class names in every script: drawn where a font has them, told once where none has."""

import io
import shutil
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFont

from hytas.files import legible
from hytas.metrics import accuracy_report
from hytas.pictures import Legend, draw_confusion, draw_map, font_note, fonts

SCRIPTS = ("水田", "玉米-免耕", "ماء", "पानी")


def legend(*names: str) -> Legend:
    return Legend(range(1, len(names) + 1), names, [(9 * i, 200, 90) for i in range(len(names))])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only folder of installed fonts; it is empty, whatever this machine has."""
    installed = tmp_path / "fonts"
    installed.mkdir()
    monkeypatch.setattr(fonts, "FOLDERS", (str(installed),))
    fonts.installed_fonts.cache_clear()
    yield installed
    fonts.installed_fonts.cache_clear()


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
            said = {element.text for element in ElementTree.parse(path).iter()}
            assert {legible(name) for name in names if len(name) > 2} <= said


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


def test_a_character_that_a_font_has_leaves_its_ink(tmp_path: Path) -> None:
    """The legend of one name differs from that of another, and from a box."""
    ids = np.ones((4, 4), np.int32)
    seen = set()
    for number, name in enumerate(("Ä", "Ö", "水", "田")):
        path = draw_map(tmp_path / f"{number}.png", ids, legend(name))
        with Image.open(path) as picture:
            seen.add(picture.tobytes())
    assert len(seen) == 3  # both that no font has are the same box


def test_an_installed_font_that_has_the_characters_is_taken(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ImageFont.load_default(16)  # Pillow's own font has no umlauts
    assert isinstance(plain, ImageFont.FreeTypeFont)
    assert isinstance(plain.path, io.BytesIO)
    small = tmp_path / "small.ttf"
    small.write_bytes(plain.path.getvalue())
    large = fonts.own_font()
    monkeypatch.setattr(fonts, "own_font", lambda: str(small))
    assert font_note(["aÄb"]) is not None
    shutil.copy(large, folder)
    fonts.installed_fonts.cache_clear()
    assert font_note(["aÄb"]) is None
    installed = str(folder / Path(large).name)
    assert fonts.pieces("aÄb") == [(str(small), "a"), (installed, "Ä"), (str(small), "b")]


def test_a_damaged_font_is_passed_over(folder: Path) -> None:
    (folder / "broken.ttf").write_bytes(b"no font")
    fonts.installed_fonts.cache_clear()
    assert font_note(["水"]) is not None


def test_a_box_of_the_last_resort_is_no_letter(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(fonts.own_font(), folder / "boxes.ttf")
    monkeypatch.setattr(fonts, "own_font", lambda: str(folder / "none.ttf"))
    monkeypatch.setattr(fonts, "BOXES", ("dejavu",))
    assert font_note(["a"]) is not None
    shutil.copy(folder / "boxes.ttf", folder / "letters.ttf")
    monkeypatch.setattr(fonts, "BOXES", ())
    fonts.installed_fonts.cache_clear()
    assert font_note(["a"]) is None
