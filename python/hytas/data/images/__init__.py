"""Sets of labelled images: folders, arrays, and those known by name."""

from hytas.data.images.image_set import ImageSet
from hytas.data.images.load import IMAGE_SETS, holds_images, load_images
from hytas.data.images.scaling import fit_scaling_of
from hytas.data.images.split import make_image_split

__all__ = [
    "IMAGE_SETS",
    "ImageSet",
    "fit_scaling_of",
    "holds_images",
    "load_images",
    "make_image_split",
]
