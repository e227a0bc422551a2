"""A model as one C file without a runtime, by the package emx-onnx-cgen (extra `c`)."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.errors import InputError, one_line
from hytas.export.onnx_file import to_onnx
from hytas.files import write_text
from hytas.model_card import ModelCard
from hytas.models import SensorModel

FUNCTION = "hytas_model"
FLAGS = ("-std=c99", "-O2", "-Wall", "-Werror")
"""With which the file compiles; it needs libm alone."""
# One pixel a call; weights and temporaries in the code and on the stack, whatever their size.
_OPTIONS = ("--input-dim", "N=1", "--large-temp-threshold", "0", "--large-weight-threshold", "0")
_SECONDS = 600


def export_c(model: SensorModel, path: str | Path, card: ModelCard) -> Path:
    """Write `model` as C: one raw patch (P, P, bands) -> probabilities (C,).

    The function is `hytas_model(patches, probabilities)`. `hytas_class_ids` and
    `hytas_class_names` say what the probabilities belong to.

    Raises:
        InputError: emx-onnx-cgen is missing or cannot write the model.
        OSError: the file cannot be written.
    """
    if importlib.util.find_spec("emx_onnx_cgen") is None:
        raise InputError(
            "format c: needs the package emx-onnx-cgen: pip install 'hytas[c]'; or choose onnx"
        )
    with tempfile.TemporaryDirectory() as folder:
        graph, source = Path(folder) / "model.onnx", Path(folder) / f"{FUNCTION}.c"
        network = to_onnx(model, card)
        del network.metadata_props[:]  # names of classes, which could end the comment they go to
        graph.write_bytes(network.SerializeToString(deterministic=True))
        command = [sys.executable, "-m", "emx_onnx_cgen", "compile", graph.name, source.name]
        done = subprocess.run(
            [*command, "--model-name", FUNCTION, *_OPTIONS],
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode or not source.is_file():
            said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise InputError(f"format c: emx-onnx-cgen cannot write this model ({said[-1][:200]})")
        text = source.read_text(encoding="utf-8")
    write_text(path, _about(card) + text + _classes(card))
    return Path(path)


def _about(card: ModelCard) -> str:
    side, bands, classes = card.patch_size, card.bands, len(card.class_ids)
    nodata = "none" if card.nodata is None else f"{card.nodata:g}"
    return (
        f"/* A model of hytas {card.version}.\n"
        f"   {FUNCTION}(patches, probabilities): one raw patch [1][{side}][{side}][{bands}] of "
        f"{card.dtype}\n   -> float probabilities [1][{classes}], by hytas_class_ids.\n"
        f"   Value of no data: {nodata}. Compile with -lm. */\n"
    )


def _classes(card: ModelCard) -> str:
    count = len(card.class_ids)
    ids = ", ".join(map(str, card.class_ids))
    names = ", ".join(_quoted(name) for name in card.class_names)
    return (
        f"\nconst int hytas_classes = {count};\n"
        f"const int hytas_class_ids[{count}] = {{{ids}}};\n"
        f"const char *const hytas_class_names[{count}] = {{{names}}};\n"
    )


def _quoted(text: str) -> str:
    """A string of C, in which every byte but letters, digits and a few signs is an octal escape."""
    plain = set(b" -_./()+") | {byte for byte in range(128) if chr(byte).isalnum()}
    signs = (chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode("utf-8"))
    return f'"{"".join(signs)}"'


def open_c(path: str | Path) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """A C file, compiled here, as a function of raw patches.

    Raises:
        InputError: there is no C compiler, or it refuses the file.
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise InputError("format c: no C compiler (cc) to check the file with")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "model.so"
        command = [compiler, *FLAGS, "-fPIC", "-shared", str(path), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr]
            raise InputError(f"{path}: the C compiler refuses it ({said[0][:200].strip()})")
        try:
            loaded = ctypes.CDLL(str(library))  # which stays when its file is gone
        except OSError as error:
            raise InputError(f"{path}: cannot be loaded ({one_line(error)})") from None
    classes = ctypes.c_int.in_dll(loaded, "hytas_classes").value
    function = getattr(loaded, FUNCTION)
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_void_p], None

    def run(patches: npt.NDArray[Any]) -> npt.NDArray[Any]:
        answers = np.empty((len(patches), classes), np.float32)
        for patch, answer in zip(np.ascontiguousarray(patches), answers, strict=True):
            function(patch.ctypes.data, answer.ctypes.data)
        return answers

    return run
