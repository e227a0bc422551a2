"""Settings of torch on this machine: threads, precision and kernels."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from hytas.errors import InputError

PRECISIONS = ("float32", "bf16", "tf32", "float64")


def choose_device(name: str) -> torch.device:
    """Return the torch device; "auto" uses a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    hint = "use cpu or auto"
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device", name, "torch finds no CUDA device here", hint)
    try:
        device = torch.device(name)
        if device.type == "cuda":
            torch.cuda.get_device_properties(device)
        else:
            torch.empty(0, device=device)
    except Exception:  # of a dozen classes
        raise InputError("device", name, "torch finds no such device here", hint) from None
    return device


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread inside torch's operations; restore the setting afterwards.

    Sums then have one order, so results do not depend on the number of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread_on_cpu(device: torch.device | str) -> AbstractContextManager[None]:
    """Use `one_thread` if the device is a CPU; a GPU needs no such care."""
    return one_thread() if torch.device(device).type == "cpu" else nullcontext()


@contextmanager
def arithmetic(precision: str, device: torch.device | str, *, plans: bool = True) -> Iterator[None]:
    """Return the context for a pass: exact float32 or float64, or reduced precision.

    Args:
        precision: one of `PRECISIONS`.
        plans: whether cuDNN may plan convolutions on a GPU. A plan takes 0.1 s (measured on an
            H200) for each new shape of a convolution, so it does not pay for a network that is
            passed once.
    """
    device = torch.device(device)
    kernels = _on_gpu(precision, plans) if device.type == "cuda" else nullcontext()
    bf16 = torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()
    with kernels, bf16:
        yield


@contextmanager
def exactly(device: torch.device) -> Iterator[None]:
    """Return a context without reduced precision, for use inside one with it."""
    with torch.autocast(device.type, enabled=False), arithmetic("float32", device):
        yield


@contextmanager
def _on_gpu(precision: str, plans: bool = True) -> Iterator[None]:
    """Use kernels that give the same numbers each time, in float32 unless tf32 is asked for.

    By default torch runs convolutions in tf32. Only the plain kernel of attention does not depend
    on the width of a head or on chance. Reduced precision may use any kernel.
    """
    settings = _exact_settings(reduced=precision == "tf32")
    if not plans:
        settings.append((torch.backends.cudnn, "enabled", False))
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
    """Return (object, name, value) of torch's settings for products, convolutions and chance."""
    cudnn: Any = torch.backends.cudnn  # its stubs do not have these settings
    matmul = torch.backends.cuda.matmul
    settings: list[tuple[Any, str, Any]] = [(cudnn, "deterministic", True)]
    if hasattr(matmul, "fp32_precision"):  # the newer of two interfaces, which must not be mixed
        value = "tf32" if reduced else "ieee"
        return [*settings, *((part, "fp32_precision", value) for part in (matmul, cudnn.conv))]
    return [*settings, *((part, "allow_tf32", reduced) for part in (matmul, cudnn))]
