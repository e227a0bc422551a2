"""Which values of a gene the best networks have, layer by layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hytas.search.ranks import spearman
from hytas.types import Floats

BEST = 0.1
"""Share of the networks that count as the best."""
LEAST_BEST = 5
LEAST_NETWORKS = 20
"""Of a layer; fewer do not show a preference."""


def by_depth(
    architectures: Sequence[Mapping[str, Any]], accuracy: Floats, resamples: int, seed: int
) -> dict[str, list[dict[str, Any]]]:
    """Return the values that the best networks have in each layer, as AutoFormer's supplementary.

    A network without a layer is left out there. So a deep layer compares deep networks only.

    Args:
        accuracy: (n,) larger is better.
        resamples: of the best networks, for the interval of 95 %.

    Returns:
        Gene with a number for each layer -> of each layer "layer" from 1, "networks", "spearman"
        of its value with the accuracy, "all", the mean of its value, "compared", the number of the
        best networks, and "best", the mean over them with its interval. A layer of fewer than
        `LEAST_NETWORKS` networks is left out, and a gene without layers.
    """
    generator = np.random.default_rng(seed)
    preferences: dict[str, list[dict[str, Any]]] = {}
    for gene in _layered(architectures):
        values = [item.get(gene) or [] for item in architectures]
        layers = []
        for layer in range(max(map(len, values))):
            have = np.array([at for at, own in enumerate(values) if len(own) > layer])
            if len(have) < LEAST_NETWORKS:
                break  # deeper layers have fewer
            own = np.array([values[at][layer] for at in have], np.float64)
            order = np.argsort(-accuracy[have], kind="stable")
            best = own[order[: max(LEAST_BEST, round(BEST * len(have)))]]
            drawn = generator.choice(best, (resamples, len(best))).mean(axis=1)
            interval = np.percentile(drawn, [2.5, 97.5])
            layers.append(
                {
                    "layer": layer + 1,
                    "networks": len(have),
                    "spearman": spearman(own, accuracy[have]),
                    "compared": len(best),
                    "all": float(own.mean()),
                    "best": [float(best.mean()), *map(float, interval)],
                }
            )
        if layers:
            preferences[gene] = layers
    return preferences


def _layered(architectures: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the genes with a list of numbers that differ somewhere."""
    names = dict.fromkeys(
        name
        for item in architectures
        for name, value in item.items()
        if isinstance(value, list) and value and not isinstance(value[0], str)
    )
    return [
        name
        for name in names
        if len({value for item in architectures for value in item.get(name) or []}) > 1
    ]
