"""A model as one C file without a runtime, by the package emx-onnx-cgen (extra `c`).

The generated code is made fit for small computers: its names are static, its arrays share a
workspace that the caller gives, and a header has the sizes.
"""

import ctypes
import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hytas.deploy.card import unknown_of
from hytas.deploy.unknown import LEAST_NEAREST, SHARES
from hytas.errors import InputError, one_line
from hytas.export.c_memory import Packed, pack, values_of
from hytas.export.onnx_file import OPSET, example_patches, inference_copy, largest_fold, trace
from hytas.files import write_text
from hytas.model_card import ModelCard
from hytas.models import SensorModel, as_network
from hytas.models.regression import ReadOut

FLAGS = ("-std=c99", "-O3", "-Wall", "-Werror")
"""With which the file compiles; it needs libm alone."""
# Weights in the code, whatever their size.
_OPTIONS = ("--large-temp-threshold", "0", "--large-weight-threshold", "0")
_SECONDS = 600
_SCALED = "tmp0_scaled"
_GENERATED = "generated_model"
_BEGIN, _END = "/* Begin of the header. */\n", "/* End of the header. */\n"
_FUNCTION = re.compile(rf"^void {_GENERATED}\(.*\) \{{\n(.*?)^\}}\n", re.MULTILINE | re.DOTALL)
_CONSTANT = re.compile(
    r"^const EMX_UNUSED (\w+) (\w+)((?:\[\d+\])+) = .*?^\};\n", re.MULTILINE | re.DOTALL
)
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
    """
    write_text(path, c_source(model, card, c_prefix(Path(path).parent)))
    return Path(path)


def c_prefix(folder: Path) -> str:
    """Return the name of a folder as the begin of names in C."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", folder.resolve().name).strip("_").lower()
    return name if name[:1].isalpha() else f"model_{name}".rstrip("_")


def c_source(model: SensorModel, card: ModelCard, name: str) -> str:
    """Return the C file; `name` begins all names that other files see."""
    seen = _seen(model, card)
    text = _generated(model, card, seen)
    function = _FUNCTION.search(text)
    if function is None:
        raise InputError("formats", "c", "must find the function that emx-onnx-cgen wrote")
    declared = f"    float {_SCALED}{_dimensions(seen)};"
    call = f"    {name}_scale(patch, {_SCALED});"
    body = re.sub(r"\bscaled\b", _SCALED, function[1]).splitlines()
    packed = pack([declared, call, *body], "workspace")
    whole = _function(card, name, packed, model)
    used = set(re.findall(r"\bweight\w+", function[1]))  # and no constants such as shapes
    before = _UNUSED.sub("", text[: function.start()])
    before = _CONSTANT.sub(lambda one: one[0] if one[2] in used else "", before)
    text = before + _scaling(model, card, name, seen) + whole + text[function.end() :]
    network = sum(
        _BYTES.get(kind, 4) * values_of(size) for kind, _, size in _CONSTANT.findall(text)
    )
    constants = network + 8 * seen[-1]  # offset and scale of each kept band
    text = text.replace("const EMX_UNUSED ", "static const EMX_UNUSED ")
    head, include, code = text.partition("#include <stdint.h>\n")
    if "#include <math.h>" not in text:  # a network without an activation
        include += "#include <math.h>\n"
    header = _header(card, name, packed.floats, constants)
    if model.read_out is not None:
        header, code = (re.sub(r"\bprobabilities\b", "values", one) for one in (header, code))
        header = header.replace("the probability of each class", "the value of each target")
    return (
        f"{head}{_BEGIN}{header}{_END}\n{include}{code}{_classes(card, name)}{_unknown(card, name)}"
    )


def _seen(model: SensorModel, card: ModelCard) -> tuple[int, ...]:
    """Return the shape (1, S, S, bands) of the scaled patch that the network looks at."""
    example_patches(model, card)  # refuses a card of another model
    kept, side = len(model.scaling.bands), card.patch_size
    patch = as_network(model.network, "c source").seen(torch.zeros(1, side, side, kept))
    return tuple(patch.shape)


def _dimensions(shape: Sequence[int]) -> str:
    return "".join(f"[{size}]" for size in shape)


