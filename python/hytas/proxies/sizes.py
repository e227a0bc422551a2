"""Costs of architectures of any space: the engine's, or those of the network itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hytas._engine import SearchSpace, builtin_spaces
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.models.shape import InputShape


@lru_cache(maxsize=16)
def _space(name: str, variables: tuple[tuple[str, int], ...]) -> SearchSpace | None:
    """The built-in space, with those of the variables that it has."""
    if name not in builtin_spaces():
        return None
    known = SearchSpace.builtin(name, {}).variables
    return SearchSpace.builtin(name, {key: n for key, n in variables if key in known})


def cost(architecture: Mapping[str, Any], shape: InputShape, name: str) -> float:
    """A cost ("params" or "macs") of an architecture that says its space.

    A built-in space gives it by its formula; for another, its network is built and counted.

    Raises:
        InputError: the architecture is not of its space, or no network belongs to that.
    """
    space = _space(str(architecture.get("space")), tuple(shape.variables().items()))
    if space is None:
        return _counted(architecture, shape, name)
    try:
        return float(space.cost(dict(architecture))[name])
    except (TypeError, ValueError) as error:
        raise InputError(f"architecture: {error}") from None


def check_genes(architecture: Mapping[str, Any], shape: InputShape) -> None:
    """Refuse an architecture that a built-in space does not have.

    Raises:
        InputError: a gene is missing, unknown, or has a value that the space does not list.
    """
    space = _space(str(architecture.get("space")), tuple(shape.variables().items()))
    if space is not None:
        try:
            space.pack([dict(architecture)])
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from None


def _counted(architecture: Mapping[str, Any], shape: InputShape, name: str) -> float:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from hytas.models.table import build_network, count_parameters

    # Where nothing is computed; and a CPU's attention kernel would not be counted.
    with torch.device("meta"):
        network = build_network(architecture, shape).eval()
        if name == "params":
            return float(count_parameters(network))
        patch = torch.empty(1, shape.patch_size, shape.patch_size, shape.bands)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            network(patch)
    return float(counter.get_total_flops()) / 2.0
