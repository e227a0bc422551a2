"""The table of file formats: each has a reader, and one line here."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hytas.data.datasets import SCENES
from hytas.data.findings import note, refusal
from hytas.data.products import as_product, image_of
from hytas.data.read import band_files, envi, hdf5, matlab, rasters
from hytas.data.read.untrusted import contents_of
from hytas.data.record import Contents, reading
from hytas.errors import InputError
from hytas.plugins import fill

Named = str | Path | Sequence[str | Path]
"""A file, a folder that is a scene, or several files that are bands of one scene."""
Matches = Callable[[bytes, Path], bool]


class SceneFormat(NamedTuple):
    """A format.

    Attributes:
        matches: whether a file is one, by its first kilobyte and its path.
        reader: "module:function" in this package, and texts that the function takes behind the
            path; it returns the record of the file. Or a function of the path.
    """

    name: str
    matches: Matches
    reader: str | Callable[[Path], Contents]


def _begins(*magics: bytes) -> Matches:
    return lambda head, path: head.startswith(magics)


# The first format that matches reads the file. Content is tested before the suffix.
FORMATS = (
    SceneFormat("MATLAB v7.3", _begins(hdf5.MATLAB), "hdf5:read_matlab"),
    SceneFormat("NumPy npy", _begins(b"\x93NUMPY"), "numpy_files:read_npy"),
    SceneFormat("NumPy npz", _begins(b"PK\x03\x04"), "numpy_files:read_npz"),
    SceneFormat(
        "GeoTIFF", _begins(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), "rasters:read:GTiff:GeoTIFF"
    ),
    SceneFormat("HDF5", lambda head, path: hdf5.MAGIC in (head[:8], head[512:520]), "hdf5:read"),
    SceneFormat("NetCDF-3", _begins(b"CDF\x01", b"CDF\x02"), "netcdf:read_netcdf3"),
    SceneFormat("MATLAB v5", lambda head, path: matlab.is_version_5(head), "matlab:read"),
    SceneFormat("MATLAB v4", lambda head, path: path.suffix.lower() == ".mat", "matlab:read"),
    SceneFormat("ENVI", lambda head, path: envi.matches(path), "rasters:read_envi"),
    SceneFormat("ERDAS Imagine", _begins(b"EHFA_HEADER_TAG"), "rasters:read:HFA:ERDAS Imagine"),
    SceneFormat("ESRI BIL", lambda head, path: rasters.is_esri(path), "rasters:read_esri"),
    SceneFormat("PCI", _begins(b"PCIDSK"), "rasters:read:PCIDSK:PCI"),
    SceneFormat(
        "ISIS cube", lambda head, path: b"= IsisCube" in head, "rasters:read:ISIS3:ISIS cube"
    ),
    SceneFormat("PDS4", lambda head, path: b"<Product_Obs" in head, "rasters:read:PDS4:PDS4"),
    SceneFormat(
        "JPEG 2000", lambda head, path: head[4:8] == b"jP  ", "rasters:read:JP2OpenJPEG:JPEG 2000"
    ),
    SceneFormat("PNG", _begins(b"\x89PNG\r\n\x1a\n"), "rasters:read:PNG:PNG"),
    SceneFormat("BMP", _begins(b"BM"), "rasters:read:BMP:BMP"),
)
OWN: dict[str, SceneFormat] = {}
"""Formats of plug-ins; they come before ours."""
fill("reader", OWN, lambda name, entry: SceneFormat(name, entry[0], entry[1]))
_NO_SCENES = {
    b"version https://git-lfs": "is a Git LFS pointer to the file: run git lfs pull",
    b"\xd0\xcf\x11\xe0": "is a file of Excel or another old program: save the sheet as CSV UTF-8",
    b"\x1f\x8b\x08": "is compressed with gzip: unpack it",
}
_ZARR = (".zgroup", ".zarray", ".zmetadata", "zarr.json")


def open_file(path: Named, argument: str = "data") -> Contents:
    """Describe the arrays of a file, without reading its pixels.

    Args:
        path: a file; a Zarr store; or a folder or a list of files that are bands of one scene.

    Raises:
        InputError: the file is missing, has no known format, or is broken.
    """
    if not isinstance(path, str | Path | list | tuple):
        rule = "must be a path or a list of paths; scene_from_arrays takes arrays"
        raise InputError(argument, type(path).__name__, rule)
    if not isinstance(path, str | Path):
        return _files(tuple(map(Path, path)), argument)
    path = Path(path)
    if not path.exists():
        hint = f"known by name: {', '.join(SCENES)}" if path.name == str(path) else ""
        raise InputError(argument, path, "no such file", hint)
    if path.is_dir():
        return _folder(path, argument)
    if not path.is_file():
        raise InputError(argument, path, "is not a file")
    with reading(argument, path, "product"):
        path = image_of(path)
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        raise refusal("empty", argument, path, "bytes")
    for magic, rule in _NO_SCENES.items():
        if head.startswith(magic):
            raise InputError(argument, path, rule)
    for entry in (*OWN.values(), *FORMATS):
        if entry.matches(head, path):
            with reading(argument, path, f"{entry.name} file"):
                return as_product(_record(entry, (path,)))
    formats = [*dict.fromkeys(entry.name for entry in FORMATS)]
    facts = {"formats": formats, "header": f"{path.stem}.hdr"}
    raise refusal("unreadable", argument, path, "format-unknown", **facts)


def is_scene_folder(path: Path) -> bool:
    """Return whether a folder is a scene: a Zarr store, or files of bands."""
    return path.is_dir() and (_is_zarr(path) or bool(band_files.files_in(path)))


def _folder(path: Path, argument: str) -> Contents:
    if _is_zarr(path):
        with reading(argument, path, "Zarr store"):
            return contents_of("netcdf:read_zarr", (path,))
    files = band_files.files_in(path)
    if not files:
        raise refusal("unreadable", argument, path, "folder")
    contents = _files(tuple(files), argument)
    left = [each.name for each in band_files.rasters_in(path) if each not in files]
    if not left:
        return contents
    more = note("not-used", names=left)
    return replace(contents, findings=(*contents.findings, more))


def _files(paths: tuple[Path, ...], argument: str) -> Contents:
    if len(paths) == 1:
        return open_file(paths[0], argument)
    for path in paths:
        if not path.is_file():
            raise InputError(argument, path, "no such file")
    with reading(argument, paths[0].parent if paths else "", "set of bands"):
        if not paths:
            raise InputError(rule="an empty list of files")
        return contents_of("band_files:read", paths)


def _is_zarr(path: Path) -> bool:
    return any((path / name).is_file() for name in _ZARR)


def _record(entry: SceneFormat, paths: tuple[Path, ...]) -> Contents:
    if isinstance(entry.reader, str):
        return contents_of(entry.reader, paths)
    return entry.reader(*paths)
