"""The page's own charts: where points, lines and marks lie. The templates draw them as SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hytas.pictures.axes import Axis, Numbers, axis
from hytas.report.facts import Candidates, Finalist
from hytas.report.pixels import Pixels

WIDTH, HEIGHT = 440, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, WIDTH - 14, 14, HEIGHT - 42
MOST_POINTS = 10_000


@dataclass(frozen=True)
class Mark:
    """A mark in a chart: its label, its text, and the place of the label.

    `label_at` is (x, y, anchor of the text); None leaves the label out where there is no room.
    """

    x: float
    y: float
    label: str
    text: str
    place: int
    label_at: tuple[float, float, str] | None = None


@dataclass(frozen=True)
class Panel:
    """A chart of points.

    Attributes:
        x_ticks, y_ticks: places and texts.
        points: path of all points, one move a candidate that is drawn, outside where it has none.
        front: path of the front; empty without one.
        places: of the points among the candidates that are drawn; None takes all of them.
    """

    title: str
    x_label: str
    y_label: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    points: str
    front: str
    finalists: Sequence[Mark]
    winner: Mark | None
    places: Sequence[int] | None = None


def front_of(costs: Numbers, scores: Numbers) -> list[int]:
    """Return the places of the candidates that no other beats: cheaper, or of a better score."""
    best, front = -math.inf, []
    for place in np.lexsort((-np.nan_to_num(scores, nan=-math.inf), costs)):
        if scores[place] > best:
            best = float(scores[place])
            front.append(int(place))
    return front


def drawn_places(candidates: Candidates, finalists: Sequence[Finalist]) -> list[int]:
    """Return the places of the candidates to draw: all, or of very many an even choice.

    Every front, the finalists and the winner are always among them.
    """
    count = len(candidates.ids)
    if count <= MOST_POINTS:
        return list(range(count))
    kept = {item.place for item in finalists}
    if candidates.winner is not None:
        kept.add(candidates.winner)
    for costs in candidates.costs.values():
        for scores in candidates.scores.values():
            kept.update(front_of(costs, scores))
    even = np.linspace(0, count - 1, max(MOST_POINTS - len(kept), 1)).astype(int)
    return sorted(kept.union(even.tolist()))


def score_panel(
    candidates: Candidates,
    finalists: Sequence[Finalist],
    drawn: Sequence[int],
    names: tuple[str, str],
    unit: str,
) -> Panel:
    """Draw a score over a cost; `names` are those of the cost and the score."""
    costs, scores = candidates.costs[names[0]], candidates.scores[names[1]]
    across, up = axis(costs, _LEFT, _RIGHT), axis(scores, _BOTTOM, _TOP)

    def spot(place: int) -> tuple[float, float]:
        if math.isnan(scores[place]):
            return -9, -9
        return round(across.place(costs[place]), 1), round(up.place(scores[place]), 1)

    def mark(place: int, label: str) -> Mark:
        text = f"{label}: {names[0]} {costs[place]:,.0f}, {names[1]} {scores[place]:.6g}"
        return Mark(*spot(place), label.removeprefix("finalist "), text, place)

    corners = [spot(place) for place in front_of(costs, scores)]
    numbers = {item.place: n for n, item in reversed(list(enumerate(finalists, 1)))}
    marks = [mark(place, f"finalist {n}") for place, n in sorted(numbers.items())]
    marks = [item for item in marks if item.x > 0 and item.place != candidates.winner]
    winner = None if candidates.winner is None else mark(candidates.winner, "winner")
    marks, winner = _with_labels(marks, winner)
    return Panel(
        f"{names[0]} and {names[1]}",
        f"{names[0]} ({unit})" if unit not in ("", names[0]) else names[0],
        f"{names[1]}, larger is better",
        across.ticks,
        up.ticks,
        "".join("M{:g} {:g}h0".format(*spot(place)) for place in drawn),
        _steps(corners),
        marks,
        winner,
    )


def accuracy_panel(
    candidates: Candidates, finalists: Sequence[Finalist], drawn: Sequence[int], cost: str
) -> Panel:
    """Draw what finalists reached on validation pixels in their longest rung, over a cost."""
    trained = [item for item in finalists if any(item.rungs.values())]
    reached = []
    for item in trained:
        longest = max(steps for steps, figures in item.rungs.items() if figures)
        reached.append((longest, item.rungs[longest]["accuracy"]))
    costs = np.array([candidates.costs[cost][item.place] for item in trained], np.float64)
    across = axis(costs, _LEFT, _RIGHT)
    up = axis(np.array([accuracy for _, accuracy in reached], np.float64), _BOTTOM, _TOP)
    marks, winner = [], None
    for item, (steps, accuracy), price in zip(trained, reached, costs, strict=True):
        number = list(finalists).index(item) + 1
        text = f"finalist {number}: {cost} {price:,.0f}, accuracy {accuracy:.4f} in {steps} steps"
        spot = round(across.place(price), 1), round(up.place(accuracy), 1)
        mark = Mark(*spot, str(number), text, item.place)
        if item.won:
            winner = mark
        else:
            marks.append(mark)
    marks, winner = _with_labels(marks, winner)
    order = {place: number for number, place in enumerate(drawn)}
    ends = [*marks, winner] if winner else marks
    return Panel(
        f"{cost} and measured accuracy",
        cost,
        "accuracy on validation pixels",
        across.ticks,
        up.ticks,
        "".join(f"M{mark.x:g} {mark.y:g}h0" for mark in ends),
        "",
        marks,
        winner,
        [order[mark.place] for mark in ends],
    )


_OFFSETS = ((9, 4, "start"), (-9, 4, "end"), (0, -10, "middle"), (0, 17, "middle"))
_LETTER, _LINE = 6.6, 11
_MOST_LABELS = 8


def _with_labels(marks: Sequence[Mark], winner: Mark | None) -> tuple[list[Mark], Mark | None]:
    """Place labels that overlap neither each other nor a mark; the winner's first."""
    everyone = [*([winner] if winner else []), *marks]
    taken = [(mark.x - 6, mark.y - 7, mark.x + 6, mark.y + 5) for mark in everyone]
    placed = []
    for mark in everyone:
        text = "winner" if mark is winner else mark.label
        chosen = None
        for x, y, anchor in _OFFSETS:
            box = _box(mark.x + x, mark.y + y, len(text) * _LETTER, anchor)
            inside = box[0] > _LEFT and box[2] < WIDTH - 2 and box[1] > 2 and box[3] < _BOTTOM
            if inside and not any(_meet(box, other) for other in taken):
                chosen = (round(mark.x + x, 1), round(mark.y + y, 1), anchor)
                taken.append(box)
                break
        placed.append(replace(mark, label=text, label_at=chosen))
    return (placed[1:], placed[0]) if winner else (placed, None)


