"""What a score may depend on, and what happens to one that fails."""

import dataclasses
import math
import weakref

import numpy as np
import oracle
import pytest
import torch
from small_networks import SMALL

from hytas.errors import InputError
from hytas.models import InputShape, build_network, count_parameters
from hytas.proxies import PROXIES, Evaluator, Proxy, evaluator, linalg, memory
from hytas.proxies.curvature import curvature_along
from hytas.proxies.draws import Draws, Pool
from hytas.proxies.network import Group, is_one
from hytas.proxies.passes import Pass, cross_entropy_grad
from hytas.proxies.weights import draw_weights

ALL = ",".join(PROXIES).replace("logsynflow", "logsynflow:domain=symmetric")
TOLERANCE = {"dss": 1e-3}  # nuclear norms


def scored(architectures, shape, batch, proxies=ALL, **options):
    results = Evaluator(proxies, shape, batch=batch, **{"seed": 5, **options}).score(architectures)
    assert all(not result["reasons"] for result in results)
    return [result["scores"] for result in results]


@pytest.mark.parametrize("init", ["supernet", "own"])
def test_score_depends_on_the_genes_alone(init, shape, batch) -> None:
    genes = {"embed_dim": 32, "num_heads": [2, 4], "mlp_ratio": [1, 2]}
    told = {**genes, "space": "hytas", "depth": 2, "costs": {"params": 7}, "OA": 0.5}
    evaluator = Evaluator("snip,random", shape, batch=batch, init=init)
    one, other = evaluator.score([genes, told])
    assert one["scores"] == other["scores"]


def test_genes_may_be_arrays_and_whole_floats(shape, batch) -> None:
    plain = {"embed_dim": 32, "num_heads": [2, 4], "mlp_ratio": [1, 2]}
    odd = {"embed_dim": np.int64(32), "num_heads": (2, 4.0), "mlp_ratio": np.array([1.0, 2.0])}
    one, other = Evaluator("snip,random", shape, batch=batch).score([plain, odd])
    assert one["scores"] == other["scores"]
    assert not other["reasons"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x, y: (x.index_fill(0, torch.tensor([0]), math.nan), y), "NaN or infinite"),
        (lambda x, y: (x[:0], y[:0]), "batch of 0 patches"),
        (lambda x, y: (x, y[:, None]), "labels of 2 axes"),
    ],
)
def test_a_batch_that_no_proxy_can_read_is_refused(spoil, message, shape, batch) -> None:
    with pytest.raises(InputError, match=message):
        Evaluator("naswot", shape, batch=spoil(*batch))


@pytest.mark.parametrize("init", ["supernet", "own"])
def test_score_depends_on_neither_companions_nor_order_nor_group(init, shape, batch) -> None:
    alone = [scored([architecture], shape, batch, init=init)[0] for architecture in SMALL]
    for group_size in (1, 2, 16):
        together = scored(SMALL[::-1], shape, batch, group_size=group_size, init=init)[::-1]
        for one, many in zip(alone, together, strict=True):
            for name, value in one.items():
                assert many[name] == pytest.approx(value, rel=TOLERANCE.get(name, 1e-5)), name


def test_score_is_bitwise_the_same_whatever_the_threads(shape, batch) -> None:
    expected = scored(SMALL, shape, batch, workers=1)
    assert scored(SMALL, shape, batch, workers=3) == expected
    torch.set_num_threads(2)
    try:
        assert scored(SMALL, shape, batch) == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_score_depends_on_the_seed_and_leaves_torch_as_it_was(shape, batch) -> None:
    state, patches = torch.random.get_rng_state(), batch[0].clone()
    first, again, other = (scored(SMALL[:1], shape, batch, seed=s)[0] for s in (0, 0, 1))
    assert first == again
    moved = {name for name in first if first[name] != other[name]}
    assert moved == set(first) - {"params", "macs", "depth-embed", "balance"}
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(batch[0], patches)


