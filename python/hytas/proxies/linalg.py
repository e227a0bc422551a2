"""Batched linear algebra that the proxies need."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

BATCHED_EIGENVALUES = 32
"""Widest matrices whose eigenvalues cuSOLVER finds for a whole batch at once in every release of
torch. For wider ones many call it matrix by matrix, 2 ms each (pytorch issues 174674, 175585)."""
STEPS = 36
GRAM_BYTES = 1 << 28
"""Of matrices whose roots are taken together."""


def nuclear_norms(
    stacks: Sequence[Tensor], real: Sequence[tuple[int, Tensor] | None] | None = None
) -> list[Tensor]:
    """Sums of singular values of stacks of matrices, (A, m, n) each -> (A,) each.

    Of float64, which is for checks, by singular values. Of float32 from the smaller Gram matrices
    in float64. On a CPU by their eigenvalues: 2 to 3 times as fast as singular value
    decompositions, and exact to about 1e-8 of the largest singular value. On a GPU by matrix
    products alone, those of all stacks together.

    Args:
        real: of each stack an axis, 1 or 2, along which its matrices end in zeros that were added,
            and how much of it is not zeros, (A,); None for all. A CPU leaves out the zeros.
    """
    if stacks[0].dtype == torch.float64:
        scaled = [_scaled(stack, None) for stack in stacks]
        return [torch.linalg.svdvals(wide).sum(-1) * peak for wide, peak in scaled]
    groups_of: dict[Any, list[int]] = {}
    for place, stack in enumerate(stacks):
        own = None if real is None else real[place]
        groups_of.setdefault(stack.shape[1:] if own is None else place, []).append(place)
    groups = [
        torch.cat([stacks[place] for place in places]) if len(places) > 1 else stacks[places[0]]
        for places in groups_of.values()
    ]
    bounds = [None if real is None else real[places[0]] for places in groups_of.values()]
    sums = _of_groups(groups, bounds)
    norms: dict[int, Tensor] = {}
    for places, each in zip(groups_of.values(), sums, strict=True):
        parts = torch.split(each, [len(stacks[place]) for place in places])
        norms.update(zip(places, parts, strict=True))
    return [norms[place] for place in range(len(stacks))]


def _of_groups(
    groups: Sequence[Tensor], bounds: Sequence[tuple[int, Tensor] | None]
) -> list[Tensor]:
    """Return the nuclear norms of stacks of different sizes."""
    scaled = [
        _scaled(stack, None if own is None else own[0])
        for stack, own in zip(groups, bounds, strict=True)
    ]
    grams = [wide @ wide.mT for wide, _ in scaled]
    size = max(gram.shape[-1] for gram in grams)
    if grams[0].device.type == "cpu" or size <= BATCHED_EIGENVALUES:
        sums = [
            _sum_of_roots(gram) if own is None else _sum_of_real_roots(gram, own[1])
            for gram, own in zip(grams, bounds, strict=True)
        ]
    else:
        # Rows and columns of zeros add singular values of zero.
        padded = torch.cat([F.pad(gram, (0, size - gram.shape[-1]) * 2) for gram in grams])
        parts = torch.split(padded, max(1, GRAM_BYTES // (8 * size**2)))
        traces = torch.cat([trace_of_root(part) for part in parts])
        sums = list(torch.split(traces, [len(gram) for gram in grams]))
    return [total * peak for total, (_, peak) in zip(sums, scaled, strict=True)]


def _scaled(stack: Tensor, axis: int | None) -> tuple[Tensor, Tensor]:
    """Return matrices in float64, scaled to a largest value of 1, and that value.

    The shorter axis, or `axis`, comes first. Scaled, the squares in a Gram matrix do not overflow.
    For a matrix that is not finite the values are 0, and the largest value is NaN.
    """
    if axis == 2 or (axis is None and stack.shape[-2] > stack.shape[-1]):
        stack = stack.mT
    peak = torch.linalg.vector_norm(stack, torch.inf, (-2, -1)).double()
    finite = peak.isfinite()
    wide = stack / peak.clamp_min(torch.finfo(peak.dtype).tiny)[:, None, None]
    if stack.is_cuda or not bool(finite.all()):
        wide = torch.where(finite[:, None, None], wide, 0.0)
    return wide, peak.masked_fill(~finite, torch.nan)


def _sum_of_roots(gram: Tensor) -> Tensor:
    values: Tensor = torch.linalg.eigvalsh(gram)
    # The rounding error of a zero eigenvalue would count by its root.
    rounding = len(gram[0]) * torch.finfo(gram.dtype).eps * values[:, -1:]
    return values.where(values > rounding, 0.0).sqrt().sum(-1)


def _sum_of_real_roots(gram: Tensor, real: Tensor) -> Tensor:
    """The same, of Gram matrices that end in rows and columns of zeros, which only cost time."""
    counts = real.tolist()
    sums = gram.new_zeros(len(gram))
    for count in sorted(set(counts) - {0}):
        members = [place for place, own in enumerate(counts) if own == count]
        sums[members] = _sum_of_roots(gram[members, :count, :count])
    return sums


def trace_of_root(gram: Tensor) -> Tensor:
    """Trace of the square root of positive semidefinite matrices (A, n, n) float64 -> (A,).

    Newton and Schulz's iteration for the polar factor, x -> x (3 - x^2) / 2 for every singular
    value x, written in terms of x^2 (`left`) and of the product of its factors (`grown`), so that
    a wide matrix is never touched again. A singular value grows by 1.5 a step until it is 1:
    `STEPS` bring up all above 1e-6 of the Frobenius norm, and smaller ones do not matter.
    Source: Higham, Functions of Matrices, SIAM 2008, section 8.3.
    """
    scale = torch.linalg.matrix_norm(gram).clamp_min(torch.finfo(gram.dtype).tiny)[:, None, None]
    left = gram / scale
    grown = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device).expand_as(gram)
    for _ in range(STEPS):
        # Times 1.5 - left / 2: `grown` once, `left` twice.
        grown = torch.baddbmm(grown, grown, left, beta=1.5, alpha=-0.5)
        once = torch.baddbmm(left, left, left, beta=1.5, alpha=-0.5)
        left = torch.baddbmm(once, once, left, beta=1.5, alpha=-0.5)
    trace: Tensor = (gram * grown).sum((-2, -1)) * scale[:, 0, 0].rsqrt()
    return trace