def label_box(mark: Mark) -> tuple[float, float, float, float]:
    """Return the left, upper, right and lower end of a label that is there."""
    assert mark.label_at is not None
    x, y, anchor = mark.label_at
    return _box(x, y, len(mark.label) * _LETTER, anchor)


def _box(x: float, y: float, width: float, anchor: str) -> tuple[float, float, float, float]:
    left = {"start": x, "end": x - width, "middle": x - width / 2}[anchor]
    return left, y - _LINE + 2, left + width, y + 2


def _meet(one: Sequence[float], other: Sequence[float]) -> bool:
    across = one[0] < other[2] and other[0] < one[2]
    return across and one[1] < other[3] and other[1] < one[3]


def _apart(places: Sequence[float]) -> list[float]:
    """Return heights of labels near `places`, at least a line between them, in the same order."""
    order = sorted(range(len(places)), key=lambda at: -places[at])
    heights, lowest = [0.0] * len(places), math.inf
    for at in order:
        lowest = min(places[at], lowest - _LINE)
        heights[at] = lowest
    return heights


def _steps(corners: Sequence[tuple[float, float]]) -> str:
    if not corners:
        return ""
    return "M{:g} {:g}".format(*corners[0]) + "".join(f"H{x:g}V{y:g}" for x, y in corners[1:])


@dataclass(frozen=True)
class Lines:
    """A chart of lines: `lines` are (path, last place, height of the label, label, text, won)."""

    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    lines: Sequence[tuple[str, tuple[float, float], float, str, str, bool]]


