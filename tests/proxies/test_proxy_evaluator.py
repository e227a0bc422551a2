"""What a score may depend on, and what happens to one that fails."""

import dataclasses
import math

import oracle
import pytest
import torch
from small_networks import SMALL

from hytas.models import InputShape, build_network, count_parameters
from hytas.proxies import PROXIES, Evaluator, Proxy

ALL = ",".join(name for name in PROXIES if name != "inherited").replace(
    "logsynflow", "logsynflow:domain=absolute"
)


def scored(architectures, shape, batch, proxies=ALL, **options):
    results = Evaluator(proxies, shape, batch=batch, **{"seed": 5, **options}).score(architectures)
    assert all(not result["reasons"] for result in results)
    return [result["scores"] for result in results]


def test_score_depends_on_the_genes_alone(shape, batch) -> None:
    genes = {"embed_dim": 32, "num_heads": [2, 4], "mlp_ratio": [1, 2]}
    told = {**genes, "space": "hytas", "depth": 2, "costs": {"params": 7}, "OA": 0.5}
    evaluator = Evaluator("snip,random", shape, batch=batch)
    one, other = evaluator.score([genes, told])
    assert one["scores"] == other["scores"]


def test_score_depends_on_neither_companions_nor_order(shape, batch) -> None:
    alone = [scored([architecture], shape, batch)[0] for architecture in SMALL[:2]]
    assert scored(SMALL[1::-1], shape, batch)[::-1] == alone


def test_score_is_bitwise_the_same_whatever_the_threads(shape, batch) -> None:
    expected = scored(SMALL[:1], shape, batch)
    torch.set_num_threads(2)
    try:
        assert scored(SMALL[:1], shape, batch) == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_score_depends_on_the_seed_and_leaves_torch_as_it_was(shape, batch) -> None:
    state, patches = torch.random.get_rng_state(), batch[0].clone()
    first, again, other = (scored(SMALL[:1], shape, batch, seed=s)[0] for s in (0, 0, 1))
    assert first == again
    moved = {name for name in first if first[name] != other[name]}
    assert moved == set(first) - {"params", "macs", "depth-embed", "width", "regions"}
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(batch[0], patches)


@pytest.mark.parametrize("ratio", [2.3, 0.7, 1 / 3, 1.5])
@pytest.mark.parametrize("embed", [7, 100])
def test_params_of_genes_that_the_space_does_not_list(shape, embed: int, ratio: float) -> None:
    # 100 * 2.3 is 229.99999999999997 in floats: the engine and the network must agree on 230.
    odd = {"depth": 3, "embed_dim": embed, "num_heads": [7, 1, 4], "mlp_ratio": [ratio, 2, 4]}
    (result,) = scored([odd], shape, None, "params")
    network = build_network({"space": "hytas", **odd}, shape)
    assert result["params"] == count_parameters(network)


@pytest.mark.parametrize("proxies", ["huge", "huge,beyond", "huge,broken"])
def test_overflow_is_computed_again_in_float64(proxies, shape, batch, monkeypatch) -> None:
    def huge(layer):
        return (layer.weight.square().sum() * 0 + 1e30) * 1e30

    def beyond(layer):
        return layer.weight.double().square().sum() * math.inf

    def broken(layer):
        raise RuntimeError("no such layer")

    for function in (huge, beyond, broken):
        monkeypatch.setitem(PROXIES, function.__name__, Proxy(function))
    for result in Evaluator(proxies, shape, batch=batch).score(SMALL[:1] * 4):
        assert result["scores"]["huge"] == pytest.approx(18e60)  # 18 linear layers of 1e60
        if proxies == "huge,beyond":
            assert math.isnan(result["scores"]["beyond"])
            assert result["reasons"] == {"beyond": "inf: the score has no finite value"}


def test_sign_acts_on_every_weight_or_on_those_outside_linear_layers(shape, batch) -> None:
    for sign in ("weights", "released"):
        values = scored(SMALL, shape, batch, f"dss:sign={sign}", precision="float64")
        for architecture, scores in zip(SMALL, values, strict=True):
            network = oracle.build(architecture, shape, seed=5, sign=sign)
            if sign == "weights":
                assert all(bool((p >= 0).all()) for p in network.parameters())
            assert scores[f"dss:sign={sign}"] == pytest.approx(oracle.dss(network, batch), rel=1e-7)


