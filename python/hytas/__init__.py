"""hytas: find, train and ship the best transformer for a hyperspectral sensor."""

__version__ = "0.1.0"
