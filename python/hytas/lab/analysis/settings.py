"""How much work an analysis does."""

from collections.abc import Callable
from dataclasses import dataclass

Log = Callable[[str], None]
"""Called with the current work."""


@dataclass(frozen=True)
class AnalysisSettings:
    """Numbers of repetitions, and the seed of all of them.

    Attributes:
        fits: fits of each predictor, on networks drawn anew.
        sizes: numbers of trained networks to fit predictors on.
        by_depth: whether the section of genes looks at each layer.
    """

    resamples: int = 200
    fits: int = 5
    sizes: tuple[int, ...] = (20, 50, 100, 200, 500)
    seed: int = 0
    by_depth: bool = False
