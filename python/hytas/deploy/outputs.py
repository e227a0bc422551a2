"""Class maps as files: one writer a suffix."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import Geo
from hytas.deploy.picture import draw_map
from hytas.deploy.rasters import write_envi, write_geotiff
from hytas.deploy.scene import ClassMap
from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.model_card import ModelCard


@dataclass(frozen=True)
class Extras:
    """What else a writer may need.

    Attributes:
        truth: (H, W) class ids of the ground truth, or None.
        title: of a picture.
        geo: where the scene lies, or None.
    """

    truth: npt.NDArray[np.int32] | None = None
    title: str = ""
    geo: Geo | None = None


def write_picture(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """A picture for people: the map, the ground truth if any, and a legend."""
    draw_map(path, result.labels, card, truth=extras.truth, title=extras.title)


def write_npy(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """The class ids alone, (H, W), in the smallest type that holds them."""
    with atomic_write(path) as temporary:
        np.save(temporary, smallest(result.labels, card))


def write_npz(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """Class ids and confidence."""
    with atomic_write(path) as temporary:
        labels = smallest(result.labels, card)
        np.savez_compressed(temporary, labels=labels, confidence=result.confidence)


def write_matlab(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """Class ids and confidence as MATLAB v5, under the names `labels` and `confidence`."""
    from scipy.io import savemat

    values = {"labels": smallest(result.labels, card), "confidence": result.confidence}
    with atomic_write(path) as temporary:
        savemat(temporary, values, appendmat=False, do_compression=True)


Raster = Callable[[Path, npt.NDArray[Any], ModelCard, Geo | None, bool], None]

# suffix -> writer of one band, with its place on the earth.
RASTERS: dict[str, Raster] = {
    ".tif": write_geotiff,
    ".tiff": write_geotiff,
    ".hdr": write_envi,
    ".img": write_envi,
}


def write_raster(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """Class ids as a georeferenced raster with names and colours."""
    RASTERS[path.suffix.lower()](path, smallest(result.labels, card), card, extras.geo, True)


PICTURES = (".png", ".svg", ".pdf")

# suffix -> writer. A new output is one function and one line here.
WRITERS: dict[str, Callable[[Path, ClassMap, ModelCard, Extras], None]] = {
    **dict.fromkeys(PICTURES, write_picture),
    ".npy": write_npy,
    ".npz": write_npz,
    ".mat": write_matlab,
    **dict.fromkeys(RASTERS, write_raster),
}


SUFFIXES = {"out": tuple(WRITERS), "confidence": tuple(RASTERS), "confusion": PICTURES}


def check_output(path: Path, argument: str = "out") -> None:
    """Refuse, before the work, what could not be written after it.

    Raises:
        InputError: an unknown suffix, or a folder that does not exist.
    """
    known = SUFFIXES[argument]
    if path.suffix.lower() not in known:
        raise InputError(f"{argument}: {path} must end in one of {', '.join(known)}")
    if not path.parent.is_dir():
        raise InputError(f"{argument}: the folder {path.parent} does not exist")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in an error of the system that names none, as a full disk gives it."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def write_map(
    path: str | Path, result: ClassMap, card: ModelCard, extras: Extras | None = None
) -> Path:
    """Write a class map in the format that the suffix names.

    Raises:
        InputError: an unknown suffix.
        OSError: the file cannot be written.
    """
    path = Path(path)
    check_output(path)
    with naming(path):
        WRITERS[path.suffix.lower()](path, result, card, extras or Extras())
    return path


def write_confidence(
    path: str | Path, result: ClassMap, card: ModelCard, geo: Geo | None = None
) -> Path:
    """Write the confidence, float32, as a GeoTIFF or ENVI raster.

    Raises:
        InputError: an unknown suffix.
        OSError: the file cannot be written.
    """
    path = Path(path)
    check_output(path, "confidence")
    with naming(path):
        RASTERS[path.suffix.lower()](path, result.confidence, card, geo, False)
    return path


def smallest(labels: npt.NDArray[np.int32], card: ModelCard) -> npt.NDArray[np.integer]:
    """Class ids in the smallest integer type that holds all of the model's."""
    lowest, highest = min(0, *card.class_ids), max(card.class_ids)
    if lowest < 0:
        return labels
    return labels.astype(np.min_scalar_type(highest))
