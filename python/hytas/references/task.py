"""The input and the result of a reference method."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hytas.data import (
    LabelledData,
    Preprocessing,
    Scene,
    Split,
    SplitSettings,
    make_split,
    takes_split_options,
)
from hytas.data.samples import Read
from hytas.errors import InputError
from hytas.types import Pixels

FitProgress = Callable[[str, int, int], None]
"""Called with the current work, how much of it is done, and the total."""


@takes_split_options
@dataclass(frozen=True)
class ReferenceSettings:
    """Settings of a fit besides its method and seed: the split, and options for patches.

    The fields of `split` can be given directly: `ReferenceSettings(split="blocks", block=8)`.

    Attributes:
        steps: optimiser steps of the networks; None means the published number.
        device: where networks train, which is no part of the setting.
    """

    split: SplitSettings = field(default_factory=SplitSettings)
    patch_size: int = 7
    band_group: int = 3
    bands: str | None = None
    scaling: str = "standard"
    steps: int | None = None
    device: str = "cpu"

    @classmethod
    def of(cls, config: Any, device: str = "cpu") -> Self:
        """Return the settings that the configuration of a run has, which are called the same."""
        names = cls.__dataclass_fields__.keys() - {"steps", "device"}
        own = {name: getattr(config, name) for name in names}
        return cls(**own, device=device)

    def make_split(self, scene: Scene, seed: int) -> Split:
        """Return the split of `seed`.

        Raises:
            InputError: the settings do not fit the scene.
        """
        return make_split(scene, self.split, seed=seed, patch_size=self.patch_size)

    def setting(self, scene: Scene) -> dict[str, Any]:
        """Return the setting for `Results`: the scene, and all settings that decide a fit."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        decisive = {**own, **self.split.options()}
        del decisive["validation_fraction"]  # validation pixels are training pixels here
        del decisive["device"]
        return {"scene": scene.fingerprint, **decisive}


@dataclass(frozen=True, eq=False)
class Task:
    """One split of one scene, or of a set of images, with the classes of its training pixels only.

    It does not hold the classes of test pixels, so no method can use them.

    Attributes:
        read_single: reader of single pixels, (n, 1, 1, bands), or of whole images.
        train: flat indices (n,) of all pixels to fit on, validation pixels included.
        targets: class indices (n,) of the training pixels, 0-based, or values (n, T).
        test: flat indices (m,), ascending, of the pixels to predict: those of the test, and in
            a run those around them that smoothing reads.
        band_group: neighbouring bands in a token of the networks.
        seed: of all random numbers of the method.
        steps: optimiser steps of the networks; None means the published number.
        fit_scaling: function of a method of scaling ("standard", "minmax", None for the configured
            one); it returns the scaling, fitted on the training pixels.
        groups: numbers (n,) of the groups of training pixels that no fold may divide, or None.
        fits: folder of the trainings of networks, which resume from it; None keeps nothing.
    """

    read: Read
    read_single: Read
    train: Pixels
    targets: NDArray[Any]
    test: Pixels
    classes: int
    patch_size: int
    band_group: int
    seed: int
    device: str
    steps: int | None
    fit_scaling: Callable[[str | None], Preprocessing]
    groups: Pixels | None = None
    fits: Path | None = None

    @classmethod
    def of(cls, scene: LabelledData, split: Split, settings: ReferenceSettings) -> "Task":
        """Return the task for a split of a scene; the split of the settings is not used.

        Raises:
            InputError: the training pixels have fewer than two classes, or the selection of bands
                is bad.
        """
        train = split.train_and_validation
        targets = scene.targets(train)
        if len(np.unique(targets)) < 2:
            raise InputError(
                "training_pixels", rule=f"of one class only in {scene.name}", hint="two are needed"
            )

        def fit_scaling(method: str | None) -> Preprocessing:
            chosen = method or settings.scaling
            return Preprocessing.fit_scene(
                scene, train, method=chosen, bands=settings.bands, seed=split.seed
            )

        patch_size = scene.side_of(settings.patch_size)
        groups = None if scene.groups is None else scene.groups.ravel()[train].astype(np.int64)
        return cls(
            scene.reader(patch_size),
            scene.reader(scene.side_of(1)),
            train,
            targets,
            split.test,
            scene.classes,
            patch_size,
            settings.band_group,
            split.seed,
            settings.device,
            settings.steps,
            fit_scaling,
            groups,
        )

    def spectra(self, pixels: Pixels, scaling: Preprocessing) -> NDArray[np.float32]:
        """Return scaled spectra (n, bands) of single pixels, or all values of whole images."""
        return scaling.apply(self.read_single(pixels)).reshape(len(pixels), -1)

    def patches(self, pixels: Pixels, scaling: Preprocessing) -> NDArray[np.float32]:
        """Return scaled patches (n, P, P, bands)."""
        return scaling.apply(self.read(pixels))


@dataclass(frozen=True, eq=False)
class Predicted:
    """The predictions of a method for the test pixels.

    Attributes:
        predicted: class indices (m,), 0-based, or values (m, T).
        probabilities: (m, C), if the method has them.
        details: choices of the method, JSON-ready.
        smoothed: (m, C) smoothed probabilities, once they are made.
    """

    predicted: NDArray[Any]
    probabilities: NDArray[np.float64] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    smoothed: NDArray[np.float32] | None = None

    def only(self, chosen: NDArray[np.bool_]) -> "Predicted":
        """Return the fit for some of its pixels (m,)."""
        probabilities = None if self.probabilities is None else self.probabilities[chosen]
        smoothed = None if self.smoothed is None else self.smoothed[chosen]
        return Predicted(self.predicted[chosen], probabilities, self.details, smoothed)
