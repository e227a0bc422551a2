"""The slow twin: each network built with torch.nn, one at a time, formulas written out naively.

It shares no code with `hytas.proxies` but the initial weights, which it loads into the shipped
network, so it also shows that the functional network is the shipped one.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from hytas.models import InputShape, SpectralTransformer, build_network
from hytas.models.blocks import MixerBlock
from hytas.proxies.initial import DrawnPool, start_of

Formula = Callable[[SpectralTransformer, tuple[Tensor, Tensor]], float]

LINEAR = ("embed", "qkv", "proj", "fc1", "fc2", "head")


def build(
    architecture: Mapping[str, Any],
    shape: InputShape,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    sign: str = "none",
    patches: Tensor | None = None,
) -> SpectralTransformer:
    """The network as it ships, holding the initial weights that the evaluator draws.

    With `patches`, it carries its perturbed twin and the perturbed patches, for `croze`.
    """
    pool = DrawnPool(seed, torch.device("cpu"), dtype)
    architecture = {"space": "hytas", **architecture}
    start = start_of(architecture, shape, pool)
    network = load(architecture, shape, dtype, start.signed(sign))
    if patches is not None:
        twin = start.perturbed(start.signed(sign))
        network.twin = load(architecture, shape, dtype, twin)
        network.twin_patches = pool.perturbed(patches.to(dtype))
    return network


def load(
    architecture: Mapping[str, Any],
    shape: InputShape,
    dtype: torch.dtype,
    values: Mapping[str, Tensor],
) -> SpectralTransformer:
    """The shipped network with the weights `values`."""
    network = build_network(architecture, shape).to(dtype)
    assert isinstance(network, SpectralTransformer)
    network.shape = shape
    network.load_state_dict(values)
    return network.eval()


def layers(network: SpectralTransformer) -> list[tuple[str, nn.Module]]:
    """(kind, module) of the linear layers, in the order in which they compute."""
    found: list[tuple[str, nn.Module]] = [
        ("embed", getattr(network, f"{name}_embed").project) for name in network.streams
    ]
    for stream in network.token_streams.values():
        for block in stream.blocks:
            attention = []
            if block.attention is not None:
                attention = [("qkv", block.attention.qkv), ("proj", block.attention.proj)]
            if isinstance(block, MixerBlock):
                gate = [] if block.gate is None else [("fc1", block.gate)]
                found += [("fc1", block.fc1), *attention, *gate, ("fc2", block.fc2)]
            else:
                found += [*attention, ("fc1", block.fc1), ("fc2", block.fc2)]
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
    seen: list[tuple[tuple[Tensor, ...], float]] = []

    def note(_: nn.Module, args: tuple[Any, ...], outputs: Any) -> None:
        joint = isinstance(outputs, tuple)  # queries, which leave scaled, keys and values
        seen.append((outputs, args[2]) if joint else ((outputs,), 1.0))

    named = layers(network)
    handles = [module.register_forward_hook(note) for _, module in named]
    loss = data_loss(network, batch)
    for handle in handles:
        handle.remove()
    found = []
    for (kind, _), (outputs, scale) in zip(named, seen, strict=True):
        grads = torch.autograd.grad(loss, outputs, retain_graph=True)
        first = outputs[0].detach() / scale, grads[0] * scale
        pairs = [first, *((z.detach(), g) for z, g in zip(outputs[1:], grads[1:], strict=True))]
        joined = [
            torch.cat([part.flatten(1) for part in side], 1) for side in zip(*pairs, strict=True)
        ]
        found.append((kind, joined[0], joined[1]))
    return found


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


def every_token(formula: Formula) -> Formula:
    """The formula over all tokens, those of the last layer that nothing reads too."""

    @functools.wraps(formula)
    def over_all(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
        twins = [network, getattr(network, "twin", network)]
        streams = [stream for each in twins for stream in each.token_streams.values()]
        for stream in streams:
            stream.observer = lambda _: None
        found = formula(network, batch)
        for stream in streams:
            stream.observer = None
        return found

    return over_all


def sign_kernel(outputs: Tensor) -> Tensor:
    codes = (outputs > 0).flatten(1).double()
    return codes @ codes.T + (1 - codes) @ (1 - codes).T


@every_token
def naswot(network: SpectralTransformer, batch: tuple[Tensor, Tensor]) -> float:
    found = activations(network, batch)
    kernel = sum((sign_kernel(z) for kind, z, _ in found if kind == "fc1"), torch.zeros(()))
    return float(np.linalg.slogdet(kernel.cpu().numpy())[1])


@every_token
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


@every_token
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
