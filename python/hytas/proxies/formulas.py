"""The formulas of proxies: the contribution of one linear layer to a score.

Each function takes a `LayerRecord`: weight, inputs, outputs and gradients of a layer. It returns a
number, or an array of which `finish` makes one, and the pass adds up the layers. Kinds of layers:
"embed", "qkv", "proj", "fc1", "fc2", "head".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    from hytas.proxies.layer_records import LayerRecord

MSA, MLP = ("qkv", "proj"), ("fc1", "fc2")
LINEAR = ("embed", *MSA, *MLP, "head")
SALIENCIES: dict[str, Callable[[LayerRecord], Tensor]] = {
    "snip": lambda layer: (layer.grad * layer.weight).abs(),
    "grad_norm": lambda layer: layer.grad.square(),
    "synflow": lambda layer: layer.grad * layer.weight,
    "logsynflow": lambda layer: layer.grad.abs().log1p() * layer.weight.abs(),
    "magnitude": lambda layer: layer.weight.abs(),
}
"""Name -> saliency of each weight of a layer, (out, in)."""


def grad_norm(layer: LayerRecord) -> Tensor:
    """Sum over layers of the norm of the weight gradient, ||dL/dw||_2.

    Source: HyTAS, supplementary table 1. Direction: larger is better. Data: labelled patches,
    cross-entropy. Shape: gradients (out, in) to a scalar. Cost: one forward and one backward pass.
    """
    norm: Tensor = layer.grad.norm()
    return norm


def snip(layer: LayerRecord) -> Tensor:
    """Sum over weights of |dL/dw * w|: what removing a weight would change.

    Source: Lee et al., ICLR 2019; HyTAS, supplementary table 1. Direction: larger is better. Data:
    labelled patches, cross-entropy. Shape: gradients and weights (out, in) to a scalar. Cost: one
    forward and one backward pass.
    """
    return _summed((layer.grad * layer.weight).abs())


def synflow(layer: LayerRecord, terms: str = "signed") -> Tensor:
    """Sum over weights of dS/dw * w, S the sum of the logits of a patch of ones.

    Source: Tanaka et al., NeurIPS 2020; HyTAS, supplementary table 1. Direction: larger is better.
    Data: none. Shape: gradients and weights (out, in) to a scalar. Cost: one forward and one
    backward pass of one patch. Option `sign=weights` is the original's |w| in place of w. Layer
    norms leave the signed terms to cancel (sum g * w of a scale that a norm removes is zero):
    `terms=absolute` sums |g * w| instead, and with it `parts=log` is the logarithmic scale for
    scores such as 1e61.
    """
    product = layer.grad * layer.weight
    return _summed(product.abs() if terms == "absolute" else product)


def logsynflow(layer: LayerRecord, domain: str = "formula") -> Tensor:
    """Sum over weights of log(dS/dw + 1) * w, S the sum of the logits of a patch of ones.

    Source: Cavagnero et al., WACV 2023; HyTAS, supplementary table 1. Direction: larger is better.
    Data: none. Shape: gradients and weights (out, in) to a scalar. Cost: one forward and one
    backward pass of one patch. The formula has no value where a gradient is below -1: the score is
    then NaN. Option `domain=absolute` takes log(|g| + 1) |w|, which always has one, and whose terms
    do not cancel.
    """
    if domain == "absolute":
        return _summed(layer.grad.abs().log1p() * layer.weight.abs())
    return _summed(layer.grad.log1p() * layer.weight)


def dss(layer: LayerRecord) -> Tensor:
    """Nuclear norms nuc(g) nuc(w) over attention matrices, |g * w| over MLP weights.

    Source: TF-TAS (Zhou et al., CVPR 2022), Algorithm 1, g the gradient of the sum of the logits of
    a patch of ones, in eval mode. The matrices are the layers' own weights: q, k and v stacked as
    one (3q, E) matrix, and the projection. Direction: larger is better. Data: none. Shape:
    gradients and weights (out, in) to a scalar. Cost: one forward and one backward pass of one
    patch, and four nuclear norms a layer. Option `layers=all` adds the patch embedding and the head
    as |g * w|, as the HyTAS code does; `sign` the sign step.
    """
    if layer.kind in MSA:
        of_grad, of_weight = layer.norms
        return of_grad * of_weight
    return _summed((layer.grad * layer.weight).abs())


def _summed(terms: Tensor) -> Tensor:
    """Sum in the order of the axes, however the terms lie in memory."""
    return terms.flatten().sum()


def fisher(layer: LayerRecord) -> Tensor:
    """Sum over the outputs z of all linear layers of (dL/dz * z)^2.

    Source: Theis et al., 2018; HyTAS, supplementary table 1. The sum runs over every sample, token
    and unit. Direction: larger is better. Data: labelled patches, cross-entropy. Shape: outputs and
    their gradients (N, units) to a scalar. Cost: one forward and one backward pass.
    """
    return _summed((layer.activation_grads * layer.activations).square())


def zico(layer: LayerRecord) -> Tensor:
    """Sum over layers of log sum_w E|g_w| / std|g_w|, the moments over the samples' gradients.

    Source: Li et al., ICLR 2023; HyTAS, supplementary table 1. Population deviation; a weight with
    deviation 0 is left out. Direction: larger is better. Data: labelled patches, cross-entropy, two
    or more samples. Shape: a gradient each sample, (N, out, in), to a scalar. Cost: one forward and
    one backward pass, and one weight gradient a sample.
    """
    return _signal_to_noise(layer.sample_grads).log()


def zico_pp(layer: LayerRecord) -> Tensor:
    """ZiCo++: sum over layers of log sum_z E|z dL/dz| / std|z dL/dz|, weighted 1 / (i - 4).

    Source: HyTAS. z are the outputs of the i-th linear layer (from 1), the moments run over the
    samples; the first four layers weigh 1. Direction: larger is better. Data: labelled patches,
    cross-entropy, two or more samples. Shape: outputs and their gradients (N, units) to a scalar.
    Cost: one forward and one backward pass.
    """
    value = _signal_to_noise(layer.activation_grads * layer.activations).log()
    return value / max(layer.order - 4, 1)


def _signal_to_noise(samples: Tensor) -> Tensor:
    """(N, ...) -> sum over the rest of mean|x| / std|x| over N."""
    size = samples.flatten(1).abs()
    mean = size.mean(0)
    # In two sweeps: torch's own `var` over this axis takes ten times as long on a CPU.
    spread = size.sub_(mean).square_().mean(0).sqrt_()
    return mean.div(spread).where(spread > 0, 0.0).sum()


def jacob_cov(layer: LayerRecord) -> Tensor:
    """- sum over eigenvalues of (l + e) + 1 / (l + e), of the correlation of the inputs' gradients.

    Source: Mellor et al., 2020; HyTAS, supplementary table 1. Row n of the matrix is the gradient
    of the sum of the logits by sample n; e = 1e-5. Direction: larger is better. Data: patches
    (labels are not read), two or more. Shape: gradients by the patches (N, P * P * bands) to a
    scalar. Cost: one forward and one backward pass.
    """
    rows = layer.activation_grads.double()
    rows = rows - rows.mean(1, keepdim=True)
    rows = rows / rows.norm(dim=1, keepdim=True)
    shifted = _eigenvalues(rows @ rows.mT) + 1e-5
    return -_summed(shifted + 1.0 / shifted)


def naswot(layer: LayerRecord) -> Tensor:
    """log det of the number of activation signs that each two samples share.

    Source: Mellor et al., ICML 2021; HyTAS, supplementary table 1. The signs are those of the GELU
    inputs, every token and unit of every layer. Direction: larger is better. Data: patches (labels
    are not read). Shape: inputs of a GELU (N, T * f) to a kernel (N, N), their sum to a scalar.
    Cost: one forward pass.
    """
    from hytas.machine import exactly

    codes = (layer.activations > 0).to(layer.weight.dtype) * 2 - 1  # (N, T * f)
    with exactly(codes.device):  # counts, which bf16 would round
        return (codes @ codes.mT + codes.shape[1]) / 2


def log_determinant(kernel: Tensor) -> Tensor:
    """(N, N) -> log |det|, -inf if singular."""
    from torch.linalg import slogdet

    value: Tensor = slogdet(kernel).logabsdet
    return value


def regions(layer: LayerRecord) -> Tensor:
    """The number of linear regions that the samples lie in: of different activation signs.

    Source: TE-NAS (Chen et al., ICLR 2021), its expressivity; signs as those of naswot. Direction:
    larger is better. Data: patches (labels are not read); at most their number. Shape: inputs of a
    GELU (N, T * f) to a kernel (N, N), their sum to a scalar. Cost: one forward pass.
    """
    return naswot(layer)


def count_regions(kernel: Tensor) -> Tensor:
    """(N, N) signs that each two samples share -> how many samples differ."""
    same = kernel >= kernel.diagonal() - 0.5
    regions: Tensor = (1.0 / same.sum(1)).sum()
    return regions


def ntk(network: nn.Module, patches: Tensor, labels: Tensor) -> float:
    """-(largest / smallest eigenvalue) of the neural tangent kernel: trainability.

    Source: TE-NAS (Chen et al., ICLR 2021). Row n of the kernel's factor is the gradient of the sum
    of the logits of sample n by all parameters named weight, as in the released code. TE-score is
    `rank-mean(ntk,regions)`, for which `te-score` stands; TF-TAS released the code of ntk alone.
    Direction: larger is better. Data: patches (labels are not read), two or more. Shape: gradients
    (N, weights) to a scalar. Cost: one forward and one backward pass for each sample.
    """
    import torch

    weights = [each for name, each in network.named_parameters() if "weight" in name]
    rows = []
    for patch in patches:
        outputs = network(patch[None])
        logits = outputs[0] if isinstance(outputs, tuple) else outputs
        grads = torch.autograd.grad(logits.sum(), weights, allow_unused=True)
        rows.append(torch.cat([grad.flatten() for grad in grads if grad is not None]).double())
    factor = torch.stack(rows)
    values = _eigenvalues(factor @ factor.mT)
    if values[0] <= values[-1] * len(rows) * torch.finfo(values.dtype).eps:
        return -math.inf  # the kernel is singular
    return -float(values[-1] / values[0])


def t_cet(layer: LayerRecord, saliency: str = "snip") -> Tensor:
    """Sum over MLPs of S / sigma * log K: trainability times expressivity.

    Source: HyTAS, supplementary table 1. S and sigma are the sum and the deviation of a saliency
    over the weights of the layer that feeds the GELU (fc1), log K the log-det of naswot's kernel of
    that layer alone (the layers that have signs to count). Option `saliency` is of a weight: `snip`
    |g * w|, `grad_norm` g^2, `synflow` g * w, `logsynflow` log(|g| + 1) |w|, `magnitude` |w|; g is
    the gradient of the cross-entropy. Direction: larger is better. Data: labelled patches,
    cross-entropy. Shape: gradients and weights (f, E), outputs (N, T * f) to a scalar. Cost: one
    forward and one backward pass.
    """
    salient = SALIENCIES[saliency](layer)
    total = _summed(salient)
    variance = _summed((salient - total / salient.numel()).square()) / salient.numel()
    return (total / variance.sqrt()).double() * log_determinant(naswot(layer).double())


def croze(layer: LayerRecord) -> Tensor:
    """Sum over layers of Z * P * G: how features, weights and gradients survive a perturbation.

    Source: Ha et al., NeurIPS 2023; HyTAS, supplementary table 1. The twin network has Gaussian
    noise on every linear weight and on the input. Z = 1 + cos(z, z'), P = 1 + cos(t,
    t') for the weights t = w - g after one step of rate 1, and G = |cos(g, g')|. Direction: larger
    is better. Data: labelled patches, cross-entropy. Shape: of both networks outputs (N, units),
    gradients and weights (out, in) to a scalar. Cost: two forward and two backward passes.
    """
    twin = layer.twin
    if twin is None:
        raise RuntimeError("croze needs the perturbed twin of every layer")
    features = 1 + _cosine(layer.activations, twin.activations)
    weights = 1 + _cosine(layer.weight - layer.grad, twin.weight - twin.grad)
    return features * weights * _cosine(layer.grad, twin.grad).abs()


def _cosine(one: Tensor, other: Tensor) -> Tensor:
    return _summed(one * other) / (_summed(one.square()) * _summed(other.square())).sqrt()


def _eigenvalues(matrix: Tensor) -> Tensor:
    """Eigenvalues of a symmetric matrix (n, n); NaN if it is not finite."""
    from torch.linalg import eigvalsh

    values: Tensor = eigvalsh(matrix.nan_to_num(0.0, 0.0, 0.0))
    return values.masked_fill(~matrix.isfinite().all(), math.nan)


def grasp(layer: LayerRecord) -> Tensor:
    """Sum over weights of (H g) * w: how a step along the gradient changes its own flow, negated.

    Source: Wang et al., ICLR 2020; HyTAS, supplementary table 1, whose -sum (H g) w is negative and
    picks the smallest networks: this is minus that. H is the Hessian of the mean cross-entropy by
    the weights of all linear layers. Direction: larger is better. Data: labelled patches. Shape: of
    the whole network, a scalar. Cost: one forward and one backward pass, then a backward pass
    through the graph of another (`passes.curvature_of`).
    """
    return _summed(layer.activations)
