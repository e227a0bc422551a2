"""Tables of trained networks: made from a scene, and searched at no cost."""

from hytas.benchmark.published import PUBLISHED
from hytas.benchmark.tabular import Benchmark

__all__ = ["PUBLISHED", "Benchmark"]
