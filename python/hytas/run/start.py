"""What the networks of a run begin with: random weights, or the trained model of another run."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from hytas.data import LabelledData, Preprocessing, Scene, Split, as_scene
from hytas.data.join import check_same_bands
from hytas.decide.decisions import Decisions
from hytas.deploy import DeployedModel
from hytas.deploy.smoothing import Smoothing
from hytas.errors import InputError, one_line
from hytas.model_card import ModelCard
from hytas.models import Network, small_parameters
from hytas.models.table import input_shape
from hytas.models.transfer import carry_over
from hytas.run.config import RunConfig
from hytas.run.folder import RunFolder, read_json, trained_folder
from hytas.run.weights import TrainedModel, load_weights
from hytas.spaces.shape import Shape
from hytas.tasks import PredictionTask, task_of, task_of_card
from hytas.train import LabelledPixels, Recipe
from hytas.train.evaluation import logits_of
from hytas.types import Array, Pixels

RECIPE = Recipe(whitened=False, learning_rate=3e-4, steps=400)
"""A third of the usual rate: the weights are good already, and labels are few."""
IMAGES = Recipe(whitened=False, learning_rate=1e-3, steps=400)
"""For other images, whose read-out begins anew."""
VALUES = Recipe(whitened=False, learning_rate=1e-6, steps=1)
"""For values: slope and bias are fitted to the new samples, and the weights stay as they are."""
MOST_PIXELS = 20_000
"""Test pixels of a scene that are compared before and after; of more, as many, evenly spread."""
READ_PIXELS = 1024  # at a time
_OTHER_SPLIT = "another split would test on pixels that it was trained on"


class Scratch:
    """The origin of a run from random weights, with the interface of `StartingModel`."""

    smoothing: str | None = None
    no_self_training = digest = ""

    def begin(self, network: nn.Module, tuned: str, classes: tuple[str, ...]) -> None:
        """Leave the random weights."""

    def card_of(self, card: ModelCard, decisions: Decisions) -> ModelCard:
        """Return the card as it is."""
        return card

    def figures(self, scene: LabelledData, pixels: Pixels, onnx: Path) -> dict[str, Any]:
        """Return nothing: no model was changed."""
        return {}


@dataclass(frozen=True, eq=False)
class StartingModel:
    """A trained model whose classes, bands, scaling and architecture a run keeps."""

    folder: RunFolder
    model: TrainedModel

    no_self_training: ClassVar[str] = "the run begins with a trained model"

    @classmethod
    def open(cls, path: str | Path, argument: str = "from") -> Self:
        """Open the model of a run.

        Args:
            path: the folder of a run, or a model file in it.
        """
        if (folder := trained_folder(path)) is None:
            rule = "must be a run, or a model in a run, with trained weights"
            raise InputError(argument, path, rule)
        model = load_weights(folder.weights)
        return (ImageStart if model.card.of_images else cls)(folder, model)  # type: ignore[return-value]

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the file of the model, in hex."""
        return hashlib.sha256(self.folder.weights.read_bytes()).hexdigest()

    @property
    def card(self) -> ModelCard:
        """Return the card of the model."""
        return self.model.card

    @property
    def preprocessing(self) -> Preprocessing:
        """Return bands and scaling of the model."""
        return Preprocessing.from_dict(self.card.preprocessing)

    @property
    def shape(self) -> Shape:
        """Return the shape of its input."""
        return input_shape(self.card)

    def seen(self, data: LabelledData) -> Pixels:
        """Return the samples of some data that the model was trained on or validated with.

        Without the split of its run they are all samples of a scene that it was trained on.
        """
        sources = [one.get("fingerprint") for one in self.card.learnt_from]
        parts = [(data.fingerprint, np.arange(data.labels.size))]
        if isinstance(data, Scene):
            parts += [(part.cube_digest, part.pixels(data.width)) for part in data.parts]
        shared = [(print_, pixels) for print_, pixels in parts if print_ in sources]
        if not shared:
            return np.array([], np.int64)
        folder = self.folder
        if (
            folder.config.is_file()
            and folder.split.is_file()
            and all(sources.count(print_) == 1 for print_, _ in shared)
            and folder.read_config()[1] == data.fingerprint
        ):
            return Split.load(folder.split).train_and_validation
        return np.concatenate([pixels for _, pixels in shared])

    def check_unseen(self, argument: str, data: LabelledData, tested: Pixels) -> None:
        """Refuse test pixels that the model was trained on."""
        if np.intersect1d(self.seen(data), tested).size:
            rule = f"its model was trained on test {'pixels' if data.has_map else 'samples'} of "
            hint = f"repeat the split and the `seed` of that run: {_OTHER_SPLIT}"
            raise InputError(argument, self.folder.path, f"{rule}{data.name}", hint)

    def adapted(self, scene: Scene) -> Scene:
        """Return a scene with the classes and the no-data value of the model."""
        card, name = self.card, str(self.folder.path)
        kind = "scene" if scene.has_map else "table"
        fingerprints = {one.get("fingerprint") for one in card.learnt_from}
        for part in scene.parts:
            if not fingerprints.isdisjoint((part.cube_digest, scene.fingerprint)):
                rule = f"is a {kind} that the model of {name} was trained on"
                raise InputError("data", part.name, rule, _OTHER_SPLIT)
        waves = None if card.wavelengths is None else np.asarray(card.wavelengths)
        check_same_bands(scene, card.bands, waves, name)
        if not np.can_cast(scene.cube.dtype, card.numpy_dtype):
            rule = f"holds {scene.cube.dtype} values, and the model of {name} takes {card.dtype}"
            hint = "the type must be that of the scene it was trained on"
            raise InputError("data", scene.name, rule, hint)
        cube = scene.cube.astype(card.numpy_dtype, copy=False)
        if scene.nodata is not None and scene.nodata != card.nodata:
            empty = card.empty_values if card.nodata is None else card.nodata
            cube = np.where(cube == scene.nodata, np.asarray(empty, cube.dtype), cube)
        nodata = scene.nodata if card.nodata is None else card.nodata
        scene = replace(scene, cube=cube, nodata=nodata)
        own, kept = task_of(scene), task_of_card(card)
        if own.told != kept.told:
            rule = f"is labelled with {own.told}, and the model of {name} predicts {kept.told}"
            raise InputError("data", scene.name, rule)
        return own.relabelled(scene, card, name)

    def task(self, training: LabelledPixels, targets: Array) -> PredictionTask:
        """Return the task of a run: that of the model, with a slope and a bias for other samples.

        Args:
            training: the samples that may train, as networks read them.
            targets: their targets.
        """
        task, network = task_of_card(self.card), self.model.network
        if task.is_fine_tuned:
            return task
        predicted = task.predicted(logits_of(network, training, torch.device("cpu")))
        return task.recalibrated(task.decoded(predicted), targets)

    def begin(self, network: nn.Module, tuned: str, classes: tuple[str, ...]) -> None:
        """Load the model's weights and freeze those that are not fine-tuned."""
        network.load_state_dict(self.model.network.state_dict())
        if isinstance(network, Network):
            network.fresh = False  # fitted anew, it would lose what the model has learned
        _freeze(network, tuned)

    @property
    def guide(self) -> Smoothing | None:
        """Return how it smooths, or None if it has no guide."""
        kept = self.card.smoothing
        return None if kept is None else Smoothing.from_dict(kept, self.shape.bands)

    @property
    def smoothing(self) -> str | None:
        """Return how the model's maps are smoothed, or None if it has no guide."""
        return None if self.card.smoothing is None else str(self.card.smoothing["method"])

    def card_of(self, card: ModelCard, decisions: Decisions) -> ModelCard:
        """Return the card of the changed model: its guide stays, and new sources are added.

        Args:
            card: of the run's scene, with the new temperature, smoothing, sources and score for
                unknown ground.
            decisions: of the final training. What they leave open stays as the model has it.
        """
        temperature = self.card.temperature if decisions.calibration.reason else card.temperature
        kept, choice = self.card.smoothing, decisions.smoothing
        if kept is not None and choice is not None:
            kept = {**kept, "method": choice.method}
            if choice.ECE_after is not None:  # pixels were enough to fit it
                kept["temperature"] = choice.temperature
        sources = (*self.card.learnt_from, *card.learnt_from)
        return replace(
            self.card,
            temperature=temperature,
            smoothing=kept,
            learnt_from=sources,
            targets=card.targets,
            # A score fits one set of weights at one temperature.
            unknown=None if decisions.calibration.reason else card.unknown,
            # The read-out learns those of the new labels.
            class_shares=None,
        )

    def figures(self, scene: LabelledData, pixels: Pixels, onnx: Path) -> dict[str, Any]:
        """Return what the training changed: `changes`."""
        return {"further": changes(self.folder, as_scene(scene, "updates"), pixels, onnx)}


