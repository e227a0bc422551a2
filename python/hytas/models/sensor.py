"""The model as it ships: raw pixels in, class probabilities out."""

import numpy as np
import torch
from torch import Tensor, nn

from hytas.data.preprocessing import Preprocessing


class SensorModel(nn.Module):
    """Band selection, scaling and softmax around a network, so that the file needs nothing else.

    Input: patches (N, P, P, sensor bands) as the sensor gives them, any real dtype.
    Output: probabilities (N, classes), float32.
    A value that is not finite, or that stands for no data, scales to zero, as the mean of its band
    does (the minimum, where the scaling is "minmax"): a band that fails in flight may be written
    so, and neighbours without data tell a pixel nothing. What is left is clipped, as
    `Preprocessing` does.
    """

    bands: Tensor
    offset: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("bands", torch.as_tensor(preprocessing.bands, dtype=torch.int64))
        self.register_buffer("offset", torch.as_tensor(preprocessing.offset, dtype=torch.float32))
        self.register_buffer("scale", torch.as_tensor(preprocessing.scale, dtype=torch.float32))
        nodata, self.reach = preprocessing.nodata, preprocessing.reach
        with np.errstate(over="ignore"):  # a fill value of 64 bits; such a one scales to 0 anyway
            self.nodata = None if nodata is None else float(np.float32(nodata))

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, sensor bands) -> (N, classes)."""
        pixels = patches.to(torch.float32).index_select(3, self.bands)
        scaled = (pixels - self.offset) / self.scale
        # A NaN differs from itself, and an infinity minus itself is a NaN.
        scaled = torch.where(scaled - scaled == 0.0, scaled, torch.zeros_like(scaled))
        if self.nodata is not None:
            scaled = torch.where(pixels == self.nodata, torch.zeros_like(scaled), scaled)
        if self.reach is not None:
            scaled = scaled.clamp(-self.reach, self.reach)
        return torch.softmax(self.network(scaled), dim=1)
