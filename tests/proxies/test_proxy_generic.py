"""Proxies of networks of any space: against formulas, alone and together, and of foreign ones."""

import math

import pytest
import torch
from small_networks import SMALL, WIDE

from hytas.models import InputShape, build_network, count_parameters
from hytas.proxies import PROXIES, Evaluator

ALL = ",".join(name for name in PROXIES if name != "inherited").replace(
    "logsynflow", "logsynflow:domain=absolute"
)


def test_pixels_that_the_network_never_sees_change_nothing(wide_shape, wide_batch) -> None:
    architecture, (patches, labels) = {**WIDE[1], "patch": 3}, wide_batch
    other = patches.clone()
    other[:, 0] += 7.0
    inner = patches[:, 1:-1, 1:-1]
    small = InputShape(wide_shape.bands, wide_shape.classes, 3, wide_shape.band_group)
    names = "snip,jacob_cov,croze,naswot"
    one, two, three = (
        Evaluator(names, shape, batch=(pixels, labels)).score([architecture])[0]["scores"]
        for shape, pixels in ((wide_shape, patches), (wide_shape, other), (small, inner))
    )
    assert one == two
    assert one == pytest.approx(three, rel=1e-6)


def test_every_proxy_scores_any_network_whatever_its_companions(wide_shape, wide_batch) -> None:
    def scored(architectures):
        scorer = Evaluator(ALL, wide_shape, batch=wide_batch, seed=2)
        results = scorer.score(architectures)
        assert not any(result["reasons"] for result in results)
        return [result["scores"] for result in results]

    state = torch.random.get_rng_state()
    alone = [scored([architecture])[0] for architecture in WIDE]
    assert scored([SMALL[0], *WIDE[::-1]])[:0:-1] == alone
    assert torch.equal(torch.random.get_rng_state(), state)
    for architecture, scores in zip(WIDE, alone, strict=True):
        assert all(math.isfinite(value) for value in scores.values())
        assert scores["params"] == count_parameters(build_network(architecture, wide_shape))


def test_seeds_move_every_score(wide_shape, wide_batch) -> None:
    first, other = (
        Evaluator(ALL, wide_shape, batch=wide_batch, seed=seed).score(WIDE[3:4])[0]
        for seed in (0, 1)
    )
    same = {n for n in first["scores"] if first["scores"][n] == other["scores"][n]}
    assert same == {"params", "macs", "depth-embed", "width", "regions"}


def test_overflow_and_faults_are_recorded_there_too(wide_shape, wide_batch) -> None:
    broken = {key: value for key, value in WIDE[0].items() if key != "embed_dim"}
    unknown = {**WIDE[0], "space": "nowhere"}
    results = Evaluator("snip,params", wide_shape, batch=wide_batch).score(
        [broken, unknown, WIDE[0]]
    )
    assert "embed_dim" in results[0]["reasons"]["snip"]
    assert "not one of hytas" in results[1]["reasons"]["snip"]
    assert not results[2]["reasons"]
