"""A small scene, and a search of it that takes seconds."""

import numpy as np

from tiny import SPACE

TINY_SEARCH = ["--space", SPACE, "--population", "6", "--generations", "2", "--finalists", "1"]
TINY_SEARCH += ["--epochs", "3"]


def small_scene(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """An int16 cube (24, 20, 16) of three kinds of ground, and its labels 2, 5 and 9."""
    generator = np.random.default_rng(seed)
    labels = np.zeros((24, 20), np.uint8)
    labels[1:7, 1:19], labels[9:15, 1:19], labels[17:23, 1:19] = 2, 5, 9
    spectra = generator.integers(500, 3000, (10, 16))
    cube = spectra[labels] + generator.normal(0, 150, (24, 20, 16))
    return cube.astype(np.int16), labels
