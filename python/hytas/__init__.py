"""hytas: find, train and ship the best transformer for a hyperspectral sensor."""

import importlib
import os
from importlib.metadata import version
from typing import Any

__version__ = version("hytas")

# onnxruntime from 1.29 on and Ray send figures of their use to their makers, and onnxruntime keeps
# them in the cache folder. They read these variables when they are imported or started.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

# Public name -> module. A module is imported on first use, so `import hytas` is fast and needs no
# torch.
_PUBLIC = {
    "InputError": "hytas.errors",
    "Budget": "hytas._engine",
    "Evolution": "hytas._engine",
    "Feasible": "hytas._engine",
    "SearchSpace": "hytas._engine",
    "Benchmark": "hytas.lab.benchmark",
    "BlockSplit": "hytas.data.splits.cross_validation",
    "Preprocessing": "hytas.data",
    "Scene": "hytas.data",
    "Split": "hytas.data",
    "SplitSettings": "hytas.data",
    "load_scene": "hytas.data",
    "make_split": "hytas.data",
    "scene_from_arrays": "hytas.data",
    "synthetic_scene": "hytas.data",
    "InputShape": "hytas.spaces",
    "build_network": "hytas.models",
    "Evaluator": "hytas.proxies",
    "Recipe": "hytas.train",
    "DeployedModel": "hytas.deploy",
    "classify_scene": "hytas.deploy",
    "predict_scene": "hytas.deploy",
    "HSIClassifier": "hytas.estimator",
    "HSIRegressor": "hytas.estimator",
    "Outcome": "hytas.run",
    "RunConfig": "hytas.run",
    "read_run": "hytas.run",
    "run_pipeline": "hytas.job",
    "train_architecture": "hytas.job",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hytas' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
