"""Proxies of networks of any space: against formulas, alone and together, and of foreign ones."""

import math

import pytest
import torch
import torch.nn.functional as F
from small_networks import SMALL, WIDE
from torch import nn

from hytas.models import InputShape, build_network, count_parameters
from hytas.models.table import NETWORKS
from hytas.proxies import PROXIES, Evaluator
from hytas.proxies.initial import start_of
from hytas.proxies.kinds import layers_of

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


@pytest.mark.parametrize("init", ["pool", "own"])
def test_seeds_and_inits_move_every_score(init, wide_shape, wide_batch) -> None:
    first, other = (
        Evaluator(ALL, wide_shape, batch=wide_batch, seed=seed, init=init).score(WIDE[3:4])[0]
        for seed in (0, 1)
    )
    same = {n for n in first["scores"] if first["scores"][n] == other["scores"][n]}
    assert same == {"params", "macs", "depth-embed", "width", "regions"}


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
    seen = list(layers_of(network.named_modules(), 4))
    weights = [layer.module.weight.requires_grad_() for layer in seen]
    loss = F.cross_entropy(network(batch[0].double())[0], batch[1])
    grads = torch.autograd.grad(loss, weights)
    return list(zip([layer.kind for layer in seen], weights, grads, strict=True))


@pytest.mark.parametrize("irregular", [False, True])
def test_a_foreign_network_is_scored_by_the_formulas(irregular, shape, batch, monkeypatch) -> None:
    made = lambda a, shape, drop: Foreign(shape, a["width"], irregular)  # noqa: E731
    monkeypatch.setitem(NETWORKS, "foreign", made)
    architecture = {"space": "foreign", "width": 12}
    names = "snip,grad_norm,naswot,grasp,jacob_cov,zico,fisher,croze,dss,t_cet,params,macs"
    scorer = Evaluator(names, shape, batch=batch, seed=1, precision="float64")
    (result,) = scorer.score([architecture])
    assert not result["reasons"]

    start = start_of(architecture, shape, scorer.setting.pool)
    network = start.network
    for name, parameter in network.named_parameters():
        parameter.data = start.values[name]
    kinds = [layer.kind for layer in layers_of(network.named_modules(), 4)]
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
    # It names no initializers, so it starts as it initialises itself.
    assert not start.keys


def test_overflow_and_faults_are_recorded_there_too(wide_shape, wide_batch) -> None:
    broken = {key: value for key, value in WIDE[0].items() if key != "embed_dim"}
    unknown = {**WIDE[0], "space": "nowhere"}
    results = Evaluator("snip,params", wide_shape, batch=wide_batch).score(
        [broken, unknown, WIDE[0]]
    )
    assert "embed_dim" in results[0]["reasons"]["snip"]
    assert "not one of hytas" in results[1]["reasons"]["snip"]
    assert not results[2]["reasons"]