class ImageStart(StartingModel):
    """A trained model of images, whose weights a run on other images begins with.

    Images may be of another size, and have other channels and classes; scaling and classes are
    those of the new images.
    """

    def begin(self, network: nn.Module, tuned: str, classes: tuple[str, ...]) -> None:
        """Carry the model's weights over, and freeze those that are not fine-tuned."""
        same = classes == tuple(self.card.class_names)
        carry_over(network, self.model.network.state_dict(), same)
        _freeze(network, tuned)

    def adapted(self, scene: Scene) -> Scene:
        raise InputError("from", self.folder.path, "is a model of images, and the data are none")

    def card_of(self, card: ModelCard, decisions: Decisions) -> ModelCard:
        """Return the card of the new model; the images of the first one are sources, too."""
        return replace(card, learnt_from=(*self.card.learnt_from, *card.learnt_from))

    def figures(self, scene: LabelledData, pixels: Pixels, onnx: Path) -> dict[str, Any]:
        """Return nothing: the model of other images is not compared."""
        return {}


def _freeze(network: nn.Module, tuned: str) -> None:
    if tuned == "small":
        moving = small_parameters(network)
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name in moving)


Origin = Scratch | StartingModel


def further_config(start: str | Path) -> tuple[RunConfig, dict[str, Any]]:
    """Return what a further run keeps, and the architecture of the model.

    Args:
        start: the run that trained the model, or its model file.
    """
    begun = StartingModel.open(start)
    card, folder = begun.card, begun.folder
    before, _ = folder.read_config()
    architecture = dict(card.architecture)
    preset = read_json(folder.recipe, {}).get("preset")
    config = RunConfig(
        space=before.space,
        recipe=_recipe_of(card),
        presets=preset or before.presets,
        start=str(folder.path.resolve()),
        plugins=before.plugins,
    )
    if card.of_images:  # their size, channels, classes and scaling are those of the new images
        return config, architecture
    config = replace(
        config,
        budget=before.budget,
        patch_size=card.patch_size,
        band_group=card.band_group,
        scaling=begun.preprocessing.method,
        scale_by=card.scale_by,
    )
    return config, architecture


