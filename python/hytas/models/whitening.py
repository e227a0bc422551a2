"""A pixel embedding that starts from the data: whitened, not drawn at random.

Neighbouring bands say nearly the same, so that most of the differences between spectra lie in a few
directions and the differences of similar classes lie in faint ones. Random weights keep this order,
and a short training hardly reaches the faint ones; whitened inputs (LeCun et al., Efficient
BackProp, 1998, section 4.3) have the same variance in every direction. The map stays linear and is
trained on: the network has not one parameter or operation more. Groups of bands over a patch are
not whitened: measured, they lose by it (notes/decisions.md).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.models.network import as_network
from hytas.types import Floats

FLOOR = 0.01
"""Of the largest deviation: fainter directions are noise, and are not made any louder."""
DEVIATION = 0.5
"""Of the embedded values, all together."""
FLAT = 1e-6
"""Deviation under which inputs are all alike and there is nothing to whiten; scaled ones have 1."""

TOGETHER = 512
"""Pixels whose products are summed at once."""


@torch.no_grad()
def whiten_embedding(network: nn.Module, patches: Tensor, seed: int) -> None:
    """Set the pixel embedding of a network so that it whitens pixels as those given.

    Its rows are a random rotation of the principal directions of the spectra, each divided by the
    deviation along it. A network whose `pixel_projection` is None is left as it is.

    Args:
        patches: scaled training patches (N, P, P, bands); no labels are needed.

    Raises:
        InputError: the network declares no capabilities.
    """
    typed_network = as_network(network, "recipe whitened")
    project = typed_network.pixel_projection
    if project is None:
        return
    seen = typed_network.pretreated(typed_network.seen(patches))
    whitened = whitening(seen, project.out_features, seed)
    if whitened is not None:
        project.weight.copy_(whitened[0])
        project.bias.copy_(whitened[1])


def whitening(patches: Tensor, outputs: int, seed: int) -> tuple[Tensor, Tensor] | None:
    """Return the linear map that whitens pixels as those given.

    Args:
        patches: scaled (N, P, P, bands).

    Returns:
        Weight (outputs, bands) and bias (outputs,); None where pixels are all alike or none.
    """
    inputs = patches.flatten(0, 2).float().cpu().numpy()
    if not len(inputs):
        return None
    mean = inputs.mean(0, dtype=np.float64)
    deviation, directions = (kept[:outputs] for kept in _principal(inputs, mean))
    if deviation[0] < FLAT * (1.0 + np.abs(mean).max()):
        return None
    divisor = np.maximum(deviation, FLOOR * deviation[0])
    whitened = directions / divisor[:, None]
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(
        torch.randn(outputs, outputs, generator=generator, dtype=torch.float64)
    ).Q[:, : len(whitened)]
    weight = rotation.numpy() @ whitened
    # Of the whole, not of each output: a faint direction stays a little fainter.
    weight *= DEVIATION / np.sqrt(((deviation / divisor) ** 2).sum() / outputs)
    return torch.from_numpy(weight).float(), torch.from_numpy(-weight @ mean).float()


def _principal(inputs: NDArray[np.float32], mean: Floats) -> tuple[Floats, Floats]:
    """Return deviations (k,), the largest first, and principal directions (k, bands) of pixels."""
    count, bands = inputs.shape
    if count < bands:
        _, lengths, directions = np.linalg.svd(inputs - mean, full_matrices=False)
        return lengths / count**0.5, directions
    scatter = np.zeros((bands, bands))
    for start in range(0, count, TOGETHER):  # in parts that stay in the cache
        centred = inputs[start : start + TOGETHER] - mean
        scatter += centred.T @ centred
    variance, columns = np.linalg.eigh(scatter / count)
    return np.sqrt(np.maximum(variance[::-1], 0.0)), columns[:, ::-1].T
