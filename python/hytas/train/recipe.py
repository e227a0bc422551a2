"""How a network is trained: one value, written to every run."""

import difflib
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from hytas.errors import InputError
from hytas.plugins import brings
from hytas.settings import OneOf, check_settings, setting, settings_of, that
from hytas.train.schedule import Schedule

MOST = 1e30
"""Largest rate or amount; larger ones overflow float32."""
OPTIMISERS = ("adamw", "sgd")
SWITCHES = {"yes": True, "true": True, "no": False, "false": False}
SHARE = that(lambda share: 0 <= share < 1, "must be 0 or more and less than 1")
PROBABILITY = that(lambda share: 0 <= share <= 1, "must be 0 to 1")
AMOUNT = that(lambda amount: 0 <= amount <= MOST, f"must be 0 to {MOST:g}")
COUNT = that(lambda count: count >= 1, "must be 1 or more")
NONE = "none"
"""Of settings that name a part of a plug-in."""


def _brought(kind: str) -> Callable[[str], None]:
    def check(name: str) -> None:
        if not brings(kind, name):
            raise InputError(kind, name, f"must be {NONE}, or the {kind} of a plug-in")

    return check


@dataclass(frozen=True)
class Recipe:
    """Optimiser, schedule, regularisation and augmentation.

    Training length is counted in optimiser steps. The scenes of the field have 300 to 4000 training
    pixels, so the same number of epochs can mean ten times more work.
    """

    whitened: bool = setting(
        True,
        "Start from a pixel embedding that whitens the training pixels "
        "(`hytas.models.whitening`) instead of a random one.",
    )
    steps: int = setting(
        1500, "Optimiser steps, rounded up to whole epochs, unless `epochs` is given.", rule=COUNT
    )
    most_epochs: int | None = setting(
        200,
        "Largest number of epochs for `steps`, because few pixels are soon overfitted; "
        "None sets no limit.",
        rule=COUNT,
    )
    epochs: int | None = setting(
        None,
        "Passes over the training pixels; 0 trains nothing; None uses `steps`.",
        rule=that(lambda epochs: epochs >= 0, "must be 0 or more"),
    )
    batch_size: int = setting(64, "Pixels in a step.", rule=COUNT)
    learning_rate: float | None = setting(
        None,
        "Peak rate, after `warmup`; then it falls as a cosine. None is 1e-3, and up "
        "to twice that for narrow networks without attention (`hytas.train.usual_rate`).",
        rule=that(lambda rate: 0 < rate <= MOST, f"must be more than 0, at most {MOST:g}"),
    )
    warmup: float = setting(
        0.1, "Share of the steps in which the rate rises linearly to its peak.", rule=SHARE
    )
    optimiser: str = setting(
        OPTIMISERS[0],
        "adamw, or sgd with Nesterov momentum 0.9, whose usual `learning_rate` is 0.05.",
        rule=OneOf(OPTIMISERS),
    )
    weight_decay: float = setting(0.05, "The optimiser's decay, on matrices only.", rule=AMOUNT)
    label_smoothing: float = setting(
        0.0,
        "Weight of the uniform distribution in the target. Together with mixup it makes the "
        "model's probabilities too low.",
        rule=SHARE,
    )
    class_weights: float = setting(
        0.0,
        "Exponent of a class's inverse frequency in the loss. With 0 every pixel has the "
        "same weight, with 1 every class.",
        rule=PROBABILITY,
    )
    drop_path: float = setting(0.1, "Stochastic depth of the last layer.", rule=SHARE)
    dropout: float = setting(
        0.0, "Probability that a value of a layer's branch is set to 0.", rule=SHARE
    )
    clip_norm: float = setting(
        1.0,
        "Largest norm of the gradient.",
        rule=that(lambda norm: 0 < norm < math.inf, "must be finite and more than 0"),
    )
    ema_decay: float = setting(
        0.99, "Decay of the moving average of the weights; the average is exported.", rule=SHARE
    )
    mixup: float = setting(0.2, "Parameter a of mixup's Beta(a, a); 0 means no mixup.", rule=AMOUNT)
    cutmix: float = setting(
        0.0,
        "Parameter a of cutmix, which takes a rectangle of another image; with mixup, every "
        "batch is mixed by one of them. For images.",
        rule=AMOUNT,
        only="images",
    )
    shift: float = setting(
        0.0,
        "Largest share of the side by which an image is moved, along each axis. For images.",
        rule=SHARE,
        only="images",
    )
    crop: float = setting(
        0.0,
        "Least share of an image's area that a random crop keeps, which is then enlarged to the "
        "whole image; 0 for no crops, 0.08 in AutoFormer. Images of 32 pixels or less are moved by "
        "up to an eighth of their side instead, as there. For images.",
        rule=PROBABILITY,
        only="images",
    )
    mirror: bool = setting(
        False, "Left and right are exchanged in half of the images. For images.", only="images"
    )
    rand_augment: int = setting(
        0,
        "Random operations on each image (RandAugment, Cubuk et al., NeurIPS 2020), such as turns, "
        "shears and contrast; 0 for none, 2 in AutoFormer. For images.",
        rule=that(lambda count: 0 <= count <= 16, "must be 0 to 16"),
        only="images",
    )
    magnitude: float = setting(
        9.0,
        "Magnitude of these operations. For images.",
        rule=that(lambda level: 0 <= level <= 10, "must be 0 to 10"),
        only="images",
    )
    erasing: float = setting(
        0.0,
        "Probability that a rectangle of an image becomes noise (Zhong et al., AAAI 2020). For "
        "images.",
        rule=PROBABILITY,
        only="images",
    )
    distillation: float = setting(
        0.5,
        "Weight of the class that the teacher of a run (`teacher`) predicts for a sample, "
        "as it is augmented; the rest is that of the label.",
        rule=PROBABILITY,
    )
    repeats: int = setting(
        1,
        "Copies of a pixel or image in a batch, each augmented by itself (repeated "
        "augmentation, Hoffer et al., CVPR 2020). An epoch is as long, and sees fewer of "
        "them.",
        rule=COUNT,
    )
    flips: bool = setting(
        True,
        "Random reflections and transpositions of the patch, the eight symmetries of a square.",
    )
    borders: float = setting(
        0.25,
        "Probability that one side of a patch, without its centre, comes from another patch, "
        "as at the border of a field.",
        rule=SHARE,
    )
    band_noise: float = setting(
        0.1, "Deviation of the noise added to each scaled value.", rule=AMOUNT
    )
    band_dropout: float = setting(
        0.0,
        "Largest probability that a band of a patch is set to 0, which is its mean (its "
        'minimum if the scaling is "minmax").',
        rule=SHARE,
    )
    illumination: float = setting(
        0.1,
        "Deviation of a random factor of a patch's raw values, which imitates more or less "
        "light on the same ground.",
        rule=AMOUNT,
    )
    brightness: float = setting(
        0.2, "Deviation of a random factor and a random offset of its scaled values.", rule=AMOUNT
    )
    loss: str = setting(
        NONE,
        "Loss of a plug-in in place of cross-entropy; it takes neither `label_smoothing` nor class "
        "weights.",
        rule=OneOf((NONE,), _brought("loss")),
    )
    augmentation: str = setting(
        NONE,
        "Augmentation of a plug-in, after all others.",
        rule=OneOf((NONE,), _brought("augmentation")),
    )
    patience: float = setting(
        0.3, "Stop if validation did not improve for this fraction of the epochs.", rule=PROBABILITY
    )

    def __post_init__(self) -> None:
        check_settings(self, within="recipe")

    def changed(self, changes: Iterable[str]) -> "Recipe":
        """Return this recipe with some settings changed; a change is a text such as "mixup=0.4".

        A new number of steps replaces a number of epochs, and has no limit of epochs.

        Raises:
            InputError: a text is not NAME=VALUE, the name is unknown, or the value does not fit.
        """
        given: dict[str, Any] = {}
        settings = settings_of(type(self))
        for change in changes:
            name, (_, equals, text) = setting_name(change), change.partition("=")
            if not equals:
                hint = "or a preset, such as plain"
                raise InputError("recipe", change, "must be NAME=VALUE, such as mixup=0.4", hint)
            if name not in settings:
                near = difflib.get_close_matches(name, settings, 1)
                hint = f"did you mean {near[0]!r}?" if near else ""
                raise InputError("recipe", name, f"must be one of {', '.join(settings)}", hint)
            given[name] = _value(name, text.strip(), settings[name].kinds[0])
        if "steps" in given:
            given.setdefault("epochs", None)
            given.setdefault("most_epochs", None)
        return replace(self, **given)

    def steps_per_epoch(self, pixels: int) -> int:
        """Return the optimiser steps of one pass over `pixels` training pixels."""
        return math.ceil(pixels / self.batch_size)

    def epochs_for(self, pixels: int) -> int:
        """Return the number of epochs to train on `pixels` training pixels."""
        if self.epochs is not None:
            return self.epochs
        epochs = math.ceil(self.steps / self.steps_per_epoch(pixels))
        return epochs if self.most_epochs is None else min(epochs, self.most_epochs)

    def steps_for(self, pixels: int) -> int:
        """Return the optimiser steps of a whole training on `pixels` training pixels."""
        return self.epochs_for(pixels) * self.steps_per_epoch(pixels)

    def patient_epochs(self, epochs: int) -> int:
        """Return after how many epochs without a better one a training of `epochs` ends."""
        return max(1, math.ceil(self.patience * epochs))

    def schedule(self, pixels: int) -> Schedule:
        """How long and at which rates to train on `pixels` training pixels."""
        epochs = self.epochs_for(pixels)
        warmup = self.warmup * epochs * self.steps_per_epoch(pixels)
        return Schedule(epochs, warmup, warmup)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    def with_epochs(self, epochs: int | None) -> "Recipe":
        """Return this recipe with a number of epochs; None uses its number of steps."""
        return replace(self, epochs=epochs)


def setting_name(change: str) -> str:
    """Return the name of a setting such as "mixup=0.4"."""
    return change.partition("=")[0].strip().replace("-", "_")


def _value(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in SWITCHES:
            raise InputError("recipe", f"{name}={text}", "must be yes or no")
        return SWITCHES[text.lower()]
    try:
        return kind(text)
    except ValueError:
        words = "a whole number" if kind is int else "a number"
        raise InputError("recipe", f"{name}={text}", f"must be {words}") from None
