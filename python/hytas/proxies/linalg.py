"""Nuclear norms of many matrices."""

from collections.abc import Sequence

import torch
from torch import Tensor

BATCHED_EIGENVALUES = 32
"""Widest matrices whose eigenvalues cuSOLVER finds for a whole batch at once in every release of
torch. For wider ones many call it matrix by matrix, 2 ms each (pytorch issues 174674, 175585)."""
STEPS = 36


def nuclear_norms(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Sums of singular values of matrices (m, n), of any sizes; those of one size together.

    Of float64, which is for checks, by singular values. Of float32 from the smaller Gram matrices
    in float64. On a CPU by their eigenvalues: 2 to 3 times as fast as singular value
    decompositions, and exact to about 1e-8 of the largest singular value. On a GPU by matrix
    products alone.
    """
    places_of: dict[torch.Size, list[int]] = {}
    for place, matrix in enumerate(matrices):
        places_of.setdefault(matrix.shape, []).append(place)
    norms: dict[int, Tensor] = {}
    for places in places_of.values():
        sums = _of_stack(torch.stack([matrices[place] for place in places]))
        norms.update(zip(places, sums, strict=True))
    return [norms[place] for place in range(len(matrices))]


def _of_stack(stack: Tensor) -> Tensor:
    """Return the nuclear norms of matrices (A, m, n), (A,)."""
    wide, peak = _scaled(stack)
    if stack.dtype == torch.float64:
        norms: Tensor = torch.linalg.svdvals(wide).sum(-1) * peak
        return norms
    gram = wide @ wide.mT
    by_values = gram.device.type == "cpu" or gram.shape[-1] <= BATCHED_EIGENVALUES
    return (_sum_of_roots(gram) if by_values else trace_of_root(gram)) * peak


def _scaled(stack: Tensor) -> tuple[Tensor, Tensor]:
    """Return matrices in float64, scaled to a largest value of 1, and that value.

    The shorter axis comes first. Scaled, the squares in a Gram matrix do not overflow. For a matrix
    that is not finite the values are 0, and the largest value is NaN.
    """
    if stack.shape[-2] > stack.shape[-1]:
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
