"""A model as TorchScript."""

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
    """Write `model` as TorchScript, frozen: patches of any real dtype -> probabilities (N, C).

    The card lies inside, under the extra file "hytas.json".

    Raises:
        InputError: a card that does not describe the model.
        OSError: the file cannot be written.
    """
    example = example_patches(model, card)
    example = torch.from_numpy(example.numpy().astype(card.numpy_dtype))
    with quiet(), torch.no_grad():
        traced = torch.jit.freeze(_trace(inference_copy(model), example))
        buffer = io.BytesIO()  # through memory: torch names the archive inside after the file
        extra = {"hytas.json": json.dumps(card.to_properties(), sort_keys=True)}
        torch.jit.save(traced, buffer, _extra_files=extra)
    with atomic_write(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    return Path(path)


def _trace(model: SensorModel, example: torch.Tensor) -> torch.jit.ScriptModule:
    traced: torch.jit.ScriptModule = torch.jit.trace(model, example)  # type: ignore[no-untyped-call]
    return traced
