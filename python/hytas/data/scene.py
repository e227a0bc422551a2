"""A scene: a hyperspectral cube with its ground truth, and how files become one."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import find
from hytas.data.contents import Array
from hytas.data.cube_reader import band_axis, valid_pixels
from hytas.data.known import known_class_names
from hytas.data.labels import LabelMap, Labels, check_map, join
from hytas.data.palette import Palette, palette
from hytas.data.readers import open_file
from hytas.errors import InputError

# A larger cube stays as its reader gave it, which may be a memory map.
IN_MEMORY_BYTES = 2**31


@dataclass(frozen=True, eq=False)
class Cube:
    """A cube without ground truth.

    Attributes:
        cube: (H, W, B) in the sensor's own type, native byte order; may be a memory map.
        wavelengths: (B,) band centres in nm, or None.
        valid: (H, W), False where a band is NaN or infinite.
        name: the file's, without its suffix.
        meta: what else the file says ("map_info", "nodata", ...).
        notes: one-line remarks on what was put right.
    """

    cube: Array
    wavelengths: npt.NDArray[np.float64] | None
    valid: npt.NDArray[np.bool_]
    name: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Scene:
    """A cube and its ground truth.

    Attributes:
        name: the file's, without its suffix, or "synthetic".
        cube: (H, W, B) in the sensor's own type, native byte order; may be a memory map.
        labels: (H, W) int32, 0 unlabelled, classes 1..C; the union of `train` and `test`.
        train, test: (H, W) int32, the file's own fixed split, or None.
        class_names: of the classes 1..C.
        class_ids: the file's numbers for them.
        wavelengths: (B,) band centres in nm, or None.
        valid: (H, W), False where a band is NaN or infinite; such pixels are unlabelled.
        sources: the files read.
        fingerprint: sha256 of cube, labels and split, in hex.
        notes: one-line remarks on what was masked or put right.
        train_counts: training pixels of each class that were published for the scene, or None.
    """

    name: str
    cube: Array
    labels: LabelMap
    train: LabelMap | None
    test: LabelMap | None
    class_names: tuple[str, ...]
    class_ids: tuple[int, ...]
    wavelengths: npt.NDArray[np.float64] | None
    valid: npt.NDArray[np.bool_]
    sources: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...] = ()
    train_counts: tuple[int, ...] | None = None

    @property
    def height(self) -> int:
        """Rows of the cube."""
        return int(self.cube.shape[0])

    @property
    def width(self) -> int:
        """Columns of the cube."""
        return int(self.cube.shape[1])

    @property
    def bands(self) -> int:
        """Bands of the sensor, dead ones included."""
        return int(self.cube.shape[2])

    @property
    def classes(self) -> int:
        """Number of classes, unlabelled not counted."""
        return len(self.class_ids)

    @property
    def palette(self) -> Palette:
        """Colours of the classes, (C, 3) RGB."""
        return palette(self.classes)

    def class_counts(self) -> dict[str, int]:
        """Labelled pixels of each class."""
        counts = np.bincount(self.labels.ravel(), minlength=self.classes + 1)[1:]
        return {name: int(count) for name, count in zip(self.class_names, counts, strict=True)}


def load_scene(
    data: str | Path,
    labels: str | Path | None = None,
    *,
    cube_key: str | None = None,
    labels_key: str | None = None,
    data_dir: str | Path | None = None,
) -> Scene:
    """Read a scene: one file with cube and labels, two files, or one by name.

    Args:
        data: the file with the cube; "synthetic" is the embedded demonstration scene, and
            "indian_pines", "salinas", "houston2013", "pavia_u" and "ksc" are downloaded.
        labels: the file with the label map (or maps), when `data` does not hold it.
        cube_key: the cube's name in its file; found by itself when there is one cube.
        labels_key: the map's name, or "training,test" names of two.
        data_dir: a folder with the files of a scene by name, which is then not downloaded.

    Raises:
        InputError: whatever keeps the input from being a scene, in one line.
    """
    named = _by_name(str(data), labels, data_dir)
    if named is not None:
        return named
    contents = open_file(data, "data")
    other = contents if labels is None else open_file(labels, "labels")
    argument = "data" if labels is None else "labels"
    variable = find.find_cube(contents, cube_key, "data", other.variables)
    if labels is None and labels_key is None and not find.numbers(contents.variables):
        raise InputError(
            f"data: {contents.path} holds no label map: name the file that does with --labels"
        )
    maps = find.find_maps(other, labels_key, variable.shape, argument)
    cube, notes = _turn(find.load(variable, contents, "data"), maps[0][1].shape, str(variable))
    if cube.nbytes <= IN_MEMORY_BYTES:
        # Pixel by pixel, so that a patch is a few long reads: MATLAB stores band by band.
        cube = np.ascontiguousarray(cube)
    sources = (str(contents.path),) if labels is None else (str(contents.path), str(other.path))
    return scene_from_arrays(
        cube,
        maps[0][1] if len(maps) == 1 else None,
        train=maps[0][1] if len(maps) == 2 else None,
        test=maps[1][1] if len(maps) == 2 else None,
        name=contents.path.stem,
        wavelengths=contents.meta.get("wavelengths"),
        class_names=other.meta.get("class_names"),
        sources=sources,
        notes=notes,
        map_names=tuple(name for name, _ in maps),
    )


def _by_name(data: str, labels: str | Path | None, data_dir: str | Path | None) -> Scene | None:
    from hytas.data.datasets import SCENES, load_named
    from hytas.data.synthetic import synthetic_scene

    if data != "synthetic" and data not in SCENES:
        if data_dir is not None:
            raise InputError(f"data dir: only for the scenes {', '.join(SCENES)}, not for {data}")
        return None
    if labels is not None:
        raise InputError(f"labels: {labels} given, but the scene {data!r} has its own")
    return synthetic_scene() if data == "synthetic" else load_named(data, data_dir)


def load_cube(path: str | Path, cube_key: str | None = None, bands: int | None = None) -> Cube:
    """Read a whole cube to classify, labels or none (`open_cube` reads one by windows).

    Args:
        path: the file.
        cube_key: the cube's name in it; found by itself when there is one cube.
        bands: the number expected, which tells the band axis of a (B, H, W) array.

    Raises:
        InputError: the file is missing, broken, or holds no cube (or several and no key).
    """
    contents = open_file(path, "scene")
    variable = find.find_cube(contents, cube_key, "scene")
    cube = find.load(variable, contents, "scene")
    cube = np.moveaxis(cube, band_axis(cube.shape, bands), 2)
    check_cube(cube, "scene")
    valid = valid_pixels(cube, contents.meta.get("nodata"))
    bad = int(valid.size - valid.sum())
    notes = (f"{bad} pixels with NaN, infinite or no-data values masked",) if bad else ()
    wavelengths = _wavelengths(contents.meta.get("wavelengths"), cube.shape[2])
    return Cube(cube, wavelengths, valid, contents.path.stem, contents.meta, notes)


def load_maps(
    path: str | Path, labels_key: str | None = None, shape: tuple[int, ...] | None = None
) -> list[tuple[str, npt.NDArray[np.int64]]]:
    """Read the label map, or the training and the test map, of a file, ids as the file has them.

    Args:
        path: the file.
        labels_key: the map's name, or "training,test" names of two.
        shape: the cube's, to find the map that fits; None takes any.
    """
    contents = open_file(path, "labels")
    maps = find.find_maps(contents, labels_key, shape, "labels")
    return [(name, check_map(name, values)) for name, values in maps]


def scene_from_arrays(
    cube: Array,
    labels: Array | None = None,
    *,
    train: Array | None = None,
    test: Array | None = None,
    name: str = "scene",
    wavelengths: Array | Sequence[float] | None = None,
    class_names: Mapping[int, str] | Sequence[str] | None = None,
    sources: Sequence[str] = (),
    notes: Sequence[str] = (),
    map_names: Sequence[str] = (),
) -> Scene:
    """Check arrays and make a scene of them.

    Args:
        cube: (H, W, B), any real numeric type.
        labels: (H, W), 0 unlabelled; or give `train` and `test` instead.
        train, test: (H, W), a fixed split.
        name: of the scene.
        wavelengths: (B,) in nm.
        class_names: by id, or in the order of the ids found.
        sources: the files they come from.
        notes: remarks to keep.
        map_names: what messages call the maps.

    Raises:
        InputError: arrays that are no scene, in one line.
    """
    check_cube(cube, "data")
    if labels is not None:
        maps = [(map_names[0] if map_names else "labels", labels)]
    elif train is not None and test is not None:
        names = map_names if len(map_names) == 2 else ("train", "test")
        maps = [(names[0], train), (names[1], test)]
    else:
        raise InputError("labels: none given; a scene needs a label map, or a train and a test map")
    for map_name, values in maps:
        if values.shape != cube.shape[:2]:
            raise InputError(
                f"labels: {map_name} is {' x '.join(map(str, values.shape))} and the cube "
                f"{' x '.join(map(str, cube.shape))}: height and width must agree"
            )
    joined = join(maps)
    valid = valid_pixels(cube)
    remarks = [*notes, *joined.notes, *_refuse_labelled_nan(cube, valid, joined.labels)]
    return Scene(
        name=name,
        cube=cube,
        labels=joined.labels,
        train=joined.train,
        test=joined.test,
        class_names=_names(class_names, joined),
        class_ids=joined.ids,
        wavelengths=_wavelengths(wavelengths, cube.shape[2]),
        valid=valid,
        sources=tuple(sources),
        fingerprint=fingerprint(cube, joined.labels, joined.train, joined.test),
        notes=tuple(remarks),
    )


def check_cube(cube: Array, argument: str) -> None:
    """Refuse an array that cannot be a cube.

    Raises:
        InputError: not three axes, an empty axis, fewer than 2 bands, or not real numbers.
    """
    shape = " x ".join(map(str, cube.shape))
    if cube.dtype.kind not in "iufb":
        raise InputError(f"{argument}: the cube is of type {cube.dtype}, real numbers needed")
    if cube.ndim != 3:
        raise InputError(
            f"{argument}: the cube is {shape}, three axes (height, width, bands) needed"
        )
    if 0 in cube.shape:
        raise InputError(f"{argument}: the cube is {shape}: it holds no pixel")
    if cube.shape[2] < 2:
        raise InputError(f"{argument}: the cube is {shape}: it has one band, at least 2 needed")


def fingerprint(cube: Array, *maps: Array | None) -> str:
    """Return the sha256 of type, shape and values of a cube and maps, in any memory order."""
    digest = hashlib.sha256()
    for array in (cube, *maps):
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.newbyteorder('=').name}{array.shape}".encode())
        for row in array:
            little = np.ascontiguousarray(row, dtype=row.dtype.newbyteorder("<"))
            digest.update(little.data)
    return digest.hexdigest()


def _turn(cube: Array, shape: tuple[int, ...], name: str) -> tuple[Array, list[str]]:
    """Bring the axes of a cube to (H, W, B), as far as the shape of its label map tells them."""
    for axes, source in (((0, 1), 2), ((1, 2), 0), ((0, 2), 1)):
        if shape == (cube.shape[axes[0]], cube.shape[axes[1]]):
            note = (
                f"{name} has its bands on axis {source + 1}: put in the order height, width, bands"
            )
            return np.moveaxis(cube, source, 2), [] if source == 2 else [note]
    return cube, []


def _refuse_labelled_nan(
    cube: Array, valid: npt.NDArray[np.bool_], labels: LabelMap
) -> tuple[str, ...]:
    bad = ~valid
    labelled = bad & (labels > 0)
    if labelled.any():
        row, column = (int(i) for i in np.argwhere(labelled)[0])
        raise InputError(
            f"data: {int(labelled.sum())} labelled pixels hold NaN or infinite values, the first "
            f"at row {row}, column {column}: labelled pixels must be finite"
        )
    count = int(bad.sum())
    return (f"{count} unlabelled pixels with NaN or infinite values masked",) if count else ()


def _names(names: Mapping[int, str] | Sequence[str] | None, labels: Labels) -> tuple[str, ...]:
    ids = labels.ids
    if names is None:
        counts = np.bincount(labels.labels.ravel(), minlength=len(ids) + 1)[1:]
        known = known_class_names(tuple(int(count) for count in counts))
        return known or tuple(f"class {i}" for i in ids)
    if isinstance(names, Mapping):
        return tuple(names.get(i) or f"class {i}" for i in ids)
    if len(names) != len(ids):
        raise InputError(
            f"class names: {len(names)} given for the {len(ids)} classes {', '.join(map(str, ids))}"
        )
    return tuple(names)


def _wavelengths(
    values: Array | Sequence[float] | None, bands: int
) -> npt.NDArray[np.float64] | None:
    if values is None:
        return None
    array = np.asarray(values, dtype=np.float64).ravel()
    return array if array.size == bands else None
