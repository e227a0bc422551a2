"""Fuzz targets of the scene readers: small scenes of every format, made by code."""

import functools
import io
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "data"))

import products_made
import vectors_made
from fuzz_mutator import Sample
from PIL import Image
from reader_files import KINDS, TRANSFORM, Facts
from whole_cube import load_cube

from hytas.cli.inspect_values import describe_labels
from hytas.data import load_scene, open_cube, open_file
from hytas.errors import InputError


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


def _written(name: str, write: Callable[[Path], object]) -> Sample:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return {name: (Path(folder) / name).read_bytes()}


@functools.cache  # some libraries write times and names of folders into their files
def layout(kind: str) -> list[Sample]:
    """Return the files of a cube in a layout of `reader_files`; in names + stands for the slash."""
    generator = np.random.default_rng(0)
    count, dtype = KINDS[kind].bands or 5, KINDS[kind].types[0]
    cube = generator.integers(0, 120, (7, 6, count)).astype(dtype)
    labels = generator.integers(0, 3, (7, 6)).astype(np.uint8)
    facts = Facts(np.linspace(400, 900, count), 100, TRANSFORM, 32633, labels)
    with tempfile.TemporaryDirectory() as folder:
        opened = KINDS[kind].write(Path(folder), cube, facts)
        files = [each for each in Path(folder).rglob("*") if each.is_file()]
        files.sort(key=lambda file: (file != opened, file))
        names = (file.relative_to(folder).as_posix().replace("/", "+") for file in files)
        return [{name: file.read_bytes() for name, file in zip(names, files, strict=True)}]


def look_at_layout(path: Path) -> None:
    """Open a file, or unpack the files of a folder and open that."""
    if "+" not in path.name:
        return look(path)
    with tempfile.TemporaryDirectory() as folder:
        for file in path.parent.iterdir():
            target = Path(folder, *file.name.split("+"))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
        look(Path(folder, path.name.split("+")[0]))


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
