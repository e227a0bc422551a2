"""The slow twin: each network built with torch.nn, one at a time, formulas written out naively.

It shares no code with `hytas.proxies` but the initial weights, which it loads into the shipped
network, so it also shows that the functional network is the shipped one.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.models import InputShape, SpectralTransformer
from hytas.proxies.weights import Pool, draw_weights

LINEAR = ("embed", "qkv", "proj", "fc1", "fc2", "head")


def build(
    architecture: Mapping[str, Any],
    shape: InputShape,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    sign: str = "none",
) -> SpectralTransformer:
    """The shipped network with the initial weights that the evaluator draws."""
    network = SpectralTransformer(
        shape, architecture["embed_dim"], architecture["num_heads"], architecture["mlp_ratio"]
    ).to(dtype)
    drawn = draw_weights(architecture, shape, Pool(seed, torch.device("cpu"), dtype))
    values = {
        "embed.project.weight": drawn.embed.view_as(network.embed.project.weight),
        "embed.project.bias": drawn.embed_bias,
        "class_token": drawn.class_token.view_as(network.class_token),
        "position": drawn.position[None],
        "head.weight": drawn.head,
    }
    for index, layer in enumerate(drawn.layers):
        values[f"blocks.{index}.attention.qkv.weight"] = layer.qkv
        values[f"blocks.{index}.attention.proj.weight"] = layer.proj
        values[f"blocks.{index}.fc1.weight"] = layer.fc1
        values[f"blocks.{index}.fc2.weight"] = layer.fc2
        if layer.fusion is not None:
            values[f"fusions.{index - 2}.weight"] = layer.fusion
            values[f"fusions.{index - 2}.bias"] = layer.fusion_bias
    missing, unexpected = network.load_state_dict(values, strict=False)
    assert not unexpected
    # What is not drawn starts at a constant: norms at one and zero, linear biases at zero.
    state = network.state_dict()
    assert all(torch.unique(state[name]).numel() == 1 for name in missing)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            reached = name.startswith(("fusions", "position", "class_token"))
            if sign == "weights" or (sign == "released" and reached):
                parameter.abs_()
    return network.eval()


def layers(network: SpectralTransformer) -> list[tuple[str, nn.Module]]:
    """(kind, module) of the linear layers, in order."""
    found: list[tuple[str, nn.Module]] = [("embed", network.embed.project)]
    for block in network.blocks:
        assert isinstance(block.attention, nn.Module)
        found += [("qkv", block.attention.qkv), ("proj", block.attention.proj)]
        found += [("fc1", block.fc1), ("fc2", block.fc2)]
    return [*found, ("head", network.head)]


def gradients(network: SpectralTransformer, loss: Tensor, **options: bool) -> list[Tensor]:
    """Gradient of `loss` by the weight of every linear layer."""
    weights = [module.weight for _, module in layers(network)]
    return list(torch.autograd.grad(loss, weights, **options))


def data_loss(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross-entropy of the labelled patches."""
    weight = next(network.parameters())
    return F.cross_entropy(network(batch[0].to(weight.dtype)), batch[1])


def ones_loss(network: SpectralTransformer) -> Tensor:
    """Sum of the logits of a patch of ones."""
    shape, weight = network.shape, next(network.parameters())
    ones = weight.new_ones(1, shape.patch_size, shape.patch_size, shape.bands)
    return network(ones).sum()


def saliency(network: SpectralTransformer, loss: Tensor) -> list[tuple[str, Tensor, Tensor]]:
    """(kind, weight, gradient) of every linear layer."""
    named = layers(network)
    return [
        (kind, module.weight.detach().flatten(1), grad.flatten(1))
        for (kind, module), grad in zip(named, gradients(network, loss), strict=True)
    ]


def grad_norm(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    return float(sum(g.norm() for _, _, g in saliency(network, data_loss(network, batch))))


def snip(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    found = saliency(network, data_loss(network, batch))
    return float(sum((g * w).abs().sum() for _, w, g in found))


def synflow(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    return float(sum((g * w).sum() for _, w, g in saliency(network, ones_loss(network))))


def nuclear(matrix: Tensor) -> Tensor:
    return torch.linalg.svdvals(matrix).sum()


def dss(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    total = 0.0
    for kind, weight, grad in saliency(network, ones_loss(network)):
        if kind in ("qkv", "proj"):
            total += float(nuclear(grad) * nuclear(weight))
        elif kind in ("fc1", "fc2"):
            total += float((grad * weight).abs().sum())
    return total


ORACLES = {"grad_norm": grad_norm, "snip": snip, "synflow": synflow, "dss": dss}
