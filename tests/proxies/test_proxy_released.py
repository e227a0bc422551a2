"""The network and the weights behind the published scores, written out a second time."""

import pytest
import torch
import torch.nn.functional as F
from released import ReleasedSupernet, score
from small_networks import SMALL

from hytas.proxies import Evaluator


def neighbours_first(patches: torch.Tensor, group: int) -> torch.Tensor:
    """(N, P, P, bands) -> (N, bands, c * P * P): before, nearest first; the band; after."""
    pixels, margin = patches.flatten(1, 2), group // 2
    last = pixels.shape[2] - 1
    offsets = [*range(-1, -margin - 1, -1), 0, *range(1, margin + 1)]
    shifted = [pixels[:, :, (torch.arange(last + 1) + o).clamp(0, last)] for o in offsets]
    return torch.cat(shifted, dim=1).transpose(1, 2)


def saliency(architecture, tensors, shape, batch) -> dict[str, float]:
    """SNIP, GradNorm and GraSP of the released network."""
    width, tapped = architecture["embed_dim"], []

    def leaf(weight: torch.Tensor) -> torch.Tensor:
        tapped.append(weight.double().requires_grad_())
        return tapped[-1]

    get = {name: tensor.double() for name, tensor in tensors.items()}
    tokens = neighbours_first(batch[0].double(), shape.band_group) @ leaf(get["embed"][:width]).T
    first = get["class token"][:width].expand(len(tokens), 1, -1)
    now = torch.cat([first, tokens + get["embed bias"][:width]], dim=1) + get["position"][:, :width]
    entered = []
    for layer in range(10):
        entered.append(now)
        if layer >= 2:
            mix = get[f"{layer} fusion"]
            now = mix[0] @ now + mix[1] @ entered[layer - 2]
            now = now + get[f"{layer} fusion bias"][:, None]
        if layer >= architecture["depth"]:
            continue
        heads, hidden = architecture["num_heads"][layer], width * architecture["mlp_ratio"][layer]
        inner = heads * (width // heads)
        weight = get[f"{layer} qkv"][: 3 * inner, :width]
        qkv = leaf(torch.cat([weight[part::3] for part in range(3)]))
        normed = F.layer_norm(now, (width,))
        parts = (normed @ qkv.T).unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        scores = parts[0] @ parts[1].transpose(2, 3) * (width // heads) ** -0.5
        mixed = (scores.softmax(-1) @ parts[2]).transpose(1, 2).flatten(2)
        now = now + mixed @ leaf(get[f"{layer} proj"][:width, :inner]).T
        up = F.layer_norm(now, (width,)) @ leaf(get[f"{layer} fc1"][:hidden, :width]).T
        now = now + F.gelu(up) @ leaf(get[f"{layer} fc2"][:width, :hidden]).T
    logits = F.layer_norm(now[:, 0], (width,)) @ leaf(get["head"][:, :width]).T
    loss = F.cross_entropy(logits, batch[1])
    grads = torch.autograd.grad(loss, tapped, create_graph=True)
    along = torch.stack([(grad.detach() * grad).sum() for grad in grads]).sum()
    curved = torch.autograd.grad(along, tapped)
    return {
        "snip": sum((w * g).abs().sum().item() for w, g in zip(tapped, grads, strict=True)),
        "grad_norm": sum(grad.norm().item() for grad in grads),
        "grasp": sum((h * w).sum().item() for h, w in zip(curved, tapped, strict=True)),
    }


def test_released_weights_and_fusions_are_theirs(shape, batch) -> None:
    tensors = ReleasedSupernet(shape, 0).tensors
    assert sum(t.numel() for name, t in tensors.items() if "fusion" not in name) == (
        10 * (4 * 360**2 + 12 * 360**2) + 360 * (27 + 1 + 10 + 1 + 4)
    )
    scorer = Evaluator("snip,grad_norm,grasp", shape, batch=batch, precision="float64")
    for architecture, found in zip(SMALL, score(SMALL, scorer), strict=True):
        expected = saliency(architecture, tensors, shape, batch)
        assert found == pytest.approx(expected, rel=1e-8)
