"""The Processing script in Debian's QGIS, without a screen."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hytas

SCRIPT = Path(__file__).parents[2] / "examples" / "qgis" / "hytas_classify.py"
sys.path.append(str(Path(__file__).parents[1] / "export"))

# Debian's qgis_process is a script that adds an argument which the program does not know.
QGIS = shutil.which("qgis_process.bin") or shutil.which("qgis_process")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.skipif(QGIS is None, reason="needs QGIS (apt-get install qgis)")
def test_a_layer_becomes_a_styled_map(tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    from small_model import export_small

    def folder(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    exported = export_small(folder)
    cube = np.moveaxis(exported.scene.cube, 2, 0)
    layer = tmp_path / "layer.tif"
    transform = rasterio.Affine(10, 0, 500_000, 0, -10, 5_000_000)
    bands, height, width = cube.shape
    with rasterio.open(
        layer,
        "w",
        driver="GTiff",
        count=bands,
        height=height,
        width=width,
        dtype=cube.dtype,
        crs="EPSG:32633",
        transform=transform,
    ) as file:
        file.write(cube)
    program = tmp_path / "hytas"
    package = Path(hytas.__file__).parents[1]
    start = (
        f"import sys; sys.path.insert(0, {str(package)!r}); from hytas.cli.main import run; run()"
    )
    words = shlex.join([sys.executable, "-c", start])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    scripts = tmp_path / "qgis" / "profiles" / "default" / "processing" / "scripts"
    scripts.mkdir(parents=True)
    shutil.copy(SCRIPT, scripts)
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    # QGIS embeds the system's Python and looks for its library beside the first `python3` in PATH.
    own |= {"PATH": "/usr/bin:/bin", "QT_QPA_PLATFORM": "offscreen"}
    own |= {"QGIS_CUSTOM_CONFIG_PATH": str(tmp_path / "qgis")}
    out = tmp_path / "map.tif"
    given = [f"LAYER={layer}", f"MODEL={exported.onnx}", f"PROGRAM={program}", f"OUTPUT={out}"]
    for arguments in (["plugins", "enable", "processing"], ["run", "script:hytas_classify", "--"]):
        command = [str(QGIS), *arguments, *(given if arguments[0] == "run" else [])]
        done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    with rasterio.open(out) as file:
        labels, crs = file.read(1), file.crs
    assert crs.to_epsg() == 32633
    assert set(np.unique(labels)) <= {3, 4, 9, 200}
    assert len(np.unique(labels)) >= 3
    assert "gravel" in out.with_suffix(".qml").read_text()