def _function(card: ModelCard, name: str, packed: Packed, model: SensorModel) -> str:
    classes, body, read_out = len(card.class_ids), "\n".join(packed.lines), model.read_out
    is_linear = isinstance(read_out, ReadOut) and not read_out.fractions
    tail = _values(read_out) if is_linear else _softmax(classes, model.temperature)
    return f"""void {name}_run(const {name}_patch *patch, float probabilities[{classes}],
        float workspace[{packed.floats}]) {{
    float (*const logits)[{classes}] = (float (*)[{classes}])probabilities;
{body}
{tail}
}}
"""


def _softmax(classes: int, temperature: float) -> str:
    return f"""    float most = probabilities[0], sum = 0.0f;
    for (int at = 1; at < {classes}; ++at)
        if (probabilities[at] > most) most = probabilities[at];
    for (int at = 0; at < {classes}; ++at) {{
        probabilities[at] = expf((probabilities[at] - most) / {_literal(temperature)});
        sum += probabilities[at];
    }}
    for (int at = 0; at < {classes}; ++at) probabilities[at] /= sum;"""


def _values(read_out: Any) -> str:
    moments = zip(read_out.scale.tolist(), read_out.centre.tolist(), strict=True)
    return "\n".join(
        f"    probabilities[{at}] = probabilities[{at}] * {_literal(scale)} + {_literal(centre)};"
        for at, (scale, centre) in enumerate(moments)
    )


def _scaling(model: SensorModel, card: ModelCard, name: str, seen: tuple[int, ...]) -> str:
    """Return the function that scales a raw patch, as `hytas.models.Scaling` does."""
    scaling, (_, side, _, bands) = inference_copy(model, card).scaling, seen
    margin, at = (card.patch_size - side) // 2, "    " * 4
    ends = [(0, 0), *scaling.runs]
    gaps = [(one[1], other[0] - one[1]) for one, other in pairwise(ends) if other[0] > one[1]]
    lines = [f"{at}if (from >= {first}) from += {count};" for first, count in gaps]
    lines += [
        f"{at}const float value = (float)patch->values[row + {margin}][column + {margin}][from];",
        f"{at}float z = (value - offset[band]) / scale[band];",
    ]
    if not scaling.finite:
        lines.append(f"{at}if (!(z - z == 0.0f)) z = 0.0f;")
    if scaling.nodata is not None and math.isfinite(scaling.nodata):  # infinity: the line above
        lines.append(f"{at}if (value == {_literal(scaling.nodata)}) z = 0.0f;")
    if scaling.reach is not None:
        most = _literal(scaling.reach)
        lines.append(f"{at}z = z < -{most} ? -{most} : z > {most} ? {most} : z;")
    tables = "".join(
        f"    static const float {key}[{bands}] = {{\n        "
        + ", ".join(map(_literal, getattr(scaling, key).tolist()))
        + "};\n"
        for key in ("offset", "scale")
    )
    return f"""/* Scale the bands that the network reads. */
static void {name}_scale(const {name}_patch *patch, float scaled{_dimensions(seen)}) {{
{tables}    for (int row = 0; row < {side}; ++row)
        for (int column = 0; column < {side}; ++column)
            for (int band = 0; band < {bands}; ++band) {{
                int from = band;
{chr(10).join(lines)}
                scaled[0][row][column][band] = z;
            }}
}}

"""


def _literal(value: float) -> str:
    return f"{float(value).hex()}f"


def _generated(model: SensorModel, card: ModelCard, seen: Sequence[int]) -> str:
    """Return what emx-onnx-cgen writes for the network behind the scaling."""
    if importlib.util.find_spec("emx_onnx_cgen") is None:
        raise InputError(
            "formats", "c", "needs the package emx-onnx-cgen", "pip install 'hytas[c]'"
        )
    with tempfile.TemporaryDirectory() as folder:
        graph, source = Path(folder) / "model.onnx", Path(folder) / f"{_GENERATED}.c"
        plain = inference_copy(model, card).network
        names = (["scaled"], ["logits"])
        network = trace(plain, torch.zeros(*seen), {}, names, OPSET, largest_fold(model, card))
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
    types = {"float16": "_Float16", "float32": "float", "float64": "double"}
    kind, guard = types.get(card.dtype, f"{card.dtype}_t"), f"{name.upper()}_MODEL_H"
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
    {name}_constants = {constants} /* bytes of weights, in flash memory next to the code */
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
{_UNKNOWN_DECLARED.replace("NAME", name) if card.unknown else ""}
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


