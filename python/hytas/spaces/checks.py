"""Refuse an architecture whose genes cannot be those of its space."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from hytas._engine import SearchSpace
from hytas.errors import InputError
from hytas.spaces.genes import mlp_width
from hytas.spaces.names import PAPER_SPACE, space_of
from hytas.spaces.opening import builtin_space
from hytas.spaces.shape import Shape


def check_genes(architecture: Mapping[str, Any]) -> None:
    """Refuse genes that are missing or contradict each other, in a space of `FREE`.

    An architecture of another space is held to the values that its space lists: `check_listed`.
    """
    if (space := space_of(architecture)) in FREE:
        FREE[space](architecture)


def check_listed(
    architecture: Mapping[str, Any], shape: Shape, space: SearchSpace | None = None
) -> None:
    """Refuse an architecture that its space does not have.

    Args:
        space: that it must be of. Without it the built-in one that it names, unless that is in
            `FREE`: its networks may have any genes.
    """
    of = space_of(architecture)
    if space is None and of not in FREE:
        space = builtin_space(of, tuple(shape.variables().items()))
    if space is None:
        return
    if space.name != of:
        raise InputError("architecture", rule=f"of the space {of}: must be of {space.name}")
    try:
        space.pack([dict(architecture)])
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


MOST_WEIGHTS = 10**9
"""Of a HyTAS network that is scored: a typo must not exhaust memory."""

PAPER_GENES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "depth": (_whole, "a whole number"),
    "embed_dim": (_whole, "a whole number"),
    "num_heads": (_whole, "a list of whole numbers, one a layer"),
    "mlp_ratio": (_number, "a list of finite numbers, one a layer"),
}


def _check_kinds(architecture: Mapping[str, Any]) -> None:
    for name, (kind, rule) in PAPER_GENES.items():
        if name not in architecture and name == "depth":
            continue
        if name not in architecture:
            raise InputError("architecture", rule=f"it has no {name}")
        value = architecture[name]
        listed = "list" in rule
        if isinstance(value, list) != listed or not all(map(kind, value if listed else [value])):
            raise InputError(name, value, f"must be {rule}")


def _check_hytas(architecture: Mapping[str, Any]) -> None:
    _check_kinds(architecture)
    embed, heads = architecture["embed_dim"], list(architecture["num_heads"])
    ratios, depth = list(architecture["mlp_ratio"]), architecture.get("depth", len(heads))
    if not depth == len(heads) == len(ratios) or depth < 1:
        rule = f"of depth {depth}: {len(heads)} num_heads and {len(ratios)} mlp_ratio"
        hint = "each must have one value a layer"
        raise InputError("architecture", rule=rule, hint=hint)
    if not 1 <= embed <= MOST_WEIGHTS:
        raise InputError("embed_dim", embed, f"must be 1 to {MOST_WEIGHTS:.0e}")
    if not all(1 <= head <= embed for head in heads):
        raise InputError("num_heads", heads, f"each must lie in 1..{embed}, the embed_dim")
    if not all(1 <= embed * ratio <= MOST_WEIGHTS for ratio in ratios):
        raise InputError(
            "mlp_ratio", ratios, f"each must give a layer of 1 to {MOST_WEIGHTS:.0e} units"
        )
    weights = sum(4 * embed**2 + 2 * embed * mlp_width(embed, ratio) for ratio in ratios)
    if weights > MOST_WEIGHTS:
        rule = f"a network of {weights:.2g} weights"
        hint = f"at most {MOST_WEIGHTS:.0e} are scored"
        raise InputError("embed_dim", embed, rule, hint)


# search space -> what checks an architecture whose genes may have other values than those that the
# space lists, such as the widths of other studies. Those of any other space are held to its lists.
FREE: dict[str, Callable[[Mapping[str, Any]], None]] = {PAPER_SPACE: _check_hytas}
