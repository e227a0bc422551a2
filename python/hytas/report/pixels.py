"""The pixels of a report: class, confidence, truth, part in the split, spectrum."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hytas.data.record import reading
from hytas.files import atomic_write
from hytas.report.spectra import StoredSpectra, merge_bands, reduce_spectra

ROLES = ("not labelled", "a training pixel", "a validation pixel", "a test pixel", "labelled")
"""Role of a pixel in the split, by its number in `Pixels.roles`."""
MOST_SIDE = 1200
MOST_PIXELS = 600_000
Plane = NDArray[np.uint16]


class StoredArrays:
    """Values of a report that a .npz file holds.

    Attributes:
        KIND: names of the values and of their file in messages.
    """

    KIND: ClassVar[tuple[str, str]]

    def save(self, path: Path) -> None:
        """Write a .npz file, whole or not at all."""
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **self.to_arrays())

    def to_arrays(self) -> dict[str, Any]:
        """Return the values by name."""
        return vars(self)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file of `save`."""
        argument, what = cls.KIND
        with reading(argument, path, what), np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            if any(isinstance(one, bytes) for one in arrays.values()):  # as of a damaged header
                raise ValueError("it holds something else than arrays")
            return cls.from_arrays(arrays)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the values in the arrays of a file.

        Raises:
            KeyError, TypeError, ValueError: they are not those of `to_arrays`.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ReportPixels(StoredArrays):
    """The pixels of a classified scene, or every `stride`-th row and column of a large one.

    Attributes:
        predicted: (h, w) uint16 class indices from 1; 0 where there is no data.
        truth: (h, w) uint16 likewise; 0 unlabelled.
        confidence: (h, w) uint8, 255 for 1.
        roles: (h, w) uint8, indices of `ROLES`.
        means: (C, b) float32, mean spectrum of the labelled pixels of each class; NaN without any.
        palette: (C, 3) uint8, colours of the classes.
        image: (h, w, 3) uint8, the scene in false colours.
        size: height and width of the scene.
        stride: rows and columns of the scene from one pixel to the next.
        spectra: or None where there are none; their stride is that of the scene.
    """

    predicted: Plane
    truth: Plane
    confidence: NDArray[np.uint8]
    roles: NDArray[np.uint8]
    means: NDArray[np.float32]
    palette: NDArray[np.uint8]
    image: NDArray[np.uint8]
    size: tuple[int, int]
    stride: int
    spectra: StoredSpectra | None

    KIND = ("pixels", "file of a run's pixels")

    def to_arrays(self) -> dict[str, Any]:
        arrays: dict[str, Any] = {**vars(self)}
        spectra = arrays.pop("spectra")
        return arrays if spectra is None else arrays | spectra.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        names = ("predicted", "truth", "confidence", "roles", "means", "palette", "image")
        height, width = map(int, arrays["size"])
        return cls(
            **{name: arrays[name] for name in names},
            size=(height, width),
            stride=int(arrays["stride"]),
            spectra=StoredSpectra.from_arrays(arrays) if "spectra_codes" in arrays else None,
        )


