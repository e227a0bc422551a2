"""Labelled pixels in the form that training reads."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hytas.tasks import Classes, PredictionTask

EVALUATION_BATCH = {"cpu": 64, "cuda": 256}
"""Pixels that a device evaluates at once: on a CPU, activations then stay in its cache. Patches of
32 MB or more come from fresh memory each time, which takes longer than to scale them."""
MOST_KEPT = (
    2**28
)  # bytes of scaled patches that a training keeps instead of reading them each epoch


@dataclass(frozen=True)
class LabelledPixels:
    """Pixels, their classes, and the function that reads the scaled patches around them.

    Attributes:
        patches: flat pixel indices (n,) -> scaled patches (n, P, P, bands), float32.
        pixels: flat pixel indices (N,).
        targets: class indices (N,), 0-based; or standardised values (N, T).
        classes: number of classes C.
        dark: scaled values (bands,) of a pixel without light; None means 0, the scaling's centre.
        soft_labels: probabilities (N, C) that a training aims at instead of targets; or None.
        teacher: scaled patches (n, P, P, bands), augmented -> class distributions (n, C) that a
            training aims at as well; or None.
        of: the task; None is that of classes.
        groups: (N,) of the pixels, which no inner fold may divide; or None.
    """

    patches: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    pixels: NDArray[np.int64]
    targets: NDArray[Any]
    classes: int
    dark: NDArray[np.float32] | None = None
    soft_labels: NDArray[np.float32] | None = None
    teacher: Callable[[Tensor], Tensor] | None = None
    of: PredictionTask | None = None
    groups: NDArray[np.int64] | None = None

    @property
    def task(self) -> PredictionTask:
        """What is predicted."""
        return self.of or Classes(self.classes)

    def __len__(self) -> int:
        return len(self.pixels)

    def batch(self, order: NDArray[np.int64], device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the patches (n, P, P, bands) and class indices (n,) at positions `order`.

        The order of the values in memory does not depend on where the patches were read: sums of
        other orders round otherwise.
        """
        patches = torch.from_numpy(np.ascontiguousarray(self.patches(self.pixels[order])))
        return patches.to(device), torch.from_numpy(self.targets[order]).to(device)

    def target_probabilities(self, order: NDArray[np.int64], device: torch.device) -> Tensor:
        """Return the probabilities (n, C) that a training aims at, at positions `order`."""
        if self.soft_labels is not None:
            return torch.from_numpy(self.soft_labels[order]).to(device)
        return self.task.aims(torch.from_numpy(self.targets[order]).to(device))

    def draws(self, device: torch.device | str = "cpu") -> Tensor | None:
        """Return the share (n,) of each pixel among those drawn for an epoch; None: each once."""
        shares = self.task.draws(self.targets)
        return None if shares is None else torch.from_numpy(shares).to(device)

    def positions(self, device: torch.device) -> list[NDArray[np.int64]]:
        """Return all positions in order, in parts that `device` evaluates at once."""
        most = EVALUATION_BATCH.get(device.type, EVALUATION_BATCH["cpu"])
        return np.array_split(np.arange(len(self)), max(1, math.ceil(len(self) / most)))

    def subset(self, pixels: NDArray[np.int64]) -> Self:
        """Return these flat pixel indices (n,) with their classes; `self.pixels` must ascend."""
        at = np.searchsorted(self.pixels, pixels)
        own = {"soft_labels": self.soft_labels, "groups": self.groups}
        parts: dict[str, Any] = {n: None if one is None else one[at] for n, one in own.items()}
        return replace(self, pixels=pixels, targets=self.targets[at], **parts)

    @property
    def is_small(self) -> bool:
        """Whether the patches of all pixels fit `MOST_KEPT`."""
        return not len(self) or self.patch_bytes <= MOST_KEPT

    @property
    def patch_bytes(self) -> int:
        """Return the bytes that the patches of all pixels take together."""
        return len(self) * self.patches(self.pixels[:1]).nbytes

    def kept(self) -> Self:
        """Return the same pixels, with all patches in memory if these are few."""
        ascends = bool((np.diff(self.pixels) > 0).all())
        if isinstance(self.patches, _Patches) or not ascends:
            return self
        return self.in_memory() if self.is_small and len(self) else self

    def in_memory(self) -> Self:
        """Return the same pixels with all patches in memory, to send them to another process.

        `self.pixels` must ascend.
        """
        return replace(self, patches=_Patches(self.pixels, self.patches(self.pixels)))


@dataclass(frozen=True, eq=False)
class _Patches:
    """Patches (N, P, P, bands) in memory, for ascending flat pixel indices (N,)."""

    pixels: NDArray[np.int64]
    patches: NDArray[np.float32]

    def __call__(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.patches[np.searchsorted(self.pixels, chosen)]