def test_parts_add_up_and_log(shape, batch) -> None:
    names = "dss,dss:parts=msa,dss:parts=mlp,dss:parts=log,dss:layers=all"
    values = scored(SMALL, shape, batch, names)
    for scores in values:
        msa, mlp = scores["dss:parts=msa"], scores["dss:parts=mlp"]
        assert scores["dss"] == pytest.approx(msa + mlp, rel=1e-6)
        assert scores["dss:parts=log"] == pytest.approx(math.log(msa) + math.log(mlp), rel=1e-6)
        assert scores["dss:layers=all"] > scores["dss"]


def test_absolute_terms_of_synflow_and_logsynflow(shape, batch) -> None:
    plain, log = "synflow:terms=absolute", "logsynflow:domain=absolute"
    values = scored(SMALL, shape, batch, f"{plain},{log}")
    for architecture, scores in zip(SMALL, values, strict=True):
        network = oracle.build(architecture, shape, seed=5)
        found = oracle.saliency(network, oracle.ones_loss(network))
        expected = sum(float((g * w).abs().sum()) for _, w, g in found)
        assert scores[plain] == pytest.approx(expected, rel=1e-5)
        expected = sum(float(((g.abs() + 1).log() * w.abs()).sum()) for _, w, g in found)
        assert scores[log] == pytest.approx(expected, rel=1e-5)


def test_grasp_is_the_same_with_little_memory(shape, batch) -> None:
    roomy = Evaluator("grasp,snip", shape, batch=batch, seed=5)
    tight = Evaluator("grasp,snip", shape, batch=batch, seed=5)
    tight.setting = dataclasses.replace(tight.setting, memory=1)
    rough = Evaluator("grasp,snip", shape, batch=batch, seed=5, precision="bf16")
    for one, two, three in zip(*(e.score(SMALL) for e in (roomy, tight, rough)), strict=True):
        for name, value in one["scores"].items():
            assert two["scores"][name] == pytest.approx(value, rel=1e-5)
            assert three["scores"][name] == pytest.approx(value, rel=0.05)


def test_reduced_precision_keeps_the_ranks(shape, batch) -> None:
    from scipy.stats import spearmanr

    architectures = [
        {
            **SMALL[0],
            "embed_dim": embed,
            "num_heads": [3] * depth,
            "mlp_ratio": [2] * depth,
            "depth": depth,
        }
        for embed in (32, 48, 64)
        for depth in (3, 4, 5)
    ]
    names = "snip,grad_norm,dss"
    exact = scored(architectures, shape, batch, names)
    reduced = scored(architectures, shape, batch, names, precision="bf16")
    for name in names.split(","):
        pairs = [(a[name], b[name]) for a, b in zip(exact, reduced, strict=True)]
        assert any(a != b for a, b in pairs), "bf16 was not used"
        assert spearmanr(*zip(*pairs, strict=True)).statistic > 0.9


def test_terms_that_cancel_are_summed_in_float64() -> None:
    # What is left of the signed terms of many bands is a thousandth of them: in float32 it would
    # differ in the fifth digit.
    many_bands = InputShape(bands=60, classes=4, patch_size=3, band_group=3)
    names = "synflow,synflow:parts=msa"
    usual, exact = (
        scored(SMALL, many_bands, None, names, precision=precision)
        for precision in ("float32", "float64")
    )
    assert usual == exact


def test_what_cannot_be_measured_is_recorded_and_not_raised(shape, batch) -> None:
    broken = [
        {"embed_dim": 32, "num_heads": heads, "mlp_ratio": ratios}
        for heads, ratios in (([0], [1]), ([1], [math.inf]), ([1], [0]), ("12", [1]))
    ]
    results = Evaluator("snip", shape, batch=batch).score([SMALL[0], *broken])
    assert results[0]["scores"]["snip"] > 0
    assert all(math.isnan(one["scores"]["snip"]) and one["reasons"] for one in results[1:])


def test_the_defaults_of_the_caller_change_nothing(shape, batch) -> None:
    expected = scored(SMALL[:2], shape, batch, "snip,dss")
    patches = batch[0].clone().requires_grad_()
    torch.set_default_dtype(torch.float64)
    try:
        assert scored(SMALL[:2], shape, (patches, batch[1]), "snip,dss,jacob_cov")[0].items() >= (
            expected[0].items()
        )
    finally:
        torch.set_default_dtype(torch.float32)
    assert patches.grad is None
