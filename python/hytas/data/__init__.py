"""Read, check, split and scale scenes and images; cut scenes into patches. No torch here."""

from hytas.data.bands import parse_bands
from hytas.data.cube import empty_pixels, load_cube, open_cube
from hytas.data.grid import Grid
from hytas.data.images.image_set import ImageSet
from hytas.data.images.load import holds_images, load_images
from hytas.data.interpret.nodata import (
    check_nodata,
    undeclared_in_rows,
    valid_mask,
    valid_pixels,
)
from hytas.data.interpret.wavelengths import farthest_band
from hytas.data.join import check_same_bands, join_scenes, with_classes
from hytas.data.labels.read import label_files, labels_on_grid
from hytas.data.load import load_scene
from hytas.data.location import Location, Lookup, Orthorectified
from hytas.data.mapped import MappedCube, OwnScaling, Resampling
from hytas.data.patches import PatchReader, check_patch_size, mirror
from hytas.data.preprocessing import Preprocessing
from hytas.data.read.table import is_scene_folder, open_file
from hytas.data.record import Contents, Rows
from hytas.data.scene import Scene, scene_from_arrays
from hytas.data.several import load_scenes
from hytas.data.spectra.table import Spectra, as_spectra
from hytas.data.splits.cross_validation import BlockSplit, CubePixels
from hytas.data.splits.make import (
    check_seed,
    make_image_split,
    make_split,
    overlap_fraction,
)
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
    "BlockSplit",
    "Contents",
    "CubePixels",
    "Grid",
    "ImageSet",
    "LabelledData",
    "Location",
    "Lookup",
    "MappedCube",
    "Orthorectified",
    "OwnScaling",
    "PatchReader",
    "Preprocessing",
    "Resampling",
    "Rows",
    "Scene",
    "Spectra",
    "Split",
    "SplitSettings",
    "as_scene",
    "as_spectra",
    "check_nodata",
    "check_patch_size",
    "check_same_bands",
    "check_seed",
    "empty_pixels",
    "farthest_band",
    "holds_images",
    "is_scene_folder",
    "join_scenes",
    "label_files",
    "labels_on_grid",
    "load_cube",
    "load_images",
    "load_scene",
    "load_scenes",
    "make_image_split",
    "make_split",
    "mirror",
    "open_cube",
    "open_file",
    "overlap_fraction",
    "parse_bands",
    "scene_from_arrays",
    "synthetic_scene",
    "takes_split_options",
    "undeclared_in_rows",
    "valid_mask",
    "valid_pixels",
    "with_classes",
]
