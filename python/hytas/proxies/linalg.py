"""Batched linear algebra that the proxies need."""

import torch
from torch import Tensor


def nuclear_norm(matrices: Tensor) -> Tensor:
    """Sum of singular values, (A, m, n) -> (A,).

    From the eigenvalues of the smaller Gram matrix in float64: 2 to 3 times as fast as a singular
    value decomposition, and exact to about 1e-8 of the largest singular value.
    """
    wide = matrices.double()
    if wide.shape[-2] > wide.shape[-1]:
        wide = wide.transpose(-1, -2)
    gram = wide @ wide.transpose(-1, -2)
    if not bool(torch.isfinite(gram).all()):
        return torch.where(
            torch.isfinite(gram).flatten(1).all(1), _roots(torch.nan_to_num(gram)), torch.nan
        )
    return _roots(gram)


def _roots(gram: Tensor) -> Tensor:
    values: Tensor = torch.linalg.eigvalsh(gram)
    return values.clamp_min(0.0).sqrt().sum(-1)
