"""The images of a report: some of each class, and the worst errors."""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hytas.report.pixels import StoredArrays

EACH, MOST_CLASSES, MOST_ERRORS = 4, 30, 24
"""Images shown of a class, classes that are shown, and errors."""
MOST_SIDE = 64
"""Of a picture, in pixels; larger images are thinned."""
NAMED = 200
"""Letters of a name that are kept, its last ones."""


@dataclass(frozen=True, eq=False)
class ReportImages(StoredArrays):
    """Test images: first some of each class, then the errors that the model was surest of.

    Attributes:
        pictures: (n, s, s, 3) uint8.
        truth, predicted: (n,) int64, classes from 0.
        confidence: (n,) float32, of the predicted class.
        errors: how many of them, the last ones, are the worst errors.
    """

    pictures: NDArray[np.uint8]
    truth: NDArray[np.int64]
    predicted: NDArray[np.int64]
    confidence: NDArray[np.float32]
    names: NDArray[np.str_]
    errors: int

    KIND = ("samples", "file of a run's images")

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        return cls(**{**arrays, "errors": int(arrays["errors"])})

    def shown(self, classes: Sequence[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the samples and the errors, each with "src", "name", "truth", "predicted", "sure".

        Raises:
            IndexError: a class has no name.
        """
        rows = [
            {
                "src": _png(picture),
                "name": str(name),
                "truth": classes[truth],
                "predicted": classes[predicted],
                "right": bool(truth == predicted),
                "sure": float(sure),
            }
            for picture, truth, predicted, sure, name in zip(
                self.pictures, self.truth, self.predicted, self.confidence, self.names, strict=True
            )
        ]
        split = len(rows) - self.errors
        return rows[:split], rows[split:]


def choose_samples(
    read: Callable[[NDArray[np.int64]], NDArray[Any]],
    truth: NDArray[np.int64],
    probabilities: NDArray[np.float32],
    names: Sequence[str],
) -> ReportImages:
    """Return the test images of a report.

    Args:
        read: numbers of images (n,) -> their raw values (n, side, side, channels).
        truth: (N,) class indices from 0.
        probabilities: (N, C) of the model.
    """
    predicted, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    some = [np.flatnonzero(truth == label)[:EACH] for label in np.unique(truth)[:MOST_CLASSES]]
    wrong = np.flatnonzero(predicted != truth)
    worst = wrong[np.argsort(-sure[wrong], kind="stable")][:MOST_ERRORS]
    chosen = np.concatenate([*some, worst]).astype(np.int64)
    return ReportImages(
        as_pictures(read(chosen)),
        truth[chosen].astype(np.int64),
        predicted[chosen].astype(np.int64),
        sure[chosen].astype(np.float32),
        np.array([names[number][-NAMED:] for number in chosen], np.str_),
        len(worst),
    )


def as_pictures(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Return images (n, side, side, channels) as RGB (n, s, s, 3): their first three channels.

    One or two channels become grey. Values of other types than bytes, and bytes that use a quarter
    of the range only, are stretched between the 2nd and the 98th percentile of all.
    """
    step = -(-images.shape[1] // MOST_SIDE)
    thinned = images[:, ::step, ::step]
    colours = thinned[..., :3] if images.shape[3] >= 3 else np.repeat(thinned[..., :1], 3, axis=3)
    if colours.dtype == np.uint8 and colours.max() >= 64:
        return np.asarray(colours, np.uint8)
    low, high = (np.percentile(colours.astype(np.float64), at) for at in (2, 98))
    scaled = (colours.astype(np.float64) - low) / max(high - low, 1e-12)
    return np.asarray(np.rint(255 * scaled.clip(0, 1)), np.uint8)


def _png(picture: NDArray[np.uint8]) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
