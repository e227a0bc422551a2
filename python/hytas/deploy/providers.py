"""Find the execution providers of onnxruntime that work on this machine."""

import contextlib
import ctypes
import functools
import io
from typing import Any

import onnxruntime

from hytas.errors import InputError

_SHORT = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


@functools.cache
def cuda_devices() -> int:
    """Return the number of CUDA devices that the driver reports; 0 without a driver.

    onnxruntime lists its CUDA provider even without a GPU, and prints errors when a session asks
    for it. So we ask the driver first.
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
    """Return the short names of the providers that this machine can run, best first."""
    compiled = onnxruntime.get_available_providers()
    works = {"cuda": cuda_devices() > 0, "cpu": True}
    return [name for name, works_here in works.items() if works_here and _SHORT[name] in compiled]


def choose_providers(provider: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the providers to request from onnxruntime, best first, each with its options.

    Args:
        provider: "auto" (the best that works), "cpu" or "cuda".
    """
    working = working_providers()
    if provider == "auto":
        return [_with_options(name) for name in working]
    if provider not in _SHORT:
        raise InputError("provider", provider, f"must be one of auto, {', '.join(_SHORT)}")
    if provider not in working:
        rule = f"does not work on this machine, which has {', '.join(working)}"
        raise InputError("provider", provider, rule)
    return [_with_options(name) for name in dict.fromkeys([provider, "cpu"])]


def _with_options(name: str) -> tuple[str, dict[str, Any]]:
    """Return a provider with its options; a GPU computes in float32, without TF32.

    The CUDA libraries are also searched in the Python packages that contain them.
    """
    if name != "cuda":
        return _SHORT[name], {}
    with contextlib.redirect_stdout(io.StringIO()):  # it prints the libraries that it does not find
        onnxruntime.preload_dlls()
    return _SHORT[name], {"use_tf32": "0"}


def check_chosen(provider: str, session: onnxruntime.InferenceSession) -> None:
    """Refuse a session that fell back to the CPU although a GPU was named."""
    if provider == "cuda" and session.get_providers()[0] != _SHORT["cuda"]:
        raise InputError(
            "provider",
            provider,
            "could not be started: onnxruntime-gpu needs the CUDA and cuDNN libraries of its "
            "version",
            "auto or cpu runs without them",
        )
