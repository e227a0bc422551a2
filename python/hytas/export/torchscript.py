"""Write a model as TorchScript."""

import io
import json
from pathlib import Path

import torch

from hytas.export.onnx_file import example_patches, inference_copy
from hytas.export.quiet import quiet
from hytas.files import atomic_write
from hytas.model_card import ModelCard
from hytas.models import SensorModel


def export_torchscript(model: SensorModel, path: str | Path, card: ModelCard) -> Path:
    """Write `model` as TorchScript: patches of any real dtype -> probabilities (N, C).

    It is frozen, unless it takes images, whose relative positions would be written out.

    The card is inside, as the extra file "hytas.json".

    Raises:
        InputError: the card does not describe the model.
        OSError: the file cannot be written.
    """
    example = example_patches(model, card)
    example = torch.from_numpy(example.numpy().astype(card.numpy_dtype))
    with quiet(), torch.no_grad():
        traced = _trace(inference_copy(model), example)
        traced = traced if card.of_images else torch.jit.freeze(traced)
        buffer = (
            io.BytesIO()
        )  # in memory, because torch writes the name of the file into the archive
        extra = {"hytas.json": json.dumps(card.to_properties(), sort_keys=True)}
        torch.jit.save(traced, buffer, _extra_files=extra)
    with atomic_write(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    return Path(path)


def _trace(model: SensorModel, example: torch.Tensor) -> torch.jit.ScriptModule:
    traced: torch.jit.ScriptModule = torch.jit.trace(model, example)  # type: ignore[no-untyped-call]
    return traced
