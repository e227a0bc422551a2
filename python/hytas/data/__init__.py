"""Read, check, split and scale scenes and images; cut scenes into patches. No torch here."""

from hytas.data.bands import parse_bands
from hytas.data.cube import load_cube, open_cube
from hytas.data.grid import Grid
from hytas.data.images.image_set import ImageSet
from hytas.data.images.load import holds_images, load_images
from hytas.data.interpret.nodata import valid_mask
from hytas.data.labels.read import labels_on_grid
from hytas.data.load import load_scene
from hytas.data.patches import PatchReader
from hytas.data.preprocessing import Preprocessing
from hytas.data.read.table import open_file
from hytas.data.record import Rows
from hytas.data.scene import Scene, scene_from_arrays
from hytas.data.several import load_scenes
from hytas.data.spectra.table import Spectra
from hytas.data.splits.make import make_split, overlap_fraction
from hytas.data.splits.settings import SplitSettings, takes_split_options
from hytas.data.splits.split import Split
from hytas.data.synthetic import synthetic_scene
from hytas.errors import InputError

LabelledData = Scene | ImageSet
"""The labelled data of a run: a scene, or a set of images."""


def as_scene(data: LabelledData, purpose: str) -> Scene:
    """Return `data` if it is a scene.

    Raises:
        InputError: it is a set of images; the message names it and `purpose`.
    """
    if not isinstance(data, Scene):
        rule = f"is a set of images, and {purpose} are for scenes only"
        raise InputError("data", data.name, rule)
    return data


__all__ = [
    "Grid",
    "ImageSet",
    "LabelledData",
    "PatchReader",
    "Preprocessing",
    "Rows",
    "Scene",
    "Spectra",
    "Split",
    "SplitSettings",
    "as_scene",
    "holds_images",
    "labels_on_grid",
    "load_cube",
    "load_images",
    "load_scene",
    "load_scenes",
    "make_split",
    "open_cube",
    "open_file",
    "overlap_fraction",
    "parse_bands",
    "scene_from_arrays",
    "synthetic_scene",
    "takes_split_options",
    "valid_mask",
]
