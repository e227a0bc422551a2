"""Classify images with an exported model, and write the predictions to a table."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from hytas.deploy.model import DeployedModel, Probabilities
from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.model_card import ModelCard
from hytas.tasks import task_of_card
from hytas.types import Array


def check_images(model: DeployedModel, name: str, shape: Sequence[int]) -> None:
    """Refuse a model for scenes, and images of other sizes or channels than it takes.

    Args:
        shape: (H, W, channels) of it.
    """
    side, channels = model.card.patch_size, model.card.bands
    if not model.card.of_images:
        rule = f"holds images, and {model.path} classifies the pixels of a scene"
        raise InputError("scene", name, rule)
    if shape[2] != channels:
        rule = f"has {shape[2]} channels, and {model.path} takes {channels}"
        raise InputError("scene", name, rule)
    if tuple(shape[:2]) != (side, side):
        rule = f"has {shape[0]} x {shape[1]} pixels, and {model.path} takes {side} x {side}"
        raise InputError("scene", name, rule, f"`resize` {side} makes it so")


def classify_images(
    model: DeployedModel,
    read: Callable[[npt.NDArray[np.int64]], Array],
    count: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Probabilities:
    """Return class probabilities (count, C) of images, a few in memory at a time.

    Args:
        read: from numbers of images (n,) to their raw values (n, side, side, channels).
        progress: called with how many are done, and with `count`.
    """
    probabilities = np.empty((count, len(model.card.class_ids)), np.float32)
    step = 8 * model.micro_batch
    for start in range(0, count, step):
        numbers = np.arange(start, min(start + step, count))
        probabilities[numbers] = model.predict_patches(read(numbers))
        progress(int(numbers[-1]) + 1, count)
    return probabilities


def _table(path: Path) -> TextIO:
    # Names of files may not be UTF-8; other bytes are written as escapes.
    return path.open("w", newline="", encoding="utf-8", errors="backslashreplace")


def write_predictions(
    path: Path,
    card: ModelCard,
    samples: Mapping[str, Sequence[str]],
    outputs: Array,
    labels: Sequence[Any] | None = None,
) -> None:
    """Write a CSV file with a line for each sample: its name, what is predicted, and its label.

    Args:
        path: replaced as a whole.
        samples: first columns, which name a sample: an image, or a row of a table.
        outputs: (n, C) of the model; where probabilities are all 0, or values NaN, there is no
            data, and the line is left empty.
        labels: true class, or values, of each; None if they are not known.
    """
    columns = task_of_card(card).table(card.class_names, outputs, labels)
    write_columns(path, {**samples, **columns})


def write_columns(path: Path, columns: Mapping[str, Sequence[str]]) -> None:
    """Write a CSV file of columns, by their names; it is replaced as a whole."""
    with atomic_write(path) as staged, _table(staged) as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
