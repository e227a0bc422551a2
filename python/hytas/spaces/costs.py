"""Costs of architectures by the formulas of their space."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hytas._engine import SearchSpace, builtin_space_text
from hytas.errors import InputError, reason_of
from hytas.spaces.names import space_of
from hytas.spaces.opening import builtin_space
from hytas.spaces.shape import Shape

Variables = tuple[tuple[str, int], ...]
Values = tuple[tuple[str, frozenset[Any]], ...]
Counter = Callable[[Mapping[str, Any], Shape, str], float]
"""From an architecture, the shape of its inputs and a cost's name to that cost."""


@dataclass(frozen=True)
class LayerCost:
    """One part of a network.

    Attributes:
        name: of its module; "" for the parameters that belong to no part.
        stream: the stream of tokens that it is of; "" for what comes after all streams.
        macs: multiply-accumulates of its matrix products for one patch.
    """

    name: str
    stream: str
    about: str
    params: int
    macs: int


def cost(
    architecture: Mapping[str, Any], shape: Shape, name: str, count: Counter | None = None
) -> float:
    """Return one cost of an architecture that names its space, such as "params" or "macs".

    A built-in space gives it by its formula, for numbers that it does not list, too: those of other
    studies, or of a space file made from it.

    Args:
        count: gives the cost of an architecture whose space is not built in.
    """
    of, variables = space_of(architecture), tuple(shape.variables().items())
    space = builtin_space(of, variables)
    if space is None:
        if count is None:
            raise InputError("space", of, f"must be built in for its {name}")
        return count(architecture, shape, name)
    try:
        try:
            costs = space.cost(dict(architecture))
        except ValueError:
            values = _unlisted(space, architecture)
            costs = _with_values(of, variables, values).cost(dict(architecture))
    except (TypeError, ValueError) as error:
        raise InputError("architecture", rule=reason_of(error)) from None
    return float(costs[name])


def _unlisted(space: SearchSpace, architecture: Mapping[str, Any]) -> Values:
    """Return gene -> numbers of an architecture that the space does not list."""
    unlisted = []
    for gene in space.genes:
        value = architecture.get(gene["name"], [])
        values = frozenset(value if isinstance(value, list) else [value])
        new = values.difference(gene["values"])
        unlisted.append((gene["name"], frozenset(n for n in new if isinstance(n, int | float))))
    return tuple(unlisted)


@lru_cache(maxsize=256)
def _with_values(name: str, variables: Variables, values: Values) -> SearchSpace:
    text, more = json.loads(builtin_space_text(name)), dict(values)
    for gene in text["genes"]:
        gene["values"] += sorted(more[gene["name"]])
    values_of_text = {variable: n for variable, n in variables if variable in text["variables"]}
    return SearchSpace.parse(json.dumps(text), values_of_text)
