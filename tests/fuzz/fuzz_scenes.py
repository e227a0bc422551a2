"""Fuzz targets of the scene readers: small scenes of every format, made by code."""

import functools
import io
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "data"))

import products_made
import rasterio
import tifffile
import vectors_made
import xarray
from fuzz_mutator import Sample
from PIL import Image
from scipy.io import netcdf_file, savemat
from whole_cube import load_cube

from hytas.cli.inspect_values import describe_labels
from hytas.data import load_scene, open_cube, open_file
from hytas.errors import InputError

_HEIGHT, _WIDTH, _BANDS = 7, 6, 5


def look(path: Path) -> None:
    """Do what `hytas inspect` and `hytas classify` do with a scene."""
    str(open_file(path).variables)
    with suppress(InputError):
        load_scene(path)
    describe_labels(path)
    with suppress(InputError):
        load_cube(path)
    cube = open_cube(path)
    height, width, _ = cube.shape
    cube.read(0, min(3, height), 0, min(3, width))
    cube.read(height - 1, height, 0, width)


def _arrays() -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(0)
    cube = generator.integers(0, 4000, (_HEIGHT, _WIDTH, _BANDS)).astype(np.int16)
    labels = generator.integers(0, 3, (_HEIGHT, _WIDTH)).astype(np.uint8)
    return cube, labels, np.linspace(400, 900, _BANDS)


def _written(name: str, write: Callable[[Path], object]) -> Sample:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return {name: (Path(folder) / name).read_bytes()}


def matlab_v5() -> list[Sample]:
    """Uncompressed files: `compress_elements` packs their elements after they were damaged.

    Their header's text, 116 bytes, holds the time of writing; the same seed gives the same bytes.
    """
    cube, labels, waves = _arrays()
    variables = [
        {"cube": cube, "gt": labels, "wavelengths": waves},
        {"s": {"a": 1, "b": "text"}, "cube": cube.astype(float), "k": np.array([[1, "x"]], object)},
        {"cube": cube + 1j, "gt": labels, "t": "text"},
    ]
    files = [_written("scene.mat", lambda path, v=v: savemat(path, v)) for v in variables]
    text = b"MATLAB 5.0 MAT-file".ljust(116)
    return [{"scene.mat": text + file["scene.mat"][116:]} for file in files]


def compress_elements(sample: Sample, rng: Random) -> Sample:
    """Pack the elements of some files, as MATLAB does; what fits no element is packed as one."""
    if rng.random() < 0.4:
        return sample
    data = sample["scene.mat"]
    packed, at = [data[:128]], 128
    while at + 8 <= len(data):
        size = struct.unpack("<I", data[at + 4 : at + 8])[0]
        size = size if at + 8 + size <= len(data) else len(data) - at - 8
        element = zlib.compress(data[at : at + 8 + size])
        packed += [struct.pack("<II", 15, len(element)), element]
        at += 8 + size
    return {"scene.mat": b"".join(packed)}


def matlab_v4() -> list[Sample]:
    """Files of version 4, which have no header of their own."""
    labels = _arrays()[1]
    write = {"gt": labels, "x": labels.astype(float), "text": "abc"}
    return [_written("scene.mat", lambda path: savemat(path, write, format="4"))]


def matlab_v73() -> list[Sample]:
    """HDF5 behind MATLAB's header of 512 bytes, whole and in compressed chunks."""
    cube, labels, waves = _arrays()

    def write(path: Path, **options: Any) -> None:
        with h5py.File(path, "w", userblock_size=512) as file:
            stored = file.create_dataset("cube", data=cube.T, **options)
            stored.attrs["MATLAB_class"] = np.bytes_("int16")
            file["gt"], file["wavelengths"] = labels.T, waves
        with path.open("r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")

    packed = {"chunks": (2, 3, 3), "compression": "gzip"}
    return [_written("scene.mat", lambda path, o=o: write(path, **o)) for o in ({}, packed)]


