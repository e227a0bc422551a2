"""Genes as factors: a number or a label for each gene, whatever its form in the architecture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from hytas.spaces.genes import active
from hytas.types import Architecture, Floats

_Value = float | str | None
MOST = 1e30  # sums of many such numbers are float32 still
"""Trees of scikit-learn compare in float32; of scores beyond it they learn that these are large."""


@dataclass(frozen=True)
class Factors:
    """The genes in which architectures differ, as columns of numbers.

    A number is itself. A list of numbers, one a layer, is its mean; `depth` tells its length. A
    label becomes a column for each of its values, 0 or 1. A gene of layers that an architecture
    does not have is 0 everywhere.

    Attributes:
        labels: gene -> values that have a column; empty for a number.
    """

    labels: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, architectures: Sequence[Architecture]) -> "Factors":
        """Return the factors of architectures, in the order of their genes."""
        values: dict[str, list[_Value]] = {}
        for number, architecture in enumerate(architectures):
            for gene, value in _values(architecture).items():
                values.setdefault(gene, [None] * number).append(value)
            for column in values.values():
                column.extend([None] * (number + 1 - len(column)))
        labels = {}
        for gene, column in values.items():
            if len(set(column)) > 1:
                texts = sorted({value for value in column if isinstance(value, str)})
                labels[gene] = tuple(texts)
        return cls(labels)

    @property
    def genes(self) -> list[str]:
        """Return the names of the genes."""
        return list(self.labels)

    @cached_property
    def columns(self) -> dict[str, list[int]]:
        """Gene -> its columns in `rows`."""
        numbers = count()
        return {gene: [next(numbers) for _ in texts or [""]] for gene, texts in self.labels.items()}

    def rows(self, architectures: Sequence[Architecture]) -> Floats:
        """Return the columns (n, c) of architectures."""
        factors = np.zeros((len(architectures), sum(map(len, self.columns.values()))))
        for row, architecture in zip(factors, architectures, strict=True):
            values = _values(architecture)
            for gene, texts in self.labels.items():
                value, columns = values.get(gene), self.columns[gene]
                if isinstance(value, str):
                    row[columns] = [value == text for text in texts] or 0.0
                elif value is not None and not texts:
                    row[columns] = value
        return factors

    def with_scores(
        self, architectures: Sequence[Architecture], scores: Mapping[str, Floats]
    ) -> Floats:
        """Return `rows` and a column for each score (n,), finite in float32.

        The median of a score stands for one that failed, 0 if all did.
        """
        columns = [_without_failures(scores[name]) for name in sorted(scores)]
        rows: Floats = np.column_stack([self.rows(architectures), *columns])
        return np.clip(rows, -MOST, MOST)


def _without_failures(scores: Floats) -> Floats:
    finite = np.isfinite(scores)
    median = np.median(np.clip(scores[finite], -MOST, MOST)) if finite.any() else 0.0
    return np.where(finite, scores, median)


def _values(architecture: Architecture) -> dict[str, _Value]:
    genes = active(architecture)
    return {name: _value(value) for name, value in genes.items() if name != "space"}


def _value(value: Any) -> _Value:
    if isinstance(value, list):
        if any(isinstance(item, str) for item in value):
            return "-".join(map(str, value))
        return float(np.mean(value)) if value else None
    return value if isinstance(value, str) or value is None else float(value)
