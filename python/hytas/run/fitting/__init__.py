"""Fit the winner: final training, temperature, and smoothing of maps."""
