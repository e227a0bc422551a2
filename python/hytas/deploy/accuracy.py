"""The accuracy of a class map."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.errors import InputError
from hytas.model_card import ModelCard
from hytas.tasks import task_of_card


def check_truth(
    truth: npt.NDArray[np.int32], card: ModelCard, names: Mapping[int, str] | None = None
) -> None:
    """Refuse a ground truth without any class of the model.

    Args:
        names: of its classes by id, as far as the file names them.
    """
    if not _known(truth, card).any():
        ids = np.unique(truth[truth != 0])[:20].tolist()
        own = dict(zip(card.class_ids, card.class_names, strict=True)) if names else {}
        classes = _named(ids, names or {}) or "none"
        rule = f"classes {classes} in the map; the model knows {_named(card.class_ids, own)}"
        raise InputError("labels", rule=rule)


def map_accuracy(
    labels: npt.NDArray[np.int32], truth: npt.NDArray[np.int32], card: ModelCard
) -> dict[str, Any] | None:
    """Return the accuracy of a class map on the labelled pixels that have a class in it.

    Args:
        labels: (H, W) class ids that the model gave; 0 where there is no data.
        truth: (H, W) class ids of the ground truth; 0 unlabelled.

    Returns:
        What `accuracy_report` returns, and `unknown`: the number of labelled pixels whose class the
        model does not know. These pixels do not count in the other figures. None if no labelled
        pixel of a known class has data.
    """
    if labels.shape != truth.shape:
        raise InputError(
            "labels",
            rule=f"the map is {truth.shape[0]} x {truth.shape[1]} and the scene "
            f"{labels.shape[0]} x {labels.shape[1]}: height and width must agree",
        )
    check_truth(truth, card)
    of_model = _known(truth, card)
    used = of_model & (labels != 0)
    if not used.any():
        return None
    index = {number: position for position, number in enumerate(card.class_ids)}
    lookup = np.vectorize(index.__getitem__, otypes=[np.int64])
    report = task_of_card(card).report(lookup(truth[used]), lookup(labels[used]), card.class_names)
    return {**report, "unknown": int(((truth != 0) & ~of_model).sum())}


def _named(ids: Iterable[int], names: Mapping[int, str]) -> str:
    return ", ".join(f"{i} ({names[i]})" if i in names else str(i) for i in ids)


def _known(truth: npt.NDArray[np.int32], card: ModelCard) -> npt.NDArray[np.bool_]:
    return np.asarray(np.isin(truth, card.class_ids) & (truth != 0))
