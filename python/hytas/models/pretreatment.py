"""Pretreatments of spectra inside a network."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models.derivatives import WINDOW
from hytas.models.layers import repeat_ends

REACH = WINDOW // 2
"""Bands to either side that a derivative reads."""
FLAT = 1e-4
"""Least deviation of a spectrum, scaled, that is brought to 1."""
LEAST_SHARE = 1e-3
"""Of the root mean square deviation of all bands: no band is taken to vary less."""


def normal_variate(spectra: Tensor) -> Tensor:
    """Return spectra (..., bands) of zero mean and unit deviation (Barnes et al., Applied
    Spectroscopy 43, 1989)."""
    centred = spectra - spectra.mean(-1, keepdim=True)
    # A limit: what is added to the mean square is too small to survive the export to ONNX.
    return centred / centred.square().mean(-1, keepdim=True).sqrt().clamp(min=FLAT)


def savitzky_golay(spectra: Tensor, order: int) -> Tensor:
    """Return the first or second derivative (..., bands) of spectra, of parabolas through `WINDOW`
    bands (Savitzky and Golay, Analytical Chemistry 36, 1964).

    It is in a unit in which white noise keeps its size. The first and the last band are repeated
    beyond the ends.
    """
    steps = range(1, REACH + 1)
    middle = 2.0 * sum(step**2 for step in steps) / WINDOW
    weights = [float(step) if order == 1 else step**2 - middle for step in steps]
    size = (2.0 * sum(weight**2 for weight in weights) + (order - 1) * middle**2) ** 0.5
    bands = spectra.shape[-1]
    padded = repeat_ends(spectra.reshape(-1, bands), REACH)
    here = padded[:, REACH : REACH + bands]
    total: Tensor | None = None
    # Differences of neighbours, one after another: a convolution rounds as large values do, and in
    # an order that each runtime chooses.
    for step, weight in zip(steps, weights, strict=True):
        before, after = (padded[:, at : at + bands] for at in (REACH - step, REACH + step))
        pair = after - before if order == 1 else (after - here) - (here - before)
        part = weight / size * pair
        total = part if total is None else total + part
    assert total is not None
    return total.reshape(spectra.shape)


KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    # What all spectra have in common is far larger than their differences.
    "snv": lambda spectra: normal_variate(spectra.double()).to(spectra.dtype),
    "first": partial(savitzky_golay, order=1),
    "second": partial(savitzky_golay, order=2),
}


class Pretreatment(nn.Module):
    """A fixed function of spectra, and a map that standardises bands, fitted and not trained.

    Args:
        kind: "snv", the standard normal variate; "first" or "second", a derivative along bands.
        bands: of a spectrum.

    Raises:
        InputError: another kind.
    """

    def __init__(self, kind: str, bands: int) -> None:
        super().__init__()
        if kind not in KINDS:
            raise InputError("pretreatment", kind, f"must be one of none, {', '.join(KINDS)}")
        self.kind = kind
        self.weight, self.bias = nn.Parameter(torch.ones(bands)), nn.Parameter(torch.zeros(bands))

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one spectrum: of a derivative, one for each pair of bands."""
        return 0 if self.kind == "snv" else REACH * len(self.weight)

    def forward(self, spectra: Tensor) -> Tensor:
        """(..., bands) -> (..., bands)."""
        # Without a gradient: what is read must not move under a skip that starts as ridge.
        return KINDS[self.kind](spectra) * self.weight.detach() + self.bias.detach()

    @torch.no_grad()
    def begin(self, spectra: Tensor) -> None:
        """Fit the map to spectra (..., bands)."""
        values = KINDS[self.kind](spectra).flatten(0, -2).double()
        centre, deviation = values.mean(0), values.std(0, correction=0)
        least = LEAST_SHARE * deviation.square().mean().sqrt()
        scale = deviation.clamp(min=max(float(least), FLAT))
        self.weight.copy_(1.0 / scale)
        self.bias.copy_(-centre / scale)
