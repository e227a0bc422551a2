"""Charts of a test, a search and an analysis show what they were given."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from hytas.pictures import Legend, draw_family, draw_front, draw_map

SVG, XLINK = "{http://www.w3.org/2000/svg}", "http://www.w3.org/1999/xlink"


def front(path: Path) -> Path:
    return draw_front(path, [1e5, 2e5, 4e5], [0.2, 0.5, 0.6], "params")


def elements(svg: str, kind: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(SVG + kind))


def texts(svg: str) -> set[str]:
    return {element.text or "" for element in elements(svg, "text")}


def test_a_front_has_a_mark_for_each_architecture(tmp_path: Path) -> None:
    svg = front(tmp_path / "front.svg").read_text(encoding="utf-8")
    assert {"params", "score (larger is better)", "200K"} <= texts(svg)
    marks = [(float(use.get("x", "")), float(use.get("y", ""))) for use in elements(svg, "use")]
    assert len(marks) == 3
    # Larger costs lie further right, better scores higher up, and both at their distances.
    across, up = np.array(marks).T
    assert across[2] - across[1] == pytest.approx(2 * (across[1] - across[0]), abs=0.5)
    assert up[0] - up[1] == pytest.approx(3 * (up[1] - up[2]), abs=0.5)


def test_a_family_shows_what_was_trained_alone(tmp_path: Path) -> None:
    costs, inherited = [3e4, 1e4, 1e5], [0.85, 0.8, 0.9]
    path = draw_family(tmp_path / "family.svg", costs, inherited, [None, 0.82, None], "params")
    svg = path.read_text(encoding="utf-8")
    assert {"weights of the supernet", "trained alone", "params"} <= texts(svg)
    assert len(elements(svg, "use")) == 3 + 1 + 2  # subnets, one alone, keys
    plain = draw_family(path, costs, inherited, [None] * 3, "params").read_text(encoding="utf-8")
    assert "trained alone" not in texts(plain)


def test_the_settings_of_the_user_change_no_picture(tmp_path: Path) -> None:
    before = front(tmp_path / "a.svg").read_bytes()
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "svg.hashsalt": "x"}):
        assert front(tmp_path / "b.svg").read_bytes() == before
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_figures_give_the_same_file(tmp_path: Path, suffix: str) -> None:
    labels, legend = np.ones((4, 4), np.int32), Legend((1,), ("grass",), ((0, 200, 0),))
    for name in "ab":
        front(tmp_path / f"{name}1.{suffix}")
        draw_map(tmp_path / f"{name}2.{suffix}", labels, legend)
    for number in (1, 2):
        first, second = (tmp_path / f"{name}{number}.{suffix}" for name in "ab")
        assert first.read_bytes() == second.read_bytes()
