"""The layers of a network that proxies read, and their kinds."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torch import nn

NAMED = {name: name for name in ("qkv", "proj", "fc1", "fc2", "head")} | {"gate": "fc1"}
"""Name of a layer -> its kind. A gate feeds a GELU, as fc1 does."""


class ReadLayer(NamedTuple):
    """A layer that proxies read.

    Attributes:
        kind: "embed", "qkv", "proj", "fc1", "fc2" or "head".
    """

    name: str
    module: nn.Module
    kind: str


def is_linear(module: nn.Module) -> bool:
    """Return whether proxies read a module: a linear layer or a convolution.

    A convolution is a linear map of unfolded inputs. Convolutions with groups, such as depthwise
    ones, and those with a padding other than zeros are left out.
    """
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        padded = isinstance(module.padding, str) or module.padding_mode != "zeros"
        return module.groups == 1 and not padded
    return isinstance(module, nn.Linear)


def linear_weights(network: nn.Module) -> frozenset[str]:
    """Return the names of the weights of all layers that proxies read."""
    modules = network.named_modules()
    return frozenset(f"{name}.weight" for name, module in modules if is_linear(module))


def layers_of(modules: Iterable[tuple[str, nn.Module]], classes: int) -> Iterator[ReadLayer]:
    """Yield the layers that proxies read, each with its kind, of the modules of one network.

    A convolution, and any layer of a part with "embed" in its name, is "embed". `NAMED` has the
    kind of some names. Of an attention (a part with "att" in its name), the last layer is "proj"
    and the others are "qkv". The last layer of all is "head" if it gives the classes. Of any other
    part, the first layer is "fc1" and the others are "fc2".

    Args:
        modules: with their names, in the order in which they are registered.
        classes: C, to recognise the head.
    """
    named = [(name, module) for name, module in modules if is_linear(module)]
    siblings: dict[str, list[nn.Module]] = {}
    for name, module in named:
        siblings.setdefault(name.rpartition(".")[0], []).append(module)
    for place, (name, module) in enumerate(named):
        part, _, own = name.rpartition(".")
        if isinstance(module, nn.Conv1d | nn.Conv2d) or "embed" in name:
            kind = "embed"
        elif own in NAMED:
            kind = NAMED[own]
        elif "att" in part.lower():
            others = siblings[part]
            kind = "proj" if module is others[-1] and len(others) > 1 else "qkv"
        elif place == len(named) - 1 and getattr(module, "out_features", 0) == classes:
            kind = "head"
        else:
            kind = "fc1" if module is siblings[part][0] else "fc2"
        yield ReadLayer(name, module, kind)
