"""Check exported files on real pixels: the rules for each kind of format."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import PatchReader, Preprocessing, valid_mask
from hytas.deploy import DeployedModel
from hytas.deploy.smoothing import LineState, guided_rows
from hytas.deploy.tiles import read_tile
from hytas.errors import InputError
from hytas.export.c_source import sizes_of
from hytas.export.parity import (
    ExportError,
    _Run,
    check_parity,
    compared,
    open_exported,
    open_torch,
)
from hytas.models import SensorModel
from hytas.tasks import PredictionTask
from hytas.tasks.classes import TIE, Classes, largest_gap
from hytas.types import Array

SCENE_ROWS = 8
REDUCED_ROWS = 64
"""Rows of a scene, at most, to check a scene graph of reduced precision on."""
_BATCH = 64


_CLASSES = Classes(1)


@dataclass(frozen=True)
class Evidence:
    """A model, and the pixels to check its files on.

    Attributes:
        reader: from flat indices of pixels, or numbers of images, to raw patches.
        pixels: flat indices of the pixels to compare on.
        targets: (pixels) their true classes, 0-based; or values (pixels, T).
        task: what the model predicts.
        dtype: type of the values that the files take; None is the reader's own.
    """

    model: SensorModel
    reader: PatchReader | Callable[[npt.NDArray[np.int64]], Array]
    pixels: npt.NDArray[np.int64]
    targets: npt.NDArray[Any]
    task: PredictionTask = _CLASSES
    dtype: np.dtype[Any] | None = None

    @property
    def cube(self) -> Array:
        """Return the cube (H, W, bands), raw values, that the patches are cut from.

        Raises:
            InputError: the model takes images.
        """
        if not isinstance(self.reader, PatchReader):
            raise InputError("formats", rule="a scene graph needs a scene; the model takes images")
        return self.reader.cube

    @cached_property
    def across(self) -> PatchReader:
        """Return the reader as tiles are read: patches do not end at the border of a part.

        Raises:
            InputError: the model takes images.
        """
        assert isinstance(self.reader, PatchReader), self.cube
        return PatchReader(self.reader.cube, self.reader.patch_size)

    def batches(self) -> Iterator[Array]:
        """Yield raw patches of `pixels`, in micro-batches."""
        for at in range(0, len(self.pixels), _BATCH):
            yield self.fit(self.reader(self.pixels[at : at + _BATCH]))

    def tile(self, top: int, bottom: int, margin: int) -> Array:
        """Return rows of the scene with their margin, as a scene graph takes them."""
        return self.fit(read_tile(self.cube, top, bottom, margin))

    def fit(self, values: Array) -> Array:
        """Return raw values in the type that the files take."""
        return values if self.dtype is None else values.astype(self.dtype, copy=False)

    def predictions(self, run: _Run) -> npt.NDArray[np.float32]:
        """Return the probabilities (pixels, C) of a function of raw patches."""
        return np.concatenate([run(patches) for patches in self.batches()])

    @cached_property
    def expected(self) -> npt.NDArray[np.float32]:
        """Return the probabilities (pixels, C) of torch, which are computed once."""
        return self.predictions(open_torch(self.model))


def judge_exact(name: str, path: Path, evidence: Evidence) -> dict[str, Any]:
    """Check a file of full precision: probabilities within 1e-4 of torch's, and the same labels."""
    parity = check_parity(evidence.model, {name: path}, evidence.batches(), evidence.task)
    return dict(parity.formats[name])


def judge_c(name: str, path: Path, evidence: Evidence) -> dict[str, Any]:
    """Check a C file as any of full precision; the figures also have its memory."""
    return {**judge_exact(name, path, evidence), **sizes_of(path)}


def judge_reduced(
    name: str, path: Path, evidence: Evidence, open_file: Callable[[Path], _Run] = open_exported
) -> dict[str, Any]:
    """Check a file of reduced precision: 99 % of torch's labels, OA at most 0.5 points lower.

    Of values: R2 at most 1 point lower.
    """
    outputs, task = evidence.predictions(open_file(path)), evidence.task
    predicted = task.chosen(outputs)
    figures = judge_predictions(
        name, predicted, task.chosen(evidence.expected), evidence.targets, task
    )
    usable = np.isfinite(outputs).all(axis=1)
    return {**figures, "max_difference": task.gap(outputs[usable], evidence.expected[usable])}


def judge_reduced_scene(name: str, path: Path, evidence: Evidence) -> dict[str, Any]:
    """Check a scene graph of reduced precision by the same rule, on the pixels of some rows."""
    deployed = DeployedModel.load(path, "cpu")
    few = in_few_rows(evidence.pixels, evidence.cube.shape[1])
    pixels, targets = (values[few] for values in (evidence.pixels, evidence.targets))
    chosen = replace(evidence, reader=evidence.across, pixels=pixels, targets=targets)
    width = evidence.cube.shape[1]
    predicted = predicted_of_rows(deployed, chosen.tile, pixels, width)
    expected = evidence.task.chosen(chosen.expected)
    return judge_predictions(name, predicted, expected, targets, evidence.task)


