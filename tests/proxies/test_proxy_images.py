"""Proxies score the networks of images as they score those of scenes."""

import subprocess
import sys
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
    evaluator = Evaluator(",".join(NAMES), shape, batch=batch, init="own")
    genes = {"space": space, **SMALL[space]}
    (found,) = evaluator.score([genes])
    assert len(NAMES) == 14
    assert not found["reasons"]
    assert len(found["scores"]) == 14
    assert all(np.isfinite(value) for value in found["scores"].values())
    alone = Evaluator("snip", shape, batch=batch, init="own").score([genes])[0]
    assert alone["scores"]["snip"] == pytest.approx(found["scores"]["snip"], rel=1e-6)


MEMORY = """
import numpy as np
from hytas.deploy.bench import resident_mb
from hytas.proxies import Evaluator
from hytas.spaces.shape import ImageShape

heads = [4, 3, 3, 3, 3, 4, 4, 3, 3, 3, 4, 3, 3]
ratios = [3.5, 4, 3.5, 3.5, 4, 3.5, 3.5, 3.5, 4, 4, 4, 4, 3.5]
genes = {"space": "autoformer-tiny", "depth": 13, "embed_dim": 192}
genes |= {"num_heads": heads, "mlp_ratio": ratios}
batch = np.zeros((6, 224, 224, 3), np.float32), np.arange(6)
shape = ImageShape.of("autoformer-tiny", 3, 1000, 224)
before = resident_mb()
(found,) = Evaluator("snip", shape, batch=batch).score([genes])
assert not found["reasons"], found
print(resident_mb() - before)
"""


def test_a_pass_at_224_pixels_takes_bounded_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    # SNIP of TF-TAS-T (6.2M parameters) on six images; 665 MiB were measured.
    assert 50 < float(done.stdout) < 1000
