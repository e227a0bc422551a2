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
from hytas.data.drawn.burn import Grid
from hytas.data.drawn.labels import drawn_labels
from hytas.data.drawn.shapes import Reading
from hytas.data.drawn.table import format_of
from hytas.data.fill import check_mark
from hytas.data.known import CLASS_NAMES
from hytas.data.labels import check_map
from hytas.data.limits import IN_MEMORY_BYTES
from hytas.data.readers import open_file
from hytas.data.scene import Scene, check_cube, scene_from_arrays, wavelengths_of
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
    unlabelled: int | None = None
    zero_is_a_class: bool = False
    class_field: str | None = None
    labels_crs: str | None = None

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
    unlabelled: int | None = None,
    zero_is_a_class: bool = False,
    class_field: str | None = None,
    labels_crs: str | None = None,
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
        unlabelled: another label of unlabelled pixels, beside 0.
        zero_is_a_class: whether 0 is a class, as in a map of 0 and 1. The scene's ids are then one
            more than the file's labels, because id 0 means unlabelled.
        class_field: the field of the classes, if `labels` is a file of polygons or points.
        labels_crs: the coordinate system of these, if their file names none.

    Raises:
        InputError: the input is not a scene; the message is one line.
    """
    use = Use(bands, nodata, unlabelled, zero_is_a_class, class_field, labels_crs)
    if str(data) != "synthetic" and str(data) not in SCENES:
        if data_dir is not None:
            raise InputError(f"data dir: is only for the scenes {', '.join(SCENES)}, not {data}")
        others = () if labels is None else (labels,)
        return _read(data, others, (cube_key, labels_key), use)
    given = {"labels": labels, "cube key": cube_key, "labels key": labels_key}
    given |= {"class field": class_field, "labels crs": labels_crs}
    if str(data) == "synthetic":
        given["data dir"] = data_dir
    zero = {"zero is a class": zero_is_a_class or None}
    _refuse_companions(str(data), {**given, "unlabelled": unlabelled, **zero})
    if str(data) != "synthetic":
        return _named(str(data), data_dir, use)
    if nodata is not None:
        raise InputError(f"nodata: {nodata:g} given, but the synthetic scene has data everywhere")
    return synthetic_scene()


def _read(
    data: str | Path,
    labels: Sequence[str | Path],
    keys: tuple[str | None, str | None],
    use: Use,
) -> Scene:
    """Read a scene from one file, or from a file of the cube and one or two files of labels."""
    cube_key, labels_key = keys
    contents = open_file(data, "data")
    drawn = len(labels) == 1 and format_of(Path(labels[0])) is not None
    _refuse_without_shapes(use, labels, drawn)
    others = [] if drawn else [open_file(path, "labels") for path in labels] or [contents]
    argument = "labels" if labels else "data"
    maps_near = others[0].variables if others else ()
    variable = find.find_cube(contents, cube_key, "data", maps_near)
    if drawn:
        others, use = [_drawn(labels[0], labels_key, contents, variable, use)], _plain(use)
        labels_key = None
    if not labels and labels_key is None and not find.of_map_shape(contents.variables):
        raise InputError(f"data: {contents.path} holds no label map; name its file with --labels")
    maps = [
        found
        for other in others
        for found in find.find_maps(
            other, labels_key, variable.shape, argument, use.unlabelled, use.zero_is_a_class
        )
    ]
    cube, notes = _turn(find.load(variable, contents, "data"), maps[0][1].shape, str(variable))
    if cube.nbytes <= IN_MEMORY_BYTES:
        # Store the bands of a pixel together, so that a patch is a few long reads. MATLAB stores
        # band by band.
        cube = np.ascontiguousarray(cube)
    sources = tuple(dict.fromkeys(str(item.path) for item in (contents, *others)))
    scene = scene_from_arrays(
        cube,
        maps[0][1] if len(maps) == 1 else None,
        train=maps[0][1] if len(maps) == 2 else None,
        test=maps[1][1] if len(maps) == 2 else None,
        name=contents.path.stem,
        wavelengths=contents.meta.get("wavelengths"),
        class_names=_class_names(others[0], maps, use),
        sources=sources,
        notes=[*contents.meta.get("notes", ()), *notes, *_zero_note(use), *_remarks(others[0])],
        class_colours=_by_id(others[0].meta.get("class_colours"), use),
        map_names=tuple(name for name, _ in maps),
        nodata=use.mark(variable.nodata, cube),
        bad_bands=contents.meta.get("bad_bands", ()),
        bands=use.bands,
        fwhm=contents.meta.get("fwhm"),
    )
    polygons = others[0].meta.get("polygons")
    return scene if polygons is None else scene.with_polygons(polygons)


def _refuse_without_shapes(use: Use, labels: Sequence[str | Path], drawn: bool) -> None:
    given = {"class field": use.class_field, "labels crs": use.labels_crs}
    for argument, value in given.items():
        if value is not None and not drawn:
            where = labels[0] if labels else "no file of labels"
            raise InputError(
                f"{argument}: {value} is for polygons and points (GeoJSON, GeoPackage, Shapefile, "
                f"CSV, ENVI ROI), and --labels names {where}"
            )


def _drawn(
    path: str | Path, layer: str | None, scene: Contents, cube: Variable, use: Use
) -> Contents:
    """The label map of a file of shapes."""
    return drawn_labels(
        Path(path),
        Reading(use.class_field, use.labels_crs, layer),
        grid_of(scene, cube, cube.shape),
        unlabelled=use.unlabelled,
        zero_is_a_class=use.zero_is_a_class,
    )


def grid_of(scene: Contents, cube: Variable, shape: Sequence[int]) -> Grid:
    """Return the pixels of a cube (H, W, B), and where they lie."""
    return Grid(shape[0], shape[1], cube.geo, scene.meta.get("location"))


def _plain(use: Use) -> Use:
    """The use of a map that was drawn: what the user says of labels is in it already."""
    return replace(use, unlabelled=None, zero_is_a_class=False)


def _remarks(labels: Contents) -> tuple[str, ...]:
    return tuple(labels.meta["notes"]) if "polygons" in labels.meta else ()


def _by_id(facts: Mapping[int, Any] | None, use: Use) -> Mapping[int, Any] | None:
    """Return facts that a file gives for each label, with the scene's ids as keys."""
    if facts is None or not use.zero_is_a_class:
        return facts
    return {label + 1: fact for label, fact in facts.items()}


