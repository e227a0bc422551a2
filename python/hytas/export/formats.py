"""The table of export formats."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from ..model_card import ModelCard
from ..models import SensorModel
from .onnx_file import export_onnx
from .scene_graph import export_scene
from .torchscript import export_torchscript


class Format(NamedTuple):
    """A format: the name of its file in a run folder, and what writes it."""

    file: str
    write: Callable[[SensorModel, Path, ModelCard], Path]


# A new format is one function and one line here, and one line in `parity.OPENERS`.
FORMATS: dict[str, Format] = {
    "onnx": Format("model.onnx", export_onnx),
    "onnx-scene": Format("scene.onnx", export_scene),
    "torchscript": Format("model.pt", export_torchscript),
}


def export_formats(
    model: SensorModel, folder: str | Path, card: ModelCard, formats: Sequence[str]
) -> dict[str, Path]:
    """Write the named formats into `folder`; returns format -> file.

    Raises:
        InputError: an unknown format.
        OSError: a file cannot be written.
    """
    for name in formats:
        if name not in FORMATS:
            raise InputError(f"format: {name!r} is not one of {', '.join(FORMATS)}")
    chosen = {name: FORMATS[name] for name in dict.fromkeys(formats)}
    return {
        name: entry.write(model, Path(folder) / entry.file, card) for name, entry in chosen.items()
    }
