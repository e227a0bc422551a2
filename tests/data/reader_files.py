"""One cube in a file of every layout that hytas reads: the table that tests of readers share."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import rasterio
import tifffile
import xarray
from PIL import Image
from scipy.io import netcdf_file, savemat

Write = Callable[[Path, np.ndarray, "Facts"], Path]

TRANSFORM = (30.0, 0.0, 500010.0, 0.0, -30.0, 4100020.0)
_ENVI_TYPES = {"i2": 2, "u2": 12, "f4": 4, "f8": 5, "u1": 1, "i4": 3}


class Facts(NamedTuple):
    """What a file says of its cube.

    Attributes:
        waves: centres of the bands in nm.
        nodata: the no-data value.
        transform, epsg: place of the pixels.
        labels: a map in the same file.
    """

    waves: np.ndarray | None = None
    nodata: float | None = None
    transform: tuple[float, ...] | None = None
    epsg: int = 32616
    labels: np.ndarray | None = None


class Kind(NamedTuple):
    """A layout of files.

    Attributes:
        format: its name in the table of formats, or how `inspect` names it.
        write: writes `folder/cube.SUFFIX`, and returns its path.
        says: names of the facts that such a file can hold.
        is_checked: whether the file has checksums, so that damage can be seen.
        types: of the values that it can hold.
        bands: that it can hold; None for any number.
    """

    format: str
    write: Write
    says: frozenset[str] = frozenset()
    is_checked: bool = False
    types: tuple[str, ...] = ("int16", "float32", "uint8")
    bands: int | None = None


def write_envi(path: Path, cube: np.ndarray, interleave: str, order: str, extra: str = "") -> None:
    """Write an ENVI image as plain bytes, and its header; `extra` are lines of the header."""
    axes = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}[interleave]
    stored = np.ascontiguousarray(cube.transpose(axes))
    path.write_bytes(stored.astype(stored.dtype.newbyteorder(order)).tobytes())
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {cube.shape[1]}\nlines = {cube.shape[0]}\nbands = {cube.shape[2]}\n"
        f"data type = {_ENVI_TYPES[cube.dtype.str[1:]]}\ninterleave = {interleave}\n"
        f"byte order = {int(order == '>')}\n{extra}"
    )


def write_v73(path: Path, **arrays: object) -> Path:
    """Write a file of version 7.3, whose arrays are stored in MATLAB's order."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = array.T if isinstance(array, np.ndarray) else array
        file.create_group("#refs#")["a"] = np.zeros((3, 3, 3))
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


def write_raster(
    path: Path, cube: np.ndarray, facts: Facts, driver: str = "GTiff", **options: Any
) -> Path:
    """Write a raster with GDAL; one without a place of its own gets pixels of 2 m."""
    height, width, count = cube.shape
    place = {"transform": rasterio.Affine(2, 0, 0, 0, -2, 0)}  # rasterio warns without one
    if facts.transform is not None:
        crs = f"EPSG:{facts.epsg}"
        place = {"transform": rasterio.Affine(*facts.transform), "crs": crs}
    size = {"height": height, "width": width, "count": count, "dtype": cube.dtype}
    nodata = {} if facts.nodata is None else {"nodata": facts.nodata}
    with rasterio.open(path, "w", driver=driver, **size, **place, **nodata, **options) as file:
        file.write(cube.transpose(2, 0, 1))
        for band, wave in enumerate([] if facts.waves is None else facts.waves, start=1):
            file.update_tags(band, wavelength=str(wave), wavelength_units="nm")
    return path


def _arrays(cube: np.ndarray, facts: Facts) -> dict[str, np.ndarray]:
    named = {"c": cube, "wavelength": facts.waves, "gt": facts.labels}
    return {name: array for name, array in named.items() if array is not None}


