"""What a device can hold while networks are scored."""

import torch

CPU_ACTIVATIONS = 400 << 20
"""Bytes of activations kept on a CPU: the cap keeps the peak of a process under 1 GiB."""
GPU_SHARE = 0.5  # of the free memory, for activations; the rest is gradients and workspace


def activation_memory(device: torch.device) -> int:
    """Return the bytes of activations that a network may keep on `device`."""
    if device.type != "cuda":
        return CPU_ACTIVATIONS
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    room = int((free + kept) * GPU_SHARE)  # what torch keeps for reuse is free too
    # A power of two: the last bits of a score shall not depend on what little else is there.
    return 1 << max(room.bit_length() - 1, 0)
