"""Every proxy against its formula, evaluated naively in float64 on networks built with torch.nn."""

import dataclasses

import numpy as np
import oracle
import pytest
import torch
from small_networks import SMALL, WIDE

from hytas.proxies import Evaluator
from hytas.proxies.formulas import naswot
from hytas.proxies.layer_records import LayerRecord, Product

EVERY = ",".join(oracle.ORACLES)


@pytest.mark.parametrize("memory", [None, 1000])
@pytest.mark.parametrize("space", ["hytas", "hytas-wide"])
def test_every_proxy_is_its_formula(space, memory, shape, batch, wide_shape, wide_batch) -> None:
    wide = space == "hytas-wide"
    networks, shape = (WIDE, wide_shape) if wide else (SMALL, shape)
    patches, labels = wide_batch if wide else batch
    scorer = Evaluator(EVERY, shape, batch=(patches, labels), seed=3, precision="float64")
    if memory is not None:  # too little for any graph: activations are computed twice
        scorer.setting = dataclasses.replace(scorer.setting, memory=memory)
    for architecture, result in zip(networks, scorer.score(networks), strict=True):
        margin = (shape.patch_size - architecture.get("patch", shape.patch_size)) // 2
        inner = slice(margin, shape.patch_size - margin)
        seen = patches[:, inner, inner]  # all that the network looks at
        network = oracle.build(architecture, shape, seed=3, patches=seen)
        for name, formula in oracle.ORACLES.items():
            expected = formula(network, (seen, labels))
            close = 1e-6 if name == "dss" else 1e-7  # norms by Gram matrices
            assert np.isfinite(expected) == (name not in result["reasons"]), name
            if np.isfinite(expected):
                found = result["scores"][name]
                assert found == pytest.approx(expected, rel=close, abs=1e-10), name


def test_float32_is_close_to_float64(shape, batch) -> None:
    names = "snip,grad_norm,fisher,zico,zico_pp,croze,grasp,dss,synflow:terms=absolute"
    exact = Evaluator(names, shape, batch=batch, seed=3, precision="float64").score(SMALL)
    usual = Evaluator(names, shape, batch=batch, seed=3).score(SMALL)
    for one, other in zip(exact, usual, strict=True):
        for name, value in one["scores"].items():
            assert other["scores"][name] == pytest.approx(value, rel=1e-3), name


def test_signs_are_counted_exactly_in_reduced_precision() -> None:
    outputs = torch.randn(1, 6, 3, 401, generator=torch.Generator().manual_seed(0))
    none = torch.empty(0)
    layer = LayerRecord("fc1", "fc1", none, outputs.new_zeros(1, 401, 1), [Product(none, outputs)])
    exact = naswot(layer)
    assert exact.max() == 3 * 401
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(naswot(layer), exact)
