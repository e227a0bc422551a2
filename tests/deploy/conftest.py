"""One export serves every test, and one build of the program on board."""

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import pytest

sys.path.append(str(Path(__file__).parents[1] / "export"))

from onboard_program import BUILD, PROGRAMS, Run, Start, build_program
from small_model import (
    CONVOLVED,
    Exported,
    export_small,
    small_model,
    small_scene,
    wide_architecture,
)

from hytas.export import export_formats

MEASURE = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return export_small(tmp_path_factory.mktemp)


@pytest.fixture(scope="session")
def onboard_build(once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """The program and what its tests need, built as one source without long optimizations.

    The build folder is kept, so a later session builds only what has changed.
    """
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("no cmake or no C++ compiler")

    def build(folder: Path) -> None:
        sanitize = "ON" if os.environ.get("HYTAS_SANITIZE") else "OFF"
        build_program(BUILD, f"-DHYTAS_SANITIZE={sanitize}")
        for name in PROGRAMS:
            shutil.copy(BUILD / name, folder)

    return once("onboard", build)


@pytest.fixture(scope="session")
def onnxruntime_library() -> Path:
    folder = Path(onnxruntime.__file__).parent / "capi"
    library = next((path for path in folder.glob("libonnxruntime.*") if path.is_file()), None)
    if library is None:
        pytest.skip(f"no libonnxruntime in {folder}")
    return library


@pytest.fixture(scope="session")
def onboard_command(onboard_build: Path, onnxruntime_library: Path) -> list[str | Path]:
    """The program with onnxruntime's library."""
    return [onboard_build / "hytas-onboard", "--library", onnxruntime_library]


@pytest.fixture(scope="session")
def start(onboard_command: list[str | Path]) -> Start:
    """Start the program without waiting for its end."""

    def begin(*arguments: object) -> subprocess.Popen[str]:
        command = list(map(str, [*onboard_command, *arguments]))
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, errors="replace")

    return begin


@pytest.fixture(scope="session")
def onboard(onboard_command: list[str | Path]) -> Run:
    """Run the program."""

    def run(
        *arguments: object, measured: bool = False, library: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        command = [*onboard_command, *arguments]
        if library is not None:
            command += ["--library", library]
        if measured:  # by a parent that is small itself, as a child starts as its copy
            command = [sys.executable, "-S", "-c", MEASURE, *command]
        return subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=3600,
        )

    return run


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exported]:
    """Scene graphs for cubes of three types, of one model, and one of another model."""
    folder = tmp_path_factory.mktemp("models")
    scene = small_scene("float32")
    model, card = small_model(scene)
    exports = {}
    for dtype in ("float32", "uint16", "float64"):
        (folder / dtype).mkdir()
        retyped = dataclasses.replace(card, dtype=dtype)
        files = export_formats(model, folder / dtype, retyped, ["onnx-scene"])
        exports[dtype] = Exported(small_scene(dtype), model, retyped, folder / dtype, files)
    # One more of gated convolutions, trained beside ground without data, marked -1.
    marked = dataclasses.replace(scene, nodata=-1.0)
    aware, aware_card = small_model(marked, wide_architecture("series", *CONVOLVED[1:]))
    (folder / "aware").mkdir()
    aware_files = export_formats(aware, folder / "aware", aware_card, ["onnx-scene"])
    return {
        **exports,
        "aware": Exported(marked, aware, aware_card, folder, aware_files),
    }