def in_few_rows(pixels: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.bool_]:
    """Return which pixels lie in `REDUCED_ROWS` rows that are spread over all rows with pixels."""
    rows = np.unique(pixels // width)
    spread = np.unique(np.linspace(0, len(rows) - 1, REDUCED_ROWS).astype(np.int64))
    return np.isin(pixels // width, rows[spread])


def predicted_of_rows(
    deployed: DeployedModel,
    tile: Callable[[int, int, int], Array],
    pixels: npt.NDArray[np.int64],
    width: int,
) -> Array:
    """Return class indices of pixels, or values (pixels, T), by a scene graph, a row at a time.

    Args:
        tile: from the first row, the row behind the last and the margin to a tile.
        pixels: flat indices.
    """
    ids = np.asarray(deployed.card.class_ids)

    def predicted(row: int) -> Array:
        maps = deployed.run_tile_maps(tile(row, row + 1, deployed.card.margin))
        return deployed.task.of_maps([one[0] for one in maps], ids)

    rows, places = np.unique(pixels // width, return_inverse=True)
    whole = np.stack([predicted(int(row)) for row in rows])
    return np.asarray(whole[places, pixels % width])


def judge_predictions(
    name: str, predicted: Array, expected: Array, targets: Array, task: PredictionTask
) -> dict[str, Any]:
    """Return the figures of a model of reduced precision, from class indices or values.

    Raises:
        ExportError: it loses more than the task allows.
    """
    figures, rule = task.judged(predicted, expected, targets)
    if rule:
        error = ExportError("formats", name, rule, "`force` writes it anyway")
        error.figures = figures
        raise error
    return figures


def judge_scene(name: str, path: Path, evidence: Evidence) -> dict[str, Any]:
    """Check a scene graph on some rows: torch's labels and confidences, or its values."""
    deployed, reference = DeployedModel.load(path, "cpu"), open_torch(evidence.model)
    height, width = evidence.cube.shape[:2]
    ids, task = np.asarray(deployed.card.class_ids), evidence.task
    largest, changed = 0.0, 0
    rows = np.unique(np.linspace(0, height - 1, SCENE_ROWS).astype(np.int64))
    for row in rows:
        tile = evidence.tile(int(row), int(row) + 1, deployed.card.margin)
        maps = deployed.run_tile_maps(tile)
        for left in range(0, width, _BATCH):
            columns = np.arange(left, min(left + _BATCH, width))
            expected = reference(evidence.across(row * width + columns))
            gap, others = task.compare_maps([one[0, columns] for one in maps], expected, ids)
            largest, changed = max(largest, gap), changed + others
    return compared(name, len(rows) * width, largest, changed)


def judge_smooth_scene(name: str, path: Path, evidence: Evidence) -> dict[str, Any]:
    """Check a scene graph that smooths: the filter on the probabilities of torch, in one strip."""
    deployed, reference = DeployedModel.load(path, "cpu"), open_torch(evidence.model)
    card, smoothing = deployed.card, deployed.smoothing
    assert smoothing is not None  # the file was opened, so its card has one
    height, width = evidence.cube.shape[:2]
    top = max(0, height // 2 - SCENE_ROWS)
    lines = range(top, min(height, top + 2 * SCENE_ROWS))
    tile = evidence.tile(lines.start, lines.stop, card.margin)
    cube = evidence.cube[lines.start : lines.stop]
    valid = valid_mask(cube, card.nodata, card.kept_bands)
    scaling = Preprocessing.from_dict(card.preprocessing)

    def rows() -> Iterator[LineState]:
        for line, pixels, valid_row in zip(lines, cube, valid, strict=True):
            columns = np.array_split(np.arange(width), -(-width // _BATCH))
            chances = [reference(evidence.across(line * width + part)) for part in columns]
            yield LineState(
                np.concatenate(chances), smoothing.guide(scaling.apply(pixels)), valid_row
            )

    settings = smoothing.radius, smoothing.eps, smoothing.temperature
    expected = np.stack(list(guided_rows(rows(), *settings)))
    classes, confidence = deployed.run_tile_smoothed(tile, valid)
    largest = largest_gap(confidence, expected.max(axis=2))
    given = np.array([card.class_ids.index(number) for number in classes[valid]], np.int64)
    lead = expected[valid].max(axis=1) - expected[valid][np.arange(len(given)), given]
    changed = int((lead > TIE).sum())
    return compared(name, int(valid.sum()), largest, changed, "the filter")
