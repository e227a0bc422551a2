"""Run a search from scene to model: configuration, folder, and the stages that fill it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
