"""Class names in every script: drawn where a font has them, told once where none has."""

import dataclasses
import html
import re
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ft2font import FT2Font

from hytas.files import legible
from hytas.metrics import accuracy_report
from hytas.pictures import Legend, draw_confusion, draw_map, font_note

SCRIPTS = ("水田", "玉米-免耕", "ماء", "पानी")


def legend(*names: str) -> Legend:
    return Legend(range(1, len(names) + 1), names, [(9 * i, 200, 90) for i in range(len(names))])


@pytest.fixture(autouse=True)
def bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if only matplotlib's own fonts were installed: what this machine has does not matter."""
    own = str(Path(matplotlib.get_data_path()))
    fonts = [font for font in fontManager.ttflist if font.fname.startswith(own)]
    monkeypatch.setattr(fontManager, "ttflist", fonts)


def glyphs(family: str) -> frozenset[str]:
    plain = (
        f for f in fontManager.ttflist if (f.name, f.weight, f.style) == (family, 400, "normal")
    )
    return frozenset(map(chr, FT2Font(next(plain).fname).get_charmap()))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
@pytest.mark.parametrize(
    "names",
    [
        SCRIPTS,
        ("cost $\\frac$", "a$b$c", "_x", "50 % & <more>"),
        ("\udcff", "\x00", "a\nb", ""),
    ],
)
def test_no_name_stops_a_picture_or_warns(
    tmp_path: Path, suffix: str, names: tuple[str, ...]
) -> None:
    report = accuracy_report([0, 1, 2, 3], [0, 1, 2, 2], names)
    before = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ids = np.full((9, 9), 3, np.int32)
        drawn = draw_map(tmp_path / f"map.{suffix}", ids, legend(*names))
        matrix = draw_confusion(tmp_path / f"confusion.{suffix}", report)
    assert before == dict(matplotlib.rcParams)
    if suffix == "svg":
        for path in (drawn, matrix):
            found = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))
            said = {html.unescape(text) for text in found}
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


def test_another_font_that_has_the_characters_is_taken(tmp_path: Path) -> None:
    sign = min(s for s in glyphs("STIXGeneral") - glyphs("DejaVu Sans") if s.isalpha())
    # matplotlib alone looks into no font that it was not told of.
    figure = Figure()
    figure.text(0.5, 0.5, f"a{sign}")
    with pytest.warns(UserWarning, match=r"Glyph \d+ .* missing from font"):
        figure.savefig(tmp_path / "alone.pdf")
    assert font_note([f"a{sign}"]) is None
    ids = np.ones((4, 4), np.int32)
    plain = draw_map(tmp_path / "plain.pdf", ids, legend("a")).read_bytes()
    drawn = draw_map(tmp_path / "drawn.pdf", ids, legend(f"a{sign}")).read_bytes()
    assert b"STIXGeneral" not in plain
    assert b"STIXGeneral" in drawn


def test_a_box_of_the_last_resort_is_no_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert font_note(["水"]) is not None
    (font,) = [
        f
        for f in fontManager.ttflist
        if f.name == "STIXGeneral" and f.weight == 400 and f.style == "normal"
    ]
    others = [f for f in fontManager.ttflist if "STIX" not in f.name]
    sign = min(s for s in glyphs("STIXGeneral") - glyphs("DejaVu Sans") if s.isalpha())
    blank = dataclasses.replace(font, name="Adobe Blank")
    monkeypatch.setattr(fontManager, "ttflist", [*others, font])
    assert font_note([sign]) is None
    monkeypatch.setattr(fontManager, "ttflist", [*others, blank])
    assert font_note([sign]) is not None