def usual_stride(height: int, width: int) -> int:
    """Return the rows and columns from one pixel of a map to the next that keep it small enough."""
    stride = max(1, -(-max(height, width) // MOST_SIDE))
    while -(-height // stride) * -(-width // stride) > MOST_PIXELS:
        stride += 1
    return stride


def class_means(
    cube: NDArray[Any], labels: NDArray[np.int32], classes: int, kept: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the mean spectra (C, b) of the labelled pixels (H, W) of each class, NaN without any.

    Args:
        labels: 0 unlabelled, classes 1..C.
        kept: (b,) bands in use, indices.
    """
    sums, counts = np.zeros((classes, len(kept))), np.zeros(classes, np.int64)
    for line, own in zip(cube, labels, strict=True):
        chosen = np.flatnonzero(own)
        if chosen.size:
            values = line[chosen][:, kept].astype(np.float64)
            finite = np.isfinite(values).all(axis=1)
            index = own[chosen][finite] - 1
            np.add.at(sums, index, values[finite])
            counts += np.bincount(index, minlength=classes)
    with np.errstate(invalid="ignore"):
        return np.where(counts[:, None] > 0, sums / counts[:, None], np.nan)


FALSE_COLOURS_NM = (860.0, 660.0, 560.0)
"""Wavelengths shown as red, green and blue: near infrared, red and green, so plants look red."""


def false_colours(
    cube: NDArray[Any],
    valid: NDArray[np.bool_],
    kept: NDArray[np.int64],
    wavelengths: NDArray[np.float64] | None,
) -> NDArray[np.uint8]:
    """Return a scene (h, w, B) as a picture (h, w, 3) in false colours; black without data.

    Each colour is stretched from the 2nd to the 98th percentile of its band. Without wavelengths
    the bands at 3/4, 2/4 and 1/4 of those in use take the places of `FALSE_COLOURS_NM`.

    Args:
        valid: (h, w), where a pixel has data.
        kept: (b,) bands in use, indices.
        wavelengths: (B,) in nm, or None.
    """
    if wavelengths is None:
        chosen = [int(kept[len(kept) * quarter // 4]) for quarter in (3, 2, 1)]
    else:
        own = np.asarray(wavelengths, np.float64)[kept]
        chosen = [int(kept[np.abs(own - wanted).argmin()]) for wanted in FALSE_COLOURS_NM]
    picture = np.zeros((*valid.shape, 3), np.uint8)
    for colour, band in enumerate(chosen):
        plane = np.asarray(cube[:, :, band], np.float64)
        seen = plane[valid & np.isfinite(plane)]
        if seen.size:
            low, high = np.percentile(seen, [2, 98])
            share = np.nan_to_num((plane - low) / ((high - low) or 1.0))
            picture[:, :, colour] = np.rint(255 * np.clip(share, 0, 1)) * valid
    return picture


def label_spots(plane: Plane) -> list[tuple[int, float, float]]:
    """Return (class, row, column) for the number of each class: deep inside its largest part.

    Rows and columns are shares of the height and width.
    """
    from scipy.ndimage import distance_transform_edt

    height, width = plane.shape
    places = []
    for number in np.unique(plane[plane > 0]):
        inside = np.pad(plane == number, 1)  # beyond the scene's border is outside, too
        depth = distance_transform_edt(inside)[1:-1, 1:-1]
        row, column = np.unravel_index(int(depth.argmax()), depth.shape)
        places.append((int(number), (row + 0.5) / height, (column + 0.5) / width))
    return places


def view_pixels(
    cube: NDArray[Any],
    predicted: NDArray[np.int32],
    confidence: NDArray[np.float32],
    labels: NDArray[np.int32],
    roles: NDArray[np.uint8],
    *,
    kept: NDArray[np.int64],
    wavelengths: NDArray[np.float64] | None,
    palette: NDArray[np.uint8],
) -> ReportPixels:
    """Return the pixels of a classified scene for a report.

    Args:
        cube: (H, W, B); read row by row.
        predicted: (H, W) class indices from 1 that the model gave; 0 where there is no data.
        confidence: (H, W) of these, 0..1.
        labels: (H, W) class indices of the ground truth; 0 unlabelled.
        roles: (H, W) indices of `ROLES`.
        kept: (b,) bands in use, indices.
        wavelengths: (B,) in nm, or None.
        palette: (C, 3) colours of the classes.
    """
    height, width = labels.shape
    stride = usual_stride(height, width)
    spectra = reduce_spectra(cube, predicted > 0, kept, wavelengths)
    means = class_means(cube, labels, len(palette), kept).astype(np.float32)
    if spectra is not None and spectra.merged > 1:
        means = merge_bands(means, spectra.merged)
    every = (slice(None, None, stride), slice(None, None, stride))
    return ReportPixels(
        predicted=predicted[every].astype(np.uint16),
        truth=labels[every].astype(np.uint16),
        confidence=np.rint(255 * np.clip(confidence[every], 0, 1)).astype(np.uint8),
        roles=roles[every].astype(np.uint8),
        means=means,
        palette=np.asarray(palette, np.uint8),
        image=false_colours(cube[every], predicted[every] > 0, kept, wavelengths),
        size=(height, width),
        stride=stride,
        spectra=spectra,
    )
