"""From a configuration and a scene to all that the stages of a run share."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas._engine import Feasible, SearchSpace, builtin_spaces
from hytas.data import PatchReader, Preprocessing, Scene, Split, make_split
from hytas.errors import InputError
from hytas.models import NETWORKS, InputShape, build_network, check_band_group
from hytas.run.config import RunConfig
from hytas.run.folder import RunFolder
from hytas.spaces import open_space
from hytas.train import LabelledPixels

Pixels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RunContext:
    """A run's scene, split, scaling and search space: all fixed by its configuration.

    `feasible` holds the architectures of the budget; None without a budget.
    """

    config: RunConfig
    scene: Scene
    split: Split
    preprocessing: Preprocessing
    shape: InputShape
    space: SearchSpace
    feasible: Feasible | None
    device: torch.device

    def targets(self, pixels: Pixels) -> NDArray[np.int64]:
        """Class indices (n,), 0-based, of flat pixel indices (n,)."""
        return self.scene.targets(pixels)

    def labelled(self, pixels: Pixels) -> LabelledPixels:
        """The pixels as the training loop takes them."""
        reader = PatchReader(self.scene.cube, self.config.patch_size)

        def patches(chosen: Pixels) -> NDArray[np.float32]:
            return self.preprocessing.apply(reader(chosen))

        targets, dark = self.targets(pixels), self.preprocessing.dark
        return LabelledPixels(patches, pixels, targets, self.shape.classes, dark)

    @property
    def retraining_pixels(self) -> tuple[Pixels, Pixels]:
        """The pixels that a retraining learns, and those that watch it: none, if all are learnt."""
        split = self.split
        if self.config.retrain_on == "all":
            return split.learnable, split.validation[:0]
        return split.train, split.validation

    def network(self, architecture: Mapping[str, Any]) -> nn.Module:
        """The untrained network of an architecture; the run's seed decides its weights."""
        config = self.config
        return build_network(
            architecture, self.shape, drop_path=config.recipe.drop_path, seed=config.seed
        )


def choose_device(name: str) -> torch.device:
    """The device of `--device`: auto takes a GPU where there is one.

    Raises:
        InputError: cuda was asked for and there is none.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: torch finds no CUDA device here; use cpu or auto")
    return torch.device(name)


def open_feasible(config: RunConfig, shape: InputShape) -> tuple[SearchSpace, Feasible | None]:
    """The configured space for inputs of `shape`, and its architectures that fit the budget.

    Raises:
        InputError: an unknown space or one without a network, or no architecture fits the budget.
    """
    refusal = (
        f"space {config.space}: no network is built for it yet; choose one of {', '.join(NETWORKS)}"
    )
    if config.space in builtin_spaces() and config.space not in NETWORKS:
        raise InputError(refusal)  # before its variables, which are not those of a scene
    space, budget = open_space(config.space, config.budget or (), offered=shape.variables())
    if space.name not in NETWORKS:
        raise InputError(refusal)
    for name in config.minimised:
        if name not in space.cost_names:
            raise InputError(
                f"pareto {config.pareto}: {name!r} is no cost of {space.name}; "
                f"choose from {', '.join(space.cost_names)}"
            )
    try:
        return space, Feasible(space, budget) if config.budget else None
    except ValueError as error:
        raise InputError(str(error)) from None


def prepare(
    config: RunConfig, scene: Scene, device: torch.device, split: Split | None = None
) -> RunContext:
    """Split and scale `scene`, and find what fits the budget, as `config` says.

    Args:
        split: of a run that goes on; None draws it.

    Raises:
        InputError: the configuration does not fit the scene, or no architecture the budget.
    """
    split = split or make_split(
        scene,
        kind=config.split,
        train_per_class=config.train_per_class,
        train_fraction=config.train_fraction,
        block=config.block,
        folds=config.folds,
        fold=config.fold,
        validation_fraction=config.validation_fraction,
        seed=config.seed,
        patch_size=config.patch_size,
    )
    preprocessing = Preprocessing.fit_scene(
        scene, split.train, method=config.scaling, bands=config.bands
    )
    bands = len(preprocessing.bands)
    check_band_group(config.band_group, bands)
    shape = InputShape(bands, scene.classes, config.patch_size, config.band_group)
    space, feasible = open_feasible(config, shape)
    return RunContext(config, scene, split, preprocessing, shape, space, feasible, device)


def _kept_split(folder: RunFolder, scene: Scene) -> Split | None:
    """The split of a run of this scene that is in the folder already."""
    if not (folder.config.exists() and folder.split.exists()):
        return None
    return Split.load(folder.split) if folder.read_config()[1] == scene.fingerprint else None


@contextmanager
def open_run(
    out: str | Path,
    config: RunConfig,
    scene: Scene,
    device: str,
    check: Callable[[RunContext, RunFolder], object] = lambda *_: None,
) -> Iterator[tuple[RunContext, RunFolder]]:
    """Prepare a run and hold its folder: nothing is written before all is known to fit.

    Args:
        check: refuses, with an `InputError`, what the run could not do; the folder is not held.

    Raises:
        InputError: as `prepare`, and where the folder belongs to another run.
        OSError: the folder cannot be written.
    """
    context = prepare(config, scene, choose_device(device), _kept_split(RunFolder(out), scene))
    check(context, RunFolder(out))
    with RunFolder(out) as folder:
        folder.claim(config, scene)
        if not folder.split.exists():
            context.split.save(folder.split)
        yield context, folder
