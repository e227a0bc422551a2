"""What a group of networks holds while it is scored, and what a device can hold."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hytas.models.shape import InputShape
from hytas.proxies.baselines import params
from hytas.proxies.spec import ProxySpec
from hytas.proxies.table import CURVATURE, PERTURBED
from hytas.spaces import mlp_width

CPU_ACTIVATIONS = 400 << 20
"""Bytes of activations kept on a CPU by the only worker, or by two together: the cap keeps the peak
of a process under 1 GiB. More workers have as many each as two have."""
GPU_SHARE = 0.5  # of the free memory, for activations; the rest is gradients and workspace


def activation_memory(device: torch.device, workers: int = 1) -> int:
    """Bytes of activations that a group of networks may keep on `device`, beside other workers."""
    if device.type != "cuda":
        return CPU_ACTIVATIONS // min(workers, 2)
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    room = int((free + kept) * GPU_SHARE)  # what torch keeps for reuse is free too
    # A power of two: the groups, and with them the last bits of a score, shall not depend on what
    # little else is on the device.
    return 1 << max(room.bit_length() - 1, 0)


def activation_bytes(architecture: Mapping[str, Any], patches: Tensor) -> int:
    """Bytes of the activations that a network's kept graph holds on `patches`, roughly."""
    embed, tokens = int(architecture["embed_dim"]), patches.shape[3] + 1
    # The attention of a CPU keeps no probabilities and copies nothing; a GPU's is the plain one.
    on_cpu = patches.device.type == "cpu"
    copies = 5 if on_cpu else 7
    genes = zip(architecture["num_heads"], architecture["mlp_ratio"], strict=True)
    width = sum(
        copies * (embed + heads * (embed // heads))
        + 2 * mlp_width(embed, ratio)
        + (0 if on_cpu else (heads + 2) * tokens)
        for heads, ratio in genes
    )
    total: int = patches.shape[0] * tokens * width * patches.element_size()
    return total


def held_bytes(activations: int, needs: Container[str]) -> int:
    """Bytes that the passes of a group hold, whose kept graph holds `activations`.

    A perturbed network in step holds as much again; layers kept for the curvature, which replace
    the graph as it is freed, add a third (measured, 200 bands).
    """
    if PERTURBED in needs:
        return 2 * activations
    return activations * 4 // 3 if CURVATURE in needs else activations


def weight_bytes(
    architecture: Mapping[str, Any], specs: Sequence[ProxySpec], shape: InputShape, samples: int
) -> int:
    """Bytes that a network of a group holds beside activations: weights, gradients, Gram matrices.

    With gradients of each sample, where a proxy takes them, of one layer at a time.
    """
    embed = int(architecture["embed_dim"])
    hidden = max(3 * embed, *(mlp_width(embed, ratio) for ratio in architecture["mlp_ratio"]))
    total = 3 * 4 * int(params(architecture, shape, 0))
    total += 2 * 4 * 8 * len(architecture["num_heads"]) * embed**2
    if any(spec.proxy.sample_grads for spec in specs):
        total += 3 * 4 * samples * embed * hidden
    return total