def _class_names(
    contents: Contents, maps: Sequence[tuple[str, Array]], use: Use
) -> Mapping[int, str] | None:
    names: Mapping[int, str] | None = _by_id(contents.meta.get("class_names"), use)
    if not use.zero_is_a_class:
        return names
    ids = (int(number) for _, values in maps for number in np.unique(values))
    return {number: (names or {}).get(number) or f"label {number - 1}" for number in ids}


def _zero_note(use: Use) -> tuple[str, ...]:
    if not use.zero_is_a_class:
        return ()
    return ("0 is a class: ids in maps and tables are one more than the labels of the file",)


def _refuse_companions(data: str, given: Mapping[str, Any]) -> None:
    """Refuse arguments for files together with the name of a scene."""
    for argument, value in given.items():
        if value is not None:
            raise InputError(f"{argument}: {value} given, but the scene {data!r} has its own")


def _named(name: str, data_dir: str | Path | None, use: Use) -> Scene:
    paths = locate(name, data_dir)
    scene = replace(_read(paths[0], paths[1:], (None, None), use), name=name)
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
    return replace(scene, train_counts=counts)


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
    unlabelled: int | None = None,
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
        unlabelled: another label of unlabelled pixels, beside 0.
        zero_is_a_class: whether 0 is a class; the ids are then one more than the file's labels.
        grid: the scene's pixels, which polygons and points need.
        class_field: of polygons and points, as for `load_scene`.
        labels_crs: likewise.
        known: ids of classes by name, for polygons and points whose classes are texts.
    """
    drawn = grid is not None and format_of(Path(path)) is not None
    _refuse_without_shapes(Use(class_field=class_field, labels_crs=labels_crs), (path,), drawn)
    if grid is not None and drawn:
        how = Reading(class_field, labels_crs, labels_key)
        burnt = drawn_labels(
            Path(path),
            how,
            grid,
            unlabelled=unlabelled,
            zero_is_a_class=zero_is_a_class,
            known=known,
        )
        return [("classes", np.asarray(burnt.variables[0].values(), np.int64))]
    contents = open_file(path, "labels")
    maps = find.find_maps(contents, labels_key, shape, "labels", unlabelled, zero_is_a_class)
    return [(name, check_map(name, values)) for name, values in maps]


def label_files(path: str | Path) -> tuple[Path, ...]:
    """Return every file that labels are read from: maps, and shapes with what lies beside them.

    Raises:
        InputError: no such file, or it is of no known format.
    """
    path = Path(path)
    if format_of(path) is None:
        return open_file(path, "labels").files
    beside = (path.with_suffix(end) for end in (".dbf", ".prj", ".cpg"))
    return path, *(file for file in beside if path.suffix.lower() == ".shp" and file.is_file())


def _turn(cube: Array, shape: tuple[int, ...], name: str) -> tuple[Array, list[str]]:
    """Bring the axes of a cube into the order (H, W, B) that fits the shape of its label map."""
    for axes, source in (((0, 1), 2), ((1, 2), 0), ((0, 2), 1)):
        if shape == (cube.shape[axes[0]], cube.shape[axes[1]]):
            note = f"{name} has its bands on axis {source + 1}: turned to height, width, bands"
            return np.moveaxis(cube, source, 2), [] if source == 2 else [note]
    return cube, []
