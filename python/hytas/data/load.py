"""Read scenes and cubes from files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import find
from hytas.data.contents import Array, Contents, Variable
from hytas.data.cube_reader import band_axis, valid_pixels
from hytas.data.datasets import SCENES, locate
from hytas.data.fill import check_mark
from hytas.data.geo import Geo
from hytas.data.grid import Grid
from hytas.data.known import CLASS_NAMES
from hytas.data.labels.align import is_placed
from hytas.data.labels.formats import format_of
from hytas.data.labels.names import GivenNames, read_class_names, renamed
from hytas.data.labels.options import Given, LabelOptions, parse_unlabelled
from hytas.data.labels.read import (
    LabelMaps,
    labels_on_grid,
    of_rasters,
    of_shapes,
    open_labels,
    refuse_options_of_shapes,
)
from hytas.data.limits import IN_MEMORY_BYTES
from hytas.data.location import Location
from hytas.data.readers import open_file
from hytas.data.scene import Scene, check_cube, numbered, scene_from_arrays, wavelengths_of
from hytas.data.synthetic import synthetic_scene
from hytas.errors import InputError


@dataclass(frozen=True, eq=False)
class Cube:
    """A cube without ground truth.

    Attributes:
        cube: (H, W, B) in the sensor's own type, native byte order; may be a memory map.
        wavelengths: (B,) band centres in nm, or None.
        valid: (H, W), False where a band is NaN or infinite.
        name: of the file, without its suffix.
        nodata: the no-data value that the file names, or None.
        meta: other facts of the file ("class_names", "bad_bands", ...).
        notes: one-line remarks on corrections.
    """

    cube: Array
    wavelengths: npt.NDArray[np.float64] | None
    valid: npt.NDArray[np.bool_]
    name: str
    nodata: float | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Use:
    """How the user wants a scene read: arguments of `load_scene`."""

    bands: str | None = None
    nodata: float | None = None
    labels: LabelOptions = field(default_factory=LabelOptions)

    def mark(self, own: float | None, cube: Array) -> float | None:
        """Return the no-data value of a cube: the user's, or `own`, which the file names.

        Raises:
            InputError: the cube cannot hold the user's value.
        """
        return own if self.nodata is None else check_mark(self.nodata, cube.dtype)


def load_scene(
    data: str | Path,
    labels: str | Path | None = None,
    *,
    cube_key: str | None = None,
    labels_key: str | None = None,
    data_dir: str | Path | None = None,
    bands: str | None = None,
    nodata: float | None = None,
    unlabelled: Given | None = None,
    zero_is_a_class: bool = False,
    class_field: str | None = None,
    labels_crs: str | None = None,
    class_names: GivenNames | None = None,
) -> Scene:
    """Read a scene: one file with cube and labels, two files, or one by name.

    Args:
        data: the file with the cube; "synthetic" is the embedded demonstration scene, and
            "indian_pines", "salinas", "houston2013", "pavia_u" and "ksc" are downloaded.
        labels: the file with the label map (or maps), if it is not `data`.
        cube_key: the cube's name in its file; not needed if there is one cube.
        labels_key: the map's name, or two names "training,test".
        data_dir: a folder with the files of a scene known by name, which is then not downloaded.
        bands: a selection that `parse_bands` reads; labelled pixels must be finite in these bands.
            None means all bands except those that the file marks as bad.
        nodata: the no-data value; None uses the one that the file names.
        unlabelled: what marks unlabelled pixels, beside 0: a number; or in a picture, instead of
            black, a colour such as "#ffffff". NaN is always unlabelled.
        zero_is_a_class: whether 0 is a class, as in a map of 0 and 1. The scene's ids are then one
            more than the file's labels, because id 0 means unlabelled.
        class_field: the field of the classes, if `labels` is a file of polygons or points.
        labels_crs: the coordinate system of these, if their file names none.
        class_names: names of classes by their number in the file, or by the name that the file
            gives: a mapping, a text such as "1=corn,2=soy", or a CSV file of numbers and names.

    Raises:
        InputError: the input is not a scene; the message is one line.
    """
    mark = parse_unlabelled(unlabelled)
    names = read_class_names(class_names)
    options = LabelOptions(labels_key, mark, zero_is_a_class, class_field, labels_crs, names)
    use = Use(bands, nodata, options)
    return _scene(data, labels, cube_key, data_dir, use)


def _scene(
    data: str | Path,
    labels: str | Path | None,
    cube_key: str | None,
    data_dir: str | Path | None,
    use: Use,
) -> Scene:
    """Read a scene by the name of its file, or one that is known by name."""
    options = use.labels
    if str(data) != "synthetic" and str(data) not in SCENES:
        if data_dir is not None:
            raise InputError(
                "data_dir", data_dir, f"is only for the scenes {', '.join(SCENES)}, not {data}"
            )
        others = () if labels is None else (labels,)
        return _read(data, others, cube_key, use)
    given = {
        "labels": labels,
        "cube_key": cube_key,
        "labels_key": options.key,
        "class_field": options.class_field,
        "labels_crs": options.crs,
        "unlabelled": options.unlabelled.given,
        "zero_is_a_class": options.zero_is_a_class or None,
    }
    if str(data) == "synthetic":
        given["data_dir"] = data_dir
    _refuse_companions(str(data), given)
    if str(data) != "synthetic":
        return _named(str(data), data_dir, use)
    if use.nodata is not None:
        raise InputError("nodata", f"{use.nodata:g}", "the synthetic scene has data everywhere")
    return _with_names(synthetic_scene(), options)


def _with_names(scene: Scene, options: LabelOptions) -> Scene:
    """Return a scene that is known by name with the user's names of classes."""
    own = dict(zip(scene.class_ids, scene.class_names, strict=True))
    names, notes = renamed(scene.class_ids, own, options.names)
    found = tuple(names[number] for number in scene.class_ids)
    return replace(scene, class_names=numbered(found), notes=(*scene.notes, *notes))


