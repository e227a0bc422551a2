"""TE-score, as the released code of TE-NAS computes it, and T-CET by other saliencies."""

import numpy as np
import pytest
import torch
from small_networks import SMALL
from torch import nn

from hytas.models import build_network
from hytas.proxies import Evaluator, parse_proxies
from hytas.proxies.initial import start_of
from hytas.proxies.kinds import layers_of


def scored(names: str, shape, batch) -> tuple[dict[str, float], nn.Module]:
    """Return scores in float64, and the network that was scored."""
    scorer = Evaluator(names, shape, batch=batch, precision="float64")
    (result,) = scorer.score([SMALL[0]])
    assert not result["reasons"]
    start = start_of(SMALL[0], shape, scorer.setting.pool)
    network = build_network(SMALL[0], shape).double().eval()
    network.load_state_dict(start.values)
    for stream in network.token_streams.values():
        stream.observer = lambda _: None  # it computes all tokens then, as these proxies see them
    return result["scores"], network


def test_the_kernel_is_that_of_the_released_code(shape, batch) -> None:
    scores, network = scored("ntk", shape, batch)
    rows = []
    logits = network(batch[0].double())
    for number in range(len(logits)):
        network.zero_grad()
        one = logits[number : number + 1]
        one.backward(torch.ones_like(one), retain_graph=True)
        named = network.named_parameters()
        grads = [p.grad.flatten() for n, p in named if "weight" in n and p.grad is not None]
        rows.append(torch.cat(grads))
    rows = torch.stack(rows)
    values = np.linalg.eigvalsh(torch.einsum("nc,mc->nm", rows, rows).numpy())
    assert scores["ntk"] == pytest.approx(-values[-1] / values[0], rel=1e-6)


def test_regions_are_counted(shape, batch) -> None:
    patches, labels = batch
    twice = torch.cat([patches, patches[:2]]), torch.cat([labels, labels[:2]])
    scores, network = scored("regions", shape, twice)
    codes: list[torch.Tensor] = []
    for layer in layers_of(network.named_modules(), shape.classes):
        if layer.kind == "fc1":
            layer.module.register_forward_hook(
                lambda module, args, output: codes.append((output > 0).flatten(1))
            )
    network(twice[0].double())
    signs = torch.cat(codes, 1).double()
    assert scores["regions"] == len(torch.unique(signs, dim=0)) == len(patches)
    # The released code counts a sample by the share of those whose signs are all the same.
    differ = signs @ (1 - signs).T
    released = (1 / (1 - torch.sign(differ + differ.T)).sum(1)).sum()
    assert scores["regions"] == pytest.approx(float(released))


def test_the_name_stands_for_the_ranks_of_both() -> None:
    assert str(parse_proxies("te-score")[0]) == "rank-mean(ntk,regions)"