def _mat5(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    savemat(folder / "cube.mat", _arrays(cube, facts), do_compression=True)
    return folder / "cube.mat"


def _mat5_plain(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    savemat(folder / "cube.mat", _arrays(cube, facts))
    return folder / "cube.mat"


def _mat73(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    return write_v73(folder / "cube.mat", **_arrays(cube, facts))


def _npz(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    np.savez_compressed(folder / "cube.npz", **_arrays(cube, facts))
    return folder / "cube.npz"


def _npy(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    np.save(folder / "cube.npy", np.asfortranarray(cube))
    return folder / "cube.npy"


def _npy_big_endian(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    np.save(folder / "cube.npy", cube.astype(cube.dtype.newbyteorder(">")))
    return folder / "cube.npy"


def _envi(interleave: str, order: str) -> Write:
    def write(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
        extra = ""
        if facts.waves is not None:
            listed = ", ".join(str(wave / 1000) for wave in facts.waves)
            extra += f"wavelength units = Micrometers\nwavelength = {{{listed}}}\n"
        if facts.nodata is not None:
            extra += f"data ignore value = {facts.nodata:g}\n"
        if facts.transform is not None:
            side, _, left, _, _, top = facts.transform
            info = f"UTM, 1.5, 1.5, {left + side / 2}, {top - side / 2}, {side}, {side}, 16, North"
            extra += f"map info = {{{info}, WGS-84, units=Meters}}\n"
        write_envi(folder / "cube.img", cube, interleave, order, extra)
        return folder / "cube.img"

    return write


def _hdf5(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    with h5py.File(folder / "cube.h5", "w") as file:
        group = file.create_group("group")
        for name, array in _arrays(cube, facts).items():
            chunks = tuple(min(4, size) for size in array.shape)
            group.create_dataset(name, data=array, chunks=chunks, compression="gzip")
        if facts.nodata is not None:
            group["c"].attrs["_FillValue"] = np.array([facts.nodata], cube.dtype)
    return folder / "cube.h5"


def _hdf5_bands_first(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    with h5py.File(folder / "cube.nc", "w") as file:
        file["c"] = np.moveaxis(cube, 2, 0)
        file["wavelength"] = np.linspace(400, 900, cube.shape[2])
    return folder / "cube.nc"


def _hdf5_named(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    with h5py.File(folder / "cube.nc", "w") as file:
        file["c"] = np.moveaxis(cube, 2, 1)
        file["c"].dims[1].label = "Bands"
    return folder / "cube.nc"


def _netcdf3(*names: str) -> Write:
    def write(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
        data = cube if names[2] == "z" else np.moveaxis(cube, 2, 0)
        with netcdf_file(folder / "cube.nc", "w") as file:
            for name, size in zip(names, data.shape, strict=True):
                file.createDimension(name, size)
            file.createVariable("c", cube.dtype, names)[:] = data
            if facts.nodata is not None:
                file.variables["c"]._FillValue = np.array(facts.nodata, cube.dtype)[()]
        return folder / "cube.nc"

    return write


def _dataset(cube: np.ndarray, facts: Facts) -> xarray.Dataset:
    attributes = {} if facts.nodata is None else {"_FillValue": cube.dtype.type(facts.nodata)}
    data: dict[str, Any] = {"c": (("band", "y", "x"), np.moveaxis(cube, 2, 0), attributes)}
    coordinates: dict[str, Any] = {}
    if facts.labels is not None:
        data["gt"] = (("y", "x"), facts.labels)
    if facts.waves is not None:
        coordinates["wavelength"] = ("band", facts.waves / 1000, {"units": "um"})
    if facts.transform is not None:
        side, _, left, _, down, top = facts.transform
        coordinates["x"] = left + side * (np.arange(cube.shape[1]) + 0.5)
        coordinates["y"] = top + down * (np.arange(cube.shape[0]) + 0.5)
        wkt = rasterio.crs.CRS.from_epsg(facts.epsg).to_wkt()
        coordinates["spatial_ref"] = ((), 0, {"crs_wkt": wkt})
        data["c"][2]["grid_mapping"] = "spatial_ref"
    dataset = xarray.Dataset(data, coordinates)
    if facts.nodata is None:
        dataset.c.encoding["_FillValue"] = None  # else xarray declares NaN
    return dataset


def _netcdf4(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    _dataset(cube, facts).to_netcdf(folder / "cube.nc", engine="h5netcdf")
    return folder / "cube.nc"


def _zarr(version: int) -> Write:
    def write(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
        _dataset(cube, facts).to_zarr(folder / "cube.zarr", zarr_format=version, consolidated=False)
        return folder / "cube.zarr"

    return write


def _tifffile(**options: Any) -> Write:
    """Return a writer of one page, its bands pixel by pixel or plane by plane, or of `pages`."""
    is_stack = options.pop("pages", False)
    bands_first = is_stack or options.get("planarconfig") == "separate"
    if not is_stack:
        options.setdefault("planarconfig", "contig")

    def write(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
        data = np.moveaxis(cube, 2, 0) if bands_first else cube
        given = {**options}
        if given.pop("predict", False):
            given["predictor"] = cube.dtype.kind != "f"
        tifffile.imwrite(
            folder / "cube.tif", np.ascontiguousarray(data), photometric="minisblack", **given
        )
        return folder / "cube.tif"

    return write


def _gdal(driver: str, suffix: str, **options: Any) -> Write:
    def write(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
        return write_raster(folder / f"cube.{suffix}", cube, facts, driver, **options)

    return write


def _files_of_bands(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    (folder / "cube").mkdir()
    for band in range(cube.shape[2]):
        waves = None if facts.waves is None else facts.waves[[band]]
        path = folder / "cube" / f"B{band + 8}.tif"
        write_raster(path, cube[:, :, [band]], facts._replace(waves=waves))
    return folder / "cube"


def _picture(folder: Path, cube: np.ndarray, facts: Facts, suffix: str) -> Path:
    Image.fromarray(cube).save(folder / f"cube.{suffix}")
    return folder / f"cube.{suffix}"


def _bmp(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    return _picture(folder, cube, facts, "bmp")


def _png(folder: Path, cube: np.ndarray, facts: Facts) -> Path:
    return _picture(folder, cube, facts, "png")


def _says(*names: str) -> frozenset[str]:
    return frozenset(names)


_ARRAYS = _says("waves", "labels")
_RASTER = _says("nodata", "place")
_ALL = _says("waves", "nodata", "place")
_SEPARATE = {"planarconfig": "separate"}
_ENVI = {
    f"envi-{interleave}{order}": Kind(f"ENVI {interleave.upper()}", _envi(interleave, order), _ALL)
    for interleave in ("bsq", "bil", "bip")
    for order in "<>"
}
KINDS: dict[str, Kind] = {
    "mat5": Kind("MATLAB v5", _mat5, _ARRAYS, is_checked=True),
    "mat5-plain": Kind("MATLAB v5", _mat5_plain, _ARRAYS),
    "mat73": Kind("MATLAB v7.3", _mat73, _ARRAYS),
    "npz": Kind("NumPy npz", _npz, _ARRAYS, is_checked=True),
    "npy": Kind("NumPy npy", _npy),
    "npy-big-endian": Kind("NumPy npy", _npy_big_endian),
    **_ENVI,
    "h5": Kind("HDF5", _hdf5, _ARRAYS | _says("nodata"), is_checked=True),
    "h5-bands-first": Kind("HDF5", _hdf5_bands_first),
    "h5-named": Kind("HDF5", _hdf5_named),
    "nc4": Kind("NetCDF-4", _netcdf4, _ALL | _ARRAYS),
    "nc3": Kind("NetCDF-3", _netcdf3("y", "x", "z"), _says("nodata"), types=("int16", "float32")),
    "nc3-bands": Kind("NetCDF-3", _netcdf3("bands", "y", "x"), types=("int16", "float32")),
    "zarr2": Kind("Zarr", _zarr(2), _ALL | _ARRAYS),
    "zarr3": Kind("Zarr", _zarr(3), _ALL | _ARRAYS),
    "tiff": Kind("GeoTIFF", _tifffile()),
    "tiff-planes": Kind("GeoTIFF", _tifffile(**_SEPARATE)),
    "tiff-zip": Kind("GeoTIFF", _tifffile(compression="zlib", predict=True, rowsperstrip=4)),
    "tiff-planes-zip": Kind("GeoTIFF", _tifffile(**_SEPARATE, compression="zlib", rowsperstrip=2)),
    "tiff-tiles": Kind("GeoTIFF", _tifffile(tile=(16, 16), compression="zlib")),
    "tiff-planes-tiles": Kind("GeoTIFF", _tifffile(**_SEPARATE, tile=(16, 16))),
    "tiff-big-endian": Kind("GeoTIFF", _tifffile(byteorder=">", compression="zlib")),
    "tiff-pages": Kind("GeoTIFF", _tifffile(pages=True)),
    "tiff-pages-zip": Kind("GeoTIFF", _tifffile(pages=True, compression="zlib")),
    "bigtiff": Kind("GeoTIFF", _tifffile(bigtiff=True)),
    "geotiff": Kind("GeoTIFF", _gdal("GTiff", "tif"), _ALL),
    "gdal-envi": Kind("ENVI BSQ", _gdal("ENVI", "img"), _RASTER),
    "imagine": Kind("ERDAS Imagine", _gdal("HFA", "img"), _RASTER),
    "esri": Kind("ESRI BIL", _gdal("EHdr", "bil"), _RASTER),
    "pci": Kind("PCI", _gdal("PCIDSK", "pix"), _RASTER),
    "isis": Kind("ISIS cube", _gdal("ISIS3", "cub")),
    "pds4": Kind("PDS4", _gdal("PDS4", "xml")),
    "jpeg2000": Kind(
        "JPEG 2000",
        _gdal("JP2OpenJPEG", "jp2", QUALITY="100", REVERSIBLE="YES"),
        _says("place"),
        types=("int16", "uint8"),
    ),
    "bands": Kind("files of bands", _files_of_bands, _ALL),
    "png": Kind("PNG", _png, types=("uint8",), bands=3),
    "bmp": Kind("BMP", _bmp, types=("uint8",), bands=3),
}


def kinds_that_say(fact: str) -> Iterable[str]:
    """Return the names of the layouts that hold a fact."""
    return [name for name, kind in KINDS.items() if fact in kind.says]
