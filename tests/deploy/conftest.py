"""One export serves every test, and one build of the program on board."""

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import onnxruntime
import pytest

sys.path.append(str(Path(__file__).parents[1] / "export"))

from onboard_program import SOURCE, Run
from small_model import Exported, export_small, small_model, small_scene, wide_architecture

from hytas.deploy import DeployedModel
from hytas.export import export_formats
from hytas.export.onnx_file import set_card, take_dtype

MEASURE = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return export_small(tmp_path_factory.mktemp)


@pytest.fixture(scope="session")
def onboard(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The program, built here, with the library of the installed onnxruntime."""
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("no cmake or no C++ compiler")
    build = tmp_path_factory.mktemp("onboard")
    for command in (["cmake", "-S", SOURCE, "-B", build], ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    folder = Path(onnxruntime.__file__).parent / "capi"
    library = next((path for path in folder.glob("libonnxruntime.*") if path.is_file()), None)
    if library is None:
        pytest.skip(f"no libonnxruntime in {folder}")

    def run(
        *arguments: object, measured: bool = False, library: Path = library
    ) -> subprocess.CompletedProcess[str]:
        command = [build / "hytas-onboard", *arguments, "--library", library]
        if measured:  # by a parent that is small itself, as a child starts as its copy
            command = [sys.executable, "-S", "-c", MEASURE, *command]
        return subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=False, timeout=1800
        )

    return run


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exported]:
    """Scene graphs for cubes of float32 and two other types: one export, its input retyped."""
    folder = tmp_path_factory.mktemp("models")
    scene = small_scene("float32")
    model, card = small_model(scene)
    real = export_formats(model, folder, card, ["onnx-scene"])
    found = DeployedModel.load(real["onnx-scene"]).card
    retyped = {}
    for dtype in ("uint16", "float64"):
        graph = onnx.load(real["onnx-scene"])
        take_dtype(graph, dtype)
        set_card(graph, dataclasses.replace(found, dtype=dtype))
        files = {"onnx-scene": folder / f"{dtype}.onnx"}
        onnx.save(graph, files["onnx-scene"])
        retyped[dtype] = Exported(small_scene(dtype), model, card, folder, files)
    # One more of gated convolutions, trained beside ground without data, marked -1.
    marked = dataclasses.replace(scene, nodata=-1.0)
    aware, aware_card = small_model(marked, wide_architecture("series", "mean", "conv3", "yes"))
    (folder / "aware").mkdir()
    aware_files = export_formats(aware, folder / "aware", aware_card, ["onnx-scene"])
    return {
        **retyped,
        "float32": Exported(scene, model, card, folder, real),
        "aware": Exported(marked, aware, aware_card, folder, aware_files),
    }
