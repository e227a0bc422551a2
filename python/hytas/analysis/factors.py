"""Genes as factors: a number or a label for each gene, whatever its form in the architecture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hytas.spaces.genes import active
from hytas.types import Floats

Architecture = Mapping[str, Any]
Value = float | str | None


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
        values: dict[str, list[Value]] = {}
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

    def columns(self, gene: str) -> list[int]:
        """Return the columns of a gene in `rows`."""
        start = 0
        for name, texts in self.labels.items():
            width = max(1, len(texts))
            if name == gene:
                return list(range(start, start + width))
            start += width
        raise KeyError(gene)

    def rows(self, architectures: Sequence[Architecture]) -> Floats:
        """Return the columns (n, c) of architectures."""
        width = sum(max(1, len(texts)) for texts in self.labels.values())
        factors = np.zeros((len(architectures), width))
        for row, architecture in enumerate(architectures):
            values, start = _values(architecture), 0
            for gene, texts in self.labels.items():
                value = values.get(gene)
                if texts:
                    if value in texts:
                        factors[row, start + texts.index(str(value))] = 1.0
                elif value is not None and not isinstance(value, str):
                    factors[row, start] = value
                start += max(1, len(texts))
        return factors


def _values(architecture: Architecture) -> dict[str, Value]:
    genes = active(architecture)
    return {name: _value(value) for name, value in genes.items() if name != "space"}


def _value(value: Any) -> Value:
    if isinstance(value, list):
        if any(isinstance(item, str) for item in value):
            return "-".join(map(str, value))
        return float(np.mean(value)) if value else None
    return value if isinstance(value, str) or value is None else float(value)
