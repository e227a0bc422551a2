"""Fuzz target of the C++ program on board: damaged models and scenes, its limits as for the rest.

It needs the built program, which HYTAS_ONBOARD names.
"""

import os
import resource
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import onnx
import onnxruntime
from fuzz_mutator import Sample

sys.path.append(str(Path(__file__).parents[1] / "export"))

import small_model

from hytas.errors import InputError
from hytas.export import export_formats
from hytas.export.onnx_file import seal

PROGRAM = os.environ.get("HYTAS_ONBOARD")
_MOST_KILOBYTES = 1_000_000
_SECONDS = 5


@cache
def corpus() -> list[Sample]:
    """A scene graph and a scene of its sensor."""
    scene = small_model.small_scene("uint16")
    model, card = small_model.small_model(scene)
    with tempfile.TemporaryDirectory() as place:
        files = export_formats(model, Path(place), card, ["onnx-scene"])
        content = files["onnx-scene"].read_bytes()
    cube = np.ascontiguousarray(scene.cube)
    height, width, bands = cube.shape
    header = (
        f"ENVI\nsamples = {width}\nlines = {height}\nbands = {bands}\nheader offset = 0\n"
        "data type = 12\ninterleave = bip\nbyte order = 0\n"
    )
    data = cube.astype("<u2").tobytes()
    return [{"model.onnx": content, "scene.hdr": header.encode(), "scene.img": data}]


def finish(sample: Sample, rng: Random) -> Sample:
    """Replace most models by the good one with a damaged entry of its metadata."""
    if rng.random() < 0.2:
        return sample
    graph = onnx.load_from_string(corpus()[0]["model.onnx"])
    entry = rng.choice(graph.metadata_props)
    text = bytearray(entry.value.encode())
    for _ in range(rng.randint(0, 3)):
        text[rng.randrange(len(text))] = rng.randrange(128)
    entry.value = text.decode(errors="replace")
    seal(graph)
    return {**sample, "model.onnx": graph.SerializeToString(deterministic=True)}


def look(path: Path) -> None:
    """Classify the scene; a crash, or an answer that is none of the program's, is a failure."""
    assert PROGRAM is not None
    (library,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*")
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryFile() as errors:
        files = [path, path.with_name("scene.hdr"), Path(out) / "map.hdr"]
        process = subprocess.Popen(
            [PROGRAM, *files, "--library", library],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS)),
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        told = errors.read().decode(errors="replace")
        left = [item.name for item in Path(out).iterdir() if process.returncode]
    if used.ru_maxrss > _MOST_KILOBYTES:
        raise MemoryError(f"{used.ru_maxrss} kB")
    refused = process.returncode == 2 and told.startswith("error: ") and told.count("\n") == 1
    if refused and not left:
        raise InputError(told)
    if process.returncode != 0:
        raise AssertionError(f"status {process.returncode}, left {left}: {told[-500:]}")
