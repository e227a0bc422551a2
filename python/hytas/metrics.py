"""The field's accuracy figures, from true and predicted classes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def accuracy_report(
    truth: ArrayLike, predicted: ArrayLike, class_names: tuple[str, ...]
) -> dict[str, Any]:
    """Overall accuracy (OA), average accuracy (AA), Cohen's kappa, accuracy a class, confusion.

    Args:
        truth: (N,) true class indices, 0-based.
        predicted: (N,) predicted class indices, 0-based.
        class_names: (C,) names in index order.

    Returns:
        A JSON-ready mapping. AA is the mean recall over the classes that occur in `truth`; a class
        that does not occur has the accuracy None. `confusion[i][j]` counts true i predicted as j.
    """
    from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix

    labels = np.arange(len(class_names))
    confusion = confusion_matrix(truth, predicted, labels=labels)
    support = confusion.sum(axis=1)
    recall = [
        float(hits / total) if total else None
        for hits, total in zip(confusion.diagonal(), support, strict=True)
    ]
    present = [value for value in recall if value is not None]
    # With one class in truth and prediction alike, chance agreement is 1 and kappa is 0 / 0.
    trivial = np.count_nonzero(support) == 1 and bool(
        np.all(np.asarray(truth) == np.asarray(predicted))
    )
    return {
        "OA": float(accuracy_score(truth, predicted)),
        "AA": float(np.mean(present)),
        "kappa": 1.0 if trivial else float(cohen_kappa_score(truth, predicted, labels=labels)),
        "per_class": dict(zip(class_names, recall, strict=True)),
        "support": dict(zip(class_names, support.tolist(), strict=True)),
        "confusion": confusion.tolist(),
        "pixels": int(support.sum()),
    }
