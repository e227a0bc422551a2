"""A model as one C file without a runtime, by the package emx-onnx-cgen (extra `c`).

The generated code is made fit for small computers: its names are static, its arrays share a
workspace that the caller gives, and a header has the sizes.
"""

import ctypes
import importlib.util
import os
import re
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
from hytas.export.c_memory import Packed, pack, values_of
from hytas.export.onnx_file import to_onnx
from hytas.files import write_text
from hytas.model_card import ModelCard
from hytas.models import SensorModel

FLAGS = ("-std=c99", "-O3", "-Wall", "-Werror")
"""With which the file compiles; it needs libm alone."""
# One pixel a call; weights in the code, whatever their size.
_OPTIONS = ("--input-dim", "N=1", "--large-temp-threshold", "0", "--large-weight-threshold", "0")
_SECONDS = 600
_GENERATED = "generated_model"
_BEGIN, _END = "/* Begin of the header. */\n", "/* End of the header. */\n"
_FUNCTION = re.compile(rf"^void {_GENERATED}\(.*\) \{{\n(.*?)^\}}\n", re.MULTILINE | re.DOTALL)
_CONSTANT = re.compile(r"^const EMX_UNUSED (\w+) \w+((?:\[\d+\])+) = ", re.MULTILINE)
_UNUSED = re.compile(  # declarations of the constants, and a function that loads nothing
    rf"^extern const .*;\n|^_Bool {_GENERATED}_load\(.*\{{\n(?:.*\n)*?\}}\n", re.MULTILINE
)
# Bytes of a value of each type of C; others have 4.
_BYTES = {"int64_t": 8, "uint64_t": 8, "double": 8, "int16_t": 2, "uint16_t": 2}
_BYTES |= {"_Float16": 2, "int8_t": 1, "uint8_t": 1, "bool": 1, "_Bool": 1}
_DEFINED = re.compile(r"^    \w+_(side|bands|classes|workspace|constants) = (\d+)", re.MULTILINE)


def export_c(model: SensorModel, path: str | Path, card: ModelCard) -> Path:
    """Write `model` as C: one raw patch (P, P, bands) -> probabilities (C,).

    All names begin with the name of the folder, so that several models link into one program.

    Raises:
        InputError: emx-onnx-cgen is missing or cannot write the model.
        OSError: the file cannot be written.
    """
    write_text(path, c_source(model, card, name_of(Path(path).parent)))
    return Path(path)


def name_of(folder: Path) -> str:
    """Return the name of a folder as the begin of names in C."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", folder.resolve().name).strip("_").lower()
    return name if name[:1].isalpha() else f"model_{name}".rstrip("_")


def c_source(model: SensorModel, card: ModelCard, name: str) -> str:
    """Return the C file; `name` begins all names that other files see.

    Raises:
        InputError: emx-onnx-cgen is missing or cannot write the model.
    """
    text = _generated(model, card)
    found = _FUNCTION.search(text)
    if found is None:
        raise InputError("formats", "c", "must find the function that emx-onnx-cgen wrote")
    packed = pack(found[1].splitlines(), "workspace")
    text = text[: found.start()] + _function(card, name, packed) + text[found.end() :]
    constants = sum(
        _BYTES.get(kind, 4) * values_of(sizes) for kind, sizes in _CONSTANT.findall(text)
    )
    text = _UNUSED.sub("", text).replace("const EMX_UNUSED ", "static const EMX_UNUSED ")
    head, include, code = text.partition("#include <stdint.h>\n")
    header = _header(card, name, packed.floats, constants)
    return f"{head}{_BEGIN}{header}{_END}\n{include}{code}{_classes(card, name)}"


def _function(card: ModelCard, name: str, packed: Packed) -> str:
    side, bands, classes = card.patch_size, card.bands, len(card.class_ids)
    lines = [
        f"void {name}_run(const {name}_patch *patch, float probabilities[{classes}],",
        f"        float workspace[{packed.floats}]) {{",
        f"    const {_c_type(card)} (*const patches)[{side}][{side}][{bands}] = &patch->values;",
        f"    float (*const scores)[{classes}] = (float (*)[{classes}])probabilities;",
        *(re.sub(r"\bprobabilities\b", "scores", line) for line in packed.lines),
        "}\n",
    ]
    return "\n".join(lines)


def _c_type(card: ModelCard) -> str:
    known = {"float16": "_Float16", "float32": "float", "float64": "double"}
    return known.get(card.dtype, f"{card.dtype}_t")


def _generated(model: SensorModel, card: ModelCard) -> str:
    """Return what emx-onnx-cgen writes for the patch graph."""
    if importlib.util.find_spec("emx_onnx_cgen") is None:
        raise InputError(
            "formats", "c", "needs the package emx-onnx-cgen", "pip install 'hytas[c]'"
        )
    with tempfile.TemporaryDirectory() as folder:
        graph, source = Path(folder) / "model.onnx", Path(folder) / f"{_GENERATED}.c"
        network = to_onnx(model, card)
        del network.metadata_props[:]  # names of classes, which could end the comment they go to
        graph.write_bytes(network.SerializeToString(deterministic=True))
        command = [sys.executable, "-m", "emx_onnx_cgen", "compile", graph.name, source.name]
        done = subprocess.run(
            [*command, "--model-name", _GENERATED, *_OPTIONS],
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode or not source.is_file():
            said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            rule = f"needs a model that emx-onnx-cgen can write ({said[-1][:200]})"
            raise InputError("formats", "c", rule)
        return source.read_text(encoding="utf-8")


def _header(card: ModelCard, name: str, floats: int, constants: int) -> str:
    """Return what other files see: sizes, types and the function."""
    kind, guard = _c_type(card), f"{name.upper()}_MODEL_H"
    about = "" if card.nodata is None else f"\n   Value of no data: {card.nodata:g}."
    return f"""/* A model of hytas {card.version}: compile with -O3, link with -lm.{about} */
