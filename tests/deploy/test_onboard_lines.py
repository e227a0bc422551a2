"""The C++ library on board: lines that are pushed, fixed memory, status codes, an example."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from onboard_program import BUILD, SOURCE, Run, with_unknown
from small_model import Exported
from test_rasters import write_cube

from commands import run_here

ROOT = SOURCE.parents[1]
LINES, SAMPLES = 600, 23
SHARE = 0.05


@pytest.fixture
def cube(models: dict[str, Exported]) -> npt.NDArray[np.float32]:
    """Many lines of the sensor; some pixels and a line hold no data."""
    cube = np.concatenate([models["aware"].scene.cube] * (LINES // 17 + 1))[:LINES]
    cube[5, 3:] = cube[300] = -1
    return cube


def pushed(
    build: Path, library: Path, model: Path, cube: npt.NDArray[np.float32], *more: object
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], tuple[int, int, int]]:
    """Classes and confidence of lines that were pushed; memory, bytes and calls of new."""
    command = [build / "count_allocations", library, model, cube.shape[1], *more]
    done = subprocess.run(list(map(str, command)), input=cube.tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr
    lines = np.frombuffer(done.stdout, np.int32).reshape(-1, 2, cube.shape[1])
    memory, allocated, calls = map(int, done.stderr.split())
    return lines[:, 0], lines[:, 1].view(np.float32), (memory, allocated, calls)


def raster(path: Path, dtype: str) -> npt.NDArray[np.generic]:
    return np.fromfile(path.with_suffix(".img"), dtype).reshape(-1, SAMPLES)


@pytest.mark.parametrize("smooth", ["none", "guided"])
def test_pushed_lines_are_the_map_of_classify(
    onboard_build: Path,
    onnxruntime_library: Path,
    models: dict[str, Exported],
    cube: npt.NDArray[np.float32],
    tmp_path: Path,
    smooth: str,
) -> None:
    model, out = models["aware"].files["onnx-scene"], tmp_path / "map.hdr"
    scene = write_cube(tmp_path / "scene", cube, "bil", "<")
    scene.write_text(scene.read_text().replace("value = 9999", "value = -1"))
    done = run_here("classify", model, scene, "--out", out, "--threads", 1, "--smooth", smooth)
    assert done.returncode == 0, done.stderr
    classes, _, _ = pushed(onboard_build, onnxruntime_library, model, cube, smooth)
    assert np.array_equal(classes, raster(out, "u1"))
    assert (classes == 0).sum() == 2 * SAMPLES - 3


@pytest.mark.skipif("HYTAS_SANITIZE" in os.environ, reason="sanitizers replace operator new")
@pytest.mark.parametrize("more", [("none",), ("guided",), ("none", SHARE), ("guided", SHARE)])
def test_no_allocation_after_the_first_line(
    onboard: Run,
    onboard_build: Path,
    models: dict[str, Exported],
    cube: npt.NDArray[np.float32],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[object, ...],
) -> None:
    """The stand-in for onnxruntime allocates nothing when it runs."""
    monkeypatch.setenv("STAND_IN_CLASS", str(models["aware"].card.class_ids[0]))
    library, model = onboard_build / "libstand_in.so", tmp_path / "model.onnx"
    with_unknown(models["aware"], model)
    classes, confidence, counts = pushed(onboard_build, library, model, cube, *more)
    memory, allocated, calls = counts
    assert calls == 0
    assert 0 < memory < allocated
    scene = write_cube(tmp_path / "scene", cube, "bip", "<")
    scene.write_text(scene.read_text().replace("value = 9999", "value = -1"))
    out, sure = tmp_path / "map.hdr", tmp_path / "sure.hdr"
    unknown = ("--unknown", more[1]) if len(more) > 1 else ()
    options = ("--smooth", more[0], *unknown, "--confidence", sure)
    done = onboard(model, scene, out, *options, library=library)
    assert done.returncode == 0, done.stderr
    assert re.match(r"\d+ bytes of memory for the pass, without onnxruntime's\n", done.stdout)
    assert np.array_equal(classes, raster(out, "u1"))
    assert np.array_equal(confidence, raster(sure, "<f4"))
    command = [onboard_build / "count_allocations", library, model, scene, tmp_path / "other.hdr"]
    cubes = subprocess.run(command, capture_output=True, text=True)
    assert cubes.returncode == 0, cubes.stderr
    assert cubes.stderr.split()[-1] == "0"


@pytest.fixture(scope="module")
def example(onboard_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built with the installed library."""
    folder = tmp_path_factory.mktemp("example")
    installed, build = folder / "installed", folder / "build"
    options = [f"-DCMAKE_PREFIX_PATH={installed}", "-DCMAKE_CXX_FLAGS=-O1 -Wall -Wextra -Werror"]
    for command in (
        ["cmake", "--install", BUILD, "--prefix", installed],
        ["cmake", "-S", ROOT / "examples" / "onboard", "-B", build, *options],
        ["cmake", "--build", build],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    names = {path.name for path in (installed / "include" / "hytas").iterdir()}
    assert names == {"onboard.hpp", "onboard_status.h"}
    return build / "classify_frames"


def test_frames_from_a_pipe(
    example: Path,
    onboard: Run,
    onnxruntime_library: Path,
    models: dict[str, Exported],
    tmp_path: Path,
) -> None:
    """One frame was dropped and one is short: these lines have no data, the others are whole."""
    cube = models["aware"].scene.cube.copy()
    frames = b""
    for number, line in enumerate(cube):
        values = line.tobytes()[: -4 if number == 9 else None]
        if number != 4:
            frames += np.array([number, len(values)], np.uint32).tobytes() + values
    model = models["aware"].files["onnx-scene"]
    command = list(map(str, [example, model, SAMPLES, onnxruntime_library]))
    done = subprocess.run(command, input=frames, capture_output=True)
    assert done.returncode == 0, done.stderr
    notes = done.stderr.decode().splitlines()[1:]
    assert notes == ["frame 4 was dropped", f"frame 9 has {SAMPLES * 24 * 4 - 4} bytes"]
    cube[[4, 9]] = -1
    scene, out = write_cube(tmp_path / "scene", cube, "bil", "<"), tmp_path / "map.hdr"
    scene.write_text(scene.read_text().replace("value = 9999", "value = -1"))
    assert onboard(model, scene, out).returncode == 0
    classes = np.frombuffer(done.stdout, np.int32).reshape(17, SAMPLES)
    assert np.array_equal(classes, raster(out, "u1"))
    assert (classes[[4, 9]] == 0).all()


def test_the_header_is_c(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    source = tmp_path / "status.c"
    source.write_text(
        "#include <hytas/onboard_status.h>\nint main(void) { return hytas_onboard_stopped - 1; }\n"
    )
    command = ["cc", "-std=c99", "-I", SOURCE / "include", source, "-o", tmp_path / "status"]
    subprocess.run(command, check=True)
    subprocess.run([tmp_path / "status"], check=True)
