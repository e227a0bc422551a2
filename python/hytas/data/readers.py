"""The table of file formats: each format has its own file, and one line here."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hytas.data.contents import Contents, reading
from hytas.data.formats import envi, hdf5, matlab, netcdf3, numpy_files, tiff
from hytas.data.products import dlr
from hytas.data.products.table import refined
from hytas.errors import InputError


class Format(NamedTuple):
    """A format: its name, a test for a file (first kilobyte, path), and its reader."""

    name: str
    matches: Callable[[bytes, Path], bool]
    read: Callable[[Path], Contents]


# The first format that matches reads the file. Content is tested before the suffix.
FORMATS = (
    Format("MATLAB v7.3", matlab.matches_v73, matlab.read_v73),
    Format("NumPy npy", numpy_files.matches_npy, numpy_files.read_npy),
    Format("NumPy npz", numpy_files.matches_npz, numpy_files.read_npz),
    Format("GeoTIFF", tiff.matches, tiff.read),
    Format("HDF5", hdf5.matches, hdf5.read),
    Format("EnMAP or DESIS metadata", dlr.matches_metadata, dlr.read_image),
    Format("NetCDF-3", netcdf3.matches, netcdf3.read),
    Format("ENVI", envi.matches, envi.read),
    Format("MATLAB v5", matlab.matches_v5, matlab.read_v5),
)


def _known_names(path: Path) -> str:
    """Return a hint at the scenes that are known by name, if the path may be meant for one."""
    if path.suffix or path.parent != Path():
        return ""
    import difflib

    from hytas.data.datasets import SCENES

    name = path.name.lower().replace("-", "_")
    near = difflib.get_close_matches(name, SCENES, 1)
    known = f"known by name: {', '.join(SCENES)}"
    return f"did you mean {near[0]}? {known}" if near else known


def open_file(path: str | Path, argument: str = "data") -> Contents:
    """Describe the arrays of a file, without reading its pixels.

    Args:
        path: the file.
        argument: name of the file in messages.

    Raises:
        InputError: the file is missing, has no known format, or is broken.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(argument, path, "no such file", _known_names(path))
    if not path.is_file():
        raise InputError(f"{argument}: {path} is not a file")
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        raise InputError(f"{argument}: {path} is empty (0 bytes)")
    for entry in FORMATS:
        if entry.matches(head, path):
            with reading(argument, path, f"{entry.name} file"):
                return refined(entry.read(path))
    if path.suffix.lower() in envi.DATA_SUFFIXES[1:]:
        raise InputError(
            f"{argument}: {path} has no ENVI header beside it: looked for {path.name}.hdr and "
            f"{path.stem}.hdr"
        )
    known = ", ".join(entry.name for entry in FORMATS)
    raise InputError(f"{argument}: {path} has no format that hytas reads ({known})")
