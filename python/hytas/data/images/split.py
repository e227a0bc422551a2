"""Split images into those that train, validate and test; by class."""

import numpy as np

from hytas.data.images.image_set import ImageSet
from hytas.data.splits.kinds import at_random, class_totals, from_maps
from hytas.data.splits.make import check_seed
from hytas.data.splits.settings import SplitSettings
from hytas.data.splits.split import Split
from hytas.data.splits.validation import take_validation
from hytas.errors import InputError

TRAINED = 0.8
"""Share of each class that is trained on, with validation images, by default."""
KINDS = ("auto", "fixed", "random")


def make_image_split(images: ImageSet, settings: SplitSettings, *, seed: int = 0) -> Split:
    """Split images: by their own parts (fixed), or at random, stratified by class.

    Args:
        settings: "auto" is "fixed" for images with parts of their own, else "random". A random
            split trains on 80 % of each class unless the settings say how many.

    Raises:
        InputError: the kind is for scenes only, or no class has two images.
    """
    check_seed(seed)
    if settings.kind not in KINDS:
        raise InputError(
            "split", settings.kind, "is for scenes", hint=f"images are split by {', '.join(KINDS)}"
        )
    kind = settings.kind
    if kind == "auto":
        kind = "random" if images.train is None else "fixed"
    generator = np.random.default_rng(seed)
    if kind == "fixed":
        part = images.labels if images.train is None else images.train
        is_sized = (settings.train_per_class, settings.train_fraction) != (None, None)
        counts = _counts(class_totals(images, part), settings, 1.0, 0) if is_sized else ()
        chosen, test, notes = from_maps(images, counts, generator)
    else:
        counts = _counts(class_totals(images, images.labels), settings, TRAINED, 1)
        chosen, test, notes = at_random(
            images, counts, True, generator, argument="data", sample="image"
        )
    taken = take_validation(images, chosen, settings.validation_fraction, False, generator)
    return Split(*taken, test, kind, seed, 0, 0.0, notes)


def _counts(
    totals: list[int], settings: SplitSettings, usual: float, least_left: int
) -> tuple[int, ...]:
    """Images of each class to train on; `least_left` are left to test on, if there are two."""
    share = usual if settings.train_fraction is None else settings.train_fraction
    wanted = settings.train_per_class
    return tuple(
        max(1, min(round(share * total) if wanted is None else wanted, total - least_left))
        for total in totals
    )
