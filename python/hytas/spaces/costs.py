"""Costs of architectures by the formulas of their space."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hytas._engine import Budget, Feasible, SearchSpace, builtin_space_text
from hytas.errors import InputError, reason_of
from hytas.spaces.names import (
    FITS,
    KERNEL_DIRECTIONS,
    KERNEL_UNITS,
    LINEAR_SPACE,
    MEAN_WITH,
    SHARE_FITS,
    VALUE_FITS,
    linear_architecture,
    network_of,
    space_of,
)
from hytas.spaces.opening import builtin_space
from hytas.spaces.shape import Shape

Variables = tuple[tuple[str, int], ...]
_Values = tuple[tuple[str, frozenset[Any]], ...]
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


def shipped_costs(
    architecture: Mapping[str, Any], space: SearchSpace, shape: Shape
) -> dict[str, int]:
    """Return the costs of what ships: a network, and the linear ones of its mean (`MEAN_WITH`).

    A mean adds the parameters, products and bytes of its networks, which compute one after the
    other: of their memory the largest counts.

    Args:
        architecture: of `space`, or of the space `linear`.
        space: with the latency tables of a budget; networks in closed form have no latency in them.
        shape: of the inputs.
    """
    genes = network_of(architecture)
    is_linear = space_of(genes) == LINEAR_SPACE
    own = linear_costs(genes["fit"], shape) if is_linear else space.cost(genes)
    costs = {name: value for name, value in own.items() if name in space.cost_names}
    fits = architecture.get(MEAN_WITH, ())
    for fit in fits:
        for name, value in linear_costs(fit, shape).items():
            if name in costs:
                costs[name] = (max if name in LARGEST else sum)((costs[name], value))
    for name, of_class in SHIFT.items() if fits else ():
        if name in costs:
            costs[name] += of_class * shape.classes
    return costs


def linear_costs(fit: str, shape: Shape) -> dict[str, int]:
    """Return the costs of a network in closed form.

    Each of its matrices costs what one from the bands to the classes does.
    """
    ends = [(shape.bands, shape.classes)]
    fit = dict(zip(SHARE_FITS, VALUE_FITS, strict=True)).get(fit, fit)
    if fit in KERNEL_DIRECTIONS:
        directions = KERNEL_DIRECTIONS[fit]
        ends = [
            (shape.bands, directions),
            (directions, KERNEL_UNITS),
            (KERNEL_UNITS, shape.classes),
        ]
    costs: dict[str, int] = {}
    for bands, classes in ends:
        variables = {**shape.variables(), "bands": bands, "classes": classes}
        space = builtin_space(LINEAR_SPACE, tuple(variables.items()))
        assert space is not None
        for name, value in space.cost(linear_architecture(FITS[0])).items():
            costs[name] = (max if name in LARGEST else sum)((costs.get(name, 0), value))
    if fit in KERNEL_DIRECTIONS:  # its units have no bias
        for name, each in SHIFT.items():
            costs[name] -= KERNEL_UNITS * each
    if fit in VALUE_FITS:  # its sums are in double precision, and its matrices stay as they are
        costs["flash"] += 4 * costs["params"]
        costs["bytes_int8"] = costs["bytes_fp16"] = costs["bytes_fp32"]
    return costs


def budget_of_network(
    budget: Budget, space: SearchSpace, shape: Shape, fits: Sequence[str] = FITS
) -> Budget:
    """Return what a budget leaves a network of `space` in the mean with networks in closed form."""
    network = next(iter(space.unpack(Feasible(space).sample(1, 0))))
    costs = space.cost(network), shipped_costs({**network, MEAN_WITH: fits}, space, shape)
    texts = []
    for name, lower, upper in budget.bounds:
        if name not in space.cost_names:  # refused when the budget is used
            return budget
        more = 0 if name in LARGEST else costs[1][name] - costs[0][name]
        timed = name.startswith("latency@")
        unit = "ns" if timed else "B" if space.cost_units[name] == "bytes" else ""
        texts.append(
            f"{lower}{unit}..{max(lower, upper - more)}{unit}-{name.removeprefix('bytes_')}"
        )
    return Budget.parse(texts)


LARGEST = ("activations", "ram")
"""Costs of which a mean has the largest of its networks, not the sum."""
SHIFT = {"params": 1, "flash": 4, "bytes_fp32": 4, "bytes_fp16": 2, "bytes_int8": 4}
"""Costs of the shift of a class in a mean."""


def _unlisted(space: SearchSpace, architecture: Mapping[str, Any]) -> _Values:
    """Return gene -> numbers of an architecture that the space does not list."""
    unlisted = []
    for gene in space.genes:
        value = architecture.get(gene["name"], [])
        values = frozenset(value if isinstance(value, list) else [value])
        new = values.difference(gene["values"])
        unlisted.append((gene["name"], frozenset(n for n in new if isinstance(n, int | float))))
    return tuple(unlisted)


@lru_cache(maxsize=256)
def _with_values(name: str, variables: Variables, values: _Values) -> SearchSpace:
    text, more = json.loads(builtin_space_text(name)), dict(values)
    for gene in text["genes"]:
        gene["values"] += sorted(more[gene["name"]])
    values_of_text = {variable: n for variable, n in variables if variable in text["variables"]}
    return SearchSpace.parse(json.dumps(text), values_of_text)
