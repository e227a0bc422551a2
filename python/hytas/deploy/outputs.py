"""Class maps as files: one writer a suffix."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..files import atomic_write
from ..model_card import ModelCard
from .picture import draw_map
from .scene import ClassMap

Truth = npt.NDArray[np.int32] | None


def write_picture(path: Path, result: ClassMap, card: ModelCard, truth: Truth, title: str) -> None:
    """A picture for people: the map, the ground truth if any, and a legend."""
    draw_map(path, result.labels, card, truth=truth, title=title)


def write_npy(path: Path, result: ClassMap, card: ModelCard, truth: Truth, title: str) -> None:
    """The class ids alone, (H, W), in the smallest type that holds them."""
    with atomic_write(path) as temporary:
        np.save(temporary, smallest(result.labels, card))


def write_npz(path: Path, result: ClassMap, card: ModelCard, truth: Truth, title: str) -> None:
    """Class ids and confidence."""
    with atomic_write(path) as temporary:
        labels = smallest(result.labels, card)
        np.savez_compressed(temporary, labels=labels, confidence=result.confidence)


def write_matlab(path: Path, result: ClassMap, card: ModelCard, truth: Truth, title: str) -> None:
    """Class ids and confidence as MATLAB v5, under the names `labels` and `confidence`."""
    from scipy.io import savemat

    values = {"labels": smallest(result.labels, card), "confidence": result.confidence}
    with atomic_write(path) as temporary:
        savemat(temporary, values, appendmat=False, do_compression=True)


# suffix -> writer. A new output is one function and one line here.
WRITERS: dict[str, Callable[[Path, ClassMap, ModelCard, Truth, str], None]] = {
    ".png": write_picture,
    ".svg": write_picture,
    ".pdf": write_picture,
    ".npy": write_npy,
    ".npz": write_npz,
    ".mat": write_matlab,
}


def check_output(path: Path) -> None:
    """Refuse, before the work, what could not be written after it.

    Raises:
        InputError: an unknown suffix, or a folder that does not exist.
    """
    if path.suffix.lower() not in WRITERS:
        raise InputError(f"out: {path} must end in one of {', '.join(WRITERS)}")
    if not path.parent.is_dir():
        raise InputError(f"out: the folder {path.parent} does not exist")


def write_map(
    path: str | Path, result: ClassMap, card: ModelCard, *, truth: Truth = None, title: str = ""
) -> Path:
    """Write a class map in the format that the suffix names.

    Raises:
        InputError: an unknown suffix.
        OSError: the file cannot be written.
    """
    path = Path(path)
    check_output(path)
    WRITERS[path.suffix.lower()](path, result, card, truth, title)
    return path


def smallest(labels: npt.NDArray[np.int32], card: ModelCard) -> npt.NDArray[np.integer]:
    """Class ids in the smallest integer type that holds all of the model's."""
    lowest, highest = min(0, *card.class_ids), max(card.class_ids)
    wanted = np.promote_types(np.min_scalar_type(lowest), np.min_scalar_type(highest))
    return labels.astype(wanted)
