"""The C++ onboard runner built for another processor, under qemu's user emulation.

Runs where HYTAS_ONBOARD_TRIPLE names an installed cross compiler: aarch64-linux-gnu,
arm-linux-gnueabihf or riscv64-linux-gnu. onnxruntime has wheels for the first only, so a library
that stands in for it gives the probabilities for all three.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import pytest
from onboard_program import SOURCE, Run, build_program
from small_model import Exported
from test_delta import fine_tuned
from test_rasters import holed, write_cube

from hytas.deploy.delta import make_delta, round_difference

TRIPLE = os.environ.get("HYTAS_ONBOARD_TRIPLE", "")
EMULATORS = {
    "aarch64-linux-gnu": "qemu-aarch64",
    "arm-linux-gnueabihf": "qemu-arm",
    "riscv64-linux-gnu": "qemu-riscv64",
}
CORTEX_A53 = (
    "processor\t: 0\nFeatures\t: fp asimd crc32\nCPU implementer\t: 0x41\n"
    "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd03\nCPU revision\t: 4\n\n"
)
Elsewhere = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.skipif(not TRIPLE, reason="HYTAS_ONBOARD_TRIPLE names no compiler")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program for the other processor, optimized as it ships."""
    folder = tmp_path_factory.mktemp("elsewhere")
    chain = SOURCE / "toolchains" / f"{TRIPLE}.cmake"
    build_program(folder, f"-DCMAKE_TOOLCHAIN_FILE={chain}", "-DCMAKE_CXX_FLAGS_RELEASE=-O2")
    return folder


@pytest.fixture(scope="module")
def elsewhere(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    """Run the program built for another processor."""
    root = tmp_path_factory.mktemp("root")
    # The emulator finds files of the other system here, also the processor's description, which
    # onnxruntime reads.
    shutil.copytree(f"/usr/{TRIPLE}/lib", root / "lib")
    (root / "proc").mkdir()
    (root / "proc" / "cpuinfo").write_text(CORTEX_A53)
    processor = ["-cpu", "cortex-a53"] if TRIPLE.startswith("aarch64") else []

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        program = [EMULATORS[TRIPLE], *processor, "-L", root, build / "hytas-onboard"]
        command = list(map(str, [*program, *arguments]))
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)

    return run


@pytest.mark.parametrize("bits", [None, 4, 8])
def test_an_update_and_its_refusals(
    elsewhere: Elsewhere, models: dict[str, Exported], tmp_path: Path, bits: int | None
) -> None:
    """Also rounded differences, whose sums of floats must be those of Python to the byte."""
    old, target = (models[name].files["onnx-scene"].read_bytes() for name in ("float32", "aware"))
    result, what = (target, None) if bits is None else round_difference(old, fine_tuned(old), bits)
    (tmp_path / "old.onnx").write_bytes(old)
    delta, new = tmp_path / "new.delta", tmp_path / "new.onnx"
    delta.write_bytes(make_delta(old, result, what))
    done = elsewhere("--update", delta, tmp_path / "old.onnx", new)
    assert done.returncode == 0, done.stderr
    assert new.read_bytes() == result
    damaged = bytearray(delta.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    delta.write_bytes(damaged)
    done = elsewhere("--update", delta, tmp_path / "old.onnx", tmp_path / "other.onnx")
    assert done.returncode == 2
    assert not list(tmp_path.glob("other*"))


@pytest.mark.skipif(not TRIPLE.startswith("aarch64"), reason="onnxruntime has no such wheel")
@pytest.mark.parametrize("smooth", ["none", "guided"])
def test_the_same_map_on_another_processor(
    elsewhere: Elsewhere, onboard: Run, models: dict[str, Exported], tmp_path: Path, smooth: str
) -> None:
    version = onnxruntime.__version__
    platforms = ["--platform", "manylinux_2_28_aarch64", "--platform", "manylinux_2_27_aarch64"]
    fetch = [*("-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")]
    wheel = ["--python-version", "3.11", "--dest", tmp_path, f"onnxruntime=={version}"]
    done = subprocess.run(
        [sys.executable, *fetch, *platforms, *wheel], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no wheel of onnxruntime {version}: {done.stderr}")
    (archive,) = tmp_path.glob("onnxruntime*.whl")
    zipfile.ZipFile(archive).extractall(tmp_path / "wheel")
    (library,) = (tmp_path / "wheel" / "onnxruntime" / "capi").glob("libonnxruntime.so*")
    model = models["aware"].files["onnx-scene"]
    scene = write_cube(tmp_path / "scene", holed(models["aware"].scene.cube), "bil", "<")
    here = onboard(model, scene, tmp_path / "here.hdr", "--smooth", smooth)
    assert here.returncode == 0, here.stderr
    there = elsewhere(
        *(model, scene, tmp_path / "there.hdr", "--smooth", smooth, "--library", library)
    )
    assert there.returncode == 0, there.stderr
    maps = [(tmp_path / f"{name}.img").read_bytes() for name in ("here", "there")]
    assert maps[0] == maps[1]
