"""What an architecture got, and why where it got nothing. Needs no torch."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypedDict

from hytas._engine import SearchSpace, builtin_spaces
from hytas.errors import InputError
from hytas.proxies.keys import plain


class Scores(TypedDict):
    """What an architecture got.

    scores: proxy -> score, NaN where it failed; seconds: share of its group's time; reasons:
    proxy -> why its score is NaN.
    """

    scores: dict[str, float]
    seconds: float
    reasons: dict[str, str]


def record(result: Scores, name: str, value: float) -> None:
    """Keep a score; one that is not a finite number becomes NaN, with its reason."""
    result["scores"][name] = value
    if value != value:
        result["reasons"][name] = (
            "not a number: the formula has no value here; `hytas proxies "
            f"{name.partition(':')[0]}` lists its options"
        )
    elif value in (float("inf"), float("-inf")):
        result["scores"][name] = float("nan")
        result["reasons"][name] = f"{value}: the score has no finite value"


def genes_only(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """An architecture spelled in full, without what else its file says of it.

    "space" and, of HyTAS, "depth" are there; costs and accuracies are not, for a score is a
    function of the seed and the genes alone. What is missing otherwise stays so. Numbers and lists
    are Python's own, whatever kind they were, and 3.0 is 3.
    """
    space = str(architecture.get("space", "hytas"))
    if space != "hytas":
        known = _gene_names(space) or architecture.keys() - {"costs"}
        return {name: plain(architecture[name]) for name in architecture if name in known}
    genes = {name: plain(architecture[name]) for name in GENES if name in architecture}
    if isinstance(heads := genes.get("num_heads"), Sequence):
        genes.setdefault("depth", len(heads))
    return {"space": "hytas", **genes}


@lru_cache(maxsize=16)
def _gene_names(space: str) -> frozenset[str]:
    """The genes of a built-in space, and its key "space"; none of another."""
    if space not in builtin_spaces():
        return frozenset()
    return frozenset({"space", *(gene["name"] for gene in SearchSpace.builtin(space, {}).genes)})


def check_architecture(architecture: Mapping[str, Any]) -> None:
    """Refuse what names no architecture that a network can be built of.

    A HyTAS network may have genes that its space does not list, such as other widths.

    Raises:
        InputError: an unknown space, a gene missing, or genes that contradict each other.
    """
    space = architecture.get("space", "hytas")
    if space == "hytas":
        _check_hytas(architecture)
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
    weights = sum(4 * embed**2 + 2 * embed * int(embed * ratio) for ratio in ratios)
    if weights > MOST_WEIGHTS:
        raise InputError(
            f"embed_dim {embed}: a network of {weights:.2g} weights; at most {MOST_WEIGHTS:.0e} "
            "are scored"
        )
