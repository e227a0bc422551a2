"""Write class maps as files, with one writer for each suffix."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import Grid, Rows
from hytas.data.location import Lookup, Orthorectified
from hytas.deploy.rasters import check_envi_place, names_file, style_file, write_envi, write_geotiff
from hytas.deploy.scene import ClassMap, row_blocks
from hytas.errors import InputError, library
from hytas.files import atomic_write, check_folder, is_same_file
from hytas.model_card import ModelCard
from hytas.pictures import PICTURES, Legend, draw_map


@dataclass(frozen=True)
class Extras:
    """More values that a writer may need.

    Attributes:
        truth: (H, W) class ids of the ground truth, or None.
        grid: where the pixels of the scene lie, or None.
        lookup: rasters are written on the map grid of this table, instead of the scene's.
    """

    truth: npt.NDArray[np.int32] | None = None
    title: str = ""
    grid: Grid | None = None
    lookup: Lookup | None = None

    @property
    def place(self) -> Grid | None:
        """Return where the pixels of rasters lie."""
        return self.grid if self.lookup is None else self.lookup.grid

    def placed(self, values: Rows) -> Rows:
        """Return a map (H, W) as rasters have it."""
        return values if self.lookup is None else Orthorectified(values, self.lookup)


def write_picture(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """Write a picture of the map, north above, with a legend and the ground truth if there is."""
    legend = Legend(card.class_ids, card.class_names, card.palette)
    south_up = extras.grid is not None and extras.grid.is_south_up
    truth, title = extras.truth, extras.title
    draw_map(path, result.labels, legend, truth=truth, title=title, south_up=south_up)


def write_npy(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """Write the class ids (H, W), in the smallest type that holds them."""
    with atomic_write(path) as temporary:
        np.save(temporary, smallest(result.labels, card))


def write_npz(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """Write class ids and confidence."""
    with atomic_write(path) as temporary:
        labels = smallest(result.labels, card)
        np.savez_compressed(temporary, labels=labels, confidence=result.confidence[:])


def write_matlab(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """Write class ids and confidence as MATLAB v5, named `labels` and `confidence`."""
    from scipy.io import savemat

    values = {"labels": smallest(result.labels, card), "confidence": result.confidence[:]}
    with atomic_write(path) as temporary:
        savemat(temporary, values, appendmat=False, do_compression=True)


Raster = Callable[[Path, Rows, "np.dtype[Any]", ModelCard, Grid | None, bool], None]

# suffix -> writer of a georeferenced file with one band.
RASTERS: dict[str, Raster] = {
    ".tif": write_geotiff,
    ".tiff": write_geotiff,
    ".hdr": write_envi,
    ".img": write_envi,
}


def write_raster(path: Path, result: ClassMap, card: ModelCard, extras: Extras) -> None:
    """Write class ids as a georeferenced raster with names and colours."""
    write, dtype = RASTERS[path.suffix.lower()], smallest_type(card)
    write(path, extras.placed(result.labels), dtype, card, extras.place, True)


# suffix -> writer. A new output is one function and one line here.
WRITERS: dict[str, Callable[[Path, ClassMap, ModelCard, Extras], None]] = {
    **dict.fromkeys(PICTURES, write_picture),
    ".npy": write_npy,
    ".npz": write_npz,
    ".mat": write_matlab,
    **dict.fromkeys(RASTERS, write_raster),
}


SUFFIXES = {
    "out": tuple(WRITERS),
    **dict.fromkeys(("confidence", "probabilities"), tuple(RASTERS)),
    "confusion": PICTURES,
}


def check_output(path: Path, argument: str = "out") -> None:
    """Refuse, before the work, an output that could not be written afterwards."""
    suffixes = SUFFIXES[argument]
    if path.suffix.lower() not in suffixes:
        raise InputError(argument, path, f"must end in one of {', '.join(suffixes)}")
    check_folder(path, argument)
    for file in output_files(path, argument):
        if file.is_dir():
            raise InputError(argument, file, "is a folder; the name of a file is needed")
    if path.suffix.lower() in RASTERS:
        library("rasterio", argument, "a GeoTIFF or ENVI map")
    if path.suffix.lower() in PICTURES:
        library("matplotlib", argument, "a picture")


def check_place(path: Path, extras: Extras, argument: str = "out") -> None:
    """Refuse, before the work, a format that cannot store the grid of a scene."""
    if RASTERS.get(path.suffix.lower()) is write_envi:
        check_envi_place(path, extras.place, argument)


def output_files(path: Path, argument: str = "out") -> tuple[Path, ...]:
    """Return all files of the output `path`."""
    writer = RASTERS.get(path.suffix.lower())
    style = (style_file(path),) if writer is not None and argument == "out" else ()
    if writer is write_envi:
        return path.with_suffix(".hdr"), path.with_suffix(".img"), *style
    if writer is write_geotiff and argument == "out":
        return path, names_file(path), *style
    return (path,)


def check_apart(outputs: Mapping[str, Path], inputs: Mapping[str, Sequence[Path]]) -> None:
    """Refuse an output that would overwrite an input or another output.

    Args:
        outputs: argument -> path.
        inputs: name of the input in messages -> its files.
    """
    taken = [(what, file) for what, files in inputs.items() for file in files]
    for argument, path in outputs.items():
        files = output_files(path, argument)
        for file in files:
            for what, other in taken:
                if is_same_file(file, other):
                    rule = f"is also a file of {what}"
                    raise InputError(argument, file, rule, "name another file")
        taken += [(f"`{argument}`", file) for file in files]


def write_map(
    path: str | Path, result: ClassMap, card: ModelCard, extras: Extras | None = None
) -> Path:
    """Write a class map in the format that the suffix names."""
    path = Path(path)
    check_output(path)
    WRITERS[path.suffix.lower()](path, result, card, extras or Extras())
    return path


def write_confidence(
    path: str | Path, result: ClassMap, card: ModelCard, extras: Extras | None = None
) -> Path:
    """Write the confidence, float32, as a GeoTIFF or ENVI raster."""
    path = Path(path)
    check_output(path, "confidence")
    write = RASTERS[path.suffix.lower()]
    extras = extras or Extras()
    values = extras.placed(result.confidence)
    write(path, values, np.dtype(np.float32), card, extras.place, False)
    return path


def smallest_type(card: ModelCard) -> np.dtype[Any]:
    """Return the smallest integer type that holds all class ids of the model."""
    if min(card.class_ids) < 0:
        return np.dtype(np.int32)
    return np.min_scalar_type(max(card.class_ids))


def smallest(labels: Rows, card: ModelCard) -> npt.NDArray[np.integer]:
    """Return the class ids (H, W) in the type of `smallest_type`."""
    result = np.empty(labels.shape, smallest_type(card))
    for top, block in row_blocks(labels):
        result[top : top + len(block)] = block
    return result
