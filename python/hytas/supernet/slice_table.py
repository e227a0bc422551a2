"""A family of subnets in one file of weights, and a table of slices that cuts each of them.

The table is plain JSON, so that a program without hytas can cut a subnet: docs/research.md has the
lines.
"""

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hytas.files import atomic_write
from hytas.supernet.weights import Supernet
from hytas.train import Subnet, Weights
from hytas.train.slicing import put, runs_of, union

FORMAT = "hytas-slices"
VERSION = 1


def family_weights(supernet: Supernet, architectures: Mapping[str, Mapping[str, Any]]) -> Weights:
    """Return name -> the smallest parameter of which those of all architectures are slices."""
    subnets, sizes = _family(supernet, architectures)
    full = {name: torch.zeros(size) for name, size in sizes.items()}
    for subnet in subnets.values():
        for name, value in supernet.values(subnet).items():
            put(name, full[name], value.cpu())
    return full


def slice_table(
    supernet: Supernet,
    architectures: Mapping[str, Mapping[str, Any]],
    about: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return what cuts each subnet from `family_weights`, JSON-ready.

    Args:
        architectures: name of a subnet -> its architecture.
        about: name -> what else the table shall say of it.

    Returns:
        An object whose "subnets" have for each parameter and each axis the runs of places,
        [first, one after the last], that the subnet keeps.
    """
    subnets, sizes = _family(supernet, architectures)
    listed = {
        name: {
            "architecture": dict(architectures[name]),
            **about.get(name, {}),
            "slices": {
                parameter: [
                    [list(run) for run in axis]
                    for axis in runs_of(parameter, sizes[parameter], own)
                ]
                for parameter, own in subnet.sizes.items()
            },
        }
        for name, subnet in subnets.items()
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "supernet": supernet.digest,
        "parameters": {name: list(size) for name, size in sizes.items()},
        "subnets": listed,
    }


def _family(
    supernet: Supernet, architectures: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Subnet], dict[str, torch.Size]]:
    """Return the subnets by name, and the smallest size of each parameter that holds all."""
    subnets = {name: supernet.subnet(each) for name, each in architectures.items()}
    return subnets, reduce(union, (subnet.sizes for subnet in subnets.values()), {})


def save_family_weights(path: Path, weights: Weights) -> None:
    """Write weights by name to a .npz file, whole or not at all."""
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **{n: w.numpy() for n, w in weights.items()})
