"""What a method is given, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.data import PatchReader, Preprocessing, Scene, Split
from hytas.errors import InputError

Pixels = NDArray[np.int64]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, eq=False)
class Task:
    """One split of one scene, with the classes of its training pixels only.

    Methods see no class of a test pixel: they are not in here.

    Attributes:
        scene_cube: (H, W, B) as the sensor gives it.
        train: flat indices (n,) of all pixels to fit on, those kept for validation among them.
        targets: class indices (n,) of the training pixels, 0-based.
        test: flat indices (m,), ascending, of the pixels to predict: those of the test, and in
            a run those around them that smoothing reads.
        classes: number of classes C.
        patch_size: side of a patch.
        band_group: neighbouring bands in a token of the networks.
        seed: of all that the method draws.
        device: of the networks.
        steps: optimiser steps of the networks; None takes the published ones.
        fit_scaling: from a method's name ("standard", "minmax", None for the configured one) to
            the scaling, fitted on the training pixels.
    """

    scene_cube: NDArray[Any]
    train: Pixels
    targets: NDArray[np.int64]
    test: Pixels
    classes: int
    patch_size: int
    band_group: int
    seed: int
    device: str
    steps: int | None
    fit_scaling: Callable[[str | None], Preprocessing]

    @classmethod
    def of(
        cls,
        scene: Scene,
        split: Split,
        *,
        patch_size: int,
        band_group: int,
        scaling: str,
        bands: str | None,
        device: str,
        steps: int | None,
    ) -> "Task":
        """The task that `split` makes of `scene`.

        Raises:
            InputError: fewer than two classes to tell apart, or a bad selection of bands.
        """
        train = split.learnable
        targets = scene.targets(train)
        if len(np.unique(targets)) < 2:
            raise InputError(f"training pixels: of one class only in {scene.name}; two are needed")

        def fit_scaling(method: str | None) -> Preprocessing:
            return Preprocessing.fit_scene(scene, train, method=method or scaling, bands=bands)

        return cls(
            scene.cube,
            train,
            targets,
            split.test,
            scene.classes,
            patch_size,
            band_group,
            split.seed,
            device,
            steps,
            fit_scaling,
        )

    def spectra(self, pixels: Pixels, scaling: Preprocessing) -> NDArray[np.float32]:
        """Scaled spectra (n, bands) of single pixels."""
        rows, columns = np.unravel_index(pixels, self.scene_cube.shape[:2])
        return scaling.apply(np.asarray(self.scene_cube[rows, columns]))

    def patches(self, pixels: Pixels, scaling: Preprocessing) -> NDArray[np.float32]:
        """Scaled patches (n, P, P, bands)."""
        return scaling.apply(PatchReader(self.scene_cube, self.patch_size)(pixels))


@dataclass(frozen=True, eq=False)
class Fit:
    """What a method says of the test pixels.

    Attributes:
        predicted: class indices (m,), 0-based.
        probabilities: (m, C), where the method has them.
        details: what it chose, JSON-ready.
    """

    predicted: NDArray[np.int64]
    probabilities: NDArray[np.float64] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
