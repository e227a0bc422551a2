"""Nuclear norms by matrix products, as a GPU takes them, against singular values."""

import pytest
import torch
from torch import Tensor

from hytas.proxies.linalg import nuclear_norms, trace_of_root


def random(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def with_values(values: Tensor, rows: int) -> Tensor:
    left, right = (torch.linalg.qr(random(3, size, len(values)))[0] for size in (rows, len(values)))
    return (left * values) @ right


@pytest.mark.parametrize(
    "matrices",
    [
        random(4, 336, 112),
        random(4, 48, 48),
        random(4, 96, 5) @ random(4, 5, 48),  # of rank 5, as gradients of one patch may be
        with_values(torch.logspace(0, -8, 40, dtype=torch.float64), 90),
        with_values(torch.tensor([1.0] + [1e-5] * 39, dtype=torch.float64), 90),
        1e80 * random(2, 60, 40),
        1e-30 * random(2, 40, 60),
    ],
    ids=["tall", "square", "low rank", "decaying", "one large", "huge", "tiny"],
)
def test_trace_of_root_is_the_sum_of_singular_values(matrices: Tensor) -> None:
    expected = torch.linalg.svdvals(matrices).sum(-1)
    scale = matrices.abs().max()
    wide = (matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT) / scale
    found = trace_of_root(wide @ wide.mT) * scale
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0.0)
    torch.testing.assert_close(
        torch.stack(nuclear_norms(list(matrices))), expected, rtol=1e-12, atol=0.0
    )
    single = torch.stack(nuclear_norms(list((matrices / scale).float())))
    torch.testing.assert_close(single * scale, expected, rtol=1e-5, atol=0.0)


def test_zeros_have_no_norm_and_what_is_not_finite_none() -> None:
    assert trace_of_root(torch.zeros(2, 40, 40, dtype=torch.float64)).tolist() == [0.0, 0.0]
    broken = torch.zeros(2, 3, 4)
    broken[1, 0, 0] = torch.inf
    found = nuclear_norms(list(broken))
    assert found[0] == 0.0
    assert found[1].isnan()
