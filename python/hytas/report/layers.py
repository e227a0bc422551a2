"""The data of a page's map, spectra and points, in compressed blobs."""

import base64
import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.pictures import Legend, map_png, picture_png
from hytas.report import charts
from hytas.report.facts import Candidates
from hytas.report.pixels import ReportPixels, label_spots

SHOWN_COSTS = ("params", "macs")
"""Costs of which a page shows every candidate."""


class Blobs:
    """Binary values of a page, compressed; equal ones are stored once.

    Attributes:
        stored: name -> base64 of a zlib stream.
    """

    def __init__(self) -> None:
        self.stored: dict[str, str] = {}

    def add(self, content: bytes) -> str:
        """Hold `content`; return its name."""
        name = hashlib.sha256(content).hexdigest()[:16]
        if name not in self.stored:
            self.stored[name] = base64.b64encode(zlib.compress(content, 9)).decode()
        return name

    def add_array(self, values: NDArray[Any]) -> str:
        """Hold an array, little end first; return its name."""
        return self.add(values.astype(values.dtype.newbyteorder("<")).tobytes())


LAYERS = (
    ("image", "False colours", "the scene in near infrared, red and green"),
    ("truth", "Ground truth", "one colour a class"),
    ("predicted", "Map of the model", "one colour a class"),
    ("errors", "Errors", "labelled pixels of the wrong class in red"),
    ("confidence", "Confidence", "from unsure (dark) to sure (bright)"),
)
"""Layers of the map: key, title, and what it shows."""


def map_layers(pixels: ReportPixels, ids: Sequence[int]) -> dict[str, Any]:
    """Return the layers of the map as pictures, and the numbers on them."""
    count = len(pixels.palette)
    colours = [tuple(colour) for colour in pixels.palette.tolist()]
    legend = Legend(range(1, count + 1), [""] * count, colours)
    number = dict(enumerate(ids, 1))
    pictures = {
        "image": picture_png(pixels.image),
        "truth": map_png(pixels.truth.astype(np.int32), legend),
        "predicted": map_png(pixels.predicted.astype(np.int32), legend),
        "errors": picture_png(_errors(pixels)),
        "confidence": picture_png(_confidence(pixels)),
    }
    layers = []
    for key, title, about in LAYERS:
        plane = getattr(pixels, key) if key in ("truth", "predicted") else None
        marks = [] if plane is None else label_spots(plane)
        layers.append(
            {
                "key": key,
                "title": title,
                "about": about,
                "src": f"data:image/png;base64,{base64.b64encode(pictures[key]).decode()}",
                "spots": [(number.get(own, own), top, left) for own, top, left in marks],
            }
        )
    height, width = pixels.predicted.shape
    return {"layers": layers, "height": height, "width": width}


def _errors(pixels: ReportPixels) -> NDArray[np.uint8]:
    """Return a picture: labelled pixels grey where they are right, red where they are wrong."""
    picture = np.full((*pixels.truth.shape, 3), 235, np.uint8)
    labelled = (pixels.truth > 0) & (pixels.predicted > 0)
    right = labelled & (pixels.truth == pixels.predicted)
    picture[right] = (165, 175, 185)
    picture[labelled & ~right] = (200, 30, 30)
    return picture


def _confidence(pixels: ReportPixels) -> NDArray[np.uint8]:
    """Return a picture of the confidence in greys; black without data."""
    grey = np.where(pixels.predicted > 0, pixels.confidence, 0).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)


def pixel_data(
    pixels: ReportPixels, chart: charts.SpectraChart | None, blobs: Blobs
) -> dict[str, Any]:
    """Return the planes and spectra of pixels for the script."""
    data: dict[str, Any] = {
        "size": list(pixels.predicted.shape),
        "stride": pixels.stride,
        "planes": {
            name: blobs.add_array(getattr(pixels, name))
            for name in ("predicted", "truth", "confidence", "roles")
        },
        "spectra": None,
    }
    spectra = pixels.spectra
    if spectra is None or chart is None:
        return data
    data["spectra"] = {
        "size": list(spectra.codes.shape),
        "stride": spectra.stride,
        **{
            name: blobs.add_array(getattr(spectra, name))
            for name in ("codes", "low", "step", "basis", "centre")
        },
        "xs": chart.xs,
        "up": chart.up,
    }
    return data


def point_data(candidates: Candidates, drawn: Sequence[int], blobs: Blobs) -> dict[str, Any]:
    """Return the candidates that are drawn, by column; genes as numbers of their texts."""

    def coded(values: Sequence[str]) -> dict[str, Any]:
        texts = list(dict.fromkeys(values))
        number = {text: at for at, text in enumerate(texts)}
        return {"texts": texts, "of": [number[values[place]] for place in drawn]}

    def plain(values: NDArray[np.float64]) -> list[float | None]:
        chosen = values[list(drawn)]
        return [float(f"{v:.6g}") if np.isfinite(v) else None for v in chosen]

    columns = {
        "id": [candidates.ids[place] for place in drawn],
        "generation": [candidates.generations[place] for place in drawn],
        "genes": {name: coded(values) for name, values in candidates.genes.items()},
        "costs": {
            name: [int(values[place]) for place in drawn]
            for name, values in candidates.costs.items()
            if name in SHOWN_COSTS
        },
        "scores": {name: plain(values) for name, values in candidates.scores.items()},
    }
    text = json.dumps(columns, allow_nan=False, separators=(",", ":"))
    return {"count": len(drawn), "columns": blobs.add(text.encode())}
