"""The logits of a trained network for labelled pixels."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.machine import arithmetic
from hytas.train.pixels import LabelledPixels


@torch.no_grad()
def logits_of(
    network: nn.Module, pixels: LabelledPixels, device: torch.device
) -> NDArray[np.float32]:
    """Return the logits (n, C) of a network in evaluation mode, for pixels (n,)."""
    network = network.to(device).eval()
    parts = [np.empty((0, pixels.classes), np.float32)]
    with arithmetic("float32", device):
        for chosen in pixels.positions(device) if len(pixels) else []:
            parts.append(network(pixels.batch(chosen, device)[0]).float().cpu().numpy())
    return np.concatenate(parts)
