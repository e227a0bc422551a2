"""The slow twin: each network built with torch.nn, one at a time, formulas written out naively.

It shares no code with `hytas.proxies` but the initial weights, which it loads into the shipped
network, so it also shows that the functional network is the shipped one.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from hytas.models import InputShape, SpectralTransformer, build_network
from hytas.proxies.draws import Draws, Pool, perturbed_patches
from hytas.proxies.weights import Weights, draw_weights

LINEAR = ("embed", "qkv", "proj", "fc1", "fc2", "head")


RELEASED_SIGN = tuple(f"band_stream.{name}" for name in ("fusions", "position", "class_token"))


def build(
    architecture: Mapping[str, Any],
    shape: InputShape,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    sign: str = "none",
    patches: Tensor | None = None,
) -> SpectralTransformer:
    """The shipped network with the initial weights that the evaluator draws.

    With `patches`, it carries its perturbed twin and the perturbed patches, for `croze`.
    """
    pool = Pool(seed, torch.device("cpu"), dtype)
    draws = Draws(pool)
    drawn = draw_weights(architecture, shape, draws)
    network = load(architecture, shape, dtype, drawn, sign)
    if patches is not None:
        twin = drawn.perturbed(architecture, shape, draws)
        network.twin = load(architecture, shape, dtype, twin, sign)
        network.twin_patches = perturbed_patches(patches.to(dtype), pool)
    return network


def load(
    architecture: Mapping[str, Any],
    shape: InputShape,
    dtype: torch.dtype,
    drawn: Weights,
    sign: str,
) -> SpectralTransformer:
    """The shipped network with the weights `drawn`."""
    network = build_network({**architecture, "space": "hytas"}, shape).to(dtype)
    assert isinstance(network, SpectralTransformer)
    network.shape = shape
    stream = network.band_stream
    values = {
        "band_embed.project.weight": drawn.embed.view_as(network.band_embed.project.weight),
        "band_embed.project.bias": torch.zeros(len(drawn.embed)),
        "band_stream.class_token": drawn.class_token.view_as(stream.class_token),
        "band_stream.position": drawn.position[None],
        "head.weight": drawn.head,
    }
    for index, layer in enumerate(drawn.layers):
        values[f"band_stream.blocks.{index}.attention.qkv.weight"] = layer.qkv
        values[f"band_stream.blocks.{index}.attention.proj.weight"] = layer.proj
        values[f"band_stream.blocks.{index}.fc1.weight"] = layer.fc1
        values[f"band_stream.blocks.{index}.fc2.weight"] = layer.fc2
        if layer.fusion is not None:
            values[f"band_stream.fusions.{index - 2}.weight"] = layer.fusion
            values[f"band_stream.fusions.{index - 2}.bias"] = layer.fusion_bias
    missing, unexpected = network.load_state_dict(values, strict=False)
    assert not unexpected
    # What is not drawn starts at a constant: norms at one and zero, linear biases at zero.
    state = network.state_dict()
    assert all(torch.unique(state[name]).numel() == 1 for name in missing)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            reached = name.startswith(RELEASED_SIGN)
            if sign == "weights" or (sign == "released" and reached):
                parameter.abs_()
    return network.eval()


def layers(network: SpectralTransformer) -> list[tuple[str, nn.Module]]:
    """(kind, module) of the linear layers, in order."""
    found: list[tuple[str, nn.Module]] = [("embed", network.band_embed.project)]
    for block in network.band_stream.blocks:
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


def grasp(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    """Plus sum (H g) w, by differentiating twice through the shipped network."""
    weights = [module.weight for _, module in layers(network)]
    with sdpa_kernel(SDPBackend.MATH):  # the others cannot be differentiated twice
        grads = gradients(network, data_loss(network, batch), create_graph=True)
    along = sum(((g.detach() * g).sum() for g in grads), torch.zeros(()))
    curved = torch.autograd.grad(along, weights)
    return float(sum((h * w).sum().detach() for h, w in zip(curved, weights, strict=True)))


def logsynflow(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    found = saliency(network, ones_loss(network))
    return float(sum(((g + 1).log() * w).sum() for _, w, g in found))


def activations(
    network: SpectralTransformer, batch: tuple[Tensor, Tensor]
) -> list[tuple[str, Tensor, Tensor]]:
    """(kind, output, gradient of the cross-entropy by it) of every linear layer."""
    outputs: list[Tensor] = []
    named = layers(network)
    handles = [m.register_forward_hook(lambda _m, _i, out: outputs.append(out)) for _, m in named]
    loss = data_loss(network, batch)
    for handle in handles:
        handle.remove()
    grads = torch.autograd.grad(loss, outputs)
    return [(k, z.detach(), g) for (k, _), z, g in zip(named, outputs, grads, strict=True)]


def fisher(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    return float(sum(((g * z) ** 2).sum() for _, z, g in activations(network, batch)))


def zico_pp(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    total = 0.0
    for place, (_, z, g) in enumerate(activations(network, batch), start=1):
        value = (z * g).abs()
        mean, std = value.mean(0), value.std(0, correction=0)
        term = float((mean[std > 0] / std[std > 0]).sum().log())
        total += term / (place - 4) if place > 4 else term
    return total


def zico(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    per_sample = [
        gradients(network, data_loss(network, (x[None], y[None])))
        for x, y in zip(*batch, strict=True)
    ]
    total = 0.0
    for grads in zip(*per_sample, strict=True):
        size = torch.stack(grads).abs()
        mean, std = size.mean(0), size.std(0, correction=0)
        total += float((mean[std > 0] / std[std > 0]).sum().log())
    return total


def jacob_cov(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    patches = batch[0].to(next(network.parameters()).dtype).requires_grad_()
    (grad,) = torch.autograd.grad(network(patches).sum(), patches)
    values = np.linalg.eigvalsh(np.corrcoef(grad.flatten(1).cpu().numpy())) + 1e-5
    return float(-(values + 1 / values).sum())


def sign_kernel(outputs: Tensor) -> Tensor:
    codes = (outputs > 0).flatten(1).double()
    return codes @ codes.T + (1 - codes) @ (1 - codes).T


def naswot(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    found = activations(network, batch)
    kernel = sum((sign_kernel(z) for kind, z, _ in found if kind == "fc1"), torch.zeros(()))
    return float(np.linalg.slogdet(kernel.cpu().numpy())[1])


def t_cet(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    salient = saliency(network, data_loss(network, batch))
    seen = activations(network, batch)
    total = 0.0
    for (kind, weight, grad), (_, outputs, _) in zip(salient, seen, strict=True):
        if kind == "fc1":
            value = (grad * weight).abs()
            kernel = sign_kernel(outputs).cpu().numpy()
            total += float(value.sum() / value.std(correction=0)) * np.linalg.slogdet(kernel)[1]
    return total


def croze(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    """`network.twin` and `network.twin_patches` are the perturbed network and patches."""
    sides = []
    for side, x in ((network, batch[0]), (network.twin, network.twin_patches)):
        weights = saliency(side, data_loss(side, (x, batch[1])))
        sides.append(zip(weights, activations(side, (x, batch[1])), strict=True))
    total = 0.0
    for ((_, w, g), (_, z, _)), ((_, w2, g2), (_, z2, _)) in zip(*sides, strict=True):
        cosines = [
            F.cosine_similarity(a.flatten(), b.flatten(), dim=0)
            for a, b in ((z, z2), (w - g, w2 - g2), (g, g2))
        ]
        total += float((1 + cosines[0]) * (1 + cosines[1]) * cosines[2].abs())
    return total


ORACLES = {
    function.__name__: function
    for function in (
        grad_norm,
        snip,
        grasp,
        synflow,
        logsynflow,
        fisher,
        jacob_cov,
        naswot,
        dss,
        zico,
        zico_pp,
        croze,
        t_cet,
    )
}
