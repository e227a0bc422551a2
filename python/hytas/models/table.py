"""From an architecture, the plain mapping that crosses the rooms, to a network."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from hytas.errors import InputError
from hytas.models.blocks import Drop, Layers
from hytas.models.spectral import BAND, SpectralTransformer
from hytas.spaces.shape import InputShape

MOST_LAYERS = 1000
Architecture = Mapping[str, Any]
"""`{"space": name, gene: value or list of values a layer, ...}`; JSON, and nothing but data."""


def _hytas(architecture: Architecture, shape: InputShape, drop: Drop) -> nn.Module:
    return SpectralTransformer(
        shape,
        tokens=BAND,
        patch_size=shape.patch_size,
        band_width=shape.band_group,
        band_stride=1,
        pooling="class",
        fusion=True,
        embed_dim=architecture["embed_dim"],
        bands=Layers(architecture["num_heads"], architecture["mlp_ratio"]),
        drop=drop,
    )


def _wide(architecture: Architecture, shape: InputShape, drop: Drop) -> nn.Module:
    return SpectralTransformer(
        shape,
        tokens=architecture["tokens"],
        patch_size=architecture["patch"],
        band_width=architecture["band_width"],
        band_stride=architecture["band_stride"],
        pooling=architecture["pooling"],
        fusion=_switch("fusion", architecture["fusion"]),
        embed_dim=architecture["embed_dim"],
        bands=_layers(architecture, "band"),
        pixels=_layers(architecture, "pixel"),
        drop=drop,
    )


def _layers(architecture: Architecture, stream: str) -> Layers:
    """The layers of a stream of `hytas-wide`."""
    mlp, gate = architecture[f"{stream}_mlp"], f"{stream}_gate"
    heads = [architecture[f"{stream}_heads"]] * len(mlp)
    mixer = architecture[f"{stream}_mixer"]
    return Layers(heads, mlp, mixer, _switch(gate, architecture[gate]))


def _switch(gene: str, value: Any) -> bool:
    if value not in ("yes", "no"):
        raise InputError(f"{gene} {value!r}: must be yes or no")
    return bool(value == "yes")


# search space -> its network. A new space is one function and one line.
NETWORKS: dict[str, Callable[[Architecture, InputShape, Drop], nn.Module]] = {
    "hytas": _hytas,
    "hytas-wide": _wide,
}


def build_network(
    architecture: Architecture,
    shape: InputShape,
    *,
    drop_path: float = 0.0,
    dropout: float = 0.0,
    seed: int = 0,
) -> nn.Module:
    """The network of `architecture` on inputs of `shape`, initialised from `seed` alone.

    The global generator is left as it was found.

    Args:
        architecture: genes, and the space.
        shape: what the scene fixes.
        drop_path: probability that training skips the last layer's branches, for a sample.
        dropout: probability that training sets a value of a layer's branch to 0.
        seed: of the initial values.

    Raises:
        InputError: no network belongs to the architecture's space, it has too many layers, or a
            gene has a value that the network does not know, as a space file may bring it.
    """
    space = architecture.get("space")
    if space not in list(NETWORKS):  # a list, because the space of a file may be no text
        raise InputError(f"architecture space {space!r}: not one of {', '.join(NETWORKS)}")
    for gene, value in architecture.items():
        if isinstance(value, list) and len(value) > MOST_LAYERS:
            raise InputError(
                f"architecture {gene}: {len(value)} layers; a network has at most {MOST_LAYERS}"
            )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reseed GPUs, too
        return NETWORKS[space](architecture, shape, Drop(drop_path, dropout))


def patch_size_of(architecture: Architecture, shape: InputShape) -> int:
    """Side of the patch that the network looks at, where the space leaves it to the architecture.

    The scene's patch, of which it is the centre, is the largest that a search may choose.
    """
    return int(architecture.get("patch", shape.patch_size))


def count_parameters(network: nn.Module) -> int:
    """Parameters of `network`, shared ones once."""
    return sum(parameter.numel() for parameter in network.parameters())
