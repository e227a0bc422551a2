"""Supernets of a run: training, families, ranks, and the evolution of spaces."""
