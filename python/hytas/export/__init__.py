"""Trained models as files that other programs run, checked against torch."""

from .card import describe
from .formats import FORMATS, export_formats
from .onnx_file import export_onnx
from .parity import Difference, ExportError, Parity, check_parity
from .torchscript import export_torchscript

__all__ = [
    "FORMATS",
    "Difference",
    "ExportError",
    "Parity",
    "check_parity",
    "describe",
    "export_formats",
    "export_onnx",
    "export_torchscript",
]
