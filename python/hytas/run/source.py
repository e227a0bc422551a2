"""What the fits of a run read: its networks as they begin, and its pixels."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from hytas.data import Scene
from hytas.export.target import converted
from hytas.models import build_network
from hytas.plugins import loaded_plugins
from hytas.run.config import RunConfig
from hytas.run.prepared import PreparedData
from hytas.run.soft_labels import with_soft_labels
from hytas.run.start import Origin
from hytas.run.teacher import Teacher
from hytas.spaces.shape import Shape
from hytas.train import LabelledPixels, Learner, Recipe
from hytas.train.fit import Fit
from hytas.types import Pixels


@dataclass(frozen=True, eq=False)
class RunSource:
    """Networks and pixels of a run (`hytas.train.fit.FitSource`).

    Attributes:
        digest: SHA-256, in hex, of the data, their scaling, the origin, the teacher and plug-ins.
        shape: of a network's input.
        origin: what networks begin with.
        tune: the weights that training changes: "all" or "small".
        class_names: of the data.
        device: where networks train.
        one_thread: whether a training takes one CPU thread.
        known: all labelled pixels of the run.
        others: pixels whose label no training may read, at which networks are asked; or None.
        data: of the run; None for workers that read no other pixels.
        teacher: of the final training, or None.
    """

    digest: str
    shape: Shape
    origin: Origin
    tune: str
    class_names: tuple[str, ...]
    device: torch.device
    one_thread: bool
    known: LabelledPixels
    others: LabelledPixels | None
    data: PreparedData | None
    teacher: Teacher | None = None

    @classmethod
    def of(
        cls,
        config: RunConfig,
        data: PreparedData,
        origin: Origin,
        device: torch.device,
        teacher: Teacher | None = None,
    ) -> Self:
        """Return the source of a run."""
        facts = {
            "data": data.scene.fingerprint,
            "scaling": data.preprocessing.to_dict(),
            "shape": repr(data.shape),
            "origin": origin.digest,
            "tune": config.tune,
            "teacher": None if teacher is None else teacher.digest,
            "plugins": sorted(loaded_plugins().values()),
        }
        return cls(
            hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest(),
            data.shape,
            origin,
            config.tune,
            tuple(data.scene.class_names),
            device,
            data.trains_in_parallel,
            data.labelled(data.split.train_and_validation),
            data.unlabelled_sample(config.seed),
            data,
            teacher,
        )

    def network(self, fit: Fit) -> nn.Module | Learner:
        """Return the network of a fit, whose seed decides its weights, or those of the origin."""
        return self.begun(fit.architecture, fit.recipe, fit.seed)

    def begun(self, architecture: Mapping[str, Any], recipe: Recipe, seed: int) -> nn.Module:
        """Return the network of an architecture as training begins with it."""
        network = build_network(
            architecture,
            self.shape,
            drop_path=recipe.drop_path,
            dropout=recipe.dropout,
            seed=seed,
        )
        self.origin.begin(network, self.tune, self.class_names)
        return network

    def labelled(self, pixels: Pixels) -> LabelledPixels:
        """Return labelled pixels, by their flat indices."""
        return self.known.subset(pixels)

    def training(self, fit: Fit, network: nn.Module | Learner) -> LabelledPixels:
        """Return what a fit trains on; with soft labels that `network` gives."""
        if fit.self_trains:
            assert self.data is not None
            assert isinstance(network, nn.Module)
            most = fit.recipe.steps * fit.recipe.batch_size
            scene = self.data.as_scene
            return with_soft_labels(network, scene, fit.trained, most, fit.seed, self.device)
        training = self.labelled(fit.trained)
        return replace(training, teacher=self.teacher) if fit.taught else training

    def unlabelled(self, pixels: Pixels) -> LabelledPixels | None:
        """Return pixels, without a look at a label; None where only the data could read them."""
        for part in (self.known, self.others):
            if part is not None and np.isin(pixels, part.pixels).all():
                return part.subset(pixels)
        return None if self.data is None else self.data.unlabelled(pixels)

    def converted(self, fit: Fit, network: nn.Module) -> AbstractContextManager[nn.Module]:
        """Yield the network of a fit as its target computes it, from scaled patches."""
        return converted(network, fit.architecture, self.shape, fit.target)

    @property
    def reads_all(self) -> bool:
        """Whether it can read all pixels of the data."""
        return self.data is not None

    @property
    def patch_bytes(self) -> int:
        """Bytes of the patches of `known` and `others`."""
        return sum(part.patch_bytes for part in (self.known, self.others) if part is not None)

    @property
    def scene_bytes(self) -> int:
        """Bytes of the scene."""
        if self.data is None or not isinstance(self.data.scene, Scene):
            return 0
        return int(self.data.scene.cube.nbytes)

    def packed(self, *, with_data: bool = False) -> Self:
        """Return the source for workers, with its patches in memory.

        Args:
            with_data: whether they read other pixels, too.
        """
        return self._in_memory if with_data else self._of_patches

    @cached_property
    def _in_memory(self) -> Self:
        others = None if self.others is None else self.others.in_memory()
        return replace(self, known=self.known.in_memory(), others=others)

    @cached_property
    def _of_patches(self) -> Self:
        return replace(self._in_memory, data=None)
