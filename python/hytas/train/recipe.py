"""How a network is trained: one value, written to every run."""

import difflib
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from hytas.errors import InputError
from hytas.settings import plain_numbers
from hytas.train.schedule import Schedule

SHARES = (
    "warmup",
    "label_smoothing",
    "drop_path",
    "dropout",
    "ema_decay",
    "band_dropout",
    "borders",
    "shift",
)
AMOUNTS = (
    "weight_decay",
    "mixup",
    "cutmix",
    "band_noise",
    "illumination",
    "brightness",
    "alignment",
)
MOST = 1e30
"""Largest rate or amount; larger ones overflow float32."""
SWITCHES = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True)
class Recipe:
    """Optimiser, schedule, regularisation and augmentation.

    Training length is counted in optimiser steps. The scenes of the field have 300 to 4000 training
    pixels, so the same number of epochs can mean ten times more work.

    Attributes:
        whitened: start from a pixel embedding that whitens the training pixels
            (`hytas.models.whitening`) instead of a random one.
        steps: optimiser steps, rounded up to whole epochs, unless `epochs` is given.
        most_epochs: largest number of epochs for `steps`, because few pixels are soon learnt by
            heart; None sets no limit.
        epochs: passes over the training pixels; 0 trains nothing; None uses `steps`.
        batch_size: pixels in a step.
        learning_rate: AdamW's peak rate; linear warm-up over `warmup` of the steps, then a cosine.
            None is 1e-3, and up to twice that for narrow networks without attention
            (`hytas.train.usual_rate`).
        weight_decay: AdamW's decay, on matrices only.
        label_smoothing: weight of the uniform distribution in the target. Together with mixup it
            makes the model's probabilities too low.
        class_weights: exponent of a class's inverse frequency in the loss. With 0 every pixel has
            the same weight, with 1 every class.
        drop_path: stochastic depth of the last layer.
        dropout: probability that a value of a layer's branch is set to 0.
        clip_norm: largest norm of the gradient.
        ema_decay: decay of the moving average of the weights; the average is exported.
        mixup: parameter a of mixup's Beta(a, a); 0 means no mixup.
        cutmix: the same of cutmix, which takes a rectangle of another image; with both, every batch
            is mixed by one of them. For images.
        shift: largest share of the side by which an image is moved, along each axis. For images.
        mirror: left and right are exchanged in half of the images. For images.
        repeats: copies of a pixel or image in a batch, each augmented by itself (repeated
            augmentation, Hoffer et al., CVPR 2020). An epoch is as long, and sees fewer of them.
        flips: random reflections and transpositions of the patch, the eight symmetries of a square.
        borders: probability that one side of a patch, without its centre, comes from another patch,
            as at the border of a field.
        band_noise: deviation of the noise added to each scaled value.
        band_dropout: largest probability that a band of a patch is set to 0, which is its mean (its
            minimum if the scaling is "minmax").
        illumination: deviation of a random factor of a patch's raw values, which imitates more or
            less light on the same ground.
        brightness: deviation of a random factor and a random offset of its scaled values.
        alignment: weight of HyLITE's global-local alignment (`hytas.train.alignment`).
        patience: stop if validation did not improve for this fraction of the epochs.
    """

    whitened: bool = True
    steps: int = 1500
    most_epochs: int | None = 200
    epochs: int | None = None
    batch_size: int = 64
    learning_rate: float | None = None
    warmup: float = 0.1
    weight_decay: float = 0.05
    label_smoothing: float = 0.0
    class_weights: float = 0.0
    drop_path: float = 0.1
    dropout: float = 0.0
    clip_norm: float = 1.0
    ema_decay: float = 0.99
    mixup: float = 0.2
    cutmix: float = 0.0
    shift: float = 0.0
    mirror: bool = False
    repeats: int = 1
    flips: bool = True
    borders: float = 0.25
    band_noise: float = 0.1
    band_dropout: float = 0.0
    illumination: float = 0.1
    brightness: float = 0.2
    alignment: float = 0.0
    patience: float = 0.3

    def __post_init__(self) -> None:
        plain_numbers(self)
        if self.epochs is not None and self.epochs < 0:
            raise InputError(f"recipe epochs {self.epochs}: must be 0 or more")
        for name in ("steps", "most_epochs", "batch_size", "repeats"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"recipe {name} {value}: must be 1 or more")
        if self.learning_rate is not None and not 0 < self.learning_rate <= MOST:
            raise InputError(
                f"recipe learning_rate {self.learning_rate}: must be more than 0, at most {MOST:g}"
            )
        if not 0 < self.clip_norm < math.inf:
            raise InputError(f"recipe clip_norm {self.clip_norm}: must be finite and more than 0")
        for name in ("patience", "class_weights"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"recipe {name} {getattr(self, name)}: must be 0 to 1")
        for name in SHARES:
            if not 0 <= getattr(self, name) < 1:
                raise InputError(
                    f"recipe {name} {getattr(self, name)}: must be 0 or more and less than 1"
                )
        for name in AMOUNTS:
            if not 0 <= getattr(self, name) <= MOST:
                raise InputError(f"recipe {name} {getattr(self, name)}: must be 0 to {MOST:g}")

    def changed(self, settings: Iterable[str]) -> "Recipe":
        """Return this recipe with some settings changed; each is a text such as "mixup=0.4".

        A new number of steps replaces a number of epochs, and has no limit of epochs.

        Raises:
            InputError: a text is not NAME=VALUE, the name is unknown, or the value does not fit.
        """
        given: dict[str, Any] = {}
        for setting in settings:
            name, (_, equals, text) = setting_name(setting), setting.partition("=")
            if not equals:
                raise InputError(
                    f"recipe {setting!r}: must be NAME=VALUE, such as mixup=0.4, "
                    "or a preset, such as plain"
                )
            kinds = {item.name: type(item.default) for item in fields(self)}
            kinds |= {"epochs": int, "learning_rate": float}  # whose default is None
            if name not in kinds:
                near = difflib.get_close_matches(name, kinds, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise InputError(f"recipe {name!r}: must be one of {', '.join(kinds)}{hint}")
            given[name] = _value(name, text.strip(), kinds[name])
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


def setting_name(setting: str) -> str:
    """Return the name of a setting such as "mixup=0.4"."""
    return setting.partition("=")[0].strip().replace("-", "_")


def _value(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in SWITCHES:
            raise InputError(f"recipe {name} {text!r}: must be yes or no")
        return SWITCHES[text.lower()]
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"recipe {name} {text!r}: must be {what}") from None
