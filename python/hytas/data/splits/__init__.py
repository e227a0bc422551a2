"""Split the labelled pixels of a scene into training, validation and test pixels."""

from hytas.data.splits.cross_validation import BlockSplit, CubePixels
from hytas.data.splits.make import check_seed, make_split, overlap_fraction
from hytas.data.splits.settings import SplitSettings, takes_split_options
from hytas.data.splits.split import AT_ONE_END, Split

__all__ = [
    "AT_ONE_END",
    "BlockSplit",
    "CubePixels",
    "Split",
    "SplitSettings",
    "check_seed",
    "make_split",
    "overlap_fraction",
    "takes_split_options",
]
