"""One scene in every kind of file gives one map, to the byte; files that are none are refused."""

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import onnx
import pytest
import tifffile
from scipy.io import netcdf_file, savemat
from small_model import Exported, small_model, small_scene
from test_rasters import write_cube

from commands import run_copy
from hytas.data import open_cube
from hytas.deploy import ClassMap, DeployedModel, classify_scene
from hytas.export import export_formats
from hytas.export.onnx_file import set_card, take_dtype


def matlab_v5(path: Path, cube: np.ndarray) -> Path:
    savemat(path.with_suffix(".mat"), {"cube": cube})
    return path.with_suffix(".mat")


def matlab_v73(path: Path, cube: np.ndarray) -> Path:
    """As MATLAB writes it: HDF5 behind 512 bytes of its own, axes reversed."""
    path = path.with_suffix(".mat")
    with h5py.File(path, "w", userblock_size=512) as file:
        stored = file.create_dataset("cube", data=cube.T, chunks=(4, 5, 5), compression="gzip")
        stored.attrs["MATLAB_class"] = np.bytes_(cube.dtype.name.replace("float32", "single"))
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


def hdf5(path: Path, cube: np.ndarray) -> Path:
    with h5py.File(path.with_suffix(".h5"), "w") as file:
        file.create_dataset("group/cube", data=cube.astype(cube.dtype.newbyteorder(">")))
    return path.with_suffix(".h5")


def netcdf3(path: Path, cube: np.ndarray) -> Path:
    with netcdf_file(path.with_suffix(".nc"), "w") as file:
        for name, size in zip("yxb", cube.shape, strict=True):
            file.createDimension(name, size)
        file.createVariable("cube", cube.dtype.newbyteorder(">"), tuple("yxb"))[:] = cube
    return path.with_suffix(".nc")


def geotiff(path: Path, cube: np.ndarray) -> Path:
    tifffile.imwrite(
        path.with_suffix(".tif"), cube, planarconfig="contig", photometric="minisblack"
    )
    return path.with_suffix(".tif")


def numpy_file(path: Path, cube: np.ndarray) -> Path:
    np.save(path.with_suffix(".npy"), cube)
    return path.with_suffix(".npy")


WRITERS: dict[str, Callable[[Path, np.ndarray], Path]] = {
    "MATLAB v5": matlab_v5,
    "MATLAB v7.3": matlab_v73,
    "HDF5": hdf5,
    "NetCDF-3": netcdf3,
    "GeoTIFF": geotiff,
    "NumPy": numpy_file,
    **{
        f"ENVI {interleave} {order}": lambda path, cube, i=interleave, o=order: write_cube(
            path, cube, i, o
        )
        for interleave in ("bsq", "bil", "bip")
        for order in "<>"
    },
}


Typed = dict[str, tuple[DeployedModel, np.ndarray, ClassMap]]


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Typed:
    """For each element type: the model that takes it, a cube of it, and its map from memory.

    One export for float32, its input retyped for the other.
    """
    folder = tmp_path_factory.mktemp("typed")
    model, card = small_model(small_scene("float32"))
    files = {"float32": export_formats(model, folder, card, ["onnx"])["onnx"]}
    graph = onnx.load(files["float32"])
    take_dtype(graph, "int16")
    card = DeployedModel.load(files["float32"]).card
    set_card(graph, dataclasses.replace(card, dtype="int16"))
    files["int16"] = folder / "int16.onnx"
    onnx.save(graph, files["int16"])
    found = {}
    for dtype, path in files.items():
        deployed = DeployedModel.load(path, "cpu", threads=1)
        cube = small_scene(dtype).cube
        found[dtype] = (deployed, cube, classify_scene(deployed, cube))
    return found


@pytest.mark.parametrize("dtype", ["int16", "float32"])
@pytest.mark.parametrize("kind", WRITERS)
def test_every_file_gives_the_same_map(
    typed: Typed,
    tmp_path: Path,
    dtype: str,
    kind: str,
) -> None:
    model, cube, expected = typed[dtype]
    opened = open_cube(WRITERS[kind](tmp_path / "scene", cube), None, cube.shape[2])
    assert opened.shape == cube.shape
    assert opened.dtype == cube.dtype
    for rows in (3, 17):
        found = classify_scene(model, opened, tile_rows=rows)
        assert found.labels.tobytes() == expected.labels.tobytes()
        assert found.confidence.tobytes() == expected.confidence.tobytes()


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
def test_a_band_that_is_missing_is_no_missing_pixel(typed: Typed, tile_rows: int) -> None:
    """A pixel holds no data if all its bands are NaN; a NaN among others is its band's centre."""
    model, cube, _ = typed["float32"]
    cube = cube[:12].copy()
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
