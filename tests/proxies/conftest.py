"""The small shape and batch that the proxy tests share."""

import pytest
import torch

from hytas.models import InputShape


@pytest.fixture
def shape() -> InputShape:
    return InputShape(bands=9, classes=4, patch_size=3, band_group=3)


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, 3, 3, 9, generator=generator), torch.tensor([0, 1, 2, 3, 1])


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def wide_shape() -> InputShape:
    return InputShape(bands=20, classes=4, patch_size=5, band_group=3)


@pytest.fixture
def wide_batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, 5, 5, 20, generator=generator), torch.tensor([0, 1, 2, 3, 1])
