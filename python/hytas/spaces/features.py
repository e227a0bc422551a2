"""Feature vectors: architectures and proxy scores as rows of numbers, for any search space."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hytas.errors import InputError
from hytas.spaces.genes import is_depth
from hytas.types import Architecture, Floats

MOST = 1e30  # sums of many such numbers are float32 still
"""Trees of scikit-learn compare in float32; of scores beyond it they learn that these are large."""


def gene_features(architecture: Architecture) -> dict[str, float]:
    """Return the genes of one architecture as named numbers.

    A number is itself, a flag 0 or 1, a label `gene=label` 1. A list of numbers, one a layer,
    becomes its sum, mean, minimum, maximum, first, last and length (a one-hot code of whole lists,
    as the field uses, hides that two lists are alike); a list of labels the share of each. The
    product of depth (the sum of all numbers that count layers; without them the longest list) and
    `embed_dim` is another feature, `depth-embed`.
    """
    features: dict[str, float] = {}
    for gene, value in architecture.items():
        features.update(_one_gene(gene, value))
    depths = [features[gene] for gene in architecture if is_depth(gene) and gene in features]
    counts = [x for name, x in features.items() if name.endswith(":count")]
    if "embed_dim" in features and (depths or counts):
        features["depth-embed"] = features["embed_dim"] * (sum(depths) if depths else max(counts))
    return features


def _one_gene(gene: str, value: Any) -> dict[str, float]:
    if value is None:
        return {}
    if isinstance(value, str):
        return {f"{gene}={value}": 1.0}
    if _is_number(value):
        return {gene: float(value)}
    if not isinstance(value, Sequence | np.ndarray):
        raise InputError(
            f"gene {gene} {value!r}", rule="must be a number, a label or a list of them"
        )
    if len(value) == 0:
        return {f"{gene}:count": 0.0}
    if all(isinstance(item, str) for item in value):
        labels = list(value)
        shares = {f"{gene}={item}": labels.count(item) / len(labels) for item in set(labels)}
        return {f"{gene}:count": float(len(labels)), **shares}
    if not all(_is_number(item) for item in value):
        raise InputError(f"gene {gene} {value!r}", rule="must hold numbers only, or labels only")
    numbers = [float(item) for item in value]
    return {
        f"{gene}:count": float(len(numbers)),
        f"{gene}:sum": sum(numbers),
        f"{gene}:mean": sum(numbers) / len(numbers),
        f"{gene}:min": min(numbers),
        f"{gene}:max": max(numbers),
        f"{gene}:first": numbers[0],
        f"{gene}:last": numbers[-1],
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


def feature_rows(architectures: Sequence[Architecture], scores: Mapping[str, Floats]) -> Floats:
    """Return `gene_features` and scores of architectures as rows (n, columns), finite in float32.

    A feature that an architecture lacks is 0. The median of a score stands for one that failed, 0
    if all did.

    Args:
        scores: name -> (n,).
    """
    features = [gene_features(item) for item in architectures]
    names = sorted({name for own in features for name in own})
    columns = [np.array([own.get(name, 0.0) for own in features]) for name in names]
    columns += [_without_failures(scores[name]) for name in sorted(scores)]
    rows: Floats = np.clip(np.stack(columns, axis=1), -MOST, MOST)
    return rows


def _without_failures(scores: Floats) -> Floats:
    finite = np.isfinite(scores)
    median = np.median(np.clip(scores[finite], -MOST, MOST)) if finite.any() else 0.0
    return np.where(finite, scores, median)