def hdf5() -> list[Sample]:
    """Groups, attributes, dimension scales, and the newest layout of the library."""
    cube, labels, waves = _arrays()

    def write(path: Path, **options: Any) -> None:
        with h5py.File(path, "w", **options) as file:
            packed = {"chunks": (3, 3, 3), "compression": "gzip", "shuffle": True}
            stored = file.create_dataset("a/cube", data=cube, fletcher32=True, **packed)
            stored.attrs["_FillValue"] = -9999
            stored.attrs["grid_mapping"] = "crs"
            file["wavelength"], file["a/gt"] = waves, labels
            file["wavelength"].make_scale("wavelength")
            stored.dims[2].attach_scale(file["wavelength"])
            crs = file.create_dataset("crs", data=0)
            crs.attrs["crs_wkt"] = 'GEOGCS["WGS 84",DATUM["WGS_1984"]]'
            crs.attrs["GeoTransform"] = "0 1 0 0 0 -1"
            file["text"] = "some text"

    each = ({}, {"libver": "latest"})
    return [_written("scene.h5", lambda path, o=o: write(path, **o)) for o in each]


def products() -> list[Sample]:
    """Products of missions in HDF5."""
    return [
        _written("scene.h5", products_made.emit),
        _written("scene.h5", products_made.prisma),
        _written("scene.h5", lambda path: products_made.prisma(path, "L1")),
        _written("scene.h5", products_made.pace),
        _written("scene.h5", lambda path: products_made.pace(path, "L1B")),
        _written("scene.h5", products_made.neon),
    ]


def product_metadata() -> list[Sample]:
    """Products of an image and its metadata, which are opened."""
    samples = []
    for make in (products_made.enmap, products_made.desis):
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder))
            files = sorted(Path(folder).iterdir())  # the metadata come first
            samples.append({file.name: file.read_bytes() for file in files})
    return samples


def vector_labels() -> list[Sample]:
    """Files of polygons and points, each with the scene that they label."""
    samples = []
    fields = vectors_made.FIELDS
    regions = [("soil", "1, 2, 3", [(0, 0), (5, 5)]), ("water", "3, 2, 1", [(7, 7)])]
    for name, write in (
        ("a.geojson", lambda path: vectors_made.geojson(path, fields)),
        ("a.gpkg", lambda path: vectors_made.vector_file(path, fields)),
        ("a.shp", lambda path: vectors_made.vector_file(path, fields)),
        ("a.fgb", lambda path: vectors_made.vector_file(path, fields)),
        ("a.kml", lambda path: vectors_made.vector_file(path, fields)),
        ("a.txt", lambda path: vectors_made.roi(path, regions)),
        ("a.csv", lambda path: path.write_text("x,y,class\n600015,5399985,a\n600035,5399985,b\n")),
    ):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / name)
            vectors_made.scene(Path(folder))
            # The named file comes first.
            files = sorted(Path(folder).iterdir(), key=lambda file: (file.name != name, file.name))
            samples.append({file.name: file.read_bytes() for file in files})
    return samples


def look_at_vector_labels(path: Path) -> None:
    """Label the scene that lies beside a file of polygons or points."""
    field = "crop" if path.suffix in (".geojson", ".gpkg", ".shp", ".fgb") else None
    load_scene(path.with_name("scene.hdr"), path, class_field=field)


def label_pictures() -> list[Sample]:
    """PNG files of colours, of a palette and of numbers, each with the scene that they label."""
    labels = vectors_made.fields_map().astype(np.uint8)
    table = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 255]], np.uint8)
    coloured = Image.fromarray(table[labels])
    samples = []
    for picture in (coloured, coloured.quantize(), Image.fromarray(labels)):
        stream = io.BytesIO()
        picture.save(stream, "PNG")
        with tempfile.TemporaryDirectory() as folder:
            header = vectors_made.scene(Path(folder))
            scene = {each.name: each.read_bytes() for each in (header, header.with_suffix(".img"))}
        samples.append({"a.png": stream.getvalue(), **scene})
    return samples


def look_at_picture(path: Path) -> None:
    """Label the scene that lies beside a picture."""
    load_scene(path.with_name("scene.hdr"), path)


def netcdf3() -> list[Sample]:
    """Both versions of the classic format, one with a dimension of records."""
    cube, labels, waves = _arrays()

    def write(path: Path, version: int, height: int | None) -> None:
        with netcdf_file(path, "w", version=version) as file:
            for name, size in zip("yxb", (height, _WIDTH, _BANDS), strict=True):
                file.createDimension(name, size)
            stored = file.createVariable("cube", ">i2", tuple("yxb"))
            stored[:] = cube
            stored._FillValue = -9999
            file.createVariable("wavelength", ">f8", ("b",))[:] = waves
            file.createVariable("gt", "b", ("y", "x"))[:] = labels

    each = ((1, _HEIGHT), (2, _HEIGHT), (1, None))
    return [_written("scene.nc", lambda path, e=e: write(path, *e)) for e in each]