def race_lines(finalists: Sequence[Finalist], figure: str) -> Lines | None:
    """Draw a figure of every finalist rung by rung; None if no finalist has it."""
    raced = [item for item in finalists if any(figure in f for f in item.rungs.values())]
    if not raced:
        return None
    rungs = sorted({steps for item in raced for steps in item.rungs})
    values = [f[figure] for item in raced for f in item.rungs.values() if figure in f]
    up = axis(np.array(values, np.float64), _BOTTOM, _TOP)
    across = Axis(-0.3, len(rungs) - 0.6, _LEFT, _RIGHT)
    paths = []
    for number, item in enumerate(finalists, 1):
        spots = [
            (round(across.place(at), 1), round(up.place(item.rungs[steps][figure]), 1))
            for at, steps in enumerate(rungs)
            if figure in item.rungs.get(steps, {})
        ]
        if spots:
            path = "M" + "L".join(f"{x:g} {y:g}" for x, y in spots)
            reached = [f"{item.rungs[s][figure]:.4f}" for s in rungs if item.rungs.get(s)]
            text = f"finalist {number}: {', '.join(reached)}"
            paths.append((path, spots[-1], str(number), text, item.won))
    heights: dict[int, float] = {}
    for x in {spot[0] for _, spot, *_ in paths}:
        chosen = [at for at, line in enumerate(paths) if line[1][0] == x]
        places = _apart([paths[at][1][1] for at in chosen])
        heights |= dict(zip(chosen, places, strict=True))
    if len(paths) > _MOST_LABELS:  # of many that end at one place, no label would be readable
        last = max(spot[0] for _, spot, *_ in paths)
        paths = [
            (path, spot, label if spot[0] == last else "", text, won)
            for path, spot, label, text, won in paths
        ]
    lines = [
        (path, spot, round(heights[at] + 4, 1), label, text, won)
        for at, (path, spot, label, text, won) in enumerate(paths)
    ]
    ticks = [(round(across.place(at), 1), f"{steps} steps") for at, steps in enumerate(rungs)]
    return Lines(ticks, up.ticks, lines)


@dataclass(frozen=True)
class Reliability:
    """Reliability diagram: `bins` are (x, y, radius, where confidence equals accuracy, text)."""

    ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    bins: Sequence[tuple[float, float, float, float, str]]
    diagonal: tuple[float, float, float, float]


SIDE = 300


def reliability(calibration: Mapping[str, Sequence[float | None]]) -> Reliability | None:
    """Draw accuracy over confidence, a circle a bin, its area by the number of pixels."""
    across, up = Axis(0, 1, 46, SIDE - 10), Axis(0, 1, SIDE - 42, 10)
    total = sum(count or 0 for count in calibration["count"])
    bins = []
    columns = (calibration[name] for name in ("count", "confidence", "accuracy"))
    rows = zip(*columns, strict=True)
    for count, confidence, accuracy in rows:
        if not count or confidence is None or accuracy is None:
            continue
        text = f"{count:.0f} pixels: confidence {confidence:.3f}, accuracy {accuracy:.3f}"
        x, y = across.place(confidence), up.place(accuracy)
        radius = 2.5 + 9 * math.sqrt(count / total)
        bins.append(
            (round(x, 1), round(y, 1), round(radius, 1), round(up.place(confidence), 1), text)
        )
    ends = (across.place(0), up.place(0), across.place(1), up.place(1))
    return Reliability(across.ticks, up.ticks, bins, ends) if bins else None


@dataclass(frozen=True)
class SpectraChart:
    """Mean spectra: paths by class, places of the numbers on them, and the axes of the chart."""

    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    paths: Sequence[str]
    spots: Sequence[tuple[float, float] | None]
    xs: Sequence[float]
    up: Axis


