"""Write a model for torch: as TorchScript, or as a torch.export program.

The card is inside both, as the extra file "hytas.json".
"""

import io
import json
from pathlib import Path

import torch

from hytas.export.onnx_file import example_patches, inference_copy, quiet
from hytas.files import atomic_write
from hytas.model_card import ModelCard
from hytas.models import SensorModel


def export_torchscript(model: SensorModel, path: str | Path, card: ModelCard) -> Path:
    """Write `model` as TorchScript: patches of any real dtype -> probabilities (N, C).

    It is frozen, unless it takes images, whose relative positions would be written out.
    """
    example, buffer = _example(model, card), io.BytesIO()
    with quiet(), torch.no_grad():
        traced = torch.jit.trace(inference_copy(model), example)  # type: ignore[no-untyped-call]
        traced = traced if card.of_images else torch.jit.freeze(traced)
        torch.jit.save(traced, buffer, _extra_files=_extra(card))
    return _write(path, buffer)


def export_program(model: SensorModel, path: str | Path, card: ModelCard) -> Path:
    """Write `model` as a .pt2 program: patches (N, P, P, bands) of the card's dtype -> (N, C)."""
    example, buffer = _example(model, card), io.BytesIO()
    with quiet(), torch.no_grad():
        program = torch.export.export(
            inference_copy(model), (example,), dynamic_shapes=({0: torch.export.Dim("N", min=1)},)
        )
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)  # it contains paths of this machine
        torch.export.save(program, buffer, extra_files=_extra(card))
    return _write(path, buffer)


def _example(model: SensorModel, card: ModelCard) -> torch.Tensor:
    return torch.from_numpy(example_patches(model, card).numpy().astype(card.numpy_dtype))


def _extra(card: ModelCard) -> dict[str, str]:
    return {"hytas.json": json.dumps(card.to_properties(), sort_keys=True)}


def _write(path: str | Path, buffer: io.BytesIO) -> Path:
    # From memory, because torch would write the name of the file into the archive.
    with atomic_write(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    return Path(path)
