"""The C++ onboard runner built for another processor, under qemu's user emulation.

Runs where HYTAS_ONBOARD_TRIPLE names an installed cross compiler: aarch64-linux-gnu or
arm-linux-gnueabihf. onnxruntime has wheels for the first only.
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
from onboard_program import SOURCE, Run
from small_model import Exported
from test_rasters import holed, write_cube

from hytas.deploy.delta import make_delta

TRIPLE = os.environ.get("HYTAS_ONBOARD_TRIPLE", "")
EMULATORS = {"aarch64-linux-gnu": "qemu-aarch64", "arm-linux-gnueabihf": "qemu-arm"}
CORTEX_A53 = (
    "processor\t: 0\nFeatures\t: fp asimd crc32\nCPU implementer\t: 0x41\n"
    "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd03\nCPU revision\t: 4\n\n"
)
Elsewhere = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.skipif(not TRIPLE, reason="HYTAS_ONBOARD_TRIPLE names no compiler")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    """Run the program built for another processor."""
    build, root = tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("root")
    chain = f"-DCMAKE_TOOLCHAIN_FILE={SOURCE / 'toolchains' / f'{TRIPLE}.cmake'}"
    for command in (["cmake", "-S", SOURCE, "-B", build, chain], ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
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


def test_an_update_and_its_refusals(
    elsewhere: Elsewhere, models: dict[str, Exported], tmp_path: Path
) -> None:
    old, new = (models[name].files["onnx-scene"] for name in ("float32", "aware"))
    delta, result = tmp_path / "new.delta", tmp_path / "new.onnx"
    delta.write_bytes(make_delta(old.read_bytes(), new.read_bytes()))
    done = elsewhere("--update", delta, old, result)
    assert done.returncode == 0, done.stderr
    assert result.read_bytes() == new.read_bytes()
    damaged = bytearray(delta.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    delta.write_bytes(damaged)
    assert elsewhere("--update", delta, old, tmp_path / "other.onnx").returncode == 2
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
