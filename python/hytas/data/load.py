"""Read scenes, cubes and label maps from files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.cube import FileCube, cube_in, find_cube
from hytas.data.data_array import cube_of, is_data_array
from hytas.data.datasets import SCENES, locate
from hytas.data.findings import refusal, warning
from hytas.data.interpret.axes import cube_axes
from hytas.data.labels.align import is_placed
from hytas.data.labels.find import map_shapes
from hytas.data.labels.formats import are_shapes
from hytas.data.labels.maps import LabelMaps
from hytas.data.labels.names import renamed
from hytas.data.labels.read import (
    label_record,
    labels_of,
    of_rasters,
    refuse_options_of_shapes,
    without_dark_frames,
)
from hytas.data.labels.values import values_in
from hytas.data.limits import by
from hytas.data.options import OF_SCENES, OF_TABLES, SceneOptions
from hytas.data.read.table import open_file
from hytas.data.record import Contents
from hytas.data.scene import Scene, numbered, scene_from_arrays, unmasked
from hytas.data.spectra.load import load_spectra
from hytas.data.synthetic import synthetic_scene
from hytas.data.targets import checked_targets
from hytas.errors import InputError


def load_scene(data: Any, labels: Any = None, **options: Any) -> Scene:
    """Read a scene: one file with cube and labels, two files, or one by name.

    Args:
        data: the file with the cube; the folder of a Zarr store, or of files of one band each; a
            list of such files; or an `xarray.DataArray` with the dimensions y, x and band in any
            order. "synthetic" is the embedded demonstration scene, and "indian_pines", "salinas",
            "houston2013", "pavia_u" and "ksc" are downloaded.
        labels: the file with the label map (or maps), if it is not `data`; two files, with the
            training and the test map; an array (H, W), of values also (H, W, T); or a `DataArray`.
        options: attributes of `hytas.data.options.SceneOptions`.

    Raises:
        InputError: the input is not a scene; the message is one line.
    """
    given = SceneOptions.of(**options)
    if isinstance(labels, list | tuple):
        labels = [_as_data_array(each, given.task) for each in labels]
    labels = _as_data_array(labels, given.task)
    if given.task == "values" and given.label_column is not None and not given.target_column:
        given = replace(given, target_column=(given.label_column,), label_column=None)
    is_by_name = isinstance(data, str | Path) and str(data) in ("synthetic", *SCENES)
    if not is_data_array(data) and not is_by_name and given.cube_key is None:
        table = load_spectra(data, labels, given)
        if table is not None:
            given.refuse(OF_SCENES, f"is for scenes, and {data} is a table")
            return _asked(table, given.task)
    what = "a DataArray" if is_data_array(data) else str(data)
    given.refuse(OF_TABLES, f"is for tables of spectra, and {what} is a scene")
    if is_by_name:
        return _scene_by_name(str(data), labels, given)
    if is_data_array(data):
        given.refuse(("cube_key", "axes"), "is for files; a DataArray names its dimensions")
        if labels is None:
            raise InputError("labels", rule="missing; a DataArray holds a cube alone")
    given.refuse(("data_dir",), f"is only for the scenes {', '.join(SCENES)}, not {what}")
    return _asked(_read(data, _label_files(labels), given), given.task)


def _as_data_array(labels: Any, task: str) -> Any:
    """Return an array of labels as a `DataArray`; anything else as it is."""
    if not isinstance(labels, np.ndarray):
        return labels
    from xarray import DataArray

    if labels.ndim != 2 and not (task == "values" and labels.ndim == 3):
        rule = f"an array of {by(labels.shape)} given: must have two axes (H, W)"
        raise InputError("labels", rule=rule)
    return DataArray(unmasked("labels", labels), dims=("y", "x", "band")[: labels.ndim])


MOST_NUMBERS, FEW_NUMBERS = 50, 5
"""More numbers without names may be values; in a table also from 5 on, if 0 and 1 are missing."""


def _asked(scene: Scene, task: str) -> Scene:
    """Return the scene, with a finding if its classes are numbers that may be values."""
    texts = [name.removeprefix("class ") for name in scene.class_names]
    if task != "auto" or scene.continuous is not None or not all(map(str.isdecimal, texts)):
        return scene
    numbers = sorted(map(int, texts))
    few = scene.has_map or len(numbers) < FEW_NUMBERS or numbers[0] < 2
    if few and len(numbers) <= MOST_NUMBERS:
        return scene
    found = warning("classes-may-be-values", count=len(numbers), low=numbers[0], high=numbers[-1])
    return replace(scene, findings=(*scene.findings, found))


def _label_files(labels: Any) -> Sequence[Any]:
    """Return the file or `DataArray` of labels; or the files of a training and a test map."""
    given = labels if isinstance(labels, list | tuple) else [] if labels is None else [labels]
    if not all(isinstance(each, str | Path) or is_data_array(each) for each in given):
        rule = "must be a path, a DataArray, or a training and a test map"
        raise InputError("labels", type(labels).__name__, rule, "scene_from_arrays takes arrays")
    if len(given) > 2:
        raise refusal("maps-too-many", "labels", case="maps", given=len(given))
    if len(given) == 2 and (shapes := [each for each in given if are_shapes(each)]):
        raise refusal("maps-too-many", "labels", shapes[0], "shapes", given=2)
    return given


def _scene_by_name(name: str, labels: Any, options: SceneOptions) -> Scene:
    """Read a scene that is known by name, to which no file may be added."""
    rule = f"the scene {name!r} has its own"
    if labels is not None:
        raise InputError("labels", labels, rule)
    options.refuse(("cube_key", "unlabelled", *OF_SCENES[: -1 if name in SCENES else None]), rule)
    if name in SCENES:
        scene = _downloaded(name, options)
    elif options.nodata is not None:
        raise InputError("nodata", f"{options.nodata:g}", "the synthetic scene has data everywhere")
    else:
        scene = synthetic_scene()
    own = dict(zip(scene.class_ids, scene.class_names, strict=True))
    names, findings = renamed(scene.class_ids, own, options.class_names)
    class_names = tuple(names[number] for number in scene.class_ids)
    findings = (*scene.findings, *findings)
    return replace(scene, class_names=numbered(class_names), findings=findings)


def _downloaded(name: str, options: SceneOptions) -> Scene:
    entry, paths = SCENES[name], locate(name, options.data_dir)
    unnamed_yet = replace(options, class_names={})
    scene = replace(_read(paths[0], paths[1:], unnamed_yet), name=name)
    if scene.classes != (wanted := len(entry.classes)):
        raise InputError("data", paths[-1], f"holds {scene.classes} classes, {name} has {wanted}")
    if scene.train is not None:
        return scene
    if all(
        f"class {i}" == text for text, i in zip(scene.class_names, scene.class_ids, strict=True)
    ):
        scene = replace(scene, class_names=entry.classes)
    return replace(scene, train_counts=entry.train_counts)


def _read(data: Any, labels: Sequence[Any], options: SceneOptions) -> Scene:
    """Read a scene from one record, or from one of the cube and one or two of labels."""
    array = cube_of(data, "data") if is_data_array(data) else None
    contents = open_file(data, "data") if array is None else array.contents
    of_shapes = len(labels) == 1 and are_shapes(labels[0])
    others: list[Contents] = []
    if not of_shapes and not options.are_values:
        refuse_options_of_shapes(options, str(labels[0]) if labels else None)
        others = [label_record(each) for each in labels] or [contents]
    shapes = map_shapes(others[0]) if others else ()
    variable = find_cube(contents, options.cube_key, "data", shapes)
    if others and not labels and options.labels_key is None:  # a cube of one line looks like a map
        rest = tuple(each for each in contents.variables if each is not variable)
        others = [replace(contents, variables=rest)]
        shapes = map_shapes(others[0])
    cube = array or cube_in(contents, variable, "data", axes=options.axes, maps=shapes)
    others = [without_dark_frames(each, cube.grid) for each in others]
    if others:
        kept = tuple(variable.shape[axis] for axis in cube_axes(variable))
        shape = cube.shape if cube.axes.is_settled else kept
        grid = cube.grid if labels and is_placed(cube.grid) else None
        argument = "labels" if labels else "data"
        label_maps = of_rasters(others, options, shape, grid, argument=argument)
        # Without names, the label map shows which axis holds the bands.
        size = label_maps.maps[0][1].shape
        cube = array or cube_in(contents, variable, "data", axes=options.axes, maps=(size,))
    elif len(labels) > 1:
        raise refusal("maps-too-many", "labels", str(labels[1]), "values", given=2)
    elif labels:
        label_maps = labels_of(labels[0], options, cube.grid)
    else:
        label_maps = values_in(contents, options, cube.grid, variable)
    files = [str(each) for each in (contents.path, *labels) if not is_data_array(each)]
    sources = dict.fromkeys(files if array is None else files[1:])
    return _scene_of(cube, label_maps, options, tuple(sources))


def _scene_of(
    cube: FileCube, label_maps: LabelMaps, options: SceneOptions, sources: tuple[str, ...]
) -> Scene:
    targets = None
    if label_maps.values is not None:
        flat = label_maps.values.reshape(-1, label_maps.values.shape[2])
        given = options.units or label_maps.value_units, options.fractions
        targets, labelled = checked_targets("labels", label_maps.value_names, flat, *given)
        size = label_maps.maps[0][1].shape
        label_maps = replace(
            label_maps, maps=(("labels", labelled.astype(np.int64).reshape(size)),)
        )
    elif options.least_classes > 1:
        _refuse_a_single_class(label_maps, sources[-1] if sources else cube.name)
    pixels, maps = cube.whole(), label_maps.maps
    scene = scene_from_arrays(
        pixels,
        maps[0][1] if len(maps) == 1 else None,
        train=maps[0][1] if len(maps) == 2 else None,
        test=maps[1][1] if len(maps) == 2 else None,
        name=cube.name,
        wavelengths=cube.wavelengths,
        class_names=label_maps.names or None,
        sources=sources,
        findings=[*cube.findings, *label_maps.findings],
        class_colours=label_maps.colours,
        map_names=tuple(name for name, _ in maps),
        nodata=options.nodata_of(cube.nodata, pixels),
        bad_bands=cube.facts.bad_bands,
        bands=options.bands,
        fwhm=cube.facts.fwhm,
        least_classes=options.least_classes,
        targets=targets,
    )
    scene = replace(scene, pixel_metres=cube.grid.pixel_metres)
    return scene if label_maps.polygons is None else scene.with_polygons(label_maps.polygons)


def _refuse_a_single_class(label_maps: LabelMaps, source: str) -> None:
    """Refuse shapes that label pixels of one class; the notes say why there are no others."""
    there = np.unique(label_maps.maps[0][1])
    if label_maps.polygons is None or (there > 0).sum() != 1:
        return
    error = refusal("classes-few", "labels", source, classes=[label_maps.names[int(there[-1])]])
    raise error.hinted("; ".join(map(str, label_maps.findings)))
