"""Bound the pixels of a split, so that a fit takes seconds on a large scene too."""

from dataclasses import replace

import numpy as np

from hytas.data import LabelledData, Split
from hytas.references.classical import thinned


def bounded_split(scene: LabelledData, split: Split, most_train: int, most_test: int) -> Split:
    """Return the split with fewer pixels, if it has more than the limits.

    Validation pixels become training pixels. Every class keeps its share of the training pixels,
    and at least five pixels if it has them. The test pixels that stay are evenly spread.

    Args:
        scene: that was split.
        split: whose seed decides which training pixels stay.
        most_train: training pixels above which some are left out.
        most_test: largest number of test pixels.
    """
    train, test = split.learnable, split.test
    if len(train) > most_train:
        generator = np.random.default_rng(split.seed)
        share = most_train / len(train)
        train = np.sort(train[thinned(scene.targets(train), share, generator)])
    if len(test) > most_test:
        test = test[np.linspace(0, len(test) - 1, most_test).astype(np.int64)]
    return replace(split, train=train, validation=split.validation[:0], test=test)
