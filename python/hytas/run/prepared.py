"""Prepare a scene: split it, scale it, and cut it into patches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hytas.data import Preprocessing, Scene, Split, make_split
from hytas.models import InputShape, check_band_group
from hytas.run.config import RunConfig
from hytas.run.start import Start
from hytas.train import LabelledPixels

Pixels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PreparedScene:
    """A scene with its split, its scaling, and the shape of a network's input.

    Attributes:
        scene: the scene as it was read.
        split: its training, validation and test pixels.
        preprocessing: bands and scaling, fitted on the training pixels.
        shape: shape of a network's input.
    """

    scene: Scene
    split: Split
    preprocessing: Preprocessing
    shape: InputShape

    def targets(self, pixels: Pixels) -> NDArray[np.int64]:
        """Return the class indices (n,), 0-based, of flat pixel indices (n,)."""
        return self.scene.targets(pixels)

    def labelled(self, pixels: Pixels) -> LabelledPixels:
        """Return the pixels of flat indices (n,) in the form of the training loop."""
        reader = self.scene.patches(self.shape.patch_size)

        def patches(chosen: Pixels) -> NDArray[np.float32]:
            return self.preprocessing.apply(reader(chosen))

        targets, dark = self.targets(pixels), self.preprocessing.dark
        return LabelledPixels(patches, pixels, targets, self.shape.classes, dark)


def prepare_scene(
    config: RunConfig, scene: Scene, split: Split | None = None, start: Start | None = None
) -> PreparedScene:
    """Split and scale `scene` as `config` says.

    Args:
        config: of the run.
        scene: to prepare.
        split: the split of a run that goes on; None draws a new one.
        start: the model that the run begins with, whose classes, bands and scaling it keeps.

    Raises:
        InputError: the configuration or the model does not fit the scene.
    """
    scene = scene if start is None else start.adapted(scene)
    split = split or make_split(scene, config.split, seed=config.seed, patch_size=config.patch_size)
    if start is not None:
        return PreparedScene(scene, split, start.preprocessing, start.shape)
    preprocessing = Preprocessing.fit_scene(
        scene, split.train, method=config.scaling, bands=config.bands
    )
    bands = len(preprocessing.bands)
    check_band_group(config.band_group, bands)
    shape = InputShape(bands, scene.classes, config.patch_size, config.band_group)
    return PreparedScene(scene, split, preprocessing, shape)