_UNKNOWN_DECLARED = """
/* Whether ground is of no class of the model. `share` of held-out pixels, 0.001 to 0.5, would be so
   as well. A linker leaves the function and its constants out if nothing calls it. */
int NAME_is_unknown(const float probabilities[NAME_classes], double share);
"""


def _unknown(card: ModelCard, name: str) -> str:
    """Return the function that finds ground of no class, as `hytas.deploy.unknown` does."""
    score = unknown_of(card)
    if score is None:
        return ""
    classes, count = len(card.class_ids), len(SHARES)
    square = f"[{classes}][{classes}]"
    tables = {
        f"transform{square}": score.transform,
        f"centres{square}": score.centres,
        f"thresholds[{count}]": score.thresholds,
    }
    constants = "".join(
        f"    static const float {key} = {_initialiser(value)};\n" for key, value in tables.items()
    )
    return f"""
int {name}_is_unknown(const float probabilities[{classes}], double share) {{
{constants}    static const double shares[{count}] = {{{", ".join(map(str, SHARES))}}};
    double values[{classes}], whitened[{classes}], sum = 0.0, nearest = -1.0;
    int above = 1;
    if (!(share >= shares[0])) share = shares[0];
    if (share > shares[{count - 1}]) share = shares[{count - 1}];
    for (int at = 0; at < {classes}; ++at) {{
        const double probability = probabilities[at];
        values[at] = log(probability > {LEAST_NEAREST} ? probability : {LEAST_NEAREST});
        sum += values[at];
    }}
    for (int row = 0; row < {classes}; ++row) {{
        whitened[row] = 0.0;
        for (int at = 0; at < {classes}; ++at)
            whitened[row] += transform[row][at] * (values[at] - sum / {classes});
    }}
    for (int centre = 0; centre < {classes}; ++centre) {{
        double distance = 0.0;
        for (int at = 0; at < {classes}; ++at) {{
            const double gap = whitened[at] - centres[centre][at];
            distance += gap * gap;
        }}
        if (nearest < 0.0 || distance < nearest) nearest = distance;
    }}
    while (above < {count - 1} && shares[above] <= share) ++above;
    return nearest > thresholds[above - 1] + ((double)thresholds[above] - thresholds[above - 1])
        * (share - shares[above - 1]) / (shares[above] - shares[above - 1]);
}}
"""


def _initialiser(values: npt.NDArray[np.float32]) -> str:
    if values.ndim > 1:
        return "{" + ",\n        ".join(map(_initialiser, values)) + "}"
    return "{" + ", ".join(map(_literal, values.tolist())) + "}"


def _quoted(text: str) -> str:
    """Return a string of C; bytes other than letters, digits and a few signs are escaped."""
    plain = set(b" -_./()+") | {byte for byte in range(128) if chr(byte).isalnum()}
    signs = (chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode("utf-8"))
    return f'"{"".join(signs)}"'


def write_header(path: Path) -> None:
    """Write the header of a C file next to it."""
    text = path.read_text(encoding="utf-8")
    header = text[text.index(_BEGIN) + len(_BEGIN) : text.index(_END)]
    write_text(path.with_suffix(".h"), header)


def sizes_of(path: Path) -> dict[str, int]:
    """Return the memory that a C file needs in bytes.

    "ram_bytes" is the workspace, and "constant_bytes" what lies in flash memory: the costs `ram`
    and `flash` of the space. "patch_bytes" are a patch and its probabilities. Code takes flash
    memory, too; how much depends on the compiler.
    """
    text = path.read_text(encoding="utf-8")
    defined = {key: int(value) for key, value in _DEFINED.findall(text)}
    kind = re.search(r"^    (\w+) values\[", text, re.MULTILINE)
    assert kind is not None  # every header has it
    patch = defined["side"] ** 2 * defined["bands"] * _BYTES.get(kind[1], 4)
    return {
        "ram_bytes": 4 * defined["workspace"],
        "constant_bytes": defined["constants"],
        "patch_bytes": patch + 4 * defined["classes"],
    }


def open_c(path: str | Path) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """Compile a C file, and return it as a function of raw patches."""
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
        probabilities = np.empty((len(patches), defined["classes"]), np.float32)
        # Values that are no numbers, so that a read of what was never written shows.
        workspace = np.full(defined["workspace"], np.nan, np.float32)
        for patch, row in zip(np.ascontiguousarray(patches), probabilities, strict=True):
            function(patch.ctypes.data, row.ctypes.data, workspace.ctypes.data)
        return probabilities

    return run
