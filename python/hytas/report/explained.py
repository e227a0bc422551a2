"""The section about what a network looks at: importance of bands and neighbours, attention."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.pictures.plots import draw_cells, draw_intervals
from hytas.report.facts import FactTable, Figure, Section

TITLE = "What the network looks at"


def explained_section(explanation: Mapping[str, Any]) -> Section:
    """Return the section of what `hytas.run.explaining.explain_run` measured."""
    bands = explanation["bands"]
    rows = [[bands[at]["label"], *importance_texts(bands[at])] for at in explanation["order"]]
    first = bands[explanation["order"][0]]
    sentences = [
        f"Most important: {first['label']}. Shuffled between samples, it costs "
        f"{first['probability']:.3f} of the mean probability of the true class and "
        f"{first['accuracy']:.3f} of the accuracy.",
        *spatial(explanation),
        *attending(explanation),
    ]
    figures = [
        bar_figure("Probability lost without a group of bands", bands, "probability"),
        bar_figure("Share of the gradient of a group of bands", bands, "gradient"),
    ]
    if explanation["neighbours"] is not None:
        for name, title in (
            ("probability", "Probability lost without a cell of the input"),
            ("gradient", "Share of the gradient of a cell of the input"),
        ):
            figures.append(cell_figure(title, np.array(explanation["neighbours"][name])))
    figures += _maps(explanation["attention"])
    columns = ("group", "probability lost", "accuracy lost", "gradient")
    grids = [FactTable("Groups of bands, the most important first", columns, rows)]
    if explanation["attention"]:
        grids.append(_layers(explanation["attention"]))
    notes = (
        f"Measured on {explanation_summary(explanation)}.",
        "Lost: the values of a group or a cell are shuffled between samples; the mean of several "
        "shuffles. Groups that say the same stand in for each other, so each of them loses "
        "little. Gradient: share of |gradient * (value - mean)| of the log probability of the true "
        "class. It sees one band at a time, so such groups share it.",
        "Attention: the mean weight that the tokens which are read give to each token. A weight is "
        "not importance: what a token holds may not change the result.",
    )
    return Section("explanation", TITLE, sentences, grids, figures, notes)


def explanation_summary(explanation: Mapping[str, Any]) -> str:
    """Return the samples of an explanation, and the network's accuracy on them."""
    return (
        f"{explanation['samples']} {explanation['part']} {explanation['unit']}: accuracy "
        f"{explanation['accuracy']:.4f}, mean probability of the true class "
        f"{explanation['probability']:.4f}"
    )


def importance_texts(group: Mapping[str, float]) -> list[str]:
    """Return the losses of probability and accuracy, and the share of the gradient."""
    return [
        f"{group['probability']:.4f}",
        f"{group['accuracy']:.4f}",
        f"{100 * group['gradient']:.1f} %",
    ]


def spatial(explanation: Mapping[str, Any]) -> list[str]:
    """Return the importance of the neighbours of a pixel, in a sentence; none for spectra."""
    if explanation["neighbours"] is None:
        return []
    lost = np.array(explanation["neighbours"]["probability"])
    shares = np.array(explanation["neighbours"]["gradient"])
    if explanation["unit"] == "images":
        row, column = np.unravel_index(np.argmax(lost), lost.shape)
        return [
            f"Of {len(lost)} x {len(lost)} cells, row {row + 1}, column {column + 1} matters most: "
            f"without it the probability falls by {lost[row, column]:.3f}."
        ]
    if lost.size == 1:
        return []
    own, share = lost.ravel()[lost.size // 2], shares.ravel()[lost.size // 2]
    most = np.delete(lost.ravel(), lost.size // 2).max()
    verdict = "less" if share > 1 / 2 else "more"
    return [
        f"By gradient, the neighbours together matter {verdict} than the pixel itself: "
        f"{100 * (1 - share):.0f} % against {100 * share:.0f} %. Probability lost without the "
        f"pixel {own:.3f}, without a single neighbour at most {most:.3f}."
    ]


def attending(explanation: Mapping[str, Any]) -> list[str]:
    """Return how alike heads are, in a sentence for each stream that attends."""
    sentences = []
    for stream in dict.fromkeys(one["stream"] for one in explanation["attention"]):
        layers = [one for one in explanation["attention"] if one["stream"] == stream]
        alike = [one["alike"] for one in layers if one["alike"] is not None]
        text = f"Attention of {stream or 'all'} tokens: {len(layers)} layers"
        if alike:
            text += (
                f"; mean correlation between the attention maps of heads {alike[0]:.2f} in the "
                f"first layer, {alike[-1]:.2f} in the last"
            )
        sentences.append(f"{text}.")
    return sentences


def _layers(attention: Sequence[Mapping[str, Any]]) -> FactTable:
    rows = []
    for one in attention:
        heads = "-" if one["tokens"] is None else str(len(one["tokens"]))
        alike = "-" if one["alike"] is None else f"{one['alike']:.2f}"
        rows.append([f"{one['stream']} {one['layer']}", heads, alike, _most_attended(one)])
    return FactTable("Attention", ("layer", "heads", "correlation of heads", "most attended"), rows)


def _most_attended(layer: Mapping[str, Any]) -> str:
    if layer["tokens"] is None:
        return "-"
    mean = np.mean(layer["tokens"], axis=0)
    at = int(mean.argmax())
    if at == 0:
        return f"class token ({100 * mean[0]:.0f} %)"
    place = f"band {layer['bands'][at - 1]}" if "bands" in layer else f"{layer['stream']} {at}"
    return f"{place} ({100 * mean[at]:.1f} %)"


def _maps(attention: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Return a map of the attention of each layer: a row a head, or a square of the input."""
    figures = []
    for one in attention:
        if one["tokens"] is None:
            continue
        weights = np.array(one["tokens"])[:, 1:]
        side = round(weights.shape[1] ** 0.5)
        title = f"Attention of layer {one['layer']}, {one['stream']} tokens"
        if "bands" in one:
            figures.append(cell_figure(f"{title}: a row a head, a column a band", weights))
        elif side**2 == weights.shape[1]:
            figures.append(cell_figure(title, weights.mean(0).reshape(side, side)))
    return figures


def bar_figure(title: str, bands: Sequence[Mapping[str, Any]], name: str) -> Figure:
    """Return a chart with a line for each group, in the order of the bands."""
    lines = {band["label"]: (band[name], 0.0, band[name]) for band in bands}
    svg = draw_intervals({name: lines}, title.lower())
    return Figure(title, svg, f"{title}; the table has the numbers")


def cell_figure(title: str, values: NDArray[np.float64]) -> Figure:
    """Return a chart of numbers (r, c) as boxes, darker ones larger."""
    about = f"{title}: at most {values.max():.4g}, which is the darkest"
    return Figure(title, draw_cells(values), about)