def _recipe_of(card: ModelCard) -> Recipe:
    if card.of_images:
        return IMAGES
    return RECIPE if task_of_card(card).is_fine_tuned else VALUES


def changes(before: RunFolder, scene: Scene, pixels: Pixels, onnx: Path) -> dict[str, Any]:
    """Return the accuracy of a model, and of the model that it was trained further to.

    Args:
        pixels: flat indices of the test pixels of that scene.

    Returns:
        "from": the folder's name; "scenes": for each scene "name", "role" ("new" or "old"), and the
        reports "before" and "after"; "reason": why the old scene is missing, or "".
    """
    result: dict[str, Any] = {"from": before.path.resolve().name, "scenes": [], "reason": ""}
    try:
        models = [DeployedModel.load(path, "cpu") for path in (before.onnx, onnx)]
        result["scenes"].append(_compare(scene, pixels, models, "new"))
        result["scenes"].append(_compare(*_old(before), models, "old"))
    except (InputError, OSError) as error:
        result["reason"] = one_line(error)
    return result


def _old(folder: RunFolder) -> tuple[Scene, Pixels]:
    config, fingerprint = folder.read_config()
    scene = as_scene(config.load_scene(), "updates of a model")
    if scene.fingerprint != fingerprint:
        raise InputError(f"{config.first_data} is another scene than that of {folder.path}")
    return scene, Split.load(folder.split).test


def _compare(
    scene: Scene, pixels: Pixels, models: list[DeployedModel], role: str
) -> dict[str, Any]:
    if len(pixels) > MOST_PIXELS:
        pixels = pixels[np.linspace(0, len(pixels) - 1, MOST_PIXELS).astype(np.int64)]
    read, truth = scene.reader(models[0].card.patch_size), scene.targets(pixels)
    reports = []
    for model in models:
        parts = np.array_split(pixels, max(1, len(pixels) // READ_PIXELS))
        outputs = np.concatenate([model.predict_patches(read(part)) for part in parts])
        task, names = task_of_card(model.card), model.card.class_names
        reports.append(task.report(truth, task.chosen(outputs), names, outputs))
    return {"name": scene.name, "role": role, "before": reports[0], "after": reports[1]}
