"""From an architecture, the plain mapping that crosses the rooms, to a network."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from hytas.errors import InputError
from hytas.model_card import ModelCard
from hytas.models.blocks import Drop, Layers
from hytas.models.kernel import KernelClasses
from hytas.models.linear import LinearNetwork, MeanNetwork
from hytas.models.network import Network
from hytas.models.pit import PoolingTransformer
from hytas.models.regression import FITTED, MeanOfValues
from hytas.models.spectral import BAND, PIXEL, SpectralTransformer, switch
from hytas.models.swin import WindowLayers, WindowTransformer
from hytas.models.vit import MEAN, VisionTransformer
from hytas.plugins import fill
from hytas.spaces import space_of
from hytas.spaces.names import MEAN_WITH, VALUE_FITS
from hytas.spaces.shape import DATA_OF, IMAGES, ImageShape, InputShape, Shape
from hytas.types import Architecture

MOST_LAYERS = 1000


def _hytas(architecture: Architecture, shape: InputShape, drop: Drop) -> nn.Module:
    genes = {
        "tokens": BAND,
        "patch": shape.patch_size,
        "band_width": shape.band_group,
        "band_stride": 1,
        "pooling": "class",
        "fusion": "yes",
        "embed_dim": architecture["embed_dim"],
    }
    layers = Layers(architecture["num_heads"], architecture["mlp_ratio"])
    return SpectralTransformer(shape, genes, {BAND: layers}, drop)


def _wide(architecture: Architecture, shape: InputShape, drop: Drop) -> nn.Module:
    layers = {stream: _layers(architecture, stream) for stream in (BAND, PIXEL)}
    return SpectralTransformer(shape, architecture, layers, drop)


def _layers(architecture: Architecture, stream: str) -> Layers:
    mlp, gate = architecture[f"{stream}_mlp"], f"{stream}_gate"
    heads = [architecture[f"{stream}_heads"]] * len(mlp)
    mixer = architecture[f"{stream}_mixer"]
    return Layers(heads, mlp, mixer, switch(gate, architecture[gate]))


REACH = 14
"""Of AutoFormer's relative positions, in patches."""


def _vit(head_dim: int) -> Callable[[Architecture, ImageShape, Drop], nn.Module]:
    """Return the builder of AutoFormer's networks with heads of this width.

    A space file may have the genes `pooling` (class or mean) and `relative` (yes or no).
    """

    def build(architecture: Architecture, shape: ImageShape, drop: Drop) -> nn.Module:
        relative = switch("relative", architecture.get("relative", "yes"))
        layers = Layers(
            architecture["num_heads"],
            architecture["mlp_ratio"],
            head_dim=head_dim,
            reach=REACH if relative else 0,
        )
        return VisionTransformer(
            shape,
            embed_dim=architecture["embed_dim"],
            layers=layers,
            pooling=architecture.get("pooling", MEAN),
            drop=drop,
        )

    return build


def _pit(architecture: Architecture, shape: ImageShape, drop: Drop) -> nn.Module:
    return PoolingTransformer(
        shape,
        base_dim=architecture["base_dim"],
        depth=architecture["depth"],
        num_heads=architecture["num_heads"],
        mlp_ratio=architecture["mlp_ratio"],
        drop=drop,
    )


def _s3(architecture: Architecture, shape: ImageShape, drop: Drop) -> nn.Module:
    stages = [
        WindowLayers(
            architecture[f"num_heads_{number}"], architecture[f"mlp_ratio_{number}"], window
        )
        for number, window in enumerate(architecture["window"], start=1)
    ]
    return WindowTransformer(shape, embed_dim=architecture["embed_dim"], stages=stages, drop=drop)


def _linear(architecture: Architecture, shape: Shape, drop: Drop) -> nn.Module:
    return closed_form(architecture["fit"], shape)


CLOSED_FORMS: dict[str, Callable[[int, int, str], Network]] = {
    "lda": LinearNetwork,
    "softmax": LinearNetwork,
    "rbf": KernelClasses,
    **FITTED,
}
"""Name of a fit (`hytas.spaces.names.TITLES`) -> its network."""