@pytest.mark.parametrize("init", ["supernet", "own"])
def test_scoring_leaves_the_weights_as_they_were(init, shape, batch) -> None:
    scorer = Evaluator(ALL, shape, batch=batch, init=init)
    draws = scorer.setting.draws
    before = draw_weights(SMALL[0], shape, draws).head.clone()
    snapshot = {name: values.clone() for name, values in draws.pool._made.items()}
    scorer.score(SMALL)
    for name, values in snapshot.items():
        assert torch.equal(draws.pool._made[name][: len(values)], values), name
    assert torch.equal(draw_weights(SMALL[0], shape, draws).head, before)


def test_params_is_the_count_of_the_shipped_network(shape) -> None:
    for architecture, scores in zip(SMALL, scored(SMALL, shape, None, "params"), strict=True):
        assert scores["params"] == count_parameters(build_network(architecture, shape))


@pytest.mark.parametrize("ratio", [2.3, 0.7, 1 / 3, 1.5])
@pytest.mark.parametrize("embed", [7, 100])
def test_params_of_genes_that_the_space_does_not_list(shape, embed: int, ratio: float) -> None:
    # 100 * 2.3 is 229.99999999999997 in floats: the engine and the network must agree on 230.
    odd = {"depth": 3, "embed_dim": embed, "num_heads": [7, 1, 4], "mlp_ratio": [ratio, 2, 4]}
    (result,) = scored([odd], shape, None, "params")
    network = build_network({"space": "hytas", **odd}, shape)
    assert result["params"] == count_parameters(network)


def test_recomputed_activations_give_the_same_scores(shape, batch, monkeypatch) -> None:
    kept = scored(SMALL, shape, batch)
    monkeypatch.setattr(evaluator, "activation_memory", lambda device, workers: 1)
    for one, other in zip(kept, scored(SMALL, shape, batch), strict=True):
        for name, value in one.items():
            assert other[name] == pytest.approx(value, rel=TOLERANCE.get(name, 1e-5)), name


def test_several_workers_keep_half_as_much_each(shape, batch) -> None:
    kept = [Evaluator("snip", shape, batch=batch, workers=n).setting.memory for n in (1, 2, 4)]
    assert kept == [400 << 20, 200 << 20, 200 << 20]


def test_groups_fit_the_memory(shape, batch, monkeypatch) -> None:
    sizes = [Evaluator("snip", shape, batch=batch)._size(architecture) for architecture in SMALL]
    monkeypatch.setattr(evaluator, "activation_memory", lambda device, workers: 2 * max(sizes))
    groups = Evaluator("snip", shape, batch=batch, group_size=16)._groups(SMALL)
    assert sorted(place for group in groups for place in group) == list(range(len(SMALL)))
    assert all(sum(sizes[place] for place in group) <= 2 * max(sizes) for group in groups)
    assert len(groups) > 2


def test_out_of_memory_halves_the_group_and_loses_no_score(shape, batch, monkeypatch) -> None:
    expected = scored(SMALL, shape, batch, "snip,dss")
    observe, seen = evaluator.observe, []

    def short_of_memory(architectures, *rest):
        seen.append(len(architectures))
        if len(architectures) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return observe(architectures, *rest)

    monkeypatch.setattr(evaluator, "observe", short_of_memory)
    assert scored(SMALL, shape, batch, "snip,dss", group_size=16) == expected
    assert max(seen) > 1


def test_groups_after_one_that_did_not_fit_are_smaller(shape, batch, monkeypatch) -> None:
    observe, refused = evaluator.observe, []

    def short_of_memory(architectures, *rest):
        if len(architectures) > 4:
            refused.append(len(architectures))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return observe(architectures, *rest)

    monkeypatch.setattr(evaluator, "observe", short_of_memory)
    alike = SMALL[:1] * 8
    scorer = Evaluator("snip", shape, batch=batch, group_size=8)
    first, second = scorer.score(alike), scorer.score(alike)
    assert refused == [8]
    assert [each["scores"] for each in first] == [each["scores"] for each in second]


