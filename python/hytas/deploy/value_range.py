"""Compare the values of a scene with those that a model was trained on."""

import numpy as np
import numpy.typing as npt

from hytas.data import Preprocessing, Rows
from hytas.data.patches import sample_spectra
from hytas.deploy.model import DeployedModel

FARTHEST, NEAREST = 2.25, 0.3
"""Usual z of a scene, as parts of the training's. The program on board has the same bounds.

Measured on Indian Pines, SalinasA and the embedded scene, trained on all, a fiftieth or half of the
labelled pixels: whole scenes .58 to 1.5, the other half of a scene up to 2.1. Zeros or a tenth of
the values 2.5 and more, a gain of ten 19 and more; with "minmax" zeros and a tenth of the values
.01 to .28. Reversed bands, 1.3 and more, are found by `Preprocessing.is_reversed`."""


def range_doubt(model: DeployedModel, cube: Rows, nodata: float | None) -> str | None:
    """Return why the values of a scene cannot be those of the model's training; None if they can.

    It is not known for a model that scales each scene by its own pixels, nor for a scene without
    data.

    Args:
        cube: (H, W, B); a few rows are read.
        nodata: the no-data value; None uses the model's.
    """
    scaling = Preprocessing.from_dict(model.card.preprocessing)
    usual = scaling.usual
    if usual is None or usual.z == 0 or model.card.scale_by == "scene":
        return None
    spectra, no_data = sample_spectra(cube), model.card.nodata if nodata is None else nodata
    values = scaling.value_range(spectra, no_data)
    if values is None:
        return None
    why = "another unit, gain or order of the bands"
    if scaling.is_reversed(spectra, no_data):
        why = "the bands vary as those of the training in reverse order"
    elif NEAREST * usual.z <= values.z <= FARTHEST * usual.z:
        return None
    return (
        f"values {values.low:.6g} to {values.high:.6g}, and {usual.low:.6g} to {usual.high:.6g} in "
        f"training (first and last percentile); their mean absolute z is {values.z:.3g}, and "
        f"{usual.z:.3g} in training: {why}"
    )


def wavelength_doubt(
    model: DeployedModel, wavelengths: npt.NDArray[np.float64] | None
) -> str | None:
    """Return why it is not sure that a scene is of the model's sensor; None if it is."""
    if wavelengths is not None or model.card.wavelengths is None:
        return None
    waves = model.card.wavelengths
    return f"no wavelengths, and the model takes bands of {waves[0]:.1f} to {waves[-1]:.1f} nm"
