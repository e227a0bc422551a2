"""The genes of architectures."""

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from hytas._engine import builtin_spaces
from hytas.spaces.keys import plain_gene
from hytas.spaces.names import LINEAR_SPACE, MEAN_WITH, PRETREATMENTS, TITLES, space_of
from hytas.spaces.opening import OWN, space_text


def is_depth(gene: str) -> bool:
    """Tell whether a gene counts layers: `depth`, `depth_1`, `band_depth` and the like."""
    return "depth" in gene.split("_")


def active(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """Return the genes without those of layers that an architecture does not have.

    With a `band_depth` of 0, these are all whose names begin with "band_".
    """
    absent = [
        name.removesuffix("depth")
        for name, value in architecture.items()
        if is_depth(name) and name.endswith("_depth") and value == 0
    ]
    return {
        name: value for name, value in architecture.items() if not name.startswith(tuple(absent))
    }


def gene_text(value: Any) -> str:
    """Return the value of a gene as text; lists have hyphens: "3-4-4"."""
    return "-".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


_TOKENS = {
    "band": "bands",
    "pixel": "pixels",
    "series": "bands > pixels",
    "parallel": "bands + pixels",
}


def describe_kind(architecture: Mapping[str, Any]) -> str:
    """Return the kind and depth of a network in a few words: "pixels 5x5, gated conv3, 2 layers".

    Spaces without a gene `tokens` have one kind, so it says depth and width: "4 layers, width 64".
    Of a mean it names all members: "4 layers, width 64 + LDA".
    """
    genes = active(architecture)
    if fits := genes.pop(MEAN_WITH, None):
        return " + ".join([describe_kind(genes), *(TITLES[fit] for fit in fits)])
    if space_of(genes) == LINEAR_SPACE:
        return TITLES[genes["fit"]]
    depths = [value for name, value in genes.items() if is_depth(name)]
    counts = [
        count for value in depths for count in (value if isinstance(value, list) else [value])
    ]
    layers = f"{'+'.join(map(str, counts))} layer{'s' if sum(counts) != 1 else ''}"
    if "tokens" not in genes:
        width = genes.get("embed_dim", genes.get("base_dim"))
        if width is None:  # of a plug-in's space
            plain_genes = {n: v for n, v in genes.items() if n != "space" and not is_depth(n)}
            said = " ".join(f"{n} {v}" for n, v in plain_genes.items())
            return f"{layers}, {said}" if depths else said
        return f"{layers}, width {width}"
    stream = "band" if genes["tokens"] == "band" else "pixel"
    mixer = genes[f"{stream}_mixer"]
    gate = "gated " if genes[f"{stream}_gate"] == "yes" else ""
    mixing = f"{gate}{'MLP' if mixer == 'none' else mixer}"
    side = genes["patch"]
    skip = ", linear skip" if genes.get("skip") == "linear" else ""
    treated = PRETREATMENTS.get(genes.get("pretreatment", ""), "")
    tokens = _TOKENS.get(genes["tokens"], genes["tokens"])
    return f"{tokens} {side}x{side}, {mixing}, {layers}{treated and ', '}{treated}{skip}"


def mlp_width(embed_dim: int, mlp_ratio: float) -> int:
    """Return the hidden units of an MLP, floor(embed_dim * mlp_ratio), as the engine counts them.

    The ratio is the decimal that it is written as: 100 * 2.3 are 230 units, which floats make 229.
    """
    return int(embed_dim * Fraction(str(mlp_ratio)))


def genes_only(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """Return an architecture spelled in full, without what else its file says of it.

    "space" is there, and a depth that only the lists of the layers imply; costs and accuracies are
    not, for a score is a function of the seed and the genes alone. Other genes that are missing
    stay missing. Numbers and lists are Python's own, whatever kind they were, and 3.0 is 3.
    """
    space = space_of(architecture)
    depths = _genes(space)
    names = depths or [name for name in architecture if name not in ("space", "costs")]
    genes = {name: plain_gene(architecture[name]) for name in names if name in architecture}
    for name, depth in depths.items():
        if depth is not None and isinstance(genes.get(name), list):
            genes.setdefault(depth, len(genes[name]))
    return {"space": space, **genes}


def _genes(space: str) -> dict[str, str | None]:
    """Return gene -> the gene that gives its number of values, if one does."""
    return {gene["name"]: gene.get("per") for gene in _file(space).get("genes", ())}


def _file(space: str) -> dict[str, Any]:
    """Return the file of a built-in space, or of a plug-in's; an empty one for another name."""
    return _parsed(space_text(space)) if space in OWN or space in builtin_spaces() else {}


@lru_cache(maxsize=16)
def _parsed(text: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(text)
    return values


def gene_names(space: str) -> list[str]:
    """Return the genes of a built-in space, or of a plug-in's; none of another one."""
    return list(_genes(space))


def needed_genes(space: str) -> list[str]:
    """Return the genes that each architecture of a space names; older ones lack others."""
    return [gene["name"] for gene in _file(space).get("genes", ()) if "absent" not in gene]


def cost_names(space: str) -> list[str]:
    """Return the costs of a built-in space, or of a plug-in's; none of another one."""
    return list(_file(space).get("costs", ()))