def closed_form(fit: str, shape: Shape) -> Network:
    """Return the network of a fit."""
    return CLOSED_FORMS[fit](shape.bands, shape.classes, fit)


def mean_network(network: nn.Module, shape: Shape, fits: Sequence[str]) -> MeanNetwork:
    """Return the mean of a network and of fitted ones."""
    kind = MeanOfValues if set(fits) <= set(VALUE_FITS) else MeanNetwork
    return kind(network, {fit: closed_form(fit, shape) for fit in fits}, shape.classes)


# search space -> its network. A new space is one function, one line, and its data in `DATA_OF`.
NETWORKS: dict[str, Callable[[Architecture, Any, Drop], nn.Module]] = {
    "hytas": _hytas,
    "hytas-wide": _wide,
    "hytas-tiny": _wide,
    "linear": _linear,
    "autoformer": _vit(64),
    "autoformer-mini": _vit(16),
    "autoformer-tiny": _vit(64),
    "autoformer-small": _vit(64),
    "autoformer-base": _vit(64),
    "pit-tiny": _pit,
    "pit-xs": _pit,
    "pit-small": _pit,
    "s3": _s3,
}
BUILT_IN = frozenset(NETWORKS)
fill("network", NETWORKS)


def _no_network(space: object) -> InputError:
    return InputError("space", space, f"not one of {', '.join(NETWORKS)}")


def check_data(space: str, shape: Shape) -> None:
    """Refuse a space that has no network, or has one for other data."""
    if space not in NETWORKS:
        raise _no_network(space)
    wanted = DATA_OF.get(space)
    if wanted is not None and (wanted == IMAGES) != isinstance(shape, ImageShape):
        given = "a set of images" if isinstance(shape, ImageShape) else "a scene"
        raise InputError("space", space, f"its networks take {wanted}, and the data are {given}")


def build_network(
    architecture: Architecture,
    shape: Shape,
    *,
    drop_path: float = 0.0,
    dropout: float = 0.0,
    seed: int = 0,
) -> nn.Module:
    """Return the network of `architecture` on inputs of `shape`, initialised from `seed` alone.

    The global generator does not change.

    Args:
        drop_path: probability that training skips the last layer's branches, for a sample.
        dropout: probability that training sets a value of a layer's branch to 0.

    Raises:
        InputError: no network belongs to the architecture's space, it has too many layers, or a
            gene has a value that the network does not know, as a space file may bring it.
    """
    space = architecture.get("space")
    if space not in list(NETWORKS):  # a list, because the space of a file may be no text
        raise _no_network(space)
    check_data(str(space), shape)
    for gene, value in architecture.items():
        if isinstance(value, list) and len(value) > MOST_LAYERS:
            rule = f"{len(value)} layers"
            hint = f"a network has at most {MOST_LAYERS}"
            raise InputError("architecture", gene, rule, hint)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reseed GPUs, too
        network = NETWORKS[space](architecture, shape, Drop(drop_path, dropout))
        if fits := architecture.get(MEAN_WITH):
            network = mean_network(network, shape, fits)
    return network


def patch_size_of(architecture: Architecture, shape: Shape) -> int:
    """Return the side of the patch that the network reads.

    The scene's patch, of which it is the centre, is the largest that a search may choose.
    """
    return int(architecture.get("patch", shape.side))


def input_shape(card: ModelCard) -> Shape:
    """Return the shape of the input of the network that a card describes."""
    kept, classes, space = len(card.kept_bands), len(card.class_ids), space_of(card.architecture)
    if card.of_images:
        return ImageShape.of(space, kept, classes, card.patch_size)
    if DATA_OF.get(space) == IMAGES:
        return ImageShape.of_pixels(kept, classes, card.patch_size)
    return InputShape(kept, classes, card.patch_size, card.band_group, int(card.has_values))


def count_parameters(network: nn.Module) -> int:
    """Return the number of parameters of `network`, shared ones once."""
    return sum(parameter.numel() for parameter in network.parameters())