def _read(data: str | Path, labels: Sequence[str | Path], cube_key: str | None, use: Use) -> Scene:
    """Read a scene from one file, or from a file of the cube and one or two files of labels."""
    contents = open_file(data, "data")
    shapes = len(labels) == 1 and format_of(Path(labels[0])) is not None
    if not shapes:
        refuse_options_of_shapes(use.labels, str(labels[0]) if labels else None)
    others = [] if shapes else [open_labels(path) for path in labels] or [contents]
    maps_near = others[0].variables if others else ()
    variable = find.find_cube(contents, cube_key, "data", maps_near)
    grid = grid_of(contents, variable, variable.shape)
    if shapes:
        found = of_shapes(Path(labels[0]), use.labels, grid)
    else:
        found = _maps(others, contents, variable, grid, use)
    maps = found.maps
    cube, notes = _turn(find.load(variable, contents, "data"), maps[0][1].shape, str(variable))
    if cube.nbytes <= IN_MEMORY_BYTES:
        # Store the bands of a pixel together, so that a patch is a few long reads. MATLAB stores
        # band by band.
        cube = np.ascontiguousarray(cube)
    sources = [contents.path, *(Path(path) for path in labels)]
    scene = scene_from_arrays(
        cube,
        maps[0][1] if len(maps) == 1 else None,
        train=maps[0][1] if len(maps) == 2 else None,
        test=maps[1][1] if len(maps) == 2 else None,
        name=contents.path.stem,
        wavelengths=contents.meta.get("wavelengths"),
        class_names=found.names or None,
        sources=tuple(dict.fromkeys(str(path) for path in sources)),
        notes=[*contents.meta.get("notes", ()), *notes, *found.notes],
        class_colours=found.colours,
        map_names=tuple(name for name, _ in maps),
        nodata=use.mark(variable.nodata, cube),
        bad_bands=contents.meta.get("bad_bands", ()),
        bands=use.bands,
        fwhm=contents.meta.get("fwhm"),
    )
    return scene if found.polygons is None else scene.with_polygons(found.polygons)


def _maps(
    others: Sequence[Contents], contents: Contents, variable: Variable, grid: Grid, use: Use
) -> LabelMaps:
    """Return the label maps of other files, or of the file of the cube."""
    if others[0] is not contents:
        own = grid if is_placed(grid) else None
        return of_rasters(others, use.labels, variable.shape, own)
    if use.labels.key is None and not find.of_map_shape(contents.variables):
        raise InputError(
            "data", str(contents.path), "holds no label map", "name its file with `labels`"
        )
    return of_rasters(others, use.labels, variable.shape, None, argument="data")


def grid_of(scene: Contents, cube: Variable, shape: Sequence[int]) -> Grid:
    """Return the pixels of a cube (H, W, B), and where they lie."""
    return placed(cube.geo, scene.meta.get("location"), shape)


