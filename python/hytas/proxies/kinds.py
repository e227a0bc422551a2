"""Which layers of a network the proxies see, and what kind each is."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch import nn

NAMED = {name: name for name in ("qkv", "proj", "fc1", "fc2", "head")} | {"gate": "fc1"}
"""Name of a layer -> its kind. A gate feeds a GELU, as fc1 does."""


class Layer(NamedTuple):
    """A layer that the proxies see.

    Attributes:
        name: in its network.
        module: itself.
        kind: "embed", "qkv", "proj", "fc1", "fc2" or "head".
    """

    name: str
    module: nn.Module
    kind: str


def is_linear(module: nn.Module) -> bool:
    """Return whether the proxies see a module.

    They see linear layers, and convolutions, which are linear maps of the values that they stack.
    They do not see a convolution with groups (a depthwise one only filters), nor one that pads with
    anything but zeros.
    """
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        padded = isinstance(module.padding, str) or module.padding_mode != "zeros"
        return module.groups == 1 and not padded
    return isinstance(module, nn.Linear)


def linear_weights(network: nn.Module) -> frozenset[str]:
    """Return the names of the weights of the layers that the proxies see."""
    modules = network.named_modules()
    return frozenset(f"{name}.weight" for name, module in modules if is_linear(module))


def layers_of(network: nn.Module, classes: int) -> Iterator[Layer]:
    """Yield the layers that the proxies see, in the order in which they are registered.

    Args:
        network: any network.
        classes: C, to tell the head.
    """
    named = [(name, module) for name, module in network.named_modules() if is_linear(module)]
    return layers_among(named, classes)


def layers_among(named: Sequence[tuple[str, nn.Module]], classes: int) -> Iterator[Layer]:
    """Yield all layers that the proxies see of one network, each with its kind.

    A convolution, and what lies in a part with "embed" in its name, is "embed". `NAMED` tells the
    kind of some names. Of an attention (a part with "att" in its name), the last layer is "proj"
    and the others are "qkv". The last layer of all is "head" if it gives the classes. Of any other
    part, the first layer is "fc1" and the others are "fc2".

    Args:
        named: names and modules.
        classes: C, to tell the head.
    """
    beside: dict[str, list[nn.Module]] = {}
    for name, module in named:
        beside.setdefault(name.rpartition(".")[0], []).append(module)
    for place, (name, module) in enumerate(named):
        part, _, own = name.rpartition(".")
        if isinstance(module, nn.Conv1d | nn.Conv2d) or "embed" in name:
            kind = "embed"
        elif own in NAMED:
            kind = NAMED[own]
        elif "att" in part.lower():
            among = beside[part]
            kind = "proj" if module is among[-1] and len(among) > 1 else "qkv"
        elif place == len(named) - 1 and getattr(module, "out_features", 0) == classes:
            kind = "head"
        else:
            kind = "fc1" if module is beside[part][0] else "fc2"
        yield Layer(name, module, kind)
