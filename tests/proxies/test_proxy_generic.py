"""Proxies of networks of any space: against the stacked path, against formulas, and alone."""

import dataclasses
import math

import oracle
import pytest
import torch
import torch.nn.functional as F
from small_networks import SMALL, WIDE
from torch import nn

from hytas.models import InputShape, build_network, count_parameters
from hytas.models.table import NETWORKS
from hytas.proxies import PROXIES, Evaluator, observers
from hytas.proxies.draws import Draws, Pool
from hytas.proxies.generic import score_network
from hytas.proxies.initial import blueprint
from hytas.proxies.modules import layer_kinds

ALL = ",".join(PROXIES).replace("logsynflow", "logsynflow:domain=symmetric")
SIGNED = "dss:layers=all,dss:sign=weights,synflow:sign=released,snip:parts=log"
TOLERANCE = {"dss": 1e-3}  # nuclear norms


class Given:
    """A HyTAS network with the weights that the stacked path gives it."""

    def __init__(self, architecture, shape, dtype, patches):
        self.made = lambda sign: oracle.build(architecture, shape, 5, dtype, sign, patches)
        self.network = self.made("none").requires_grad_(False)
        self.twin = self.network.twin
        del self.network.twin

    def values(self, sign="none"):
        network = self.made(sign)
        del network.twin
        return {name: p.detach() for name, p in network.named_parameters()}

    def perturbed(self, values):
        return {name: p.detach() for name, p in self.twin.named_parameters()}


@pytest.mark.parametrize("memory", [None, 1000])
@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-8), ("float32", 1e-5)])
def test_modules_score_as_the_stacked_networks_do(precision, close, memory, shape, batch) -> None:
    # Signed terms cancel to a ten-thousandth of their size; two ways of float32 sum others alike.
    domain = "symmetric" if precision == "float64" else "absolute"
    names = f"{','.join(oracle.ORACLES)},{SIGNED}".replace(
        "logsynflow", f"logsynflow:domain={domain}"
    )
    scorer = Evaluator(names, shape, batch=batch, seed=5, precision=precision)
    setting = scorer.setting
    if memory is not None:
        setting = dataclasses.replace(setting, memory=memory)
    for architecture, result in zip(SMALL, scorer.score(SMALL), strict=True):
        given = Given(architecture, shape, getattr(torch, precision), batch[0])
        found = score_network(given, scorer.specs, setting)
        assert found == pytest.approx(result["scores"], rel=close, abs=1e-7)


def test_any_space_goes_through_every_proxy(wide_shape, wide_batch) -> None:
    for architecture in WIDE:
        (result,) = Evaluator(ALL, wide_shape, batch=wide_batch).score([architecture])
        assert not result["reasons"]
        assert all(math.isfinite(value) for value in result["scores"].values())
        network = build_network(architecture, wide_shape)
        assert result["scores"]["params"] == count_parameters(network)


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


def test_networks_share_what_they_have_in_common_of_the_supernet(wide_shape) -> None:
    draws = Draws(Pool(0, torch.device("cpu"), torch.float32))
    weights = [
        blueprint(
            {**WIDE[1], "embed_dim": 160, "pixel_mlp": [ratio] * 3}, wide_shape, draws
        ).values()["pixel_stream.blocks.0.fc2.weight"]
        for ratio in (1, 2, 4)
    ]
    for narrow in weights[:2]:
        assert torch.equal(narrow, weights[2][:, : narrow.shape[1]])


def test_score_depends_on_neither_companions_nor_order_nor_threads(wide_shape, wide_batch) -> None:
    def scored(architectures, **options):
        scorer = Evaluator(ALL, wide_shape, batch=wide_batch, seed=2, **options)
        return [result["scores"] for result in scorer.score(architectures)]

    state = torch.random.get_rng_state()
    alone = [scored([architecture])[0] for architecture in WIDE]
    mixed = [*WIDE, *({**small, "space": "hytas"} for small in SMALL)]
    for options in ({"workers": 3}, {"group_size": 8}):
        together = scored(mixed[::-1], **options)[::-1][: len(WIDE)]
        for one, many in zip(alone, together, strict=True):
            for name, value in one.items():
                assert many[name] == pytest.approx(value, rel=TOLERANCE.get(name, 1e-5)), name
    assert scored(WIDE, workers=3) == alone
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("init", ["supernet", "own"])
def test_seeds_and_inits_move_every_score(init, wide_shape, wide_batch) -> None:
    first, other = (
        Evaluator(ALL, wide_shape, batch=wide_batch, seed=seed, init=init).score(WIDE[3:])[0]
        for seed in (0, 1)
    )
    same = {n for n in first["scores"] if first["scores"][n] == other["scores"][n]}
    assert same == {"params", "macs", "depth-embed", "balance"}


def test_initial_weights_follow_the_networks_own_laws(wide_shape) -> None:
    draws = Draws(Pool(0, torch.device("cpu"), torch.float32))
    for architecture in WIDE:
        values = blueprint(architecture, wide_shape, draws).values()
        own = dict(build_network(architecture, wide_shape).named_parameters())
        assert values.keys() == own.keys()
        for name, value in values.items():
            assert value.shape == own[name].shape
            if own[name].std() == 0 or own[name].numel() == 1:
                assert torch.equal(value, own[name])
            elif value.numel() > 1000:
                assert value.std().item() == pytest.approx(own[name].std().item(), rel=0.1), name
                assert value.abs().max() < 1.5 * own[name].abs().max()


