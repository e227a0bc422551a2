"""Check the card in a model file, and that the graph fits it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from hytas.deploy.smoothing import Smoothing
from hytas.deploy.unknown import UnknownGround
from hytas.errors import InputError
from hytas.files import legible
from hytas.model_card import IMAGE, ModelCard
from hytas.tasks import task_of_card

_ONNX_NAMES = {"float32": "float", "float64": "double"}
"""Element types whose name in ONNX differs from numpy's."""


def read_card(properties: Mapping[str, str], path: Path) -> ModelCard:
    """Return the card of a file, after a check of its preprocessing and no-data value.

    Args:
        properties: the metadata of the file.
    """
    card = ModelCard.from_properties(properties, source=str(path))
    _check_preprocessing(card, path)
    try:
        smoothing, _ = smoothing_of(card), unknown_of(card)
    except InputError as error:
        raise InputError("model", path, f"has broken metadata: {error}") from None
    if smoothing is None and card.graph == "smooth-scene":
        raise InputError("model", path, f"has broken metadata: smoothing: none in a {card.graph}")
    nodata, dtype = card.nodata, card.numpy_dtype
    if nodata is not None and not _holds(dtype, nodata):
        raise InputError(
            "model",
            path,
            f"has broken metadata: preprocessing: nodata is {nodata:g}, which no value "
            f"of type {dtype} can be",
        )
    return card


def smoothing_of(card: ModelCard) -> Smoothing | None:
    """Return the smoothing of a card; None where it has none."""
    if card.smoothing is None:
        return None
    return Smoothing.from_dict(card.smoothing, len(card.kept_bands))


def unknown_of(card: ModelCard) -> UnknownGround | None:
    """Return the score of a card for ground of no class of the model; None without one."""
    if card.unknown is None:
        return None
    return UnknownGround.from_dict(card.unknown, len(card.class_ids))


def _check_preprocessing(card: ModelCard, path: Path) -> None:
    """Refuse preprocessing that cannot be read, or that names bands the sensor does not have."""
    try:
        bands, empty = card.kept_bands, card.empty_values
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError("model", path, f"has broken metadata: preprocessing ({reason})") from None
    if not bands or not all(0 <= band < card.bands for band in bands) or len(empty) != card.bands:
        rule = f"has broken metadata: preprocessing: bands must be some of 0 to {card.bands - 1}"
        raise InputError("model", path, rule)


def _holds(dtype: np.dtype[Any], value: float) -> bool:
    if dtype.kind == "f":
        return abs(value) <= float(np.finfo(dtype).max)
    limits = np.iinfo(dtype)
    return value.is_integer() and int(limits.min) <= value <= int(limits.max)


def check_signature(values: Sequence[onnxruntime.NodeArg], card: ModelCard, path: Path) -> None:
    """Refuse a graph whose inputs and outputs are not those of its metadata.

    Args:
        values: the inputs, then the outputs.
    """
    side, bands, classes = card.patch_size, card.bands, len(card.class_ids)
    taken = f"tensor({_ONNX_NAMES.get(card.dtype, card.dtype)})"
    tile = ("tile", taken, [None, None, bands])
    maps = [
        ("classes", "tensor(int32)", [None, None]),
        ("confidence", "tensor(float)", [None, None]),
    ]
    task = task_of_card(card)
    outputs = (task.output_name, "tensor(float)", [None, None, classes])
    # A scene graph of classes without a guide gives no probabilities: nothing smooths them.
    given = {*task.maps, *([task.output_name] if card.smoothing is not None else [])}
    patches = [
        ("patches", taken, [None, side, side, bands]),
        (task.output_name, "tensor(float)", [None, classes]),
    ]
    wanted = {
        "patch": patches,
        IMAGE: patches,
        "scene": [tile, *(one for one in (*maps, outputs) if one[0] in given)],
        "smooth-scene": [tile, ("valid", "tensor(bool)", [None, None]), *maps],
    }[card.graph]
    stated = [
        (value.name, value.type, [size if isinstance(size, int) else None for size in value.shape])
        for value in values
    ]
    if stated != wanted:
        rule = f"has the inputs and outputs {stated}; its metadata say {wanted}"[:600]
        raise InputError("model", path, rule)


def printable_card(card: ModelCard) -> ModelCard:
    """Return the card with free texts on one line, without control characters."""
    return replace(
        card,
        class_names=tuple(map(legible, card.class_names)),
        version=legible(card.version),
        precision=legible(card.precision),
    )
