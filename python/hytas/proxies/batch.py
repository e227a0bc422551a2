"""The labelled patches on which proxies look at a network: one training pixel a class."""

import numpy as np
from numpy.typing import NDArray

from hytas.data import Preprocessing, Scene


def proxy_batch(
    scene: Scene,
    pixels: NDArray[np.int64],
    preprocessing: Preprocessing,
    patch_size: int,
    seed: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """One pixel of each class, drawn from the training pixels.

    Args:
        scene: the scene.
        pixels: (n,) flat indices of the training pixels, never of test pixels.
        preprocessing: band selection and scaling.
        patch_size: side of a patch.
        seed: of the draw.

    Returns:
        Patches (C', P, P, bands) scaled, labels (C',) 0-based, in class order; C' counts the
        classes that occur among `pixels`.
    """
    labels = scene.targets(pixels)
    random = np.random.default_rng([seed, 0x70726F78])
    chosen = [
        int(random.choice(pixels[labels == label])) for label in np.unique(labels) if label >= 0
    ]
    where = np.array(chosen, dtype=np.int64)
    patches = preprocessing.apply(scene.patches(patch_size)(where))
    return np.ascontiguousarray(patches, dtype=np.float32), scene.targets(where)
