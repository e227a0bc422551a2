"""Prepare a scene or a set of images: split it, scale it, and read its samples."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hytas.data import (
    ImageSet,
    LabelledData,
    Preprocessing,
    Scene,
    Split,
    as_scene,
    make_image_split,
    make_split,
)
from hytas.data.images import fit_scaling_of
from hytas.deploy.smoothing import Smoothing
from hytas.errors import InputError
from hytas.models import InputShape, check_band_group
from hytas.run.config import RunConfig
from hytas.run.start import Start
from hytas.spaces.opening import name_of
from hytas.spaces.shape import ImageShape, Shape
from hytas.train import LabelledPixels

Pixels = NDArray[np.int64]

ASKED = 1000
"""Pixels without a label that each racer of a race classifies; twice as many rank as well."""
LEAST_ASKED = 100


@dataclass(frozen=True, eq=False)
class PreparedScene:
    """A scene or a set of images with its split, its scaling, and the shape of a network's input.

    Attributes:
        scene: the scene, or the images, as read.
        split: its training, validation and test pixels, or images.
        preprocessing: bands and scaling, fitted on the training pixels.
        shape: shape of a network's input.
        kept_guide: the guide of the model that the run begins with; None fits one.
    """

    scene: LabelledData
    split: Split
    preprocessing: Preprocessing
    shape: Shape
    kept_guide: Smoothing | None = None

    @property
    def pixel_scene(self) -> Scene:
        """Return the scene, for what only a map of pixels has.

        Raises:
            InputError: the data are images.
        """
        return as_scene(self.scene, "maps")

    @cached_property
    def guide(self) -> Smoothing:
        """The kept guide, or one that is fitted on the scene without a look at labels."""
        if self.kept_guide is not None:
            return self.kept_guide
        scene = self.pixel_scene
        return Smoothing.fit(
            scene.cube, self.preprocessing, scene.nodata, pixels=scene.learnt_pixels
        )

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """(H, W), the pixels that hold data in a band in use."""
        return self.pixel_scene.holds_data(self.preprocessing.bands)

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """(H, W), those of them in scenes that may train, labelled or not."""
        usable = np.zeros_like(self.held)
        usable.flat[self.pixel_scene.learnt_pixels] = True
        return usable & self.held

    def targets(self, pixels: Pixels) -> NDArray[np.int64]:
        """Return the class indices (n,), 0-based, of flat pixel indices (n,)."""
        return self.scene.targets(pixels)

    def labelled(self, pixels: Pixels) -> LabelledPixels:
        """Return the pixels of flat indices (n,) in the form of the training loop."""
        reader = self.scene.reader(self.shape.side)

        def patches(chosen: Pixels) -> NDArray[np.float32]:
            return self.preprocessing.apply(reader(chosen))

        targets, dark = self.targets(pixels), self.preprocessing.dark
        return LabelledPixels(patches, pixels, targets, self.shape.classes, dark)

    def unlabelled(self, pixels: Pixels) -> LabelledPixels:
        """Return pixels as `labelled` does, with targets that mean nothing: no label is read."""
        empty = self.labelled(pixels[:0])
        return replace(empty, pixels=pixels, targets=np.zeros(len(pixels), np.int64))

    def some_unlabelled(self, seed: int) -> LabelledPixels | None:
        """Return at most `ASKED` usable pixels whose label no training may read, drawn by a seed.

        Test pixels are among them, as those without a label are. None if there are less than
        `LEAST_ASKED`.
        """
        others = np.setdiff1d(np.flatnonzero(self.usable), self.split.learnable)
        if len(others) < LEAST_ASKED:
            return None
        drawn = np.random.default_rng(seed).permutation(others)[:ASKED]
        return self.unlabelled(np.sort(drawn))


def prepare_scene(
    config: RunConfig,
    scene: LabelledData,
    split: Split | None = None,
    start: Start | None = None,
) -> PreparedScene:
    """Split and scale a scene, or a set of images, as `config` says.

    Args:
        config: of the run.
        scene: to prepare.
        split: the split of a run that goes on; None draws a new one.
        start: the model that the run begins with, whose classes, bands and scaling it keeps.

    Raises:
        InputError: the configuration or the model does not fit the scene.
    """
    if isinstance(scene, ImageSet):
        if start is not None:
            raise InputError(
                f"data: {scene.name} is a set of images; a model to start from is for scenes only"
            )
        return _prepare_images(config, scene, split)
    scene = scene if start is None else start.adapted(scene)
    split = split or make_split(scene, config.split, seed=config.seed, patch_size=config.patch_size)
    if start is not None:
        return PreparedScene(scene, split, start.preprocessing, start.shape, start.guide)
    preprocessing = Preprocessing.fit_scene(
        scene, split.train, method=config.scaling, bands=config.bands
    )
    bands = len(preprocessing.bands)
    check_band_group(config.band_group, bands)
    shape = InputShape(bands, scene.classes, config.patch_size, config.band_group)
    return PreparedScene(scene, split, preprocessing, shape)


def _prepare_images(config: RunConfig, images: ImageSet, split: Split | None) -> PreparedScene:
    split = split or make_image_split(images, config.split, seed=config.seed)
    preprocessing = fit_scaling_of(
        images, split.train, method=config.scaling, bands=config.bands, seed=config.seed
    )
    channels = len(preprocessing.bands)
    shape = ImageShape.of(name_of(config.space), channels, images.classes, images.side)
    return PreparedScene(images, split, preprocessing, shape)