def test_what_failed_is_freed_before_its_halves_are_tried(shape, batch, monkeypatch) -> None:
    observe, held = evaluator.observe, []

    def short_of_memory(architectures, *rest):
        assert not [tensor for tensor in held if tensor() is not None]
        if len(architectures) > 1:
            large = torch.zeros(8)
            held.append(weakref.ref(large))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return observe(architectures, *rest)

    monkeypatch.setattr(evaluator, "observe", short_of_memory)
    assert len(scored(SMALL, shape, batch, "snip,dss", group_size=16)) == len(SMALL)
    assert len(held) > 1


def test_groups_of_a_width_are_of_like_size(shape, batch) -> None:
    scorer = Evaluator("snip", shape, batch=batch, group_size=4)
    assert [len(group) for group in scorer._groups([SMALL[0]] * 9)] == [3, 3, 3]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_a_network_short_of_memory_is_tried_with_recomputation(
    error, shape, batch, monkeypatch
) -> None:
    expected = scored(SMALL[:1], shape, batch, "snip")[0]["snip"]
    observe = evaluator.observe

    def short_of_memory(architectures, specs, setting):
        if setting.memory:
            raise error
        return observe(architectures, specs, setting)

    monkeypatch.setattr(evaluator, "observe", short_of_memory)
    found = scored(SMALL[:1], shape, batch, "snip")[0]["snip"]
    assert found == pytest.approx(expected, rel=1e-5)


def test_only_the_proxy_at_fault_loses_its_score(shape, batch, monkeypatch) -> None:
    def broken(tap):
        raise RuntimeError("no such\nlayer")

    monkeypatch.setitem(PROXIES, "broken", Proxy(broken))
    (result,) = Evaluator("snip,broken,params", shape, batch=batch).score(SMALL[:1])
    assert math.isnan(result["scores"]["broken"])
    assert result["reasons"] == {"broken": "RuntimeError: no such layer"}
    assert result["scores"]["snip"] == scored(SMALL[:1], shape, batch, "snip", seed=0)[0]["snip"]


@pytest.mark.parametrize("group_size", [1, 3])
def test_overflow_is_computed_again_in_float64(group_size, shape, batch, monkeypatch) -> None:
    def huge(tap):
        return (tap.weight.square().sum((1, 2)) * 0 + 1e30) * 1e30

    def beyond(tap):
        return tap.weight.double().square().sum((1, 2)) * math.inf

    monkeypatch.setitem(PROXIES, "huge", Proxy(huge))
    monkeypatch.setitem(PROXIES, "beyond", Proxy(beyond))
    scorer = Evaluator("huge,beyond", shape, batch=batch, group_size=group_size)
    for result in scorer.score(SMALL[:1] * 4):
        assert result["scores"]["huge"] == pytest.approx(18e60)  # 18 linear layers of 1e60
        assert math.isnan(result["scores"]["beyond"])
        assert result["reasons"] == {"beyond": "inf: the score has no finite value"}


def test_a_score_is_computed_again_whatever_fails_beside_it(shape, batch, monkeypatch) -> None:
    def huge(tap):
        return (tap.weight.square().sum((1, 2)) * 0 + 1e30) * 1e30

    def broken(tap):
        raise RuntimeError("no such layer")

    monkeypatch.setitem(PROXIES, "huge", Proxy(huge))
    monkeypatch.setitem(PROXIES, "broken", Proxy(broken))
    (alone,) = Evaluator("huge", shape, batch=batch).score(SMALL[:1])
    (beside,) = Evaluator("huge,broken", shape, batch=batch).score(SMALL[:1])
    assert beside["scores"]["huge"] == alone["scores"]["huge"] == pytest.approx(18e60)


@pytest.mark.parametrize(
    ("genes", "reason"),
    [
        ({"num_heads": [3]}, "each must have one value a layer"),
        ({"num_heads": 3}, "num_heads 3: must be a list"),
        ({"space": ["hytas"]}, "space"),
        ({"embed_dim": None}, "embed_dim None: must be a whole number"),
    ],
)
def test_malformed_architecture_is_recorded_beside_the_others(genes, reason, shape, batch) -> None:
    broken = {**SMALL[0], **genes}
    first, second = Evaluator("snip,params", shape, batch=batch).score([broken, SMALL[1]])
    assert all(math.isnan(value) for value in first["scores"].values())
    assert reason in first["reasons"]["snip"]
    assert not second["reasons"]


