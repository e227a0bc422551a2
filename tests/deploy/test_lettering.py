"""Class names in every script: drawn where a font has them, told once where none has."""

import dataclasses
import functools
import html
import re
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from matplotlib.font_manager import fontManager
from scipy.io import savemat
from small_model import Exported

from hytas.cli.classify import classify
from hytas.deploy import lettering as module
from hytas.deploy.charts import draw_confusion
from hytas.deploy.lettering import legible, lettering, lettering_note
from hytas.deploy.picture import draw_map
from hytas.export.onnx_file import set_card
from hytas.metrics import accuracy_report

SCRIPTS = ("水田", "玉米-免耕", "ماء", "पानी")


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if only matplotlib's own fonts were installed: what this machine has does not matter."""
    own = str(Path(matplotlib.get_data_path()))
    fonts = [font for font in fontManager.ttflist if font.fname.startswith(own)]
    monkeypatch.setattr(fontManager, "ttflist", fonts)
    uncached = functools.cache(module._fonts_for.__wrapped__)
    monkeypatch.setattr(module, "_fonts_for", uncached)


def glyphs(family: str) -> frozenset[str]:
    plain = (
        f for f in fontManager.ttflist if (f.name, f.weight, f.style) == (family, 400, "normal")
    )
    return module._glyphs(next(plain).fname)


@pytest.mark.usefixtures("bundled")
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
    exported: Exported, tmp_path: Path, suffix: str, names: tuple[str, ...]
) -> None:
    card = dataclasses.replace(exported.card, class_names=names)
    report = accuracy_report([0, 1, 2, 3], [0, 1, 2, 2], names)
    before = [matplotlib.rcParams[name] for name in ("font.family", "text.parse_math")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = draw_map(tmp_path / f"map.{suffix}", np.full((9, 9), 3, np.int32), card)
        matrix = draw_confusion(tmp_path / f"confusion.{suffix}", report)
    assert before == [matplotlib.rcParams[name] for name in ("font.family", "text.parse_math")]
    if suffix == "svg":
        for path in (drawn, matrix):
            found = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))
            said = {html.unescape(text) for text in found}
            assert {legible(name) for name in names if len(name) > 2} <= said


@pytest.mark.usefixtures("bundled")
def test_one_note_names_what_cannot_be_drawn() -> None:
    assert lettering_note(["grass", "Ä", "Пшеница", "νερό", "a\nb", "\udcff", ""]) is None
    note = lettering_note(["grass", *SCRIPTS])
    assert note is not None
    assert note.startswith(
        "no font here has all characters of 水田, 玉米-免耕, पानी: pictures show"
    )
    many = lettering_note([f"田{number}" for number in range(9)])
    assert many is not None
    assert "田3, 田4 and 4 more: pictures" in many


@pytest.mark.usefixtures("bundled")
def test_another_font_that_has_the_characters_is_taken() -> None:
    sign = min(s for s in glyphs("STIXGeneral") - glyphs("DejaVu Sans") if s.isalpha())
    assert lettering_note([f"a{sign}"]) is None
    with lettering([f"a{sign}"]):
        families = matplotlib.rcParams["font.family"]
    assert len(families) == 2
    assert sign in glyphs(families[1])
    with lettering(["plain"]):
        assert matplotlib.rcParams["font.family"] == families[:1]


@pytest.mark.usefixtures("bundled")
def test_classify_tells_it_once(exported: Exported, tmp_path: Path) -> None:
    graph = onnx.load(exported.onnx)
    names = ("水田", "grass", "roof", "water")
    set_card(graph, dataclasses.replace(exported.card, class_names=names))
    model, scene = tmp_path / "model.onnx", tmp_path / "scene.mat"
    onnx.save(graph, model)
    savemat(scene, {"cube": exported.scene.cube})
    for out, told in (("map.png", 1), ("map.npy", 0)):
        arguments = [str(model), str(scene), "--out", str(tmp_path / out)]
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            done = CliRunner().invoke(classify, arguments)
        assert done.exit_code == 0, done.output
        assert done.output.count("note      no font here has all characters of 水田:") == told