#ifndef {guard}
#define {guard}
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#elif defined(__GNUC__)
#pragma GCC diagnostic error "-Wincompatible-pointer-types" /* a patch of another size */
#endif

enum {{
    {name}_side = {card.patch_size}, /* pixels along the side of a patch */
    {name}_bands = {card.bands},
    {name}_classes = {len(card.class_ids)},
    {name}_workspace = {floats}, /* floats */
    {name}_constants = {constants} /* bytes of weights, in flash memory beside the code */
}};

/* Raw values around a pixel, as the sensor gives them. */
typedef struct {{
    {kind} values[{name}_side][{name}_side][{name}_bands];
}} {name}_patch;

/* Compute the probability of each class. The workspace needs no values, and keeps none. */
void {name}_run(const {name}_patch *patch, float probabilities[{name}_classes],
        float workspace[{name}_workspace]);

/* Numbers of the classes in the label file, and their names. */
extern const int {name}_class_ids[{name}_classes];
extern const char *const {name}_class_names[{name}_classes];

#ifdef __cplusplus
}}
#endif
#endif
"""


def _classes(card: ModelCard, name: str) -> str:
    count = len(card.class_ids)
    ids = ", ".join(map(str, card.class_ids))
    names = ", ".join(_quoted(text) for text in card.class_names)
    return (
        f"\nconst int {name}_class_ids[{count}] = {{{ids}}};\n"
        f"const char *const {name}_class_names[{count}] = {{{names}}};\n"
    )


def _quoted(text: str) -> str:
    """A string of C, in which every byte but letters, digits and a few signs is an octal escape."""
    plain = set(b" -_./()+") | {byte for byte in range(128) if chr(byte).isalnum()}
    signs = (chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode("utf-8"))
    return f'"{"".join(signs)}"'


def write_header(path: Path) -> None:
    """Write the header of a C file beside it.

    Raises:
        OSError: it cannot be written.
    """
    text = path.read_text(encoding="utf-8")
    header = text[text.index(_BEGIN) + len(_BEGIN) : text.index(_END)]
    write_text(path.with_suffix(".h"), header)


def sizes_of(path: Path) -> dict[str, int]:
    """Return the memory that a C file needs in bytes: RAM, and constants in flash memory.

    RAM is the workspace, a patch and the probabilities. Code is not in it; it depends on the
    compiler.
    """
    text = path.read_text(encoding="utf-8")
    defined = {key: int(value) for key, value in _DEFINED.findall(text)}
    kind = re.search(r"^    (\w+) values\[", text, re.MULTILINE)
    assert kind is not None  # every header has it
    patch = defined["side"] ** 2 * defined["bands"] * _BYTES.get(kind[1], 4)
    ram = 4 * (defined["workspace"] + defined["classes"]) + patch
    return {"ram_bytes": ram, "constant_bytes": defined["constants"]}


def open_c(path: str | Path) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """A C file, compiled here, as a function of raw patches.

    Raises:
        InputError: there is no C compiler, or it refuses the file.
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise InputError("formats", "c", "needs a C compiler (cc) to check the file with")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "model.so"
        command = [compiler, *FLAGS, "-fPIC", "-shared", str(path), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr]
            rule = f"must compile ({said[0][:200].strip()})"
            raise InputError("formats", "c", rule)
        try:
            loaded = ctypes.CDLL(str(library))  # which stays when its file is gone
        except OSError as error:
            raise InputError("formats", "c", f"must load ({one_line(error)})") from None
    text = Path(path).read_text(encoding="utf-8")
    defined = {key: int(value) for key, value in _DEFINED.findall(text)}
    run_name = re.search(r"^void (\w+_run)\(", text, re.MULTILINE)
    assert run_name is not None  # every file has it
    function = getattr(loaded, run_name[1])
    function.argtypes, function.restype = [ctypes.c_void_p] * 3, None

    def run(patches: npt.NDArray[Any]) -> npt.NDArray[Any]:
        answers = np.empty((len(patches), defined["classes"]), np.float32)
        # Values that are no numbers, so that a read of what was never written shows.
        workspace = np.full(defined["workspace"], np.nan, np.float32)
        for patch, answer in zip(np.ascontiguousarray(patches), answers, strict=True):
            function(patch.ctypes.data, answer.ctypes.data, workspace.ctypes.data)
        return answers

    return run
