"""Every proxy against its formula, evaluated naively in float64 on networks built with torch.nn."""

import numpy as np
import oracle
import pytest
import torch
from small_networks import SMALL

from hytas.proxies import Evaluator
from hytas.proxies.formulas import naswot
from hytas.proxies.network import Tap


@pytest.mark.parametrize("name", sorted(oracle.ORACLES))
def test_proxy_is_its_formula(name, shape, batch) -> None:
    evaluator = Evaluator(name, shape, batch=batch, seed=3, precision="float64")
    for architecture, result in zip(SMALL, evaluator.score(SMALL), strict=True):
        network = oracle.build(architecture, shape, seed=3, patches=batch[0])
        expected = oracle.ORACLES[name](network, batch)
        assert result["scores"][name] == pytest.approx(expected, rel=1e-7, abs=1e-10, nan_ok=True)
        assert np.isfinite(expected) == (name not in result["reasons"])


def test_signs_are_counted_exactly_in_reduced_precision() -> None:
    outputs = torch.randn(1, 6, 3, 401, generator=torch.Generator().manual_seed(0))
    none = torch.empty(0)
    tap = Tap("fc1", none, none, none, none, outputs)
    exact = naswot(tap)
    assert exact.max() == 3 * 401
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(naswot(tap), exact)


@pytest.mark.parametrize("name", sorted(oracle.ORACLES))
def test_group_equals_one_at_a_time(name, shape, batch) -> None:
    alone = Evaluator(name, shape, batch=batch, seed=3, group_size=1).score(SMALL)
    grouped = Evaluator(name, shape, batch=batch, seed=3, group_size=8).score(SMALL[::-1])[::-1]
    for one, many in zip(alone, grouped, strict=True):
        assert many["scores"][name] == pytest.approx(one["scores"][name], rel=1e-5, nan_ok=True)
