"""The page's charts show the values that they were given, against plain computations."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import candidates, finalists

from hytas.pictures.figures import short
from hytas.report import charts

Element = ElementTree.Element


def parse(chart: charts.Chart | None) -> Element:
    assert chart is not None
    return ElementTree.fromstring(chart.svg.replace("<svg ", '<svg xmlns:xlink="x" ', 1))


def groups(svg: Element, kind: str) -> list[Element]:
    return [group for group in svg.iter("g") if group.get("class") == kind]


def titles(svg: Element, kind: str) -> list[str]:
    return [group.findtext("title", "") for group in groups(svg, kind)]


def texts(svg: Element) -> list[str]:
    return [text.text or "" for text in svg.iter("text")]


def mark(svg: Element, kind: str) -> tuple[float, float]:
    use = next(groups(svg, kind)[0].iter("use"))
    return float(use.get("x", "")), float(use.get("y", ""))


NUMBERS = st.lists(
    st.tuples(st.integers(1, 9), st.one_of(st.just(float("nan")), st.integers(0, 9).map(float))),
    min_size=1,
    max_size=30,
)


@settings(deadline=None)
@given(rows=NUMBERS)
def test_the_front_is_what_no_other_beats(rows: list[tuple[int, float]]) -> None:
    costs, scores = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    front = charts.front_of(costs, scores)
    pairs = {(costs[at], scores[at]) for at in front}
    plain = {
        (cost, score)
        for cost, score in zip(costs, scores, strict=True)
        if not np.isnan(score)
        and not any(
            (c <= cost and s >= score and (c < cost or s > score))
            for c, s in zip(costs, scores, strict=True)
        )
    }
    assert pairs == plain
    assert len(front) == len(plain)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.931, "0.931"), (1500, "1500"), (20_000, "20K"), (1.5e6, "1.5M"), (0, "0")],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short(value) == text


def test_measured_accuracy_is_that_of_the_longest_rung() -> None:
    known = candidates()
    svg = parse(charts.accuracy_panel(known, finalists(), range(len(known.ids)), "params"))
    (winner,) = titles(svg, "winner")
    assert winner.endswith("accuracy 0.9000 in 200 steps")
    assert svg.get("data-places") == "7,2"
    assert mark(svg, "winner")[1] < mark(svg, "finalist")[1]


def test_a_race_has_a_line_for_each_finalist_that_trained() -> None:
    svg = parse(charts.race_chart(finalists(), "score"))
    assert titles(svg, "line won") == ["finalist 1: 0.8000, 0.9000"]
    assert titles(svg, "line") == ["finalist 2: 0.7000, 0.8500"]
    assert {"100 steps", "200 steps", "1 ★", "2"} <= set(texts(svg))
    assert charts.race_chart([], "score") is None


def test_a_reliability_diagram_leaves_empty_bins_out() -> None:
    columns = {"count": [0, 10, 30], "confidence": [None, 0.5, 0.9], "accuracy": [None, 0.5, 0.8]}
    svg = parse(charts.reliability(columns))
    assert titles(svg, "bin") == [
        "10 pixels: confidence 0.500, accuracy 0.500",
        "30 pixels: confidence 0.900, accuracy 0.800",
    ]
    assert charts.reliability({"count": [0], "confidence": [None], "accuracy": [None]}) is None
