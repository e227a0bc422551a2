"""Networks, each a plain module built from an architecture."""

from hytas.models.network import Network, RowParts, as_network, small_parameters
from hytas.models.sensor import Scaling, SensorModel
from hytas.models.spectral import SpectralTransformer
from hytas.models.table import (
    NETWORKS,
    build_network,
    count_parameters,
    patch_size_of,
)
from hytas.models.whitening import whiten_embedding
from hytas.spaces.shape import InputShape, check_band_group

__all__ = [
    "NETWORKS",
    "InputShape",
    "Network",
    "RowParts",
    "Scaling",
    "SensorModel",
    "SpectralTransformer",
    "as_network",
    "build_network",
    "check_band_group",
    "count_parameters",
    "patch_size_of",
    "small_parameters",
    "whiten_embedding",
]
