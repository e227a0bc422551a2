"""Places in the page's charts, against plain computations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import candidates, facts, finalists

from hytas.pictures import axes
from hytas.report import charts
from hytas.report.networks import draw

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


@settings(deadline=None)
@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6), linear=st.booleans())
def test_an_axis_holds_its_values_and_has_ticks(low: float, span: float, linear: bool) -> None:
    values = np.array([low, low + span, np.nan])
    found = axes.axis(values, 50, 400, linear=linear)
    places = [found.place(value) for value in values[:2]]
    assert 50 <= places[0] <= places[1] <= 400
    assert len(found.ticks) >= 2
    assert all(49.9 <= place <= 400.1 for place, _ in found.ticks)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.931, "0.931"), (1500, "1500"), (20_000, "20K"), (1.5e6, "1.5M"), (0, "0")],
)
def test_short_numbers(value: float, text: str) -> None:
    assert axes.short(value) == text


def test_a_panel_has_a_point_a_candidate() -> None:
    known = candidates()
    drawn = range(len(known.ids))
    panel = charts.score_panel(known, finalists(), drawn, ("params", "dss"), "params")
    spots = [spot.split("h0")[0] for spot in panel.points.split("M")[1:]]
    assert len(spots) == len(known.ids)
    assert spots[3] == "-9 -9"  # whose score failed
    assert panel.winner is not None
    assert spots[7] == f"{panel.winner.x:g} {panel.winner.y:g}"
    assert {mark.label for mark in panel.finalists} == {"2", "3"}
    assert panel.winner.label == "winner"


def test_measured_accuracy_is_that_of_the_longest_rung() -> None:
    known = candidates()
    panel = charts.accuracy_panel(known, finalists(), range(len(known.ids)), "params")
    assert panel.winner is not None
    assert "accuracy 0.9000 in 200 steps" in panel.winner.text
    assert panel.places == [2, 7]
    assert panel.winner.y < panel.finalists[0].y


def test_a_race_has_a_line_a_finalist_that_trained() -> None:
    lines = charts.race_lines(finalists(), "score")
    assert lines is not None
    assert [label for _, _, _, label, _, _ in lines.lines] == ["1", "2"]
    assert [won for *_, won in lines.lines] == [True, False]
    assert charts.race_lines([], "score") is None


def test_a_reliability_diagram_leaves_empty_bins_out() -> None:
    found = charts.reliability(
        {"count": [0, 10, 30], "confidence": [None, 0.5, 0.9], "accuracy": [None, 0.5, 0.8]}
    )
    assert found is not None
    (even, over) = found.bins
    assert even[1] == even[3]
    assert over[1] > over[3]  # lower on the page: less often right than it says
    assert charts.reliability({"count": [0], "confidence": [None], "accuracy": [None]}) is None


def test_mean_spectra_have_a_path_a_class() -> None:
    pixels = facts().pixels
    assert pixels is not None
    chart = charts.spectra_chart(pixels)
    assert chart is not None
    assert [path.count("L") for path in chart.paths] == [len(chart.xs) - 1] * 3
    assert not chart.up.log


def test_labels_of_marks_do_not_meet() -> None:
    known = candidates()
    crowd = [replace(finalists()[0], place=at) for at in range(4, 24)]
    panel = charts.score_panel(known, crowd, range(len(known.ids)), ("params", "dss"), "params")
    shown = [mark for mark in [*panel.finalists, panel.winner] if mark and mark.label_at]
    assert len(shown) > 8
    boxes = [charts.label_box(mark) for mark in shown]
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            across = one[0] < other[2] and other[0] < one[2]
            assert not (across and one[1] < other[3] and other[1] < one[3])


def test_labels_of_a_race_stand_a_line_apart() -> None:
    same = [replace(item, rungs={100: {"score": 0.8}}) for item in finalists()[:2]]
    lines = charts.race_lines(same, "score")
    assert lines is not None
    heights = [height for _, _, height, *_ in lines.lines]
    assert abs(heights[0] - heights[1]) >= 11


def test_a_network_has_a_bar_for_each_layer() -> None:
    genes = {
        "tokens": "parallel",
        "patch": "5",
        "band_mixer": "conv3",
        "band_gate": "yes",
        "band_depth": "2",
        "band_mlp": "4-1",
        "pixel_mixer": "conv3",
        "pixel_gate": "yes",
        "pixel_depth": "1",
        "pixel_mlp": "2",
    }
    drawing = draw(genes)
    assert [bar[4] for bar in drawing.bars] == ["conv3 gated"] * 3
    first, second, other = (bar[3] for bar in drawing.bars)
    assert first > other > second  # as their MLP ratios
    assert drawing.bars[0][1] < drawing.bars[2][1]  # parallel streams are two rows
    assert drawing.label == "bands + pixels 5x5, gated conv3, 2+1 layers"
    assert len(draw({"space": "other", "depth": 3, "mlp_ratio": [4, 2, 4]}).bars) == 3
    assert draw({"space": "other", "what": "ever"}).bars == []


def test_a_confusion_matrix_has_shares_of_the_true_class() -> None:
    test = {"per_class": {"a": 0.75, "b": None}, "confusion": [[3, 1], [0, 0]]}
    found = charts.confusion_matrix(test, (4, 7))
    assert found is not None
    assert [(cell[2], cell[3]) for cell in found.cells] == [(0.75, "75"), (0.25, "25")]
    assert found.cells[1][4] == "a: 1 of 4 are predicted as b"
    assert [text for _, text in found.labels] == ["4", "7"]


def test_learning_curves_leave_out_what_was_not_measured() -> None:
    history = [{"loss": 2.0, "validation_loss": None}, {"loss": 1.0, "validation_loss": None}]
    (loss,) = charts.learning_curves({"history": history, "best_epoch": 2})
    assert [name for _, name, _ in loss.lines] == ["training"]
    assert charts.learning_curves({}) == []