def spectra_chart(pixels: Pixels) -> SpectraChart | None:
    """Draw the mean spectrum of each class; None without spectra."""
    spectra = pixels.spectra
    if spectra is None:
        return None
    bands = spectra.bands.astype(np.float64)
    across = Axis(float(bands.min()), float(bands.max()) + 1e-6, _LEFT, _RIGHT)
    # Every pixel lies within some deviations of the mean spectrum: room for most of them.
    finite = pixels.means[np.isfinite(pixels.means)].astype(np.float64)
    seen = [spectra.centre.astype(np.float64), finite]
    step = max(1, spectra.codes[0].size // 500)
    codes = spectra.codes.reshape(len(spectra.basis), -1)[:, ::step].astype(np.float64)
    values = spectra.centre + (spectra.low + codes.T * spectra.step) @ spectra.basis
    seen.append(np.percentile(values, [0.5, 99.5]))
    up = axis(np.concatenate([part.ravel() for part in seen]), _BOTTOM, _TOP, linear=True)
    xs = [round(across.place(band), 1) for band in bands]
    paths: list[str] = []
    numbers: list[tuple[float, float] | None] = []
    for number, mean in enumerate(pixels.means, 1):
        measured = not np.isnan(mean).any()
        spots = [(x, round(up.place(value), 1)) for x, value in zip(xs, mean, strict=True)]
        paths.append("M" + "L".join(f"{x:g} {y:g}" for x, y in spots) if measured else "")
        # Each number stands elsewhere on its line: so fewer of them meet.
        at = number * len(xs) // (len(pixels.means) + 1)
        numbers.append(spots[at] if measured else None)
    return SpectraChart(across.ticks, up.ticks, paths, numbers, xs, up)


@dataclass(frozen=True)
class Curves:
    """A chart over epochs: `lines` are (path, name, class), `kept` the place of a mark."""

    title: str
    y_label: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    lines: Sequence[tuple[str, str, str]]
    kept: float


_CURVES = (
    ("loss", "loss", (("loss", "training", "first"), ("validation_loss", "validation", "second"))),
    ("validation accuracy", "overall accuracy", (("validation_oa", "validation", "second"),)),
)


def learning_curves(training: Mapping[str, Any], suffix: str = "") -> list[Curves]:
    """Draw the history of a training: losses, and the validation accuracy if there is one.

    Args:
        training: "history", of each epoch its figures, and "best_epoch", counted from 1.
    """
    history = training.get("history") or []
    across = Axis(0, max(2, len(history)), _LEFT, _RIGHT)
    curves = []
    for title, label, names in _CURVES:
        series = [
            ([entry.get(name) for entry in history], text, kind) for name, text, kind in names
        ]
        drawn = [one for one in series if any(value is not None for value in one[0])]
        if not drawn:
            continue
        values = [value for one in drawn for value in one[0] if value is not None]
        up = axis(np.array(values, np.float64), _BOTTOM, _TOP, linear=True)
        lines = [(_path(own, across, up), text, kind) for own, text, kind in drawn]
        kept = round(across.place(int(training.get("best_epoch", len(history)))), 1)
        curves.append(Curves(title + suffix, label, across.ticks, up.ticks, lines, kept))
    return curves


def _path(values: Sequence[float | None], across: Axis, up: Axis) -> str:
    spots = [
        f"{across.place(epoch):.1f} {up.place(value):.1f}"
        for epoch, value in enumerate(values, 1)
        if value is not None and math.isfinite(value)
    ]
    return "M" + "L".join(spots) if spots else ""


MOST_NUMBERS = 20
"""Classes up to which every cell of a confusion matrix shows its share."""


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix in shares of the true class.

    Attributes:
        cells: (x, y, share, text of the cell, sentence) of each cell that is not empty.
        labels: (place, id) of each class along both axes.
    """

    side: float
    cell: float
    cells: Sequence[tuple[float, float, float, str, str]]
    labels: Sequence[tuple[float, str]]


CONFUSION_MARGIN = 34


def confusion_matrix(test: Mapping[str, Any], ids: Sequence[int]) -> Confusion | None:
    """Draw the confusion matrix of an accuracy report; a row is a true class.

    Args:
        test: accuracy report with "confusion" and "per_class".
    """
    rows, names = test.get("confusion") or [], list(test["per_class"])
    count = len(rows)
    if not count:
        return None
    cell = round(max(6.0, 460 / count), 2)
    cells = []
    for row, values in enumerate(rows):
        total = sum(values)
        for column, value in enumerate(values):
            if not value:
                continue
            share = value / total
            number = f"{100 * share:.0f}" if count <= MOST_NUMBERS and share >= 0.005 else ""
            sentence = f"{names[row]}: {value} of {total} are predicted as {names[column]}"
            place = CONFUSION_MARGIN + column * cell, CONFUSION_MARGIN + row * cell
            cells.append((round(place[0], 1), round(place[1], 1), share, number, sentence))
    labels = [
        (round(CONFUSION_MARGIN + (at + 0.5) * cell, 1), str(number))
        for at, number in enumerate(ids)
    ]
    return Confusion(round(CONFUSION_MARGIN + count * cell + 2, 1), cell, cells, labels)
