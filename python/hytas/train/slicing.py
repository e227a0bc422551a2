"""Slices of weights that are read, changed and written back, through the rules of `slice_of`."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product

import torch
from torch import Tensor

from hytas.models.sensor import runs_of_bands
from hytas.models.weight_sharing import slice_of

_Run = tuple[int, int]
"""The first of some neighbouring places along an axis, and the one after the last."""


@lru_cache(maxsize=8192)
def runs_by_axis(name: str, full: torch.Size, wanted: torch.Size) -> tuple[tuple[_Run, ...], ...]:
    """Return what a slice keeps of a full-size parameter: for each axis, runs of places."""
    numbers = slice_of(name, torch.arange(full.numel()).view(full), wanted)
    runs = []
    for axis, size in enumerate(full):
        line = numbers[tuple(slice(None) if a == axis else 0 for a in range(len(full)))]
        places = line // torch.Size(full[axis + 1 :]).numel() % size
        runs.append(tuple(runs_of_bands(places.tolist())))
    return tuple(runs)


def cut(name: str, full: Tensor, wanted: torch.Size) -> Tensor:
    """Return a slice, a view of `full` where the rules allow one."""
    return full if full.shape == wanted else slice_of(name, full, wanted)


def put(name: str, full: Tensor, part: Tensor) -> None:
    """Write a slice into `full`, where `cut` would find it; a view of `full` is there already."""
    if part is full or _share(part, full):
        return
    for block in product(*map(_with_offsets, runs_by_axis(name, full.shape, part.shape))):
        to, of = full, part
        for axis, (start, offset, length) in enumerate(block):
            to, of = to.narrow(axis, start, length), of.narrow(axis, offset, length)
        to.copy_(of)


def _share(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one memory; False where a tensor does not show it."""
    try:
        return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    except RuntimeError:
        return False


def _with_offsets(runs: tuple[_Run, ...]) -> list[tuple[int, int, int]]:
    """Return of each run its start in the full parameter, its start in the slice, its length."""
    offsets, offset = [], 0
    for start, end in runs:
        offsets.append((start, offset, end - start))
        offset += end - start
    return offsets


def union(
    sizes: Mapping[str, torch.Size], others: Mapping[str, torch.Size]
) -> dict[str, torch.Size]:
    """Return name -> the smallest size of which both are slices."""
    sizes_of_union = dict(sizes)
    for name, size in others.items():
        before = sizes_of_union.get(name, size)
        sizes_of_union[name] = size if before == size else torch.Size(map(max, before, size))
    return sizes_of_union
