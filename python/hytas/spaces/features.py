"""Feature vectors: architectures and proxy scores as rows of numbers, for any search space."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hytas.errors import InputError
from hytas.spaces.genes import is_depth
from hytas.types import Floats

Architecture = Mapping[str, Any]

MOST = 1e30  # sums of many such numbers are float32 still
"""Trees of scikit-learn compare in float32; of scores beyond it they learn that these are large."""
SUMMARIES = ("sum", "mean", "min", "max", "first", "last")


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
    figures = (
        sum(numbers),
        sum(numbers) / len(numbers),
        min(numbers),
        max(numbers),
        numbers[0],
        numbers[-1],
    )
    named = {f"{gene}:{name}": x for name, x in zip(SUMMARIES, figures, strict=True)}
    return {f"{gene}:count": float(len(numbers)), **named}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


@dataclass(frozen=True)
class FeatureTable:
    """Names of the columns, and the substitute for a score that failed.

    Attributes:
        genes: names of `gene_features`; one that an architecture lacks is 0.
        medians: of each proxy's finite scores where the table was fitted; 0 where it has none.
    """

    genes: tuple[str, ...]
    proxies: tuple[str, ...]
    medians: tuple[float, ...]

    @classmethod
    def fit(
        cls, architectures: Sequence[Architecture], proxy_scores: Sequence[Mapping[str, float]]
    ) -> "FeatureTable":
        """Return the table of the columns that occur in these rows."""
        check_lengths(architectures, proxy_scores)
        genes = sorted({name for item in architectures for name in gene_features(item)})
        proxies = sorted({name for scores in proxy_scores for name in scores})
        columns = ([_score(scores, name) for scores in proxy_scores] for name in proxies)
        return cls(tuple(genes), tuple(proxies), tuple(_median(column) for column in columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of `rows`."""
        return (*self.genes, *self.proxies)

    def rows(
        self, architectures: Sequence[Architecture], proxy_scores: Sequence[Mapping[str, float]]
    ) -> Floats:
        """Return features (n, columns), finite in float32, without unknown genes and scores."""
        check_lengths(architectures, proxy_scores)
        result = np.zeros((len(architectures), len(self.names)))
        for row, (architecture, scores) in enumerate(zip(architectures, proxy_scores, strict=True)):
            features = gene_features(architecture)
            result[row, : len(self.genes)] = [features.get(name, 0.0) for name in self.genes]
            for column, (name, median) in enumerate(zip(self.proxies, self.medians, strict=True)):
                score = _score(scores, name)
                result[row, len(self.genes) + column] = score if np.isfinite(score) else median
        return np.clip(result, -MOST, MOST)


def check_lengths(
    architectures: Sequence[Architecture], proxy_scores: Sequence[Mapping[str, float]]
) -> None:
    """Refuse lists that do not belong together."""
    if len(architectures) != len(proxy_scores):
        rule = f"{len(proxy_scores)} rows for {len(architectures)} architectures"
        hint = "must be one an architecture"
        raise InputError("proxy_scores", rule=rule, hint=hint)


def _score(scores: Mapping[str, float], name: str) -> float:
    value = scores.get(name)
    return float("nan") if value is None else float(value)


def _median(column: Sequence[float]) -> float:
    finite = [value for value in column if np.isfinite(value)]
    return float(np.median(np.clip(finite, -MOST, MOST))) if finite else 0.0
