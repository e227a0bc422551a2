"""Costs of architectures of any space: the engine's, or those of the network itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hytas._engine import SearchSpace, builtin_space_text, builtin_spaces
from hytas.errors import InputError
from hytas.proxies.genes import FREE
from hytas.spaces import open_space, space_of

if TYPE_CHECKING:
    from hytas.models.shape import InputShape


Variables = tuple[tuple[str, int], ...]
Values = tuple[tuple[str, frozenset[Any]], ...]


@lru_cache(maxsize=16)
def _space(name: str, variables: Variables) -> SearchSpace | None:
    """The built-in space, with those of the variables that it has.

    Raises:
        InputError: a variable has a value that the space does not take.
    """
    if name not in builtin_spaces():
        return None
    return open_space(name, offered=dict(variables))[0]


def _unlisted(space: SearchSpace, architecture: Mapping[str, Any]) -> Values:
    """gene -> the numbers that an architecture has of it and the space does not list."""
    found = []
    for gene in space.genes:
        value = architecture.get(gene["name"], [])
        values = frozenset(value if isinstance(value, list) else [value])
        new = values.difference(gene["values"])
        found.append((gene["name"], frozenset(n for n in new if isinstance(n, int | float))))
    return tuple(found)


@lru_cache(maxsize=256)
def _with_values(name: str, variables: Variables, values: Values) -> SearchSpace:
    """A built-in space whose genes have these values beside those that it lists."""
    text, more = json.loads(builtin_space_text(name)), dict(values)
    for gene in text["genes"]:
        gene["values"] += sorted(more[gene["name"]])
    known = {variable: n for variable, n in variables if variable in text["variables"]}
    return SearchSpace.parse(json.dumps(text), known)


def cost(architecture: Mapping[str, Any], shape: InputShape, name: str) -> float:
    """A cost ("params" or "macs") of an architecture that says its space.

    A built-in space gives it by its formula, for numbers that it does not list, too: those of other
    studies, or of a space file made from it. For another space, the network is built and counted.

    Raises:
        InputError: the architecture is not of its space, or no network belongs to that.
    """
    of, variables = space_of(architecture), tuple(shape.variables().items())
    space = _space(of, variables)
    if space is None:
        return _counted(architecture, shape, name)
    try:
        try:
            costs = space.cost(dict(architecture))
        except ValueError:
            values = _unlisted(space, architecture)
            costs = _with_values(of, variables, values).cost(dict(architecture))
    except (TypeError, ValueError) as error:
        raise InputError(f"architecture: {error}") from None
    return float(costs[name])


def check_genes(
    architecture: Mapping[str, Any], shape: InputShape, space: SearchSpace | None = None
) -> None:
    """Refuse an architecture that its space does not have.

    Args:
        architecture: genes.
        shape: the InputShape.
        space: that it must be of. Without it the built-in one that it names, unless that is in
            `FREE`: its networks may have any genes.

    Raises:
        InputError: a gene is missing, unknown, or has a value that the space does not list.
    """
    of = space_of(architecture)
    if space is None and of not in FREE:
        space = _space(of, tuple(shape.variables().items()))
    if space is None:
        return
    if space.name != of:
        raise InputError(f"architecture of the space {of}: must be of {space.name}")
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
