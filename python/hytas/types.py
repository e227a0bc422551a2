"""Names of array types."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pixels = NDArray[np.int64]
"""Flat indices (n,) of pixels of a scene, or numbers of images."""
Logits = NDArray[np.float32]
"""(n, C), of a network."""
Architecture = Mapping[str, Any]
"""Genes by name, with the space under `space`."""
Progress = Callable[[int, int], None]
"""The work that is done, and all of it."""
Smoother = Callable[[Pixels, NDArray[np.float32]], NDArray[np.float32]]
"""Flat pixel indices (n,), ascending, and their probabilities (n, C) -> smoothed ones (n, C)."""
