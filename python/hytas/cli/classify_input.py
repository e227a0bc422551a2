"""What `hytas classify` reads: a cube, and the ground truth to compare its map with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hytas.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hytas.data import Grid, Rows
    from hytas.data.findings import Finding
    from hytas.data.spectra.load import TableRows
    from hytas.deploy import DeployedModel


class ClassifyInput(NamedTuple):
    """A cube, and the facts that its file gives about it."""

    cube: "Rows"
    wavelengths: "npt.NDArray[np.float64] | None"
    nodata: float | None = None
    grid: "Grid | None" = None
    files: tuple[Path, ...] = ()
    findings: tuple["Finding", ...] = ()
    bad_bands: tuple[int, ...] = ()


class Truth(NamedTuple):
    """Ground truth: all labelled pixels, and the pixels that the accuracy is computed on."""

    all: "npt.NDArray[np.int32]"
    scored: "npt.NDArray[np.int32]"
    what: str
    files: tuple[Path, ...] = ()
    findings: tuple["Finding", ...] = ()
    names: Mapping[int, str] | None = None


def open_source(path: Path, key: str | None, bands: int | None, axes: str | None) -> ClassifyInput:
    """Open a cube; `bands` is the number that finds its band axis, None for any."""
    from hytas.data import open_cube, synthetic_scene

    if str(path) == "synthetic":
        scene = synthetic_scene()
        return ClassifyInput(scene.cube, scene.wavelengths)
    cube = open_cube(path, key, bands, axes)
    return ClassifyInput(
        cube,
        cube.wavelengths,
        cube.nodata,
        cube.grid,
        cube.contents.files,
        cube.findings,
        cube.bad_bands,
    )


def open_for(model: "DeployedModel", scene: Path, chosen: Mapping[str, Any]) -> ClassifyInput:
    """Open a scene as a model takes it, with its no-data value.

    Args:
        chosen: "cube_key", "axes", "nodata" and "resample", which takes it to the model's bands.
    """
    from hytas.data.interpret.nodata import check_nodata

    resample, nodata = chosen["resample"], chosen["nodata"]
    bands = None if resample else model.card.bands
    source = open_source(scene, chosen["cube_key"], bands, chosen["axes"])
    if resample:
        source, nodata = _with_bands_of(source, model, str(scene), nodata), None
    height, width, count = source.cube.shape
    model.check_scene(count, source.wavelengths, str(scene), size=(height, width))
    nodata = source.nodata if nodata is None else check_nodata(nodata, source.cube.dtype)
    return source._replace(nodata=nodata)


def read_spectra(
    model: "DeployedModel", table: Path, out: Path, nodata: float | None
) -> tuple["TableRows", str | None]:
    """Return the rows of a table of spectra for a model, and what is doubtful about their values.

    Args:
        out: table to write, which must be another file.
    """
    from hytas.data.spectra.load import read_rows
    from hytas.deploy.outputs import check_apart
    from hytas.deploy.value_range import range_doubt

    if out.suffix.lower() != ".csv":
        raise InputError("out", out, "must end in .csv: the input is a table")
    check_apart({"out": out}, {"the model": [model.path], "the scene": [table]})
    rows = read_rows(table, model.card.bands, model.card.wavelengths, _no_bands(model.path))
    return rows, range_doubt(model, rows.values[:, None], nodata)


def _no_bands(model: Path) -> list[str | None]:
    """Return the columns of labels and groups of the run in whose folder a model lies."""
    try:
        data = json.loads(model.with_name("config.json").read_text(encoding="utf-8"))["data"]
        named = [data.get("label_column"), data.get("group_column")]
        return [*named, *(data.get("target_column") or ())]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []


def _with_bands_of(
    source: ClassifyInput, model: "DeployedModel", name: str, nodata: float | None
) -> ClassifyInput:
    """Return the source with the bands of the model, changed row by row; NaN means no data."""
    import numpy as np

    from hytas.data.mapped import MappedCube, Resampling

    card = model.card
    if card.numpy_dtype.kind != "f":
        raise InputError(
            "resample",
            rule=f"makes floating-point values, and {model.path} takes {card.dtype}",
            hint="train the model on a floating-point copy of its scene, or on several scenes "
            "with `resample`",
        )
    for where, waves in ((name, source.wavelengths), (str(model.path), card.wavelengths)):
        if waves is None:
            raise InputError("resample", rule=f"{where} has no wavelengths to resample by")
    assert source.wavelengths is not None
    change = Resampling.between(
        source.wavelengths,
        np.asarray(card.wavelengths),
        None if card.fwhm is None else np.asarray(card.fwhm),
        bad_bands=source.bad_bands,
        nodata=source.nodata if nodata is None else nodata,
    )
    cube = MappedCube(source.cube, change, card.bands)
    wavelengths = np.asarray(card.wavelengths)
    return source._replace(cube=cube, wavelengths=wavelengths, nodata=None, bad_bands=())


def read_truth(
    path: Path, key: str | None, source: ClassifyInput, model: "DeployedModel", **marks: Any
) -> Truth:
    """Read the ground truth on the pixels of a source; `marks` say how labels are meant."""
    import numpy as np

    from hytas.data import Grid, synthetic_scene
    from hytas.data.findings import note, refusal
    from hytas.data.labels.maps import LabelMaps
    from hytas.data.labels.read import label_files, labels_on_grid
    from hytas.data.limits import by
    from hytas.deploy.accuracy import check_truth

    height, width = source.cube.shape[:2]
    if str(path) == "synthetic":
        scene = synthetic_scene()
        if scene.labels.shape != (height, width):
            sizes = {"own": by(scene.labels.shape), "size": by((height, width))}
            raise refusal("sizes-differ", "labels", path, "cube", **sizes)
        assert scene.test is not None  # the synthetic scene has its own split
        truth = Truth(scene.labels, scene.test, "pixels of the test map")
    else:
        grid = source.grid or Grid(None, None, height, width)
        ids_by_name = dict(zip(model.card.class_names, model.card.class_ids, strict=True))
        try:
            read = labels_on_grid(path, grid, labels_key=key, class_ids=ids_by_name, **marks)
        except InputError as error:
            if error.code != "empty" or error.case == "bytes":
                raise
            read = LabelMaps((("labels", np.zeros((height, width), np.int64)),))
        first, *others = (values.astype(np.int32) for _, values in read.maps)
        scored, what = first, "labelled pixels, with any that the model was trained on"
        if others:
            (scored,), what = others, "pixels of the test map"
        labelled = np.where(scored > 0, scored, first)
        truth = Truth(labelled, scored, what, label_files(path), read.findings, read.names)
    if not truth.scored.any():
        nothing = note("empty", path.name, case="truth")
        return truth._replace(findings=(*truth.findings, nothing))
    check_truth(truth.scored, model.card, truth.names)
    return truth
