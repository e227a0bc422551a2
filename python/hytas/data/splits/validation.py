"""Take validation pixels from the training pixels."""

import numpy as np

from hytas.data.samples import Samples
from hytas.types import Pixels

MOST_FOLDS = 5


def take_validation(
    scene: Samples,
    chosen: Pixels,
    fraction: float,
    at_one_end: bool,
    generator: np.random.Generator,
) -> tuple[Pixels, Pixels]:
    """Take validation pixels from each class; a class with fewer than 3 pixels gives none.

    Args:
        at_one_end: take the pixels that lie farthest in a random direction, not random ones.

    Returns:
        Training and validation pixels.
    """
    labels = scene.labels.ravel()[chosen]
    taken = []
    for label in range(1, scene.classes + 1):
        pixels = chosen[labels == label]
        count = 0
        if fraction > 0 and pixels.size >= 3:
            count = min(max(1, round(fraction * pixels.size)), pixels.size - 1)
        taken.append(_in_a_row(scene, pixels, at_one_end, generator)[:count])
    validation = np.sort(np.concatenate(taken))
    return np.setdiff1d(chosen, validation), validation


def further_folds(
    scene: Samples,
    train: Pixels,
    validation: Pixels,
    enough: int,
    at_one_end: bool,
    generator: np.random.Generator,
) -> list[tuple[Pixels, Pixels]]:
    """Return more pairs of training and validation pixels, for cross-validation.

    Each pair validates on other training pixels, with the class counts of `validation`.

    Args:
        enough: stop when all pairs together have this many validation pixels.
        at_one_end: take the pixels of a pair side by side in a random direction.
    """
    labels = scene.labels.ravel()
    everything = np.union1d(train, validation)
    counts = np.bincount(labels[validation], minlength=scene.classes + 1)
    left = {
        label: _in_a_row(scene, train[labels[train] == label], at_one_end, generator)
        for label in range(1, scene.classes + 1)
    }
    pairs: list[tuple[Pixels, Pixels]] = []
    total = validation.size
    while len(pairs) < MOST_FOLDS - 1 and 0 < total < enough:
        taken = np.sort(np.concatenate([left[label][: counts[label]] for label in left]))
        left = {label: left[label][counts[label] :] for label in left}
        if not taken.size:
            break
        pairs.append((np.setdiff1d(everything, taken), taken))
        total += taken.size
    return pairs


def _in_a_row(
    scene: Samples, pixels: Pixels, at_one_end: bool, generator: np.random.Generator
) -> Pixels:
    pixels = generator.permutation(pixels)
    if not at_one_end:
        return pixels
    angle = generator.uniform(0.0, 2.0 * np.pi)
    rows, columns = np.divmod(pixels, scene.width)
    along = rows * np.sin(angle) + columns * np.cos(angle)
    return pixels[np.argsort(-along, kind="stable")]
