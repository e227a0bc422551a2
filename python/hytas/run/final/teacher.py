"""The teacher of a final training: the model of another run."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.data import Preprocessing
from hytas.errors import InputError
from hytas.run.prepared import PreparedData
from hytas.run.start import Start


@dataclass(frozen=True, eq=False)
class Teacher:
    """A trained network that names the class of scaled samples.

    Its scaling may be another than that of the training: `samples * factor + shift` is its own.

    Attributes:
        network: of the teacher.
        factor, shift: (b,) of each band or channel.
        classes: number of classes C.
    """

    network: nn.Module
    factor: Tensor
    shift: Tensor
    classes: int

    @torch.no_grad()
    def __call__(self, samples: Tensor) -> Tensor:
        """Return the predicted class of samples (n, P, P, b) as distributions (n, C)."""
        network, device = self.network.to(samples.device).eval(), samples.device
        logits = network(samples * self.factor.to(device) + self.shift.to(device))
        return F.one_hot(logits.argmax(1), self.classes).float()


def open_teacher(path: str, data: PreparedData) -> Teacher:
    """Return the model of a run as the teacher of a training on these data.

    Source: hard distillation, as AutoFormer's released code has it, after DeiT (Touvron et al.,
    ICML 2021).

    Raises:
        InputError: there is no such run, or its model takes other samples or knows other classes.
    """
    begun = Start.open(path)
    card, own, new = begun.card, begun.preprocessing, data.preprocessing
    facts = {
        "classes": (tuple(card.class_names), tuple(data.scene.class_names)),
        "a patch or image of side": (card.patch_size, data.shape.side),
        "bands": (own.bands.tolist(), new.bands.tolist()),
    }
    for name, (there, here) in facts.items():
        if there != here:
            rule = f"its model has other {name} than {data.scene.name}"
            raise InputError("teacher", path, rule)
    factor, shift = _between(new, own)
    return Teacher(begun.model.network, factor, shift, data.shape.classes)


def _between(one: Preprocessing, other: Preprocessing) -> tuple[Tensor, Tensor]:
    """Return factor and shift from values that `one` scaled to those that `other` would."""
    factor = one.scale / other.scale
    shift = (one.offset - other.offset) / other.scale
    return torch.from_numpy(np.float32(factor)), torch.from_numpy(np.float32(shift))
