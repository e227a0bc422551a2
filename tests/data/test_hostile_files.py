"""Files made to crash, to fill memory, to take minutes, or to read what is none of theirs."""

import json
import os
import resource
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
import tifffile
import xarray
from scipy.io import savemat
from whole_cube import load_cube

from hytas.data import Grid, labels_on_grid, load_scene, open_cube, open_file
from hytas.data.read.untrusted import VARIABLE, call
from hytas.errors import InputError


def refused(read: Callable[[], object], *words: str) -> str:
    """The message of a refusal, which takes little time and is one line."""
    start = time.process_time()
    with pytest.raises(InputError) as caught:
        read()
    assert time.process_time() - start < 3
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


@pytest.fixture(autouse=True)
def untrusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process reads."""
    monkeypatch.setenv(VARIABLE, "1")


def packed(path: Path, element: bytes) -> Path:
    """A MATLAB v5 file of one compressed element."""
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x100) + b"IM"
    body = zlib.compress(element)
    path.write_bytes(head + struct.pack("<II", 15, len(body)) + body)
    return path


def matrix(kind: int = 2, shape: tuple[int, ...] = (2, 3, 2), size: int = 12) -> bytes:
    """The element of a numeric matrix whose data are of type `kind` and of `size` bytes."""
    flags = struct.pack("<IIII", 6, 8, 9, 0)
    dims = struct.pack(f"<II{len(shape)}i", 5, 4 * len(shape), *shape)
    dims += bytes(-len(dims) % 8)
    body = flags + dims + struct.pack("<HH4s", 1, 1, b"c") + struct.pack("<II", kind, size)
    body += bytes(min(size, 64))
    return struct.pack("<II", 14, len(body)) + body


@pytest.mark.parametrize("kind", [0, 8, 10, 11, 20, 255, 65535])
def test_compressed_matlab_data_of_a_type_that_crashes_scipy(tmp_path: Path, kind: int) -> None:
    path = packed(tmp_path / "a.mat", matrix(kind))
    refused(lambda: load_cube(path), "truncated or corrupt")


def test_compressed_matlab_matrices_that_make_no_sense(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    assert load_cube(packed(path, matrix())).cube.shape == (2, 3, 2)
    for element in (
        matrix(shape=(2, -3, -2)),
        matrix(size=13),
        matrix(shape=(2,)),
        matrix(shape=(1,) * 33),
        b"",
        struct.pack("<II", 15, 0),
        matrix()[:40],
    ):
        refused(lambda e=element: load_cube(packed(path, e)))
    head = path.read_bytes()[:128]
    path.write_bytes(head + struct.pack("<II", 15, 8) + b"no zlib!")
    refused(lambda: load_cube(path), "truncated or corrupt")
    # scipy takes a zero among the first bytes for version 4, whatever mark follows.
    path.write_bytes(b"\0" + head[1:] + matrix(255))
    refused(lambda: load_cube(path), "truncated or corrupt")


def test_matlab_v4_sizes_that_lead_backwards(tmp_path: Path) -> None:
    savemat(tmp_path / "a.mat", {"gt": np.ones((3, 4))}, format="4")
    grid = Grid(None, None, 3, 4)
    assert labels_on_grid(tmp_path / "a.mat", grid).maps[0][0] == "gt"
    data = bytearray((tmp_path / "a.mat").read_bytes())
    struct.pack_into("<ii", data, 4, -1, 3)
    (tmp_path / "a.mat").write_bytes(data)
    refused(lambda: labels_on_grid(tmp_path / "a.mat", grid))


def test_two_matlab_variables_of_one_name(tmp_path: Path) -> None:
    savemat(tmp_path / "a.mat", {"c": np.ones((3, 4, 2)), "d": np.ones((3, 4))})
    data = (tmp_path / "a.mat").read_bytes()
    (tmp_path / "a.mat").write_bytes(data.replace(b"\1\0\1\0d", b"\1\0\1\0c"))
    contents = open_file(tmp_path / "a.mat")
    assert [variable.name for variable in contents.variables] == ["c", "c"]
    grid = Grid(None, None, 3, 4)
    refused(lambda: labels_on_grid(tmp_path / "a.mat", grid), "holds an array of shape (3, 4, 2)")


def test_hdf5_groups_in_a_ring(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "ring.h5", "w") as file:
        file["c"] = np.ones((4, 5, 6))
        file["again"] = file
        file["elsewhere"] = h5py.ExternalLink("/etc/secret.h5", "c")
    assert [each.name for each in open_file(tmp_path / "ring.h5").variables] == ["c"]


def bomb_mat(path: Path) -> Path:
    """2 MB that become 2 GB: one block of zeros, packed once and repeated."""
    body = matrix(9, (2**14, 2**7, 2**7), 2**31)[8:-64]
    pack = zlib.compressobj(9)
    head = pack.compress(struct.pack("<II", 14, len(body) + 2**31) + body)
    head += pack.flush(zlib.Z_FULL_FLUSH)
    block = pack.compress(bytes(2**24)) + pack.flush(zlib.Z_FULL_FLUSH)
    element = head + block * 2**7 + pack.flush()
    start = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x100) + b"IM"
    path.write_bytes(start + struct.pack("<II", 15, len(element)) + element)
    return path


def test_inspect_of_a_bomb_is_small_and_quick(tmp_path: Path) -> None:
    path = bomb_mat(tmp_path / "bomb.mat")
    assert path.stat().st_size < 3e6
    refused(lambda: load_cube(path), "memory ran out")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_DATA, (600 * 2**20,) * 2); "
    code = f"{limit}from hytas.cli.main import run; run(['inspect', {str(path)!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "memory ran out" in done.stdout


def test_a_vector_named_like_wavelengths_is_not_read_to_list_a_file(tmp_path: Path) -> None:
    long, cube = np.zeros(2**23), np.ones((3, 4, 5))
    savemat(tmp_path / "a.mat", {"wavelengths": long, "c": cube}, do_compression=True)
    np.savez_compressed(tmp_path / "a.npz", wavelengths=long, c=cube)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("wavelengths", (2**30,), "f8", chunks=(2**20,), compression="gzip")
        file["c"] = cube
    for name in ("a.mat", "a.npz", "a.h5"):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert open_cube(tmp_path / name).wavelengths is None
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000
        assert load_cube(tmp_path / name).cube.shape == (3, 4, 5)


def test_a_header_in_a_zip_that_inflates(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("c.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**28) + bytes(2**28))
    refused(lambda: open_file(tmp_path / "a.npz"), "truncated or corrupt")


def test_files_of_very_many_arrays_are_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        for number in range(2500):
            file[f"d{number}"] = number
    savemat(tmp_path / "a.mat", {f"d{number}": number for number in range(2500)})
    for name in ("a.h5", "a.mat"):
        assert len(open_file(tmp_path / name).variables) == 2500


def test_a_message_names_a_few_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{f"d{number}": np.ones(3) for number in range(300)})
    message = refused(lambda: load_scene(tmp_path / "a.npz"), "d9 (3 float64) and 290 more")
    assert "d10" not in message
    refused(lambda: load_cube(tmp_path / "a.npz", "x"), "no such variable as 'x'", "and 290 more")


@pytest.mark.parametrize("name", ["a.h5", "a.mat"])
def test_hdf5_values_in_other_files(tmp_path: Path, name: str) -> None:
    path, secret = tmp_path / name, tmp_path / "secret.bin"
    secret.write_bytes(bytes(range(120)))
    with h5py.File(path, "w") as file:
        file.create_dataset("cube", (4, 5, 6), "u1", external=[(str(secret), 0, 120)])
    refused(lambda: open_file(path), str(path), "the values of cube", "secret.bin")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["c"] = np.ones((4, 5, 6))
    layout = h5py.VirtualLayout((4, 5, 6), "f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "c", (4, 5, 6))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("cube", layout)
    refused(lambda: open_file(path), str(path), "the values of cube", "other.h5")


@pytest.mark.parametrize("twice", [False, True])
def test_a_chunk_that_unpacks_to_gigabytes(tmp_path: Path, twice: bool) -> None:
    """The HDF5 library unpacks a chunk to its end, whatever the size of the dataset."""
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((9, 9, 9))
    for _ in range(1 + twice):
        plan.set_deflate(9)
    pack = zlib.compressobj(9)
    block = pack.compress(bytes(2**24)) + pack.flush(zlib.Z_FULL_FLUSH)
    bomb = block + (pack.compress(bytes(2**24)) + pack.flush(zlib.Z_FULL_FLUSH)) * 64 + pack.flush()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        space = h5py.h5s.create_simple((9, 9, 9))
        h5py.h5d.create(file.id, b"c", h5py.h5t.NATIVE_UINT8, space, plan)
        packed_twice = zlib.compress(bomb) if twice else bomb
        file["c"].id.write_direct_chunk((0, 0, 0), packed_twice)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(lambda: load_cube(tmp_path / "a.h5"), "truncated or corrupt")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


def test_a_zarr_store_that_runs_code(tmp_path: Path) -> None:
    """The codec pickle calls what the store says."""
    data = xarray.Dataset({"c": (("y", "x", "band"), np.ones((4, 5, 6), np.float32))})
    data.to_zarr(tmp_path / "s", zarr_format=2, encoding={"c": {"compressors": None}})
    assert load_cube(tmp_path / "s").cube.shape == (4, 5, 6)
    (tmp_path / "s" / ".zmetadata").unlink()
    described = tmp_path / "s" / "c" / ".zarray"
    facts = json.loads(described.read_text())
    described.write_text(json.dumps({**facts, "filters": [{"id": "pickle", "protocol": 5}]}))
    code = f"cos\nsystem\n(S'touch {tmp_path / 'run'}'\ntR."
    (tmp_path / "s" / "c" / "0.0.0").write_bytes(code.encode())
    refused(lambda: load_cube(tmp_path / "s"), "names the codec pickle")
    assert not (tmp_path / "run").exists()


def test_rasters_whose_pixels_lie_in_other_files(tmp_path: Path) -> None:
    cube = np.ones((6, 30, 40), np.int16)
    facts = {"height": 30, "width": 40, "count": 6, "dtype": "int16", "crs": "EPSG:32633"}
    facts["transform"] = rasterio.Affine(30, 0, 0, 0, -30, 0)
    for name, driver, options, data in (
        ("c.img", "HFA", {"USE_SPILL": "YES"}, "c.ige"),
        ("c.xml", "PDS4", {}, "c.img"),
    ):
        with rasterio.open(tmp_path / name, "w", driver=driver, **facts, **options) as file:
            file.write(cube)
        assert load_cube(tmp_path / name).cube.shape == (30, 40, 6)
        (tmp_path / data).rename(tmp_path / data.replace("c.", "s."))
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content.replace(data.encode(), b"s." + data[2:].encode()))
        refused(lambda p=tmp_path / name: load_cube(p), "lie in other files (s.")
    (tmp_path / "c.vrt").write_text('<VRTDataset rasterXSize="4" rasterYSize="4"></VRTDataset>')
    refused(lambda: load_cube(tmp_path / "c.vrt"), "its format is none of")


def crash() -> None:
    os.abort()


def fill() -> None:
    bytearray(2**32)


@pytest.mark.parametrize("work", [crash, fill])
def test_a_call_that_does_not_come_through(work: Callable[[], None]) -> None:
    with pytest.raises((ValueError, MemoryError)):
        call(work)
    assert call(os.getpid) != os.getpid()


def ifd(entries: list[tuple[int, int, int, int]], following: int) -> bytes:
    data = struct.pack("<H", len(entries))
    return data + b"".join(struct.pack("<HHII", *e) for e in entries) + struct.pack("<I", following)


def tags(width: int = 4) -> list[tuple[int, int, int, int]]:
    codes = ((256, width), (257, 4), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 4))
    return [(code, 4, 1, value) for code, value in (*codes, (279, 16))]


def test_pages_of_a_tiff_that_do_not_end(tmp_path: Path) -> None:
    path, page = tmp_path / "a.tif", len(ifd(tags(), 0))
    head = struct.pack("<2sHI", b"II", 42, 8)
    path.write_bytes(head + ifd(tags(), 8 + page) + ifd(tags(), 8))
    refused(lambda: open_file(path), "its pages form a ring: the page at byte 8")
    # Pages that overlap: each begins within the last, so that few bytes make many of them.
    chained = bytearray(head + bytes(8000))
    for at in range(8, 7000, 2):
        chained[at : at + 2] = b"\1\0"
    path.write_bytes(chained)
    refused(lambda: open_file(path))
    shared = [(273, 4, 50_000, 8)]
    path.write_bytes(head + b"".join(ifd(shared, 8 + 18 * (n + 1)) for n in range(9)) + bytes(200))
    refused(lambda: load_cube(path))


def test_a_tiff_that_inflates(tmp_path: Path) -> None:
    """A strip is unpacked as far as its pixels go."""
    path = tmp_path / "a.tif"
    cube = np.zeros((5, 512, 512), np.uint8)
    tifffile.imwrite(path, cube, compression="zlib", photometric="minisblack", rowsperstrip=512)
    assert load_cube(path).cube.shape == (512, 512, 5)
    strip = zlib.compress(bytes(2**28), 1)
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as file:
        page = file.pages[0].tags
        offset, count = page[273].valueoffset, page[279].valueoffset
    struct.pack_into("<I", data, offset, len(data))
    struct.pack_into("<I", data, count, len(strip))
    path.write_bytes(data + strip)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert not load_cube(path).cube.any()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


def test_a_map_of_very_many_classes(tmp_path: Path) -> None:
    labels = np.arange(250 * 250).reshape(250, 250)
    np.savez(tmp_path / "a.npz", c=np.ones((250, 250, 2), np.uint8), gt=labels)
    start = time.process_time()
    assert load_scene(tmp_path / "a.npz").classes == 62499
    assert time.process_time() - start < 2