def test_initial_weights_are_slices_of_one_supernet(wide_shape) -> None:
    draws = Draws(Pool(0, torch.device("cpu"), torch.float32))
    narrow, broad = (
        blueprint({**WIDE[0], "embed_dim": width}, wide_shape, draws).values() for width in (32, 48)
    )
    name = "band_stream.blocks.0.fc1.weight"
    assert torch.equal(narrow[name], broad[name][: len(narrow[name]), :32])
    own = Draws(draws.pool, "own")
    assert not torch.equal(blueprint(WIDE[0], wide_shape, own).values()[name], narrow[name])


class Foreign(nn.Module):
    """Nothing of it is named or built as ours is."""

    def __init__(self, shape: InputShape, width: int, irregular: bool):
        super().__init__()
        self.stem = nn.Conv2d(shape.bands, width, 2, stride=1, padding=1)
        self.attention = nn.ModuleDict({k: nn.Linear(width, width) for k in ("q", "k", "v", "out")})
        self.scale = nn.Parameter(torch.full((width,), 0.5))
        self.register_buffer("shift", torch.arange(width) / width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.out = nn.Linear(width, shape.classes)
        if irregular:
            nn.init.orthogonal_(self.out.weight)

    def forward(self, patches):
        tokens = self.stem(patches.permute(0, 3, 1, 2)).flatten(2).transpose(1, 2) + self.shift
        q, k, v = (self.attention[name](tokens)[:, None] for name in "qkv")
        tokens = tokens + self.attention["out"](F.scaled_dot_product_attention(q, k, v)[:, 0])
        return self.out((tokens + self.scale * self.mlp(tokens)).mean(1)), tokens


def foreign_saliency(network, batch) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    kinds = dict(layer_kinds(network, 4))
    weights = [module.weight.requires_grad_() for module in kinds]
    loss = F.cross_entropy(network(batch[0].double())[0], batch[1])
    grads = torch.autograd.grad(loss, weights)
    return list(zip(kinds.values(), weights, grads, strict=True))


@pytest.mark.parametrize("irregular", [False, True])
def test_a_foreign_network_is_scored_by_the_formulas(irregular, shape, batch, monkeypatch) -> None:
    made = lambda a, shape, drop_path: Foreign(shape, a["width"], irregular)  # noqa: E731
    monkeypatch.setitem(NETWORKS, "foreign", made)
    architecture = {"space": "foreign", "width": 12}
    names = "snip,grad_norm,naswot,grasp,jacob_cov,zico,fisher,croze,dss,t_cet,params,macs"
    scorer = Evaluator(names, shape, batch=batch, seed=1, precision="float64")
    (result,) = scorer.score([architecture])
    assert not result["reasons"]

    plan = blueprint(architecture, shape, scorer.setting.draws)
    network = plan.network
    for name, parameter in network.named_parameters():
        parameter.data = plan.values()[name]
    kinds = [kind for _, kind in layer_kinds(network, 4)]
    assert kinds == ["embed", "qkv", "qkv", "qkv", "proj", "fc1", "fc2", "head"]
    assert torch.equal(network.shift, (torch.arange(12) / 12).double())
    assert torch.equal(network.scale, torch.full((12,), 0.5).double())
    found = foreign_saliency(network, batch)
    snip = sum((w * g).abs().sum().item() for _, w, g in found)
    norm = sum(g.norm().item() for _, _, g in found)
    assert result["scores"]["snip"] == pytest.approx(snip, rel=1e-9)
    assert result["scores"]["grad_norm"] == pytest.approx(norm, rel=1e-9)
    assert result["scores"]["params"] == sum(p.numel() for p in network.parameters())
    assert result["scores"]["macs"] > 0
    # The output layer is initialised by no law, so the network starts as it initialises itself.
    assert bool(plan.laws) != irregular


def test_overflow_and_faults_are_recorded_there_too(wide_shape, wide_batch) -> None:
    broken = {key: value for key, value in WIDE[0].items() if key != "embed_dim"}
    unknown = {**WIDE[0], "space": "nowhere"}
    results = Evaluator("snip,params", wide_shape, batch=wide_batch).score(
        [broken, unknown, WIDE[0]]
    )
    assert "embed_dim" in results[0]["reasons"]["snip"]
    assert "not one of hytas" in results[1]["reasons"]["snip"]
    assert not results[2]["reasons"]


def test_which_spaces_are_stacked_is_one_table(shape, batch, monkeypatch) -> None:
    stacked = Evaluator("snip", shape, batch=batch).score(SMALL[:1])[0]["scores"]["snip"]
    monkeypatch.setattr(observers, "STACKED", {})
    one_by_one = Evaluator("snip", shape, batch=batch).score(SMALL[:1])[0]["scores"]["snip"]
    # Other draws of the same laws, but for the patch embedding's.
    assert one_by_one != stacked
    assert one_by_one == pytest.approx(stacked, rel=0.5)
