"""The usual learning rate: faster only for narrow networks without attention."""

from typing import Any

import pytest
from torch import nn

from hytas.models import InputShape, build_network
from hytas.train import Recipe, usual_rate
from small import GATED

SHAPE = InputShape(bands=12, classes=3, patch_size=3)


def network(**genes: Any) -> nn.Module:
    usual = GATED | {"patch": 3, "band_mixer": "conv3", "pixel_mlp": [1]}
    return build_network(usual | genes, SHAPE)


@pytest.mark.parametrize(
    ("genes", "rate"),
    [
        ({"embed_dim": 16}, 2e-3),
        ({"embed_dim": 64}, 2e-3),
        ({"embed_dim": 80}, 1.6e-3),
        ({"embed_dim": 128}, 1e-3),
        ({"embed_dim": 256}, 1e-3),
        ({"embed_dim": 16, "pixel_mixer": "attention"}, 1e-3),
        (
            {"embed_dim": 16, "tokens": "series", "band_mixer": "attention"}
            | {"band_depth": 1, "band_mlp": [1]},
            1e-3,
        ),
    ],
)
def test_narrow_networks_without_attention_train_faster(genes: dict[str, Any], rate: float) -> None:
    assert usual_rate([network(**genes)]) == pytest.approx(rate)


def test_networks_that_train_together_take_the_slowest_rate() -> None:
    assert usual_rate([network(embed_dim=16), network(embed_dim=128)]) == pytest.approx(1e-3)


def test_other_modules_have_the_rate_of_wide_networks() -> None:
    assert usual_rate([nn.Linear(2, 2)]) == pytest.approx(1e-3)


def test_a_rate_in_the_recipe_is_a_number() -> None:
    assert Recipe().learning_rate is None
    assert Recipe().changed(["learning_rate=2e-3"]).learning_rate == pytest.approx(2e-3)
