"""Measure tables of trained networks: rankings, genes that matter, predictors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