@pytest.mark.parametrize("name", ["workers", "group_size"])
def test_numbers_below_one_are_refused(name, shape, batch) -> None:
    with pytest.raises(InputError, match=f"{name} -1: must be 1 or more"):
        Evaluator("snip", shape, batch=batch, **{name: -1})


def test_sign_acts_on_every_weight_or_as_released(shape, batch) -> None:
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


def test_jets_take_samples_in_any_portion(shape, batch) -> None:
    scorer = Evaluator("grasp", shape, batch=batch, precision="float64")
    from hytas.proxies.network import Group

    group = Group([draw_weights(SMALL[0], shape, scorer.setting.draws)], shape.band_group)
    generator = torch.Generator().manual_seed(0)
    weights = [group.embed, group.head]
    weights += [
        w
        for branch in (*group.attention, *group.mlp)
        for w in (branch.shares[0].first, branch.shares[0].second)
    ]
    grads = {id(w): torch.randn(w.shape, generator=generator, dtype=w.dtype) for w in weights}
    patches, labels = scorer.setting.batch
    values = [curvature_along(group, patches, labels, grads, n).item() for n in (1, 2, 5)]
    run = Pass(group, patches)  # what a pass of all samples has found is not passed again
    steps = run.backward(cross_entropy_grad(run.logits, labels), entering=True)
    layers = {id(tap.weight): tap for taps in steps for tap in taps}
    values += [curvature_along(group, patches, labels, grads, n, layers).item() for n in (2, 5)]
    assert values[1:] == pytest.approx([values[0]] * 4, rel=1e-10)


@pytest.mark.parametrize("group_size", [1, 3])
def test_grasp_is_the_same_with_little_memory(shape, batch, group_size) -> None:
    roomy = Evaluator("grasp,snip", shape, batch=batch, seed=5, group_size=group_size)
    tight = Evaluator("grasp,snip", shape, batch=batch, seed=5, group_size=group_size)
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


@pytest.mark.parametrize("init", ["supernet", "own"])
def test_weights_that_are_equal_are_not_copied(init, shape) -> None:
    draws = Draws(Pool(0, torch.device("cpu"), torch.float32), init)
    same = dict(SMALL[0])
    networks = [draw_weights(same, shape, draws) for _ in range(3)]
    group = Group([network.signed("weights", draws.memo) for network in networks], shape.band_group)
    stacked = [group.embed, group.attention[0].shares[0].first, group.mlp[0].shares[0].second]
    assert all(is_one(weight) == (init == "supernet") for weight in stacked)
    for place, network in enumerate(networks):
        assert torch.equal(group.embed[place], network.embed.abs())


@pytest.mark.parametrize("proxy", ["dss", "dss:sign=weights", "dss:sign=released"])
def test_norms_of_shared_weights_are_taken_once(proxy, shape, batch, monkeypatch) -> None:
    taken = []
    nuclear_norms = linalg.nuclear_norms

    def counting(stacks):
        taken.append(sum(len(stack) for stack in stacks))
        return nuclear_norms(stacks)

    monkeypatch.setattr(linalg, "nuclear_norms", counting)
    scorer = Evaluator(proxy, shape, batch=batch, seed=5, workers=1)
    first = scorer.score(SMALL[:1])[0]["scores"]
    layers = len(SMALL[0]["num_heads"])
    assert sum(taken) == 4 * layers  # of gradient and weight, of qkv and proj
    taken.clear()
    assert scorer.score(SMALL[:1])[0]["scores"] == first
    assert sum(taken) == 2 * layers
    # Of the other sign step nothing is taken over.
    both = Evaluator(["dss", "dss:sign=weights"], shape, seed=5).score(SMALL[:1])[0]["scores"]
    if proxy in both:
        assert both[proxy] == first[proxy]


