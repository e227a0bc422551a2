"""Where a model runs: the execution providers of onnxruntime that work on this machine."""

import ctypes
import functools

import onnxruntime

from hytas.errors import InputError

_SHORT = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


@functools.cache
def cuda_devices() -> int:
    """CUDA devices that the driver reports; 0 without a driver.

    onnxruntime lists its CUDA provider wherever it was compiled in, and prints errors when a
    session asks for it on a machine without one. So the driver is asked first.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def working_providers() -> list[str]:
    """The short names, best first, of the providers that this machine can run."""
    compiled = onnxruntime.get_available_providers()
    works = {"cuda": cuda_devices() > 0, "cpu": True}
    return [name for name, works_here in works.items() if works_here and _SHORT[name] in compiled]


def choose(provider: str) -> list[str]:
    """The providers to ask onnxruntime for, best first.

    Args:
        provider: "auto" (the best that works), "cpu" or "cuda".

    Raises:
        InputError: no such provider, or it does not work here.
    """
    working = working_providers()
    if provider == "auto":
        return [_SHORT[name] for name in working]
    if provider not in _SHORT:
        raise InputError(f"provider: {provider!r} is not one of auto, {', '.join(_SHORT)}")
    if provider not in working:
        raise InputError(
            f"provider: {provider!r} does not work on this machine, which has {', '.join(working)}"
        )
    return list(dict.fromkeys([_SHORT[provider], _SHORT["cpu"]]))
