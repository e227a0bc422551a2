"""What an architecture says: its space, and its genes. Needs no torch."""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from hytas._engine import SearchSpace, builtin_spaces
from hytas.errors import InputError
from hytas.proxies.keys import plain
from hytas.spaces import PAPER_SPACE, mlp_width, space_of


def genes_only(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """An architecture spelled in full, without what else its file says of it.

    "space" is there, and a depth that only the lists of the layers tell; costs and accuracies are
    not, for a score is a function of the seed and the genes alone. What is missing otherwise stays
    so. Numbers and lists are Python's own, whatever kind they were, and 3.0 is 3.
    """
    space = space_of(architecture)
    known = _genes(space)
    names = known or [name for name in architecture if name not in ("space", "costs")]
    genes = {name: plain(architecture[name]) for name in names if name in architecture}
    for name, depth in known.items():
        if depth is not None and isinstance(genes.get(name), list):
            genes.setdefault(depth, len(genes[name]))
    return {"space": space, **genes}


@lru_cache(maxsize=16)
def _genes(space: str) -> dict[str, str | None]:
    """The genes of a built-in space -> the gene that says how many values each has, if one does."""
    if space not in builtin_spaces():
        return {}
    return {gene["name"]: gene["per"] for gene in SearchSpace.builtin(space, {}).genes}


def check_architecture(architecture: Mapping[str, Any]) -> None:
    """Refuse what names no architecture that a network can be built of.

    Raises:
        InputError: an unknown space; of a space in `FREE`, a gene missing, or genes that contradict
            each other.
    """
    space = architecture.get("space", PAPER_SPACE)
    if isinstance(space, str) and space in FREE:
        FREE[space](architecture)
        return
    from hytas.models.table import NETWORKS

    if not isinstance(space, str) or space not in NETWORKS:
        raise InputError(f"architecture space {space!r}: not one of {', '.join(NETWORKS)}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


MOST_WEIGHTS = 10**9
"""Of a HyTAS network that is scored: a typing error shall not take all memory."""

GENES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "depth": (_whole, "a whole number"),
    "embed_dim": (_whole, "a whole number"),
    "num_heads": (_whole, "a list of whole numbers, one a layer"),
    "mlp_ratio": (_number, "a list of finite numbers, one a layer"),
}


def _check_kinds(architecture: Mapping[str, Any]) -> None:
    for name, (kind, rule) in GENES.items():
        if name not in architecture and name == "depth":
            continue
        if name not in architecture:
            raise InputError(f"architecture: it has no {name}")
        value = architecture[name]
        listed = "list" in rule
        if isinstance(value, list) != listed or not all(map(kind, value if listed else [value])):
            raise InputError(f"{name} {value}: must be {rule}")


def _check_hytas(architecture: Mapping[str, Any]) -> None:
    _check_kinds(architecture)
    embed, heads = architecture["embed_dim"], list(architecture["num_heads"])
    ratios, depth = list(architecture["mlp_ratio"]), architecture.get("depth", len(heads))
    if not depth == len(heads) == len(ratios) or depth < 1:
        raise InputError(
            f"architecture of depth {depth}: {len(heads)} num_heads and {len(ratios)} mlp_ratio; "
            "each must have one value a layer"
        )
    if not 1 <= embed <= MOST_WEIGHTS:
        raise InputError(f"embed_dim {embed}: must be 1 to {MOST_WEIGHTS:.0e}")
    if not all(1 <= head <= embed for head in heads):
        raise InputError(f"num_heads {heads}: each must lie in 1..{embed}, the embed_dim")
    if not all(1 <= embed * ratio <= MOST_WEIGHTS for ratio in ratios):
        raise InputError(
            f"mlp_ratio {ratios}: each must give a layer of 1 to {MOST_WEIGHTS:.0e} units"
        )
    weights = sum(4 * embed**2 + 2 * embed * mlp_width(embed, ratio) for ratio in ratios)
    if weights > MOST_WEIGHTS:
        raise InputError(
            f"embed_dim {embed}: a network of {weights:.2g} weights; at most {MOST_WEIGHTS:.0e} "
            "are scored"
        )


# search space -> what checks an architecture whose genes may have other values than those that the
# space lists, such as the widths of other studies. Those of any other space are held to its lists.
FREE: dict[str, Callable[[Mapping[str, Any]], None]] = {PAPER_SPACE: _check_hytas}
