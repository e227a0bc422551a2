"""Records of held-out pixels: the logits of a network on pixels that it was not trained on.

Every decision of the final training reads them (`hytas.decide.decisions`). Nothing needs the
network again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hytas.results import NETWORK
from hytas.tasks import Classes, PredictionTask
from hytas.types import Logits, Pixels

GROUPS = ("logits", "neighbour_logits", "unlabelled_logits")
"""Names of the logits of held-out pixels, their neighbours and unlabelled pixels."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A network's logits on held-out pixels, before and after self-training.

    The filter that smooths a map reads the pixels around a held-out pixel, so their logits are
    here, too. Their labels are not.

    Attributes:
        trained: flat indices of the labelled pixels that the network was trained on.
        pixels: (n,) flat indices of held-out pixels; they fit the temperature.
        targets: (n,) their class indices.
        compared: (k,) flat indices of the held-out pixels that smoothing is compared on; `n` and
            `k` differ where a scene has many.
        compared_targets: (k,) their class indices.
        neighbours: (m,) flat indices, ascending, of all that the filter reads around them, and of
            themselves.
        logits: (n, C) of `pixels`, before self-training.
        neighbour_logits: (m, C) of `neighbours`, likewise.
        unlabelled: (u,) flat indices of pixels whose label nobody reads, the same ones in all
            records of a run; empty where test pixels lie among labelled ones.
        unlabelled_logits: (u, C) of `unlabelled`, before self-training.
        logits_after, neighbour_logits_after, unlabelled_logits_after: the same after self-training;
            None without it.
        linear: (L, n + m, C) logits of networks in closed form, fitted to `trained`, in the order
            of the task's `fits`; empty for images.
        task: what is predicted.
    """

    trained: Pixels
    pixels: Pixels
    targets: NDArray[np.int64]
    compared: Pixels
    compared_targets: NDArray[np.int64]
    neighbours: Pixels
    logits: Logits
    neighbour_logits: Logits
    logits_after: Logits | None = None
    neighbour_logits_after: Logits | None = None
    unlabelled: Pixels = field(default_factory=lambda: np.zeros(0, np.int64))
    unlabelled_logits: Logits = field(default_factory=lambda: np.zeros((0, 1), np.float32))
    unlabelled_logits_after: Logits | None = None
    linear: Logits = field(default_factory=lambda: np.zeros((0, 0, 1), np.float32))
    task: PredictionTask = field(default_factory=lambda: Classes(1))

    @property
    def self_trained(self) -> bool:
        """Whether it has logits after self-training."""
        return self.logits_after is not None

    def final_logits(self, self_trained: bool) -> tuple[Logits, Logits, Logits]:
        """Return logits of `pixels`, `neighbours`, `unlabelled`, after self-training or before."""
        if not self_trained:
            return self.logits, self.neighbour_logits, self.unlabelled_logits
        assert self.logits_after is not None
        assert self.neighbour_logits_after is not None
        assert self.unlabelled_logits_after is not None
        return self.logits_after, self.neighbour_logits_after, self.unlabelled_logits_after

    @property
    def predicted(self) -> NDArray[Any]:
        """Predictions (n, ...) of `pixels`, before self-training."""
        return self.task.predicted(self.logits)

    def shifted(self, shift: NDArray[np.float32]) -> Self:
        """Return the record with a value (C,) added to the logits of each class."""
        return self._changed(lambda _, logits: logits + shift)

    def mean(self, members: Sequence[str]) -> Self:
        """Return the record of the mean of some networks.

        It has no unlabelled pixels: networks in closed form agree more often than they are right.

        Args:
            members: "network", the one of this record, and those of the task's `fits`.
        """
        if tuple(members) == (NETWORK,):
            return self
        parts = np.split(self.linear, [len(self.pixels)], axis=1)
        groups = dict(zip(GROUPS, (*parts, None), strict=True))

        def averaged(name: str, logits: Logits) -> Logits:
            if (group := groups[name.removesuffix("_after")]) is None:
                return logits[:0]
            linear = dict(zip(self.task.fits, group, strict=True))
            return self.task.mean([({NETWORK: logits} | linear)[member] for member in members])

        return replace(self._changed(averaged), unlabelled=self.unlabelled[:0])

    def _changed(self, change: Callable[[str, Logits], Logits]) -> Self:
        """Return the record with other logits, each group by its name."""
        names = [name for name in vars(self) if name.removesuffix("_after") in GROUPS]
        logits = {name: getattr(self, name) for name in names}
        changed: dict[str, Any] = {
            name: change(name, value) for name, value in logits.items() if value is not None
        }
        return replace(self, **changed)
