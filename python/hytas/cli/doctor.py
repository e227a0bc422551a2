"""`hytas doctor`: report what this machine and this installation can do."""

import importlib
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from hytas.cli.options import json_option

REQUIRED = (
    *("hytas", "torch", "numpy", "scipy", "scikit-learn", "h5py", "onnx", "onnxscript"),
    *("safetensors", "pillow", "matplotlib", "click", "rich"),
)
RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
"""Packages of one module: one of them is needed, and both together break each other."""
OPTIONAL = (*RUNTIMES, "rasterio", "pyogrio", "xarray", "h5netcdf", "zarr", "ray", "submitit")


@click.command()
@click.option(
    "--probe-workers", "probe", is_flag=True, help="Also run a small task on Ray and Slurm."
)
@json_option
def doctor(probe: bool, as_json: bool) -> None:
    """Report what this machine and this installation can do."""
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in (*REQUIRED, *OPTIONAL)},
    }
    facts |= {"cores": _cores(), "engine": _engine(), "cuda": _cuda(), "onnxruntime": _runtime()}
    facts["workers"] = _workers(probe)
    facts["problems"] = _problems(facts) + (_broken(facts["workers"]) if probe else [])
    click.echo(json.dumps(facts, indent=2) if as_json else _text(facts))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    import os

    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _engine() -> str:
    try:
        importlib.import_module("hytas._engine")
    except ImportError as error:
        return f"not importable: {error}"
    return "importable"


def _cuda() -> dict[str, Any]:
    try:
        import torch
    except Exception as error:  # report a broken installation, do not crash
        return {"torch": f"not importable: {error}", "devices": []}
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"torch": torch.version.cuda or "built without CUDA", "devices": names}


def _runtime() -> dict[str, Any]:
    try:
        import onnxruntime

        from hytas.deploy import working_providers

        compiled, working = onnxruntime.get_available_providers(), working_providers()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "compiled": [], "working": []}
    return {"error": None, "compiled": compiled, "working": working}


def _workers(probe: bool) -> dict[str, str]:
    """Return what can work in parallel; Ray and Slurm take seconds to start."""
    try:
        from hytas.workers import available_backends, probe_backends

        return probe_backends() if probe else available_backends()
    except Exception as error:  # report a broken installation, too
        return {"local": f"{type(error).__name__}: {error}"}


def _broken(workers: dict[str, str]) -> list[str]:
    from hytas.workers import available_backends

    here = {name for name, text in available_backends().items() if not text.startswith("pip ")}
    return [
        f"workers {name} do not work: {text}"
        for name, text in workers.items()
        if name in here and not text.startswith("works")
    ]


def _problems(facts: dict[str, Any]) -> list[str]:
    packages, problems = facts["packages"], []
    if packages["onnxruntime"] and packages["onnxruntime-gpu"]:
        problems.append(
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other: "
            "pip uninstall -y onnxruntime onnxruntime-gpu, then pip install onnxruntime-gpu"
        )
    missing = [name for name in REQUIRED if packages[name] is None]
    if not packages["onnxruntime"] and not packages["onnxruntime-gpu"]:
        missing.append("onnxruntime-gpu or onnxruntime")
    problems.extend(f"{name} is not installed: pip install hytas" for name in missing)
    if facts["engine"] != "importable":
        problems.append(f"hytas._engine is {facts['engine']}: pip install . in the source folder")
    if facts["onnxruntime"]["error"]:
        problems.append(f"onnxruntime does not work: {facts['onnxruntime']['error']}")
    return problems


def _text(facts: dict[str, Any]) -> str:
    installed = [f"{name} {text}" for name, text in facts["packages"].items() if text]
    absent = [name for name, text in facts["packages"].items() if not text]
    if not set(RUNTIMES) <= set(absent):  # one of them is enough
        absent = [name for name in absent if name not in RUNTIMES]
    cuda, runtime = facts["cuda"], facts["onnxruntime"]
    devices = ", ".join(cuda["devices"]) or "no device"
    lines = [
        f"python       {facts['python']} at {sys.executable}",
        f"platform     {facts['platform']}, {facts['cores']} cores",
        f"packages     {', '.join(installed)}",
        f"absent       {', '.join(absent) or 'none'}",
        f"engine       {facts['engine']}",
        f"torch CUDA   {cuda['torch']}, {devices}",
        f"onnxruntime  works on {', '.join(runtime['working']) or 'nothing'}",
        *(f"workers      {name}: {text}" for name, text in facts["workers"].items()),
        *(f"problem      {problem}" for problem in facts["problems"]),
    ]
    return "\n".join([*lines, "all is well" if not facts["problems"] else "see the problems above"])
