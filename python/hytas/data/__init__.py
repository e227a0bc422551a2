"""Read, check, split and scale scenes and images; cut scenes into patches. No torch here."""

from hytas.data.bands import parse_bands
from hytas.data.classes import with_classes
from hytas.data.cube import FileCube, empty_pixels, open_cube, valid_pixels
from hytas.data.datasets import SCENES
from hytas.data.grid import Grid
from hytas.data.images.image_set import ImageSet
from hytas.data.images.load import holds_images, load_images
from hytas.data.images.split import make_image_split
from hytas.data.join import check_same_bands, join_scenes
from hytas.data.labels.maps import LabelMaps
from hytas.data.labels.names import read_class_names
from hytas.data.labels.read import label_files, labels_on_grid
from hytas.data.load import Cube, load_cube, load_scene
from hytas.data.location import Location, Lookup, Orthorectified
from hytas.data.mapped import MappedCube, OwnScaling, Resampling
from hytas.data.no_data import check_nodata, undeclared_in_rows, valid_mask
from hytas.data.palette import UNLABELLED_COLOUR, palette
from hytas.data.patches import (
    Part,
    PatchReader,
    check_patch_side,
    check_patch_size,
    mirror,
)
from hytas.data.preprocessing import Preprocessing
from hytas.data.readers.table import FORMATS, is_scene_folder, open_file
from hytas.data.record import Contents, Rows, Variable
from hytas.data.scene import Scene, scene_from_arrays
from hytas.data.several import load_scenes
from hytas.data.spectra.table import Spectra, as_spectra
from hytas.data.splits.cross_validation import BlockSplit, CubePixels
from hytas.data.splits.make import check_seed, make_split, overlap_fraction
from hytas.data.splits.settings import SplitSettings, takes_split_options
from hytas.data.splits.split import Split
from hytas.data.synthetic import synthetic_scene
from hytas.data.wavelengths import farthest_band
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
    "FORMATS",
    "SCENES",
    "UNLABELLED_COLOUR",
    "BlockSplit",
    "Contents",
    "Cube",
    "CubePixels",
    "FileCube",
    "Grid",
    "ImageSet",
    "LabelMaps",
    "LabelledData",
    "Location",
    "Lookup",
    "MappedCube",
    "Orthorectified",
    "OwnScaling",
    "Part",
    "PatchReader",
    "Preprocessing",
    "Resampling",
    "Rows",
    "Scene",
    "Spectra",
    "Split",
    "SplitSettings",
    "Variable",
    "as_scene",
    "as_spectra",
    "check_nodata",
    "check_patch_side",
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
    "palette",
    "parse_bands",
    "read_class_names",
    "scene_from_arrays",
    "synthetic_scene",
    "takes_split_options",
    "undeclared_in_rows",
    "valid_mask",
    "valid_pixels",
    "with_classes",
]
