"""Trained models as files that other programs run, checked against torch."""

from .card import describe
from .evidence import Evidence
from .formats import FORMATS, check_formats, export_checked, export_formats
from .onnx_file import export_onnx
from .parity import Difference, ExportError, Parity, check_parity
from .torchscript import export_torchscript

__all__ = [
    "FORMATS",
    "Difference",
    "Evidence",
    "ExportError",
    "Parity",
    "check_formats",
    "check_parity",
    "describe",
    "export_checked",
    "export_formats",
    "export_onnx",
    "export_torchscript",
]
