"""Maps of scenes with a missing band or other wavelengths, and on a full disk."""

import dataclasses
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from small_model import Exported, small_model, small_scene
from test_rasters import write_cube

from commands import run_copy
from hytas.deploy import DeployedModel, classify_scene
from hytas.export import export_formats
from hytas.export.onnx_file import set_card


def limited(size: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `hytas` where no file can grow over `size` bytes, as on a disk that is full."""
    return run_copy(*arguments, largest_file=size)


@pytest.mark.parametrize(
    ("name", "size"), [("map.tif", 5000), ("map.hdr", 4600), ("map.png", 9000)]
)
def test_a_full_disk_leaves_no_half_file(
    exported: Exported, tmp_path: Path, name: str, size: int
) -> None:
    """The journal of 400 rows x 23 pixels needs 84 kB: it, too, ends in one line."""
    cube = small_scene("uint16", height=400).cube
    scene = write_cube(tmp_path / "scene", cube, "bil", "<")
    out = tmp_path / "out"
    out.mkdir()
    done = limited(size, "classify", exported.onnx, scene, "--out", out / name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
    assert f".{name}.partial" in done.stderr
    assert not [path for path in out.iterdir() if not path.name.endswith(".partial")]
    whole = run_copy("classify", exported.onnx, scene, "--out", out / name)
    assert whole.returncode == 0, whole.stderr
    assert (out / name).exists()


@pytest.mark.parametrize("tile_rows", [2, 12])
def test_a_band_that_is_missing_is_no_missing_pixel(tmp_path: Path, tile_rows: int) -> None:
    """A pixel holds no data if all its bands are NaN; a NaN among others is its band's centre."""
    scene = small_scene("float32")
    network, card = small_model(scene)
    file = export_formats(network, tmp_path, card, ["onnx"])["onnx"]
    model = DeployedModel.load(file, "cpu", threads=1)
    cube = scene.cube[:12].copy()
    cube[:4] = np.nan
    cube[9, 2, 8], cube[10, 3, 9] = np.nan, np.inf
    found = classify_scene(model, cube, tile_rows=tile_rows)
    assert not found.labels[:4].any()
    assert found.labels[4:].all()
    assert np.isfinite(found.confidence).all()
    kept = model.card.preprocessing["bands"].index(8)
    other = cube.copy()
    other[9, 2, 8] = np.float32(model.card.preprocessing["offset"][kept])
    again = classify_scene(model, other, tile_rows=tile_rows)
    assert found.confidence.tobytes() == again.confidence.tobytes()


def test_a_scene_of_other_wavelengths(exported: Exported, tmp_path: Path) -> None:
    graph = onnx.load(exported.onnx)
    wavelengths = tuple(400.0 + 10 * band for band in range(24))
    set_card(graph, dataclasses.replace(exported.card, wavelengths=wavelengths))
    model = tmp_path / "model.onnx"
    onnx.save(graph, model)
    scene = write_cube(tmp_path / "scene", exported.scene.cube, "bil", "<")
    text = scene.read_text()
    for shift, code in ((4.0, 0), (35.0, 2)):
        shifted = ", ".join(str(value + shift) for value in wavelengths)
        scene.write_text(f"{text}wavelength units = nm\nwavelength = {{{shifted}}}\n")
        done = run_copy("classify", model, scene, "--out", tmp_path / "map.npy")
        assert done.returncode == code, done.stderr
        if code:
            assert "lies at 435.0 nm and that of" in done.stderr
            assert "at 400.0 nm" in done.stderr
