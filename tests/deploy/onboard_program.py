"""Where the C++ onboard program lies, and how tests build and call it."""

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from small_model import Exported

from hytas.deploy.unknown import UnknownGround
from hytas.export.onnx_file import set_card

SOURCE = Path(__file__).parents[2] / "deploy" / "onboard"
TESTS = Path(__file__).parent / "onboard"
BUILD = Path(__file__).parents[2] / "build" / "onboard-tests"
PROGRAMS = ("hytas-onboard", "count_allocations", "libstand_in.so")
Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]


def build_program(folder: Path, *options: str) -> None:
    """Build the program and what its tests need, as one source without long optimizations."""
    quick = ["-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DCMAKE_UNITY_BUILD=ON"]
    configure = ["-S", TESTS, "-B", folder, *quick, "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0", *options]
    for command in (configure, ["--build", folder]):
        done = subprocess.run(["cmake", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def with_unknown(exported: Exported, path: Path, seed: int = 0) -> Path:
    """Write the scene graph with a made-up score for unknown ground."""
    graph, rng = onnx.load(exported.files["onnx-scene"]), np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(len(exported.card.class_ids)), 90).astype(np.float32)
    score = UnknownGround.fit(chances, chances.argmax(axis=1)).to_dict()
    set_card(graph, dataclasses.replace(exported.card, graph="scene", unknown=score))
    path.write_bytes(graph.SerializeToString())
    return path
