"""The base class of networks, which declares their capabilities."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models.layers import Initializer
from hytas.models.pretreatment import Pretreatment
from hytas.models.streams import TokenStream, initializers_of


@dataclass(frozen=True)
class RowParts:
    """The parts of a network for whole rows of pixels.

    Attributes:
        pixels: scaled bands (..., bands) -> features (..., F), which the patches of a pixel share.
        row: features of P rows (P, W + P - 1, F) -> logits (W, C) of the pixels of the middle row.
    """

    pixels: nn.Module
    row: nn.Module


class Network(nn.Module):
    """A network of a search space: scaled patches (N, P, P, bands) -> logits (N, classes).

    A new network overrides its capabilities; the others are refused by its name.
    """

    def __init_subclass__(cls) -> None:
        """Let networks of hytas be repeatable, and others only if they say so themselves."""
        super().__init_subclass__()
        if "repeatable" not in vars(cls):
            cls.repeatable = cls.__module__.startswith("hytas.models.")

    @property
    def token_streams(self) -> Mapping[str, TokenStream]:
        """The streams of tokens, by name; none by default."""
        return {}

    readout = "head"
    """Name of the layer that gives the logits."""

    @property
    def readouts(self) -> tuple[str, ...]:
        """Names of all layers that give logits, also inside a mean."""
        return (self.readout,)

    repeatable = False
    """Whether a pass always runs the same operations of torch on its device, so that a GPU may
    replay the pass. A class that neither draws nor decides in Python sets it to True, and so does
    each class that derives from it; the networks of hytas are repeatable."""
    fresh = True
    """Whether a training may start its weights from the data: it has not been trained before."""
    closed_form = False
    """Whether `solve` fits it to training pixels, so that no optimiser step trains it."""
    starts_by_streams = False
    """Whether all parameters start by the initializers of `hytas.models.streams`."""

    @property
    def pixel_projection(self) -> nn.Linear | None:
        """The linear map that whitening may set, from the bands of a pixel; None: there is none."""
        return None

    @property
    def linear_skip(self) -> nn.Linear | None:
        """The matrix on the bands of the centre pixel whose logits are added; None without one."""
        return None

    def solve(
        self, patches: Tensor, targets: Tensor, groups: NDArray[np.int64] | None = None
    ) -> None:
        """Fit the network in place to scaled patches (N, P, P, bands), as far as it looks at them
        (`seen`), and targets: class indices (N,), or values (N, T).

        Args:
            groups: (N,) of the samples, which inner folds keep whole; or None.

        Raises:
            InputError: it is not fitted in closed form.
        """
        raise InputError("network", rule=f"a {type(self).__name__} is trained, not solved")

    def seen(self, patches: Tensor) -> Tensor:
        """Return as much of patches (N, P, P, bands) as the network looks at."""
        return patches

    def stage_tokens(self, images: Tensor) -> list[Tensor]:
        """Return the tokens (N, T, E) of each stage, on square grids, the finest first.

        Raises:
            InputError: its tokens do not lie on a grid of the image.
        """
        rule = f"a {type(self).__name__} has no stages of tokens on a grid"
        raise InputError("dense", rule=rule, hint="take a space of images")

    @property
    def pretreatment(self) -> Pretreatment | None:
        """What is done to each spectrum first; None: nothing."""
        return None

    def pretreated(self, patches: Tensor) -> Tensor:
        """Return what the layers read of patches (N, P, P, bands) that the network looks at."""
        return patches if self.pretreatment is None else self.pretreatment(patches)

    def initializers(self) -> dict[str, Initializer]:
        """Return parameter name -> initializer.

        A network that does not name them all starts, for the proxies, as it constructs itself.
        """
        return initializers_of(self) if self.starts_by_streams else {}

    def strips(self) -> RowParts:
        """Return the parts of the network for whole rows of pixels (the scene graph).

        Raises:
            InputError: the network shares nothing between the patches of a scene.
        """
        rule = f"a {type(self).__name__} has no embedding that the patches of a tile share"
        hint = "export the patch graph"
        raise InputError("scene_graph", rule=rule, hint=hint)


def small_parameters(network: nn.Module) -> set[str]:
    """Return the names of biases, normalisations and the read-out of a network.

    To fine-tune these alone changes few weights (BitFit, Zaken et al., ACL 2022).
    """
    readouts = as_network(network, "small parameters").readouts
    return {
        name
        for name, parameter in network.named_parameters()
        if parameter.ndim <= 1 or name.startswith(tuple(f"{readout}." for readout in readouts))
    }


def as_network(network: nn.Module, purpose: str) -> Network:
    """Return `network` if it declares its capabilities.

    Raises:
        InputError: it does not; the message names its class and `purpose`.
    """
    if not isinstance(network, Network):
        rule = f"a {type(network).__name__} does not say what it can do"
        hint = "networks of a search space derive from hytas.models.Network"
        raise InputError(purpose, rule=rule, hint=hint)
    return network
