"""Classify images with an exported model, and write the predictions to a table."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from hytas.deploy.model import DeployedModel, Probabilities
from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.model_card import ModelCard
from hytas.types import Array


def check_images(model: DeployedModel, name: str, shape: Sequence[int]) -> None:
    """Refuse a model for scenes, and images of other sizes or channels than it takes.

    Args:
        shape: (H, W, channels) of it.
    """
    side, channels = model.card.patch_size, model.card.bands
    if not model.card.of_images:
        raise InputError(
            "scene", name, f"holds images, and {model.path} classifies the pixels of a scene"
        )
    if shape[2] != channels:
        raise InputError(
            "scene", name, f"has {shape[2]} channels, and {model.path} takes {channels}"
        )
    if tuple(shape[:2]) != (side, side):
        raise InputError(
            "scene",
            name,
            f"has {shape[0]} x {shape[1]} pixels, and {model.path} takes {side} x {side}",
            f"`resize` {side} makes it so",
        )


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
    files: Sequence[str],
    probabilities: Probabilities,
    labels: Sequence[str] | None = None,
    head: str = "file",
) -> None:
    """Write a CSV file with a line for each sample: its name, class and confidence, and its label.

    Args:
        path: replaced as a whole.
        files: names of the images, or rows of a table.
        probabilities: (n, C); where all are 0 there is no data, and the class is left empty.
        labels: true class of each; None if they are not known.
    """
    best, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
    valid = confidence > 0
    names = [card.class_names[n] if has else "" for n, has in zip(best, valid, strict=True)]
    sure = [f"{value:.6f}" if value > 0 else "" for value in confidence]
    columns: list[Sequence[str]] = [files, names, sure]
    heads = [head, "class", "confidence"]
    if labels is not None:
        columns.append(labels)
        heads.append("label")
    with atomic_write(path) as staged, _table(staged) as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        writer.writerows(zip(*columns, strict=True))
