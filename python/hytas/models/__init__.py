"""Networks, each a plain module built from an architecture."""

from hytas.models.sensor import SensorModel
from hytas.models.shape import InputShape, check_band_group
from hytas.models.spectral import SpectralTransformer
from hytas.models.table import (
    NETWORKS,
    Architecture,
    build_network,
    count_parameters,
    patch_size_of,
)
from hytas.models.whitening import whiten_embedding

__all__ = [
    "NETWORKS",
    "Architecture",
    "InputShape",
    "SensorModel",
    "SpectralTransformer",
    "build_network",
    "check_band_group",
    "count_parameters",
    "patch_size_of",
    "whiten_embedding",
]
