"""What a device can hold, and in which arithmetic it computes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

PRECISIONS = ("float32", "bf16", "tf32", "float64")
# Bytes of activations kept on a CPU: the cap keeps the peak of a process under 1 GiB.
CPU_ACTIVATIONS = 400 << 20
GPU_SHARE = 0.5  # of the free memory, for activations; the rest is gradients and workspace


def activation_memory(device: torch.device) -> int:
    """Bytes of activations that a group of networks may keep on `device`."""
    if device.type != "cuda":
        return CPU_ACTIVATIONS
    free, _ = torch.cuda.mem_get_info(device)
    return int(free * GPU_SHARE)


def arithmetic(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """The context in which matrix products are taken: float32 and float64 exactly, or reduced."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    if precision == "tf32":
        return _tf32()
    return nullcontext()


@contextmanager
def _tf32() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside torch's operations; the setting is restored."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