def placed(geo: Geo | None, location: Location | None, shape: Sequence[int]) -> Grid:
    """Return the pixels (H, W) of something, and where they lie."""
    if geo is None:
        return Grid(None, None, shape[0], shape[1], location)
    crs = f"EPSG:{geo.epsg}" if geo.epsg is not None else geo.wkt
    return Grid(geo.transform, crs, shape[0], shape[1], location)


def _refuse_companions(data: str, given: Mapping[str, Any]) -> None:
    """Refuse arguments for files together with the name of a scene."""
    for argument, value in given.items():
        if value is not None:
            raise InputError(argument, value, f"the scene {data!r} has its own")


def _named(name: str, data_dir: str | Path | None, use: Use) -> Scene:
    paths = locate(name, data_dir)
    unnamed_yet = replace(use, labels=replace(use.labels, names={}))
    scene = replace(_read(paths[0], paths[1:], None, unnamed_yet), name=name)
    if scene.classes != len(CLASS_NAMES[name]):
        raise InputError(
            f"data: {paths[-1]} holds {scene.classes} classes, {name} has {len(CLASS_NAMES[name])}"
        )
    counts = None if scene.train is not None else SCENES[name].train_counts
    unnamed = all(
        text == f"class {i}" for text, i in zip(scene.class_names, scene.class_ids, strict=True)
    )
    if scene.train is None and unnamed:
        scene = replace(scene, class_names=CLASS_NAMES[name])
    return _with_names(replace(scene, train_counts=counts), use.labels)


def load_cube(path: str | Path, cube_key: str | None = None, bands: int | None = None) -> Cube:
    """Read a whole cube, with or without labels (`open_cube` reads it by windows).

    Args:
        path: the file.
        cube_key: the cube's name in the file; not needed if there is one cube.
        bands: the expected number of bands, which finds the band axis of a (B, H, W) array.

    Raises:
        InputError: the file is missing or broken, holds no cube, or several cubes without a key.
    """
    contents = open_file(path, "scene")
    variable = find.find_cube(contents, cube_key, "scene")
    cube = find.load(variable, contents, "scene")
    cube = np.moveaxis(cube, band_axis(cube.shape, bands), 2)
    check_cube(cube, "scene")
    valid = valid_pixels(cube, variable.nodata)
    bad = int(valid.size - valid.sum())
    masked = (f"{bad} pixels with NaN, infinite or no-data values masked",) if bad else ()
    notes = (*contents.meta.get("notes", ()), *masked)
    wavelengths = wavelengths_of(contents.meta.get("wavelengths"), cube.shape[2])
    name, mark = contents.path.stem, variable.nodata
    return Cube(cube, wavelengths, valid, name, mark, contents.meta, notes)


def load_maps(
    path: str | Path,
    labels_key: str | None = None,
    shape: tuple[int, ...] | None = None,
    unlabelled: Given | None = None,
    zero_is_a_class: bool = False,
    *,
    grid: Grid | None = None,
    class_field: str | None = None,
    labels_crs: str | None = None,
    known: Mapping[str, int] | None = None,
) -> list[tuple[str, npt.NDArray[np.int64]]]:
    """Read the label map, or the training and the test map, of a file, with the file's ids.

    Args:
        path: the file.
        labels_key: the map's name, or two names "training,test".
        shape: of the cube, to find the map that fits; None accepts any map.
        grid: the pixels of the cube; the maps are then read by `labels_on_grid`.
        unlabelled, zero_is_a_class, class_field, labels_crs, known: as for `labels_on_grid`.
    """
    if grid is not None:
        found = labels_on_grid(
            path,
            grid,
            labels_key=labels_key,
            unlabelled=unlabelled,
            zero_is_a_class=zero_is_a_class,
            class_field=class_field,
            labels_crs=labels_crs,
            known=known,
        )
        return list(found.maps)
    mark = parse_unlabelled(unlabelled)
    options = LabelOptions(labels_key, mark, zero_is_a_class, class_field, labels_crs)
    refuse_options_of_shapes(options, str(path))
    return list(of_rasters([open_labels(path)], options, shape, None).maps)


def _turn(cube: Array, shape: tuple[int, ...], name: str) -> tuple[Array, list[str]]:
    """Bring the axes of a cube into the order (H, W, B) that fits the shape of its label map."""
    for axes, source in (((0, 1), 2), ((1, 2), 0), ((0, 2), 1)):
        if shape == (cube.shape[axes[0]], cube.shape[axes[1]]):
            note = f"{name} has its bands on axis {source + 1}: turned to height, width, bands"
            return np.moveaxis(cube, source, 2), [] if source == 2 else [note]
    return cube, []
