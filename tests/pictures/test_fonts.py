"""Class names in every script: drawn where a font has them, listed once where none has."""

import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.font_manager import fontManager

from hytas.files import legible
from hytas.pictures import Legend, draw_map

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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ids = np.full((9, 9), 3, np.int32)
        drawn = draw_map(tmp_path / f"map.{suffix}", ids, legend(*names))
    if suffix == "svg":
        texts = {element.text for element in ElementTree.parse(drawn).iter()}
        assert {legible(name) for name in names if len(name) > 1} <= texts