def envi() -> list[Sample]:
    """A header with everything that is read, and its data."""
    cube = _arrays()[0]
    header = (
        f"ENVI\ndescription = {{a scene}}\nsamples = {_WIDTH}\nlines = {_HEIGHT}\n"
        f"bands = {_BANDS}\nheader offset = 0\ndata type = 2\ninterleave = bip\nbyte order = 0\n"
        "wavelength units = nm\nwavelength = {400, 500, 600, 700,\n 800}\nbbl = {1, 1, 0, 1, 1}\n"
        "data ignore value = -9999\nclass names = {Unclassified, Grass, Soil}\n"
        "class lookup = {0, 0, 0, 0, 255, 0, 99, 66, 33}\n"
        "map info = {UTM, 1, 1, 500000, 5000000, 30, 30, 33, North, WGS-84, rotation=5}\n"
        'coordinate system string = {PROJCS["WGS_1984_UTM_Zone_33N",GEOGCS["GCS_WGS_1984"]]}\n'
    )
    whole = {"scene.hdr": header.encode(), "scene.img": cube.tobytes()}
    return [whole, {**whole, "scene.hdr": header.replace("bip", "bsq").encode()}]


def geotiff() -> list[Sample]:
    """Strips, tiles, pages of one band, both byte orders, BigTIFF, and GeoTIFF's tags."""
    cube, labels, _ = _arrays()
    xml = '<GDALMetadata><Item name="wavelength" sample="0">400</Item></GDALMetadata>'
    tags = [
        (33550, 12, 3, (30.0, 30.0, 0.0), True),
        (33922, 12, 6, (0.0, 0.0, 0.0, 5e5, 5e6, 0.0), True),
        (34735, 3, 8, (1, 1, 0, 1, 3072, 0, 1, 32633), True),
        (42112, 2, len(xml) + 1, xml, True),
        (42113, 2, 6, "-9999", True),
    ]
    each: list[tuple[Any, dict[str, Any]]] = [
        (cube, {"planarconfig": "contig", "photometric": "minisblack", "extratags": tags}),
        (cube, {"planarconfig": "contig", "photometric": "minisblack", "compression": "zlib"}),
        (np.moveaxis(cube, 2, 0), {"photometric": "minisblack", "byteorder": ">"}),
        (np.moveaxis(cube, 2, 0), {"planarconfig": "separate", "photometric": "minisblack"}),
        (np.tile(cube, (3, 3, 1)), {"tile": (16, 16), "bigtiff": True, "compression": "zlib"}),
        (labels, {}),
        (np.moveaxis(cube, 2, 0), {"imagej": True}),
    ]
    return [
        _written("scene.tif", lambda path, a=a, o=o: tifffile.imwrite(path, a, **o))
        for a, o in each
    ]


@functools.cache  # GDAL writes times and names of folders into some
def rasters() -> list[Sample]:
    """Other rasters of GDAL, with all files that belong to them."""
    cube = _arrays()[0]
    facts = {"height": _HEIGHT, "width": _WIDTH, "count": _BANDS, "dtype": "int16"}
    place = {"transform": rasterio.Affine(30, 0, 5e5, 0, -30, 5e6), "crs": "EPSG:32633"}
    samples = []
    for name, driver in (
        *(("s.img", "HFA"), ("s.bil", "EHdr"), ("s.pix", "PCIDSK"), ("s.cub", "ISIS3")),
        *(("s.xml", "PDS4"), ("s.jp2", "JP2OpenJPEG"), ("s.tif", "GTiff")),
    ):
        with tempfile.TemporaryDirectory() as folder:
            options = {"compress": "zstd", "tiled": True, "blockxsize": 16, "blockysize": 16}
            more = options if driver == "GTiff" else {}
            more |= {"driver": driver, **facts, **place}
            with rasterio.open(Path(folder) / name, "w", **more) as file:
                file.write(cube.transpose(2, 0, 1))
            files = sorted(Path(folder).iterdir(), key=lambda each: each.name != name)
            samples.append({file.name: file.read_bytes() for file in files})
    return samples


