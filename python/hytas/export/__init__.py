"""Write trained models as files for other programs, and check them against torch."""

from hytas.export.card import describe
from hytas.export.evidence import Evidence
from hytas.export.formats import (
    FORMATS,
    INPUTS,
    check_formats,
    export_checked,
    export_file,
    export_formats,
    file_of,
)
from hytas.export.onnx_file import export_onnx
from hytas.export.parity import ExportError, Parity, check_parity
from hytas.export.target import target_format

__all__ = [
    "FORMATS",
    "INPUTS",
    "Evidence",
    "ExportError",
    "Parity",
    "check_formats",
    "check_parity",
    "describe",
    "export_checked",
    "export_file",
    "export_formats",
    "export_onnx",
    "file_of",
    "target_format",
]
