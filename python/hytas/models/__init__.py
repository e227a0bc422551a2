"""Networks, each a plain module built from an architecture."""

from .sensor import SensorModel
from .shape import InputShape
from .spectral import SpectralTransformer
from .table import NETWORKS, Architecture, build_network, count_parameters

__all__ = [
    "NETWORKS",
    "Architecture",
    "InputShape",
    "SensorModel",
    "SpectralTransformer",
    "build_network",
    "count_parameters",
]
