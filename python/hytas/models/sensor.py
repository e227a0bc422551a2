"""The model as it ships: raw pixels in, class probabilities out."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from hytas.data.preprocessing import Preprocessing
from hytas.models.layers import probabilities

MOST_RUNS = 16
"""Of neighbouring bands that are cut out one by one; more bands are gathered instead."""


class Scaling(nn.Module):
    """Band selection and scaling: (..., sensor bands) float32 -> (..., bands).

    A value that is not finite, or that stands for no data, scales to zero, as the mean of its band
    does (the minimum, where the scaling is "minmax"): a band that fails in flight may be written
    so, and neighbours without data add nothing to a pixel. Other values are clipped, as
    `Preprocessing` does. Bands are cut out run by run, which copies memory where gathering them
    would look up each one.

    Attributes:
        finite: whether values are finite by their type, as integers are; nothing is looked for.
        whole: whether all bands of the sensor are kept.
    """

    bands: Tensor
    offset: Tensor
    scale: Tensor

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.register_buffer("bands", torch.as_tensor(preprocessing.bands, dtype=torch.int64))
        self.register_buffer("offset", torch.as_tensor(preprocessing.offset, dtype=torch.float32))
        self.register_buffer("scale", torch.as_tensor(preprocessing.scale, dtype=torch.float32))
        self.runs = runs_of_bands(self.bands.tolist())
        self.finite = self.whole = False
        nodata, self.reach = preprocessing.nodata, preprocessing.reach
        with np.errstate(over="ignore"):  # a no-data value of 64 bits scales to 0 anyway
            self.nodata = None if nodata is None else float(np.float32(nodata))

    def forward(self, values: Tensor) -> Tensor:
        """(..., sensor bands) -> (..., bands)."""
        if self.whole:
            kept = values
        elif len(self.runs) <= MOST_RUNS:
            kept = torch.cat([values[..., start:stop] for start, stop in self.runs], dim=-1)
        else:
            kept = values.index_select(values.ndim - 1, self.bands)
        scaled = (kept - self.offset) / self.scale
        if not self.finite:
            # A NaN differs from itself, and an infinity minus itself is a NaN.
            scaled = torch.where(scaled - scaled == 0.0, scaled, torch.zeros_like(scaled))
        if self.nodata is not None:
            scaled = torch.where(kept == self.nodata, torch.zeros_like(scaled), scaled)
        return scaled if self.reach is None else scaled.clamp(-self.reach, self.reach)


def runs_of_bands(bands: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending indices as (first, last + 1) of their runs."""
    runs: list[tuple[int, int]] = []
    for band in bands:
        if runs and runs[-1][1] == band:
            runs[-1] = (runs[-1][0], band + 1)
        else:
            runs.append((band, band + 1))
    return runs


class SensorModel(nn.Module):
    """Scaling before a network and probabilities after it, so that a file needs nothing else.

    Input: patches (N, P, P, sensor bands) as the sensor gives them, any real dtype.
    Output: probabilities (N, classes), or values (N, targets) in units, float32.

    Attributes:
        temperature: divisor of the logits, fitted on validation pixels
                (`hytas.temperature.fit_temperature`).
        read_out: gives values in units, of a model without classes; or None.
    """

    def __init__(
        self,
        network: nn.Module,
        preprocessing: Preprocessing,
        temperature: float = 1.0,
        read_out: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.scaling = Scaling(preprocessing)
        self.network = network
        self.temperature = temperature
        self.read_out = read_out

    def logits(self, patches: Tensor) -> Tensor:
        """(N, P, P, sensor bands) -> (N, classes), before the temperature."""
        logits: Tensor = self.network(self.scaling(patches.to(torch.float32)))
        return logits

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, sensor bands) -> (N, classes)."""
        return self.outputs(self.logits(patches))

    def outputs(self, logits: Tensor) -> Tensor:
        """Return the outputs of logits (N, C): probabilities, or values in units."""
        if self.read_out is None:
            return probabilities(logits, self.temperature)
        values: Tensor = self.read_out(logits)
        return values
