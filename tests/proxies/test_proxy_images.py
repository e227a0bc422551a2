"""Proxies score the networks of images as they score those of scenes."""

from typing import Any

import numpy as np
import pytest

from hytas.proxies import Evaluator
from hytas.proxies.table import PROXIES
from hytas.spaces.shape import ImageShape

SMALL: dict[str, dict[str, Any]] = {
    "autoformer-mini": {"depth": 2, "embed_dim": 16, "num_heads": [1, 2], "mlp_ratio": [1, 2]},
    "pit-tiny": {"base_dim": 4, "depth": [1, 1, 1], "num_heads": [2, 1, 2], "mlp_ratio": 1},
    "s3": {
        "embed_dim": 8,
        "window": [3, 2, 2, 2],
        **{f"depth_{stage}": 2 if stage == 1 else 1 for stage in range(1, 5)},
        **{f"num_heads_{stage}": [1, 1] if stage == 1 else [1] for stage in range(1, 5)},
        **{f"mlp_ratio_{stage}": [1, 1] if stage == 1 else [1] for stage in range(1, 5)},
    },
}
# Its formula has no value where a gradient is below -1.
NAMES = [
    f"{name}:domain=absolute" if name == "logsynflow" else name
    for name, proxy in PROXIES.items()
    if proxy.observes
]


@pytest.mark.parametrize("space", SMALL)
def test_all_proxies_score_a_network_of_images(space: str) -> None:
    shape = ImageShape.of(space, 2, 3, 16)
    generator = np.random.default_rng(0)
    batch = generator.normal(size=(3, 16, 16, 2)).astype(np.float32), np.arange(3)
    evaluator = Evaluator(",".join(NAMES), shape, batch=batch)
    genes = {"space": space, **SMALL[space]}
    (found,) = evaluator.score([genes])
    assert len(NAMES) == 14
    assert not found["reasons"]
    assert len(found["scores"]) == 14
    assert all(np.isfinite(value) for value in found["scores"].values())
    alone = Evaluator("snip", shape, batch=batch).score([genes])[0]
    assert alone["scores"]["snip"] == pytest.approx(found["scores"]["snip"], rel=1e-6)
