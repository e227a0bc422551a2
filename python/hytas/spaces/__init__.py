"""Search spaces: their architectures, with costs and keys. No torch here."""

from hytas.spaces.budgets import file_digests, parse_budget, with_files
from hytas.spaces.genes import mlp_width
from hytas.spaces.names import DEFAULT_SPACE, IMAGE_SPACE, PAPER_SPACE, space_of
from hytas.spaces.opening import open_space
from hytas.spaces.shape import InputShape

__all__ = [
    "DEFAULT_SPACE",
    "IMAGE_SPACE",
    "PAPER_SPACE",
    "InputShape",
    "file_digests",
    "mlp_width",
    "open_space",
    "parse_budget",
    "space_of",
    "with_files",
]
