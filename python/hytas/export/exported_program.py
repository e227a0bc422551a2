"""Write a model as a torch.export program (.pt2)."""

import io
import json
from pathlib import Path

import torch

from hytas.export.onnx_file import example_patches, inference_copy
from hytas.export.quiet import quiet
from hytas.files import atomic_write
from hytas.model_card import ModelCard
from hytas.models import SensorModel


def export_program(model: SensorModel, path: str | Path, card: ModelCard) -> Path:
    """Write `model` as a .pt2 program: patches (N, P, P, bands) of the card's dtype -> (N, C).

    The card is inside, as the extra file "hytas.json".
    """
    example = example_patches(model, card).numpy().astype(card.numpy_dtype)
    buffer = io.BytesIO()
    with quiet(), torch.no_grad():
        program = torch.export.export(
            inference_copy(model),
            (torch.from_numpy(example),),
            dynamic_shapes=({0: torch.export.Dim("N", min=1)},),
        )
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)  # it contains paths of this machine
        text = json.dumps(card.to_properties(), sort_keys=True)
        torch.export.save(program, buffer, extra_files={"hytas.json": text})
    with atomic_write(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    return Path(path)
