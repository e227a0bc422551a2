"""How much work an analysis does."""

from collections.abc import Callable
from dataclasses import dataclass

from hytas.errors import InputError

Log = Callable[[str], None]
"""Called with the current work."""


@dataclass(frozen=True)
class AnalysisSettings:
    """Numbers of repetitions, and the seed of all of them.

    Attributes:
        searches: simulated searches of each strategy.
        budget: evaluations of a simulated search.
        fits: fits of each predictor, on networks drawn anew.
        sizes: numbers of trained networks to fit predictors on.
        leads: scores that lead simulated searches; empty for the usual ones, "all" for all.
        by_depth: whether the section of genes looks at each layer.
    """

    resamples: int = 200
    searches: int = 100
    budget: int = 200
    fits: int = 5
    sizes: tuple[int, ...] = (20, 50, 100, 200, 500)
    seed: int = 0
    leads: tuple[str, ...] = ()
    by_depth: bool = False

    def __post_init__(self) -> None:
        for name in ("resamples", "searches", "budget", "fits"):
            if getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "must be 1 or more")
        if any(size < 2 for size in self.sizes):
            sizes = ", ".join(map(str, self.sizes))
            raise InputError("sizes", sizes, "each must be 2 or more")
        if self.seed < 0:
            raise InputError("seed", self.seed, "must be 0 or more")
