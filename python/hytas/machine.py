"""How torch computes here: with how many threads, in which arithmetic, by which kernels."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

PRECISIONS = ("float32", "bf16", "tf32", "float64")


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside torch's operations; the setting is restored.

    Sums are then taken in one order, so what is computed does not depend on the machine's cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def arithmetic(precision: str, device: torch.device | str) -> Iterator[None]:
    """The context in which a pass runs: float32 and float64 exactly, or reduced."""
    device = torch.device(device)
    kernels = _on_gpu(precision) if device.type == "cuda" else nullcontext()
    bf16 = torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()
    with kernels, bf16:
        yield


@contextmanager
def exactly(device: torch.device) -> Iterator[None]:
    """The context of what must not be computed in reduced precision, inside one that may be."""
    with torch.autocast(device.type, enabled=False), arithmetic("float32", device):
        yield


@contextmanager
def _on_gpu(precision: str) -> Iterator[None]:
    """Kernels that give the same numbers each time, in float32 proper unless tf32 is asked for.

    torch lets convolutions run in tf32 unless told otherwise. Of the kernels of attention only the
    plain one does not depend on the width of a head and on chance; reduced precision may have any.
    """
    settings = _exact_settings(reduced=precision == "tf32")
    before = [getattr(place, name) for place, name, _ in settings]
    fast = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    try:
        for place, name, value in settings:
            setattr(place, name, value)
        with sdpa_kernel([*(fast if precision == "bf16" else []), SDPBackend.MATH]):
            yield
    finally:
        for (place, name, _), value in zip(settings, before, strict=True):
            setattr(place, name, value)


def _exact_settings(reduced: bool) -> list[tuple[Any, str, Any]]:
    """(where, name, value) of torch's settings: of products, of convolutions, of chance."""
    cudnn: Any = torch.backends.cudnn  # whose stubs know none of these
    matmul = torch.backends.cuda.matmul
    settings: list[tuple[Any, str, Any]] = [(cudnn, "deterministic", True)]
    if hasattr(matmul, "fp32_precision"):  # the newer of two ways, which do not mix
        value = "tf32" if reduced else "ieee"
        return [*settings, *((part, "fp32_precision", value) for part in (matmul, cudnn.conv))]
    return [*settings, *((part, "allow_tf32", reduced) for part in (matmul, cudnn))]
