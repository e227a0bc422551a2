"""A pixel embedding that whitens the data it starts from."""

import numpy as np
import pytest
import torch
from torch import Tensor

from hytas.models import InputShape, SpectralTransformer, whiten_embedding
from hytas.models.spectral import Layers
from hytas.models.whitening import whitening

ONE = Layers((2,), (2,))


def network(tokens: str, embed_dim: int = 24) -> SpectralTransformer:
    genes = {
        "tokens": tokens,
        "patch": 3,
        "band_width": 3,
        "band_stride": 2,
        "pooling": "class",
        "fusion": "no",
        "embed_dim": embed_dim,
    }
    return SpectralTransformer(InputShape(20, 4, patch_size=5), genes, {"band": ONE, "pixel": ONE})


def patches(count: int = 200) -> Tensor:
    """Bands that are mixtures of 20 sources of very different strength."""
    generator = torch.Generator().manual_seed(0)
    mixture = torch.linalg.qr(torch.randn(20, 20, generator=generator)).Q
    mixture *= torch.logspace(0, -1, 20)[:, None]
    return torch.randn(count, 5, 5, 20, generator=generator) @ mixture + 3.0


@pytest.mark.parametrize("tokens", ["pixel", "series", "parallel"])
def test_embedded_values_have_one_variance_in_all_directions(tokens: str) -> None:
    made = network(tokens)
    seen = patches()
    whiten_embedding(made, seen, seed=1)
    inner = seen[:, 1:4, 1:4]
    rows = made.pixel_embed.project(inner.flatten(1, 2)).detach().flatten(0, 1)
    assert abs(float(rows.mean())) < 1e-3
    assert float(rows.pow(2).mean().sqrt()) == pytest.approx(0.5, rel=1e-3)
    spread = torch.linalg.svdvals(torch.cov(rows.T))
    assert float(spread[19] / spread[0]) > 0.98  # of 20 bands
    assert float(spread[20:].sum()) < 1e-3


def test_faint_directions_are_not_blown_up() -> None:
    seen = patches()
    seen[..., 0] = seen[..., 1] + 1e-6 * torch.randn(seen.shape[:-1])
    made = network("pixel")
    whiten_embedding(made, seen, seed=1)
    gain = float(torch.linalg.svdvals(made.pixel_embed.project.weight.detach())[0])
    deviation = float(torch.linalg.svdvals(torch.cov(seen.flatten(0, 2).T))[0].sqrt())
    assert gain < 1.5 * 0.5 * (24 / 19) ** 0.5 / (0.01 * deviation)


@pytest.mark.parametrize("count", [12, 200])
def test_fewer_pixels_than_bands_are_whitened_alike(count: int) -> None:
    generator = torch.Generator().manual_seed(0)
    spread = torch.logspace(0, -1, 60)
    spectra = (torch.randn(count, 1, 1, 60, generator=generator) * spread).numpy()
    found = whitening(torch.from_numpy(spectra), 64, seed=0)
    assert found is not None
    variance, directions = np.linalg.eigh(np.cov(spectra.reshape(count, 60).T, bias=True))
    deviation = np.sqrt(np.maximum(variance, 0.0))
    seen = deviation > 1e-6
    expected = directions[:, seen] / np.maximum(deviation[seen], 0.01 * deviation.max())
    expected = expected @ expected.T
    weight = found[0].double().numpy()
    visible = directions[:, seen] @ directions[:, seen].T
    products = visible @ weight.T @ weight @ visible
    assert np.allclose(products / products.trace(), expected / expected.trace(), atol=1e-6)


def test_seed_decides_and_nothing_else_moves() -> None:
    first, second, other = (network("parallel") for _ in range(3))
    for made in (second, other):
        made.load_state_dict(first.state_dict())
    before = {name: value.clone() for name, value in first.state_dict().items()}
    for made, seed in ((first, 1), (second, 1), (other, 2)):
        whiten_embedding(made, patches(), seed)
    changed = {n for n, value in first.state_dict().items() if not torch.equal(value, before[n])}
    assert changed == {"pixel_embed.project.weight", "pixel_embed.project.bias"}
    for name in changed:
        assert torch.equal(first.state_dict()[name], second.state_dict()[name])
    weight = "pixel_embed.project.weight"
    assert not torch.equal(first.state_dict()[weight], other.state_dict()[weight])


@pytest.mark.parametrize("seen", [patches(1), torch.zeros(4, 5, 5, 20), torch.ones(4, 5, 5, 20)])
def test_few_or_equal_patches_leave_finite_weights(seen: Tensor) -> None:
    made = network("parallel")
    whiten_embedding(made, seen, seed=0)
    assert all(bool(torch.isfinite(value).all()) for value in made.state_dict().values())
    assert bool(torch.isfinite(made(patches(2))).all())
