"""Every proxy against its formula, evaluated naively in float64 on networks built with torch.nn."""

import dataclasses

import numpy as np
import oracle
import pytest
import torch
from small_networks import SMALL, WIDE

from hytas.proxies import Evaluator
from hytas.proxies.formulas import naswot
from hytas.proxies.layer_records import LayerProduct, LayerRecord

EVERY = ",".join(oracle.ORACLES)


@pytest.mark.parametrize("space", ["hytas", "hytas-wide"])
def test_every_proxy_is_its_formula(space, shape, batch, wide_shape, wide_batch) -> None:
    wide = space == "hytas-wide"
    networks, shape = (WIDE, wide_shape) if wide else (SMALL, shape)
    patches, labels = wide_batch if wide else batch
    scorer = Evaluator(EVERY, shape, batch=(patches, labels), seed=3, precision="float64")
    results = scorer.score(networks)
    # Too little memory for any graph: activations are computed twice.
    scorer.setting = dataclasses.replace(scorer.setting, memory=1000)
    twice = scorer.score(networks)
    for architecture, result, again in zip(networks, results, twice, strict=True):
        margin = (shape.patch_size - architecture.get("patch", shape.patch_size)) // 2
        inner = slice(margin, shape.patch_size - margin)
        seen = patches[:, inner, inner]  # all that the network looks at
        network = oracle.build(architecture, shape, seed=3, patches=seen)
        for name, formula in oracle.ORACLES.items():
            expected = formula(network, (seen, labels))
            for found in (result, again):
                assert np.isfinite(expected) == (name not in found["reasons"]), name
                if np.isfinite(expected):
                    close = pytest.approx(expected, rel=1e-7, abs=1e-10)
                    assert found["scores"][name] == close, name


def test_float32_is_close_to_float64(shape, batch) -> None:
    names = "snip,grad_norm,fisher,zico,zico_pp,croze,grasp,dss,synflow:terms=absolute"
    exact = Evaluator(names, shape, batch=batch, seed=3, precision="float64").score(SMALL)
    usual = Evaluator(names, shape, batch=batch, seed=3).score(SMALL)
    for one, other in zip(exact, usual, strict=True):
        for name, value in one["scores"].items():
            assert other["scores"][name] == pytest.approx(value, rel=1e-3), name


def test_signs_are_counted_exactly_in_reduced_precision() -> None:
    outputs = torch.randn(6, 3, 401, generator=torch.Generator().manual_seed(0))
    none = torch.empty(0)
    layer = LayerRecord("fc1", "fc1", 1, outputs.new_zeros(401, 1), [LayerProduct(none, outputs)])
    exact = naswot(layer)
    assert exact.max() == 3 * 401
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(naswot(layer), exact)
