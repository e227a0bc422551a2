"""The teacher of a final training: the model of another run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.data import Preprocessing
from hytas.data.interpret.wavelengths import farthest_band
from hytas.errors import InputError
from hytas.models.spectral import crop
from hytas.run.prepared import PreparedData
from hytas.run.start import StartingModel
from hytas.types import Floats, Pixels


@dataclass(frozen=True, eq=False)
class Teacher:
    """A trained network that names the class of scaled samples.

    Its scaling may be another than that of the training: `samples * factor + shift` is its own.

    Attributes:
        network: of the teacher.
        side: of the patches or images that it reads; of a larger patch, the centre.
        factor, shift: (b,) of each band or channel.
        classes: number of classes C.
        seen: pixels of the data that it was trained on or validated with.
        sources: the data that it was trained on, as its card has them.
        digest: SHA-256 of its model, in hex.
    """

    network: nn.Module
    side: int
    factor: Tensor
    shift: Tensor
    classes: int
    seen: Pixels
    sources: tuple[Mapping[str, Any], ...]
    digest: str

    @torch.no_grad()
    def __call__(self, samples: Tensor) -> Tensor:
        """Return the predicted class of samples (n, P, P, b) as distributions (n, C)."""
        network, device = self.network.to(samples.device).eval(), samples.device
        samples = crop(samples, self.side)
        logits = network(samples * self.factor.to(device) + self.shift.to(device))
        return F.one_hot(logits.argmax(1), self.classes).float()


def open_teacher(path: str, data: PreparedData, scale_by: str) -> Teacher:
    """Return the model of a run as the teacher of a training on these data.

    Source: hard distillation, as AutoFormer's released code has it, after DeiT (Touvron et al.,
    ICML 2021).

    Args:
        path: the folder of the run, or a model file in it.
        data: of the training.
        scale_by: what scales its scenes.

    Raises:
        InputError: there is no such run; or its model takes other samples, knows other classes, or
            was trained on test pixels of these data.
    """
    begun = StartingModel.open(path, "teacher")
    card, own, new = begun.card, begun.preprocessing, data.preprocessing
    facts: dict[str, tuple[Any, Any]] = {
        "classes": (tuple(card.class_names), tuple(data.scene.class_names)),
        "bands": (own.bands.tolist(), new.bands.tolist()),
        "no-data values": (own.nodata, new.nodata),
        "scaling (`scale_by`)": (card.scale_by, scale_by),
    }
    facts["wavelengths"] = (_same_wavelengths(card.wavelengths, data.scene.wavelengths), True)
    # Of a patch the network reads the centre; an image is read whole.
    side = data.shape.side if card.of_images else min(card.patch_size, data.shape.side)
    facts["sides of patches or images"] = (card.patch_size, side)
    for name, (there, here) in facts.items():
        if there != here:
            rule = f"its model has other {name} than {data.scene.name}"
            raise InputError("teacher", path, rule)
    begun.check_unseen("teacher", data.scene, data.split.test)
    factor, shift = _between(new, own)
    network, seen, classes = begun.model.network, begun.seen(data.scene), data.shape.classes
    sources, digest = card.learnt_from, begun.digest
    return Teacher(network, card.patch_size, factor, shift, classes, seen, sources, digest)


def _same_wavelengths(one: tuple[float, ...] | None, other: Floats | None) -> bool:
    """Return whether no band lies more than a spacing away; unknown wavelengths may be any."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and farthest_band(other, np.asarray(one)) is None


def _between(one: Preprocessing, other: Preprocessing) -> tuple[Tensor, Tensor]:
    """Return factor and shift from values that `one` scaled to those that `other` would."""
    factor = one.scale / other.scale
    shift = (one.offset - other.offset) / other.scale
    return torch.from_numpy(np.float32(factor)), torch.from_numpy(np.float32(shift))
