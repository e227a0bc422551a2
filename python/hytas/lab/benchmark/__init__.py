"""Tables of trained networks: made from a scene, and searched at no cost."""

from hytas.lab.benchmark.tabular import Benchmark

__all__ = ["Benchmark"]
