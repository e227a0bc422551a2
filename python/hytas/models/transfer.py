"""Carry trained weights over to images of another size, other channels or other classes."""

from collections.abc import Callable, Mapping
from math import isqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models.network import as_network

RELATIVE = ("key_rows", "key_columns", "value_rows", "value_columns")


def carry_over(network: nn.Module, weights: Mapping[str, Tensor], same_classes: bool) -> None:
    """Let a network begin with the weights of the same architecture for other images.

    Positions are interpolated, as DeiT does for larger images (Touvron et al., ICML 2021), and so
    are the kernels of larger patches. The read-out stays as it is unless the classes are the same.

    Args:
        network: of the new images; its parameters are changed.
        weights: name -> parameter of the trained network.
        same_classes: whether the read-out is carried over, too.
    """
    readout = f"{as_network(network, 'transfer').readout}."
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.startswith(readout) and not same_classes:
                continue
            if name not in weights:
                raise InputError("transfer", rule=f"the model has no parameter {name}")
            parameter.copy_(_resized(name, weights[name], parameter.shape))


def _resized(name: str, old: Tensor, size: torch.Size) -> Tensor:
    if old.shape == size:
        return old
    part = name.rsplit(".", 1)[-1]
    rule = RULES.get("patch_embed" if "patch_embed.project" in name else part)
    new = None if rule is None or old.ndim != len(size) else rule(old, size)
    if new is None or new.shape != size:
        raise InputError("transfer", rule=f"{name}: {tuple(old.shape)} to {tuple(size)}")
    return new


def _grid(old: Tensor, size: torch.Size) -> Tensor:
    """(1, T, E) -> (1, T', E): a square of tokens, behind the class token where there is one."""
    lead = 0 if isqrt(old.shape[1]) ** 2 == old.shape[1] else 1
    side, wanted = isqrt(old.shape[1] - lead), isqrt(size[1] - lead)
    laid = old[:, lead:].transpose(1, 2).reshape(1, -1, side, side)
    spread = F.interpolate(laid, (wanted, wanted), mode="bicubic", align_corners=False)
    return torch.cat([old[:, :lead], spread.flatten(2).transpose(1, 2)], 1)


def _kernel(old: Tensor, size: torch.Size) -> Tensor:
    """(E, C, P, P) -> (E, C', P', P'): an image that is enlarged pixel by pixel has its token."""
    if old.shape[1] != size[1]:  # the mean of the channels stands for each
        old = old.mean(1, keepdim=True).expand(-1, size[1], -1, -1) * (old.shape[1] / size[1])
    scale = old.shape[2] * old.shape[3] / (size[2] * size[3])
    return F.interpolate(old, size[2:], mode="area") * scale


def _relative(old: Tensor, size: torch.Size) -> Tensor:
    """(1 + 2r + 1, d) -> (1 + 2r' + 1, d): distances in shares of the image."""
    spread = F.interpolate(old[1:].T[None], size[0] - 1, mode="linear", align_corners=True)
    return torch.cat([old[:1], spread[0].T])


def _window(old: Tensor, size: torch.Size) -> Tensor:
    """(h, e, e) -> (h, e', e')."""
    return F.interpolate(old[None], size[1:], mode="bicubic", align_corners=True)[0]


RULES: dict[str, Callable[[Tensor, torch.Size], Tensor]] = {
    "position": _grid,
    "patch_embed": _kernel,
    "window_bias": _window,
    **dict.fromkeys(RELATIVE, _relative),
}
"""Last part of a parameter's name -> how it is brought to another size."""
