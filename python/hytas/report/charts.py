"""The page's own charts, each as an SVG in the colours of the page."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hytas.files import legible
from hytas.pictures import figures
from hytas.pictures.charts import fill_confusion
from hytas.pictures.figures import (
    ACCENT,
    GROUND,
    INK,
    SECOND,
    SOFT,
    add_labels,
    add_points,
    inline_svg,
    scale,
    spots,
    tag,
)
from hytas.report.facts import Candidates, Finalist
from hytas.report.pixels import ReportPixels
from hytas.types import Floats

if TYPE_CHECKING:
    from hytas.pictures.figures import Axes, Figure

MOST_POINTS = 10_000
_MOST_LABELS = 8
_FINALIST: dict[str, Any] = {"marker": "^", "ms": 9, "ls": "", "color": SECOND, "mfc": GROUND}
_WINNER: dict[str, Any] = {"marker": "*", "ms": 15, "ls": "", "color": SECOND, "mec": INK}
_CURSOR = '<circle class="cursor" r="8" cx="-20" cy="-20"/>'
_AROUND = ((9, 0), (-9, 0), (0, 11), (0, -11))
_STACKED = tuple((9.0, sign * 11.0 * step) for step in range(4) for sign in (1, -1))
"""Places of a label next to its point, in points."""


class Chart(NamedTuple):
    """A title and an SVG."""

    title: str
    svg: str


@contextmanager
def charted(
    x_label: str, y_label: str, size: tuple[float, float] = (440, 300), right: float = 14
) -> Iterator[tuple["Figure", "Axes"]]:
    """Yield a figure and its axes: all charts have the same margins."""
    width, height = size
    with figures.figure(*size, layout=None) as drawing:
        box = (58 / width, 42 / height, 1 - (58 + right) / width, 1 - 56 / height)
        axes = drawing.add_axes(box, xlabel=legible(x_label), ylabel=legible(y_label))
        axes.yaxis.set_label_coords(12 / width, 0.5, transform=drawing.transFigure)
        scale(axes, "x", ())
        scale(axes, "y", ())
        yield drawing, axes


def front_of(costs: Floats, scores: Floats) -> list[int]:
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


class _Mark(NamedTuple):
    """A finalist in a chart: values across and up, its number or "winner", and its title."""

    place: int
    across: float
    up: float
    name: str
    text: str


def score_panel(
    candidates: Candidates,
    finalists: Sequence[Finalist],
    drawn: Sequence[int],
    names: tuple[str, str],
    unit: str,
) -> Chart:
    """Draw a score over a cost; `names` are those of the cost and the score."""
    cost, score = names
    costs, scores = candidates.costs[cost], candidates.scores[score]
    numbers = {} if candidates.winner is None else {candidates.winner: "winner"}
    for number, item in enumerate(finalists, 1):
        numbers.setdefault(item.place, str(number))
    marks = [
        _Mark(place, costs[place], scores[place], name, f"{score} {scores[place]:.6g}")
        for place, name in numbers.items()
        if math.isfinite(scores[place])
    ]
    at = [number for number, place in enumerate(drawn) if math.isfinite(scores[place])]
    shown = np.asarray(drawn, np.int64)[at]
    points = at if len(at) < len(drawn) else (), costs[shown], scores[shown]
    front = front_of(costs, scores)
    steps = costs[front], scores[front]
    return _panel(cost, unit, (score, f"{score}, larger is better"), points, marks, steps)


def accuracy_panel(
    candidates: Candidates, finalists: Sequence[Finalist], drawn: Sequence[int], cost: str
) -> Chart:
    """Draw what finalists reached on validation pixels in their longest rung, over a cost."""
    order = {place: number for number, place in enumerate(drawn)}
    marks = []
    for number, item in enumerate(finalists, 1):
        longest = max((steps for steps, values in item.rungs.items() if values), default=None)
        if longest is not None:
            accuracy = item.rungs[longest]["accuracy"]
            name, text = str(number), f"accuracy {accuracy:.4f} in {longest} steps"
            price = candidates.costs[cost][item.place]
            marks.append(_Mark(item.place, price, accuracy, "winner" if item.won else name, text))
    marks.sort(key=lambda mark: mark.name != "winner")
    points = [order[mark.place] for mark in marks], [m.across for m in marks], [m.up for m in marks]
    labels = "measured accuracy", "accuracy on validation pixels"
    return _panel(cost, "", labels, points, marks)


def _panel(
    cost: str,
    unit: str,
    labels: tuple[str, str],
    points: tuple[Sequence[int], Any, Any],
    marks: Sequence[_Mark],
    front: tuple[Any, Any] | None = None,
) -> Chart:
    """Draw points over a cost, with the finalists, the winner and the front.

    Args:
        labels: for the title and the axis.
        points: of each the number among the drawn candidates, the cost and the value. No numbers
            are those of all drawn candidates.
    """
    title = f"{cost} and {labels[0]}"
    x_label = f"{cost} ({unit})" if unit not in ("", cost) else cost
    places, across, up = points
    with charted(x_label, labels[1]) as (drawing, axes):
        scale(axes, "x", across)
        scale(axes, "y", up)
        add_points(axes, across, up)
        if front is not None:
            (line,) = axes.step(*front, where="post", color=INK, linewidth=1.5)
            tag(line, "front")
        for mark in reversed(marks):
            won = mark.name == "winner"
            (spot,) = axes.plot(mark.across, mark.up, **_WINNER if won else _FINALIST)
            name = "winner" if won else f"finalist {mark.name}"
            text = f"{name}: {cost} {mark.across:,.0f}, {mark.text}"
            tag(spot, name.split()[0], text)
        add_labels(axes, [mark[1:4] for mark in marks], _AROUND)
        data = {"places": ",".join(map(str, places))} if places else {}
        label = f"{title}: {labels[1]}, over {x_label}"
        return Chart(title, inline_svg(drawing, "panel", label, _CURSOR, **data))


def race_chart(finalists: Sequence[Finalist], figure: str) -> Chart | None:
    """Draw a figure of every finalist rung by rung; None if no finalist has it."""
    raced = [item for item in finalists if any(figure in f for f in item.rungs.values())]
    if not raced:
        return None
    lengths = sorted({steps for item in raced for steps in item.rungs})
    about = "What each finalist reaches, rung by rung; the table has the numbers"
    with charted("length of the training", "what the race ranks by", right=34) as (drawing, axes):
        axes.set_xticks(range(len(lengths)), [f"{steps} steps" for steps in lengths])
        axes.set_xlim(-0.3, len(lengths) - 0.9)
        ends = []
        for number, item in reversed(list(enumerate(finalists, 1))):
            values = {steps: f[figure] for steps, f in item.rungs.items() if figure in f}
            if not values:
                continue
            places = [lengths.index(steps) for steps in values]
            look = {"color": SECOND, "linewidth": 3} if item.won else {"color": SOFT}
            (line,) = axes.plot(places, list(values.values()), "o-", markersize=5, **look)
            reached = ", ".join(f"{value:.4f}" for value in values.values())
            tag(line, "line won" if item.won else "line", f"finalist {number}: {reached}")
            star = " \N{BLACK STAR}" if item.won else ""
            ends.append((places[-1], list(values.values())[-1], f"{number}{star}"))
        last = max(end[0] for end in ends)
        # Of many that end at one place, no label would be readable.
        many = len(ends) > _MOST_LABELS
        add_labels(axes, [end for end in reversed(ends) if end[0] == last or not many], _STACKED)
        return Chart("The race, rung by rung", inline_svg(drawing, "race", about))


def reliability(calibration: Mapping[str, Sequence[float | None]]) -> Chart | None:
    """Draw accuracy over confidence, a circle a bin, its area by the number of pixels."""
    columns = (calibration[name] for name in ("count", "confidence", "accuracy"))
    bins = [row for row in zip(*columns, strict=True) if row[0]]
    if not bins:
        return None
    total = sum(count for count, *_ in bins)
    with charted("confidence", "accuracy", size=(300, 300)) as (drawing, axes):
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.plot((0, 1), (0, 1), "--", color=SOFT, linewidth=1)
        for count, confidence, accuracy in bins:
            axes.vlines(confidence, confidence, accuracy, color=SECOND, linewidth=2)
            size = 5 + 18 * math.sqrt(count / total)
            (spot,) = axes.plot(confidence, accuracy, "o", color=ACCENT, alpha=0.6, clip_on=False)
            spot.set_markersize(size)
            text = f"{count:.0f} pixels: confidence {confidence:.3f}, accuracy {accuracy:.3f}"
            tag(spot, "bin", text)
        about = "Reliability diagram: accuracy over confidence"
        return Chart("Reliability", inline_svg(drawing, "reliability", about))


@dataclass(frozen=True)
class SpectraChart:
    """Mean spectra of the classes.

    Attributes:
        xs: place of each band in the SVG.
        up: a value and its place in the SVG, twice: low, high, place of low, place of high.
    """

    svg: str
    xs: Sequence[float]
    up: Sequence[float]


def spectra_chart(
    pixels: ReportPixels, classes: Sequence[Mapping[str, Any]]
) -> SpectraChart | None:
    """Draw the mean spectrum of each class; None without spectra.

    Args:
        classes: "id", "name" and "colour" of each.
    """
    spectra = pixels.spectra
    if spectra is None:
        return None
    about = "Mean spectrum of each class; with the script, the spectrum of the chosen pixel"
    label = "wavelength (nm)" if spectra.in_nm else "band"
    with charted(label, "value of the sensor") as (drawing, axes):
        bands = spectra.bands.astype(np.float64)
        # Room for most pixels: each lies within some deviations of the mean spectrum.
        step = max(1, spectra.codes[0].size // 500)
        codes = spectra.codes.reshape(len(spectra.basis), -1)[:, ::step].astype(np.float64)
        values = spectra.centre + (spectra.low + codes.T * spectra.step) @ spectra.basis
        seen = [*np.percentile(values, [0.5, 99.5]), *spectra.centre]
        axes.update_datalim([(bands.min(), min(seen)), (bands.max(), max(seen))])
        for number, (mean, row) in enumerate(zip(pixels.means, classes, strict=True), 1):
            (line,) = axes.plot(bands, mean, color=row["colour"], linewidth=1.6)
            tag(line, "mean", row["name"])
            # Each number stands elsewhere on its line: so fewer of them meet.
            at = number * len(bands) // (len(classes) + 1)
            if not np.isnan(mean).any():
                text = axes.text(bands[at], mean[at], str(row["id"]), ha="center", va="center")
                tag(text, "number")
        axes.set_xlim(bands.min(), bands.max() + 1e-6)
        low, high = axes.get_ylim()
        ends = spots(axes, [bands[0]] * 2, [low, high])[:, 1]
        xs = spots(axes, bands, [low] * len(bands))[:, 0]
        lines = "".join(f'<path class="{name}" d=""/>' for name in ("true", "predicted", "pixel"))
        svg = inline_svg(drawing, "spectra", about, lines)
        return SpectraChart(svg, xs.tolist(), [low, high, *ends.tolist()])


_CURVES = (
    ("loss", "loss", (("loss", "training", ACCENT), ("validation_loss", "validation", SECOND))),
    ("validation accuracy", "overall accuracy", (("validation_oa", "validation", SECOND),)),
)


def learning_curves(training: Mapping[str, Any], suffix: str = "") -> list[Chart]:
    """Draw the history of a training: losses, and the validation accuracy if there is one.

    Args:
        training: "history", of each epoch its figures, and "best_epoch", counted from 1.
    """
    history = training.get("history") or []
    charts = []
    for title, label, names in _CURVES:
        lines = [
            (np.array([entry.get(name) for entry in history], np.float64), text, colour)
            for name, text, colour in names
        ]
        lines = [line for line in lines if np.isfinite(line[0]).any()]
        if not lines:
            continue
        with charted("epoch", label) as (drawing, axes):
            axes.set_xlim(0, max(2, len(history)))
            axes.axvline(training.get("best_epoch", len(history)), color=SOFT, linestyle="--")
            for values, text, colour in lines:
                axes.plot(range(1, len(values) + 1), values, color=colour, label=text)
            axes.legend(labelcolor="linecolor")
            about = f"{title}{suffix} over the epochs of the final training"
            svg = inline_svg(drawing, "curves", about)
        charts.append(Chart(f"Final training: {title}{suffix}", svg))
    return charts


def confusion_matrix(test: Mapping[str, Any], ids: Sequence[int]) -> Chart | None:
    """Draw the confusion matrix of an accuracy report; a row is a true class.

    Args:
        test: accuracy report with "confusion" and "per_class".
    """
    if not test.get("confusion"):
        return None
    title = "Confusion matrix: a row is a true class, a column a predicted one"
    about = (
        "Confusion matrix in percent of the true class; the table above names what each class is "
        "most often taken for"
    )
    labels = [str(number) for number in ids]
    with figures.figure(500, 500, layout=None) as drawing:
        axes = drawing.add_axes((0.07, 0.005, 0.925, 0.925))
        fill_confusion(axes, test, labels, labels)
        axes.xaxis.tick_top()
        axes.tick_params(which="both", top=False)
        return Chart(title, inline_svg(drawing, "confusion", about))
