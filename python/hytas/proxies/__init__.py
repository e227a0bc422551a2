"""Training-free scores of architectures. Names and options need no torch; `Evaluator` does."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
