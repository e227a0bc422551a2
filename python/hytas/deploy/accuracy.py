"""The accuracy of a class map."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data.labels.names import is_unnamed
from hytas.errors import InputError
from hytas.metrics import accuracy_report
from hytas.model_card import ModelCard

CHANCE_KAPPA = 0.1
"""A map with a lower kappa is hardly better than chance."""
LEAST_SHIFTED = 0.4
"""Share of pixels that must be right once a number is subtracted; and twice as many as before."""


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
) -> dict[str, Any]:
    """Return the accuracy of a class map on the labelled pixels that have data.

    Args:
        labels: (H, W) class ids that the model gave; 0 where there is no data.
        truth: (H, W) class ids of the ground truth; 0 unlabelled.

    Returns:
        What `accuracy_report` returns, and `unknown`: the number of labelled pixels whose class the
        model does not know. These pixels do not count in the other figures.
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
        raise InputError("labels", rule=f"none of the {of_model.sum()} labelled pixels holds data")
    index = {number: position for position, number in enumerate(card.class_ids)}
    lookup = np.vectorize(index.__getitem__, otypes=[np.int64])
    report = accuracy_report(lookup(truth[used]), lookup(labels[used]), card.class_names)
    return {**report, "unknown": int(((truth != 0) & ~of_model).sum())}


def shift_note(
    labels: npt.NDArray[np.int32],
    truth: npt.NDArray[np.int32],
    kappa: float,
    card: ModelCard,
    names: Mapping[int, str] | None = None,
) -> str | None:
    """Return a note if the ids of the ground truth seem to be those of the model plus a number.

    A map is then no better than chance, and far better once the number is subtracted.
    Each class that both have is then another class of the model, or the 0 of its labels.

    Args:
        labels, truth: (H, W), as for `measure`.
        kappa: of the map.
        names: of the classes of the truth, by id. Where one is a name of the model's, too, names
            say which classes are the same.
    """
    own_names = zip(card.class_ids, card.class_names, strict=True)
    if any((names or {}).get(i) == name and not is_unnamed(name, i) for i, name in own_names):
        return None
    seen = (truth != 0) & (labels != 0)
    own, given = labels[seen].astype(np.int64), truth[seen].astype(np.int64)
    differences, counts = np.unique(given - own, return_counts=True)
    shift = int(differences[counts.argmax()])
    right = given - own == shift
    known, moved = np.isin(given, card.class_ids), np.isin(given - shift, card.class_ids)
    share, before = (float(each.sum() / (known | moved).sum()) for each in (right, given == own))
    is_better = share > max(LEAST_SHIFTED, 2 * before)
    if kappa > CHANCE_KAPPA or not shift or not is_better or np.unique(own[right]).size < 2:
        return None
    if (known & ~moved & (given != shift)).any():
        return None
    first = "set zero_is_a_class if 0 is a class there, else " if shift == -1 else ""
    to_do = f"{first}{'subtract' if shift > 0 else 'add'} {abs(shift)}"
    return (
        f"the map is no better than chance, but would be right in {share:.0%} of the labelled "
        f"pixels if their ids were {abs(shift)} {'less' if shift > 0 else 'more'}: if model and "
        f"labels number the classes differently, {to_do} in the label map, except where it is 0"
    )


def _named(ids: Iterable[int], names: Mapping[int, str]) -> str:
    return ", ".join(f"{i} ({names[i]})" if i in names else str(i) for i in ids)


def _known(truth: npt.NDArray[np.int32], card: ModelCard) -> npt.NDArray[np.bool_]:
    return np.asarray(np.isin(truth, card.class_ids) & (truth != 0))
