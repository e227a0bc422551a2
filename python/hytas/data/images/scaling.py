"""Scale images by the values of training images."""

import numpy as np
import numpy.typing as npt

from hytas.data.images.image_set import ImageSet
from hytas.data.preprocessing import Preprocessing

MOST_FITTED = 2**22
"""Values of training images, at most, that their scaling is fitted on."""


def fit_scaling_of(
    images: ImageSet,
    train: npt.NDArray[np.int64],
    *,
    method: str = "standard",
    bands: str | None = None,
    seed: int = 0,
) -> Preprocessing:
    """Return channels and scaling, fitted on the pixels of training images, drawn if many.

    Args:
        images: of which `train` (n,) are the numbers of training images.
        method: "standard" or "minmax".
        bands: channels to start from; None for all.
    """
    most = max(1, MOST_FITTED // (images.side**2 * images.channels))
    chosen = np.random.default_rng(seed).permutation(train)[:most]
    values = images.read(np.sort(chosen)).reshape(-1, images.channels)
    return Preprocessing.fit(values, method=method, bands=bands, least=1)