def files_of_bands() -> list[Sample]:
    """GeoTIFFs of one band each, which are opened as a folder."""
    cube = _arrays()[0]
    facts = {"height": _HEIGHT, "width": _WIDTH, "count": 1, "dtype": "int16"}
    facts |= {"driver": "GTiff", "transform": rasterio.Affine(30, 0, 5e5, 0, -30, 5e6)}
    sample = {}
    with tempfile.TemporaryDirectory() as folder:
        for band in range(3):
            path = Path(folder) / f"b{band}.tif"
            with rasterio.open(path, "w", **facts) as file:
                file.write(cube[:, :, band], 1)
                file.update_tags(1, wavelength=str(400 + band), bbl="1")
            sample[path.name] = path.read_bytes()
    return [sample]


def look_at_folder(path: Path) -> None:
    """Do the same with the folder of a file."""
    look(path.parent)


def stores() -> list[Sample]:
    """Zarr stores of both versions; the names of files have + for the slash."""
    cube, labels, waves = _arrays()
    data = xarray.Dataset(
        {"cube": (("y", "x", "band"), cube), "gt": (("y", "x"), labels)},
        {"wavelength": ("band", waves, {"units": "nm"})},
    )
    samples = []
    for version in (2, 3):
        with tempfile.TemporaryDirectory() as folder:
            data.to_zarr(folder, zarr_format=version, consolidated=False)
            files = sorted(each for each in Path(folder).rglob("*") if each.is_file())
            names = (each.relative_to(folder).as_posix().replace("/", "+") for each in files)
            pairs = zip(names, files, strict=True)
            samples.append({name: each.read_bytes() for name, each in pairs})
    return samples


def look_at_store(path: Path) -> None:
    """Unpack the files of a store beside each other, and do the same with it."""
    with tempfile.TemporaryDirectory() as folder:
        for file in path.parent.iterdir():
            target = Path(folder, *file.name.split("+"))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
        look(Path(folder))


def netcdf4() -> list[Sample]:
    """Dimensions, coordinates, packing and a grid mapping, as xarray writes them."""
    cube, labels, waves = _arrays()
    packing = {"scale_factor": 0.1, "add_offset": 1.0, "_FillValue": np.int16(-9999)}
    data = xarray.Dataset(
        {
            "cube": (("band", "y", "x"), cube.transpose(2, 0, 1), {"grid_mapping": "crs"}),
            "packed": (("y", "x", "band"), cube, packing),
            "gt": (("y", "x"), labels),
            "crs": ((), 0, {"crs_wkt": products_made.WGS84, "GeoTransform": "0 1 0 0 0 -1"}),
        },
        {
            "x": np.arange(_WIDTH) + 0.5,
            "y": 9.5 - np.arange(_HEIGHT),
            "wavelength": ("band", waves),
        },
    )
    one, packed = data.drop_vars("packed"), data.drop_vars("cube")
    return [
        _written("scene.nc", lambda path, d=d: d.to_netcdf(path, engine="h5netcdf"))
        for d in (one, packed)
    ]


def npy() -> list[Sample]:
    """C and Fortran order, and both versions of the header."""
    cube = _arrays()[0]
    fortran = np.asfortranarray(cube.astype(">f4"))

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.lib.format.write_array(file, cube, version=(2, 0))

    made = [_written("scene.npy", lambda path, a=a: np.save(path, a)) for a in (cube, fortran)]
    return [*made, _written("scene.npy", write)]


def npz() -> list[Sample]:
    """The members of an archive as files: `zip_members` packs them after they were damaged."""
    cube, labels, waves = _arrays()
    members = {"cube.npy": cube, "gt.npy": labels, "wavelengths.npy": waves}
    sample = {}
    for name, array in members.items():
        stream = io.BytesIO()
        np.save(stream, array)
        sample[name] = stream.getvalue()
    return [sample]


def zip_members(sample: Sample, rng: Random) -> Sample:
    """Make a .npz of the members, and damage some of these archives, too."""
    stream = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in sample.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    made = {"scene.npz": stream.getvalue()}
    if rng.random() < 0.5:
        from fuzz_mutator import damaged

        return damaged(made, [made], rng)
    return made
