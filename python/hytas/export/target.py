"""A network as a target computes it, for a race that ranks finalists in the format that ships."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hytas.data import Preprocessing
from hytas.errors import InputError, one_line
from hytas.export.formats import FORMATS
from hytas.export.parity import _Run
from hytas.model_card import IMAGE, ModelCard
from hytas.models import SensorModel
from hytas.plugins import brings
from hytas.settings import TARGETS
from hytas.spaces.shape import ImageShape, Shape

_LEAST = float(np.finfo(np.float32).tiny)
"""Probability whose logarithm stands for that of 0."""


def target_format(target: str) -> str:
    """Return the name of a target's export format.

    Raises:
        InputError: there is no such target.
    """
    if target in TARGETS:
        return f"onnx-{target}"
    if not brings("target", target):
        raise InputError("target", target, f"must be one of {', '.join(TARGETS)}")
    return target


@contextmanager
def converted(
    network: nn.Module, architecture: Mapping[str, Any], shape: Shape, target: str
) -> Iterator[nn.Module]:
    """Yield a module that maps scaled patches (N, P, P, bands) to logits (N, C) of a target.

    The file of the target is written to a temporary folder and opened. Its scaling changes
    nothing, because patches are scaled already: formats scale in float32 before the network.

    Raises:
        InputError: the network cannot be converted, or its file not be opened.
    """
    bands, classes, side = shape.bands, shape.classes, shape.side
    scaling = Preprocessing(
        np.arange(bands), np.zeros(bands, np.float32), np.ones(bands, np.float32), "standard", bands
    )
    card = ModelCard(
        class_names=tuple(map(str, range(classes))),
        class_ids=tuple(range(1, classes + 1)),
        patch_size=side,
        bands=bands,
        dtype="float32",
        preprocessing=scaling.to_dict(),
        architecture=dict(architecture),
        band_group=shape.band_group,
        palette=((0, 0, 0),) * classes,
        graph=IMAGE if isinstance(shape, ImageShape) else "patch",
    )
    with tempfile.TemporaryDirectory() as folder:
        yield _Converted(SensorModel(network, scaling).eval(), card, target, Path(folder))


class _Converted(nn.Module):
    """The file of a target in a folder; its probabilities become logits."""

    def __init__(self, model: SensorModel, card: ModelCard, target: str, folder: Path) -> None:
        super().__init__()
        self.target, self.classes = target, len(card.class_ids)
        entry = FORMATS[target_format(target)]
        path = folder / entry.file
        try:
            entry.write(model, path, card)
            self.run: _Run = entry.open_file(path)
        except Exception as error:  # of exporters, and of a user's code
            raise self._refused(one_line(error)) from error

    def forward(self, patches: Tensor) -> Tensor:
        try:
            chances = np.ascontiguousarray(self.run(patches.cpu().numpy()), np.float32)
        except Exception as error:
            raise self._refused(one_line(error)) from error
        if chances.shape != (len(patches), self.classes) or not np.isfinite(chances).all():
            raise self._refused(f"gives no probabilities ({len(patches)}, {self.classes})")
        return torch.from_numpy(chances).clamp_min(_LEAST).log().to(patches.device)

    def _refused(self, why: str) -> InputError:
        return InputError("target", self.target, f"cannot run the network: {why}")