def test_supernet_slices_nest(shape) -> None:
    pool = Pool(0, torch.device("cpu"), torch.float32)
    wide = {**SMALL[0], "embed_dim": 64}
    small, large = (draw_weights(a, shape, Draws(pool)) for a in (SMALL[0], wide))
    assert torch.equal(small.layers[1].fc1, large.layers[1].fc1[: len(small.layers[1].fc1), :32])
    assert torch.equal(small.position, large.position[:, :32])
    own, other = (draw_weights(a, shape, Draws(pool, "own")) for a in (SMALL[0], wide))
    assert not torch.equal(own.position, other.position[:, :32])
    for weights in (small, own):
        assert weights.layers[0].fc1.std().item() == pytest.approx(0.02, rel=0.1)
        assert weights.layers[2].fusion.abs().max().item() == pytest.approx(20**-0.5, rel=0.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": None}, "proxy 'snip': it needs labelled patches"),
        ({"batch": (np.zeros((2, 3, 3, 8)), [0, 1])}, "patches must be"),
        ({"batch": (np.zeros((2, 3, 3, 9)), [0, 4])}, "must lie in 0..3"),
        ({"precision": "fp8"}, "precision 'fp8': must be one of float32, bf16"),
        ({"precision": "tf32"}, "needs a CUDA device"),
        ({"init": "zero"}, "init 'zero': must be one of supernet, own"),
    ],
)
def test_bad_input_is_refused(change, message, shape, batch) -> None:
    with pytest.raises(InputError, match=message):
        Evaluator("snip", shape, **{"batch": batch, **change})


def test_terms_that_cancel_are_the_same_in_a_batch() -> None:
    # What is left of the signed terms of many bands is a thousandth of them: in float32 a batch
    # would differ in the fifth digit.
    many_bands = InputShape(bands=60, classes=4, patch_size=3, band_group=3)
    names = "synflow,synflow:parts=msa,logsynflow:domain=symmetric"
    one, many = (scored(SMALL, many_bands, None, names, group_size=size) for size in (1, 16))
    for alone, together in zip(one, many, strict=True):
        assert together == pytest.approx(alone, rel=1e-9)


def test_reduced_precision_keeps_the_terms_that_cancel_reduced(shape, batch) -> None:
    # Who asks for bf16 is to see what it costs.
    exact, reduced = (
        scored(SMALL[:1], shape, batch, "synflow", precision=precision)[0]["synflow"]
        for precision in ("float32", "bf16")
    )
    assert exact != reduced


def test_matrices_of_a_supernet_share_what_they_have_in_common() -> None:
    def pool() -> Pool:
        return Pool(3, torch.device("cpu"), torch.float32)

    tall, wide = (700, 90), (80, 1000)
    whole = pool().matrix("w", 700, 1000)
    for rows, columns in (tall, wide, (300, 224), (300, 336), (64, 512), (65, 513)):
        assert torch.equal(pool().matrix("w", rows, columns), whole[:rows, :columns])
    grown = pool()
    for rows, columns in (tall, wide, (90, 600), (700, 1000)):
        assert torch.equal(grown.matrix("w", rows, columns), whole[:rows, :columns])
    assert len(torch.unique(whole)) > 0.99 * whole.numel()


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


def test_room_on_a_gpu_changes_by_halves_alone(monkeypatch) -> None:
    # Groups of other sizes are summed in another order: a little memory more or less shall not be
    # seen in the last bits of a score.
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 3 << 30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 1 << 30)
    found = set()
    for free in (66 << 30, (66 << 30) + 12345, 70 << 30, 100 << 30):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 140 << 30))
        found.add(memory.activation_memory(torch.device("cuda")))
    assert found == {32 << 30}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_ranks_as_the_cpu(shape, batch) -> None:
    cpu, gpu = (scored(SMALL, shape, batch, device=device) for device in ("cpu", "cuda"))
    for one, other in zip(cpu, gpu, strict=True):
        for name, value in one.items():
            assert other[name] == pytest.approx(value, rel=1e-3, abs=1e-6), name
