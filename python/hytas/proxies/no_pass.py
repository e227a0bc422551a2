"""Scores that need no pass: what every proxy has to beat."""

from collections.abc import Callable, Mapping
from typing import Any

from hytas.errors import InputError
from hytas.spaces.costs import cost
from hytas.spaces.genes import is_depth
from hytas.spaces.keys import architecture_key, stable_hash
from hytas.spaces.shape import Shape

# The middle of the depths 4..10, and the median width of the 2000 published networks.


def needs_supernet() -> InputError:
    """Return the refusal of the proxy "inherited" where no supernet is given."""
    hint = "give `supernet`, a file that `hytas supernet train` writes"
    return InputError("proxy", "inherited", "scores with the weights of a supernet", hint)


def params(architecture: Mapping[str, Any], shape: Shape, seed: int) -> float:
    """Parameters of the network as it ships, cross-layer fusion included.

    Source: baseline. Direction: larger is better. Data: none. Shape: an architecture to a number.
    Cost: a formula.
    """
    return cost(architecture, shape, "params", _counted)


def macs(architecture: Mapping[str, Any], shape: Shape, seed: int) -> float:
    """Multiply-accumulates of the matrix products, for one patch.

    Source: baseline. Direction: larger is better. Data: none. Shape: an architecture to a number.
    Cost: a formula.
    """
    return cost(architecture, shape, "macs", _counted)


def _counted(architecture: Mapping[str, Any], shape: Shape, name: str) -> float:
    """The cost of an architecture of a space without formulas, whose network is built for it."""
    from hytas.models.counting import counted_cost

    return counted_cost(architecture, shape, name)


def depth_embed(architecture: Mapping[str, Any], shape: Shape, seed: int) -> float:
    """Depth times embedding width: on average better than every published column, and free.

    Source: HyTAS's published results, ranked by us. Direction: larger is better. Data: none. Shape:
    an architecture to a number. Cost: none. The depth is that of all streams or stages together:
    the sum of the genes `depth`, `depth_1`, `band_depth` and the like.
    """
    depth, width = depth_and_width("depth-embed", architecture)
    return depth * width


def width(architecture: Mapping[str, Any], shape: Shape, seed: int) -> float:
    """Embedding width; of equal widths, the one with more parameters is ahead.

    Source: finalists of races of `hytas-wide`, ranked by us (notes/decisions.md). Direction: larger
    is better, among networks of one kind and size. Data: none. Shape: an architecture to a number.
    Cost: a formula. Without a gene `embed_dim` or `base_dim`, parameters decide alone.
    """
    wide = architecture.get("embed_dim", architecture.get("base_dim", 0))
    count = params(architecture, shape, seed)
    return float(wide) + count / (count + 1e6)


def depth_and_width(proxy: str, architecture: Mapping[str, Any]) -> tuple[float, float]:
    """Return the layers of all streams together and the width, for `proxy`."""
    depths = [
        sum(value) if hasattr(value, "__len__") else value
        for name, value in architecture.items()
        if is_depth(name)
    ]
    width = architecture.get("embed_dim", architecture.get("base_dim"))
    if not depths or width is None:
        raise InputError(proxy, rule="the architecture has no depth, or no embed_dim or base_dim")
    return float(sum(depths)), float(width)


def inherited(
    architecture: Mapping[str, Any], supernet: Callable[[Mapping[str, Any]], float]
) -> float:
    """Mean probability of the true class on validation pixels, with the weights of a supernet.

    Source: AutoFormer (Chen et al., ICCV 2021), Algorithm 2, by accuracy. Direction: larger is
    better. Data: validation pixels, and a supernet that `hytas supernet train` trained on the
    training pixels. Shape: an architecture to a number. Cost: a forward pass.
    """
    return supernet(architecture)


def random(architecture: Mapping[str, Any], shape: Shape, seed: int) -> float:
    """A uniform number in [0, 1) drawn from the seed and the architecture: random search.

    Source: baseline. Direction: none. Data: none. Shape: an architecture to a number. Cost: none.
    """
    return draw_of(architecture, seed)


def draw_of(architecture: Mapping[str, Any], seed: int) -> float:
    """A uniform number in [0, 1) that the seed and the architecture fix."""
    return stable_hash(seed, "random", architecture_key(architecture)) / 2.0**64
