"""Architectures, patches and scenes that tests of several rooms share."""

import numpy as np

from hytas.data import Scene, scene_from_arrays
from hytas.train import LabelledPixels

NARROW = {
    "space": "hytas",
    "depth": 4,
    "embed_dim": 32,
    "num_heads": [3, 3, 3, 3],
    "mlp_ratio": [1, 1, 1, 1],
}
GATED = {
    "space": "hytas-wide",
    "tokens": "pixel",
    "patch": 7,
    "band_width": 3,
    "band_stride": 2,
    "pooling": "mean",
    "fusion": "no",
    "embed_dim": 64,
    "band_mixer": "attention",
    "band_gate": "no",
    "band_heads": 2,
    "band_depth": 0,
    "pixel_mixer": "conv3",
    "pixel_gate": "yes",
    "pixel_heads": 2,
    "pixel_depth": 1,
    "band_mlp": [],
    "pixel_mlp": [2],
}


def pixels(count: int, seed: int, classes: int = 3) -> LabelledPixels:
    """Noisy patches whose class is the pair of bands that is bright."""
    generator = np.random.default_rng(seed)
    targets = generator.integers(0, classes, count).astype(np.int64)
    patches = generator.normal(0, 0.3, (count, 3, 3, 6)).astype(np.float32)
    for index, target in enumerate(targets):
        patches[index, :, :, 2 * target : 2 * target + 2] += 2.0
    return LabelledPixels(lambda chosen: patches[chosen], np.arange(count), targets, 3)


def strips(noise: float = 0.02, dead_band: int | None = None) -> Scene:
    """A float32 cube (18, 26, 14) of five classes side by side."""
    generator = np.random.default_rng(1)
    labels = np.zeros((18, 26), np.int16)
    for number in range(5):
        labels[1:17, 1 + 5 * number : 5 + 5 * number] = number + 1
    spectra = generator.uniform(0, 1, (6, 14))
    cube = (spectra[labels] + generator.normal(0, noise, (18, 26, 14))).astype(np.float32)
    if dead_band is not None:
        cube[:, :, dead_band] = 0
    return scene_from_arrays(cube, labels, name="strips")


def fields(noise: float = 0.5) -> Scene:
    """Three classes in small fields all over the scene, which spectra tell apart."""
    generator = np.random.default_rng(3)
    labels = np.kron(generator.integers(1, 4, (12, 12)), np.ones((5, 5), np.int64))
    cube = generator.normal(labels[..., None], noise, (60, 60, 9)).astype(np.float32)
    return scene_from_arrays(cube, labels, name="fields")
