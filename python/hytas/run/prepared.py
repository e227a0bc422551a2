"""Prepare a scene or a set of images: split it, scale it, and read its samples.

A run asks once what its data are (`prepare_scene`). Scenes, images and tables of spectra then have
one interface, `PreparedData`, so that no stage asks again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hytas.data import (
    ImageSet,
    LabelledData,
    Preprocessing,
    Scene,
    Spectra,
    Split,
    make_split,
    overlap_fraction,
)
from hytas.data.splits.make import make_image_split
from hytas.decide.decisions import LEAST_PIXELS
from hytas.deploy.smoothing import Smoothing, around, smooth_pixels
from hytas.errors import InputError
from hytas.models import InputShape, check_band_group
from hytas.models.table import patch_size_of
from hytas.run.config import RunConfig
from hytas.run.start import StartingModel
from hytas.spaces.shape import DATA_OF, IMAGES, ImageShape, Shape
from hytas.tasks import PredictionTask, task_of
from hytas.train import LabelledPixels
from hytas.types import Pixels, Smoother

MOST_UNLABELLED = 1000
"""Unlabelled pixels at which the networks of two folds are compared."""
LEAST_UNLABELLED = 100
MOST_NEIGHBOURS = 20_000
"""Pixels that a network classifies to compare smoothing; with more, fewer pixels are compared."""


@dataclass(frozen=True, eq=False)
class PreparedData:
    """Labelled data with their split, their scaling, and the shape of a network's input.

    What the methods return here holds for samples that are not parts of each other, and all of
    which have labels.

    Attributes:
        scene: the scene, or the images, as read.
        preprocessing: bands and scaling, fitted on the training samples.
        start: the model of values or classes that the run begins with, or None.
        unit: what a sample is: "pixels" or "images".
        inputs: what the classical reference methods are fitted on.
        in_race: whether reference methods are fitted during the search, and shown in the race.
        has_spectra: whether a sample has a spectrum at its centre, for networks in closed form.
        trains_in_parallel: whether final trainings use one CPU thread each, and run in parallel.
            The larger networks of images use all threads of one process.
    """

    scene: LabelledData
    split: Split
    preprocessing: Preprocessing
    shape: Shape
    start: StartingModel | None = None

    unit: ClassVar[str]
    inputs: ClassVar[str]
    in_race: ClassVar[bool]
    has_spectra: ClassVar[bool]
    trains_in_parallel: ClassVar[bool]

    @property
    def has_class_map(self) -> bool:
        """Whether all of it is drawn as a map of classes."""
        return self.scene.has_map and "classes" in self.task.maps

    @property
    def has_methods(self) -> bool:
        """Whether reference methods are shown in the race."""
        return self.in_race and self.task.has_probabilities

    @property
    def fits(self) -> tuple[str, ...]:
        """The fits of networks in closed form: none beside networks that see images."""
        sees_images = isinstance(self.shape, ImageShape)
        return self.task.fits if self.has_spectra and not sees_images else ()

    @cached_property
    def task(self) -> PredictionTask:
        """What is predicted, fitted to the samples that may train."""
        trained = self.split.train_and_validation
        targets = self.targets(trained)
        task = task_of(self.scene).fitted(targets)
        if self.start is None:
            return task
        return self.start.task(self._labelled(trained, task), targets)

    def groups(self, pixels: Pixels) -> NDArray[np.int64] | None:
        """Return the groups (n,) of samples; None without groups."""
        groups = self.scene.groups
        return None if groups is None else groups.ravel()[pixels].astype(np.int64)

    def targets(self, pixels: Pixels) -> NDArray[Any]:
        """Return the targets of flat sample indices (n,): class indices, 0-based, or values."""
        return self.scene.targets(pixels)

    def labelled(self, pixels: Pixels) -> LabelledPixels:
        """Return the samples of flat indices (n,) in the form of the training loop."""
        return self._labelled(pixels, self.task)

    def _labelled(self, pixels: Pixels, task: PredictionTask) -> LabelledPixels:
        reader = self.scene.reader(self.shape.side)

        def patches(chosen: Pixels) -> NDArray[np.float32]:
            return self.preprocessing.apply(reader(chosen))

        targets, dark = task.coded(self.targets(pixels)), self.preprocessing.dark
        classes, groups = self.shape.classes, self.groups(pixels)
        return LabelledPixels(patches, pixels, targets, classes, dark, of=task, groups=groups)

    def unlabelled(self, pixels: Pixels) -> LabelledPixels:
        """Return samples as `labelled` does, without reading a label: their targets are ignored."""
        empty = self.labelled(pixels[:0])
        shape = (len(pixels), *empty.targets.shape[1:])
        return replace(empty, pixels=pixels, targets=np.zeros(shape, empty.targets.dtype))

    @property
    def as_scene(self) -> "PreparedScene":
        """The data, for what only a scene has."""
        raise InputError("data", self.scene.name, "has no map; maps are for scenes only")

    @property
    def smoother(self) -> Smoother | None:
        """The guided filter of a scene, or None."""
        return None

    def with_neighbours(self, pixels: Pixels) -> tuple[Pixels, Pixels]:
        """Return those of the pixels that smoothing is compared on, and all that it reads there."""
        return pixels[:0], pixels[:0]

    def unlabelled_sample(self, seed: int) -> LabelledPixels | None:
        """Return samples without a known label, to see where networks agree; or None."""
        return None

    def no_self_training(self, trained: Pixels) -> str:
        """Return why no unlabelled pixels can train with these training pixels; or ""."""
        return f"{self.unit} have no neighbours"

    def overlap(self, architecture: Mapping[str, Any], trained: Pixels) -> float:
        """Return the share of test pixels inside the patch of a pixel that the model trained on."""
        return 0.0

    def patch_side(self, architecture: Mapping[str, Any]) -> int:
        """Return the side of the patch of a scene that a network sees; else 1."""
        return 1

    def sources(self, trained: Pixels) -> list[dict[str, Any]]:
        """Return name, fingerprint and number of training pixels of each scene, for the card."""
        data = self.scene
        fingerprint = data.cube_digest if isinstance(data, Scene) else data.fingerprint
        return [{"name": data.name, "fingerprint": fingerprint, "pixels": len(trained)}]

    @property
    def sample_values(self) -> int:
        """The values of an image; 0 for a scene, whose pixels have few."""
        return 0


@dataclass(frozen=True, eq=False)
class PreparedScene(PreparedData):
    """A prepared scene: see `PreparedData`.

    Attributes:
        kept_guide: the guide of the model that the run begins with; None fits one.
    """

    scene: Scene
    kept_guide: Smoothing | None = None

    unit, inputs, in_race, has_spectra, trains_in_parallel = "pixels", "spectra", True, True, True

    @property
    def as_scene(self) -> "PreparedScene":
        return self

    @cached_property
    def guide(self) -> Smoothing:
        """The kept guide, or one that is fitted on the scene without a look at labels."""
        if self.kept_guide is not None:
            return self.kept_guide
        scene = self.scene
        return Smoothing.fit(
            scene.cube, self.preprocessing, scene.nodata, pixels=scene.training_area
        )

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """(H, W), the pixels that have data in a band in use."""
        return self.scene.valid_mask(self.preprocessing.bands)

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """(H, W), those of them in scenes that may train, labelled or not."""
        usable = np.zeros_like(self.valid)
        usable.flat[self.scene.training_area] = True
        return usable & self.valid

    @property
    def smoother(self) -> Smoother | None:
        if not self.task.has_probabilities:
            return None

        def smooth(pixels: Pixels, chances: NDArray[np.float32]) -> NDArray[np.float32]:
            return smooth_pixels(self.guide, self.scene.cube, self.preprocessing, pixels, chances)

        return smooth

    def with_neighbours(self, pixels: Pixels) -> tuple[Pixels, Pixels]:
        """Return at most so many that the filter reads about `MOST_NEIGHBOURS` around them."""
        if self.smoother is None:
            return super().with_neighbours(pixels)
        compared = pixels[self.valid.flat[pixels]]
        reach = 2 * self.guide.radius
        neighbours = around(compared, self.valid, reach)
        while len(neighbours) > MOST_NEIGHBOURS and len(compared) > LEAST_PIXELS:
            compared = compared[:: max(2, len(neighbours) // MOST_NEIGHBOURS)]
            neighbours = around(compared, self.valid, reach)
        return compared, neighbours

    def unlabelled_sample(self, seed: int) -> LabelledPixels | None:
        """Return at most `MOST_UNLABELLED` usable pixels, test pixels among them, drawn by a seed.

        None if there are less than `LEAST_UNLABELLED`, or if test pixels lie among labelled ones,
        as validation pixels do: these need no help.
        """
        if not (self.split.spatially_disjoint and self.task.has_probabilities):
            return None
        others = np.setdiff1d(np.flatnonzero(self.usable), self.split.train_and_validation)
        if len(others) < LEAST_UNLABELLED:
            return None
        drawn = np.random.default_rng(seed).permutation(others)[:MOST_UNLABELLED]
        return self.unlabelled(np.sort(drawn))

    def no_self_training(self, trained: Pixels) -> str:
        """Return why not, if every usable pixel is a training pixel."""
        if not self.task.has_probabilities:
            return super().no_self_training(trained)
        unlabelled = np.setdiff1d(np.flatnonzero(self.usable), trained)
        return "" if unlabelled.size else "every pixel of the scene is a training pixel"

    def overlap(self, architecture: Mapping[str, Any], trained: Pixels) -> float:
        side = self.patch_side(architecture)
        return overlap_fraction(self.scene.labels.shape, trained, self.split.test, side)

    def patch_side(self, architecture: Mapping[str, Any]) -> int:
        return patch_size_of(architecture, self.shape)

    def sources(self, trained: Pixels) -> list[dict[str, Any]]:
        return [
            {
                "name": part.name,
                "fingerprint": part.cube_digest,
                "pixels": len(np.intersect1d(trained, part.pixels(self.scene.width))),
            }
            for part in self.scene.parts
            if part.trains
        ]


@dataclass(frozen=True, eq=False)
class PreparedImages(PreparedData):
    """A prepared set of images: see `PreparedData`."""

    scene: ImageSet

    unit, inputs, in_race, has_spectra, trains_in_parallel = (
        "images",
        "all values",
        False,
        False,
        False,
    )

    @property
    def sample_values(self) -> int:
        return self.shape.side**2 * self.shape.bands


@dataclass(frozen=True, eq=False)
class PreparedSpectra(PreparedData):
    """A prepared table of spectra: see `PreparedData`."""

    scene: Spectra

    unit, inputs, in_race, has_spectra, trains_in_parallel = "spectra", "spectra", True, True, True


def prepare_scene(
    config: RunConfig,
    scene: LabelledData,
    split: Split | None = None,
    start: StartingModel | None = None,
) -> PreparedData:
    """Split and scale a scene, or a set of images, as `config` says.

    Args:
        split: the split of a run that goes on; None draws a new one.
        start: the model that the run begins with, whose classes, bands and scaling it keeps.
    """
    if isinstance(scene, ImageSet):
        if start is not None and not start.card.of_images:
            rule = f"is a set of images, and the model of {start.folder.path} is for scenes"
            raise InputError("data", scene.name, rule)
        images = _prepare_images(config, scene, split)
        if start is not None:
            start.check_unseen("from", scene, images.split.test)
        return images
    scene = scene if start is None else start.adapted(scene)
    split = split or make_split(scene, config.split, seed=config.seed, patch_size=config.patch_size)
    if start is not None and isinstance(scene, Spectra):
        return PreparedSpectra(scene, split, start.preprocessing, start.shape, start)
    if start is not None:
        return PreparedScene(scene, split, start.preprocessing, start.shape, start, start.guide)
    task = task_of(scene)
    method = task.scaling or config.scaling
    preprocessing = Preprocessing.fit_scene(scene, split.train, method=method, bands=config.bands)
    bands = len(preprocessing.bands)
    check_band_group(config.band_group, bands)
    side = scene.side_of(config.patch_size)
    shape: Shape = InputShape(
        bands, task.outputs, side, config.band_group, int(task.scales_outputs)
    )
    if isinstance(scene, Spectra):
        return PreparedSpectra(scene, split, preprocessing, shape)
    if DATA_OF.get(config.space_name) == IMAGES:
        shape = ImageShape.of_pixels(bands, task.outputs, side)
    return PreparedScene(scene, split, preprocessing, shape)


def _prepare_images(config: RunConfig, images: ImageSet, split: Split | None) -> PreparedImages:
    split = split or make_image_split(images, config.split, seed=config.seed)
    preprocessing = Preprocessing.fit_scene(
        images, split.train, method=config.scaling, bands=config.bands, seed=config.seed
    )
    channels = len(preprocessing.bands)
    shape = ImageShape.of(config.space_name, channels, images.classes, images.side)
    return PreparedImages(images, split, preprocessing, shape)
