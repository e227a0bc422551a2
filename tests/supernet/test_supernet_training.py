"""Supernets train by the loop of all networks: same steps, exact resume, only what is used."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from small_supernet import RECIPE, SHAPE, feasible, trained
from torch import Tensor

from hytas.models.blocks import Drop
from hytas.models.weight_sharing import slice_of
from hytas.supernet import InheritedScore, Supernet, SupernetLearner, SupernetSettings
from hytas.train import Subnet, train
from hytas.train.optimiser import Leaves
from hytas.train.state import TrainingState
from hytas.train.step import Course, backward
from small import pixels

SANDWICH = SupernetSettings("sandwich")


def test_a_supernet_of_one_architecture_trains_as_a_network_alone() -> None:
    genes = {
        "tokens": ["parallel"],
        "patch": [3],
        "band_width": [3],
        "band_stride": [2],
        "pooling": ["mean"],
        "fusion": ["no"],
        "skip": ["none"],
        "embed_dim": [32],
        "band_depth": [1],
        "pixel_depth": [2],
        "band_mixer": ["attention"],
        "band_gate": ["no"],
        "band_heads": [4],
        "band_mlp": [1],
        "pixel_mixer": ["attention"],
        "pixel_gate": ["no"],
        "pixel_heads": [4],
        "pixel_mlp": [2],
    }
    among = feasible(**genes)
    assert among.count() == 1
    recipe = replace(RECIPE, whitened=False, drop_path=0.1)
    supernet, result = trained(among, recipe=recipe)
    architecture = among.unrank(0)
    start = Supernet.new("hytas-wide", SHAPE, seed=3)
    subnet = start.subnet(architecture, Drop(0.1))
    values = {name: value.clone() for name, value in start.values(subnet).items()}
    alone = subnet.network.requires_grad_(True)
    alone.load_state_dict(values, assign=True)
    expected = train(alone, pixels(24, 0), pixels(12, 1), recipe, seed=3)
    assert [e.loss for e in result.history] == [e.loss for e in expected.history]
    for name, value in alone.named_parameters():
        assert torch.equal(supernet.weights[name], value), name


def gradients_by_autograd(
    full: dict[str, Tensor], subnets: list[Subnet], patches: Tensor, targets: Tensor
) -> dict[str, Tensor]:
    """The slow twin: gradients of whole parameters, through every slice."""
    leaves = {name: value.clone().requires_grad_() for name, value in full.items()}
    total = torch.zeros(())
    for subnet in subnets:
        values = {n: slice_of(n, leaves[n], size) for n, size in subnet.sizes.items()}
        logits = torch.func.functional_call(subnet.network, values, (patches,))
        total = total + F.cross_entropy(logits, targets) / len(subnets)
    total.backward()
    return {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}


def test_fused_gradients_are_those_of_whole_weights_and_only_what_is_used_changes() -> None:
    supernet, _ = trained(feasible(), SANDWICH, replace(RECIPE, epochs=1))
    before = {name: value.clone() for name, value in supernet.weights.items()}
    learner = SupernetLearner(supernet, feasible(), SupernetSettings("sandwich"), seed=8)
    subnets = list(next(learner.subnets(0, 1)))
    assert len(subnets) == 4
    counts = [sum(size.numel() for size in subnet.sizes.values()) for subnet in subnets]
    assert counts[0] == max(counts)
    assert counts[1] == min(counts)
    recipe = replace(
        RECIPE,
        mixup=0.0,
        flips=False,
        borders=0.0,
        band_noise=0.0,
        illumination=0.0,
        brightness=0.0,
        clip_norm=1e9,
    )
    data = pixels(8, 5)
    state = TrainingState.of(learner.weights, {})
    leaves = Leaves.of(learner, state, subnets)
    full = {name: value.clone() for name, value in state.weights.items()}  # grown where needed
    course = Course(data, recipe, recipe.schedule(len(data)), 1e-3, 0, torch.device("cpu"))
    order = data.positions(torch.device("cpu"))[0]
    patches, targets = data.batch(order, torch.device("cpu"))
    batch = patches, data.target_probabilities(order, torch.device("cpu"))
    backward(subnets, leaves.values, course, *batch, torch.Generator())
    expected = gradients_by_autograd(full, subnets, patches, targets)
    for name, leaf in leaves.values.items():
        assert leaf.grad is not None
        wanted = slice_of(name, expected[name], leaf.shape)
        torch.testing.assert_close(leaf.grad, wanted, rtol=1e-4, atol=1e-6)
    leaves.step(recipe, 0.01)
    changed = 0
    for name, value in state.weights.items():
        if name not in leaves.values:
            assert torch.equal(value, before[name])
            continue
        used = torch.zeros(value.shape, dtype=torch.bool)
        mask = torch.ones(leaves.values[name].shape, dtype=torch.bool)
        inside = slice_of(name, torch.arange(value.numel()).view(value.shape), mask.shape)
        used.view(-1)[inside.flatten()] = True
        assert torch.equal(value[~used], full[name][~used]), name
        changed += int((value[used] != full[name][used]).sum())
    assert changed > 1000


def test_inherited_weights_classify_what_was_never_drawn() -> None:
    among = feasible(tokens=["pixel"], band_depth=[0], band_width=[3], band_stride=[2])
    recipe = replace(RECIPE, epochs=30, patience=1.0)
    supernet, result = trained(among, recipe=recipe)
    score = InheritedScore(supernet, pixels(60, 9))
    found = [score.figures(each) for each in among.space.unpack(among.sample(12, 77, "choices"))]
    assert min(figures["accuracy"] for figures in found) > 0.9
    untrained = InheritedScore(Supernet.new("hytas-wide", SHAPE, seed=3), pixels(60, 9))
    assert untrained(among.unrank(0)) < 0.5
    assert result.history[result.best_epoch - 1].validation_oa > 0.9
