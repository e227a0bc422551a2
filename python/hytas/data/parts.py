"""The parts of a joined scene: which rows each scene takes in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Part:
    """A scene inside a joined one, at the left border.

    Attributes:
        name: of the scene.
        top: its first row in the joined scene.
        height, width: its size in pixels.
        learnt: whether its pixels may train; False keeps all of them for a report of their own.
        fingerprint: of the scene.
    """

    name: str
    top: int
    height: int
    width: int
    learnt: bool
    fingerprint: str

    @property
    def window(self) -> tuple[slice, slice]:
        """Return the rows and the columns of the scene in the joined one."""
        return slice(self.top, self.top + self.height), slice(0, self.width)

    def pixels(self, width: int) -> npt.NDArray[np.int64]:
        """Return flat indices of its pixels in the joined scene of `width` columns, ascending."""
        rows = np.arange(self.top, self.top + self.height)
        return (rows[:, None] * width + np.arange(self.width)).ravel()


def mask_of(parts: Sequence[Part], shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Return (H, W), True in the pixels of the parts."""
    mask = np.zeros(shape, np.bool_)
    for part in parts:
        mask[part.window] = True
    return mask
