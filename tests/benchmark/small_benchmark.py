"""A benchmark that is made in a second: a tiny scene and networks of a few steps."""

from pathlib import Path
from typing import Any

import numpy as np

import hytas
from hytas.data import LabelledData, Scene
from hytas.lab.benchmark.make import make_benchmark

PROXIES = "snip,params,depth-embed"


def small_scene(missing: bool = False) -> Scene:
    """Three kinds of ground in 12 bands; with `missing`, the third has no test pixel."""
    generator = np.random.default_rng(0)
    labels = np.zeros((24, 20), np.int32)
    labels[1:7, 1:19], labels[9:15, 1:19], labels[17:23, 1:19] = 1, 2, 3
    cube = generator.integers(500, 3000, (4, 12))[labels] + generator.normal(0, 300, (24, 20, 12))
    train = np.where(np.arange(20) < 9, labels, 0)
    test = np.where(np.arange(20) >= 11, labels, 0)
    if missing:
        test[test == 3] = 0
    return hytas.scene_from_arrays(cube.astype(np.float32), train=train, test=test)


def config(**changed: Any) -> hytas.RunConfig:
    usual: dict[str, Any] = {
        "budget": "30K-params",
        "proxy": PROXIES,
        "presets": "plain",
        "final_training_on": "train",
        "patch_size": 3,
        "seeds": 2,
        "recipe": hytas.Recipe(epochs=3),
    }
    return hytas.RunConfig(**{**usual, **changed})


def make(out: Path, networks: int = 4, scene: LabelledData | None = None, **changed: Any) -> Path:
    return make_benchmark(
        config(**changed), scene or small_scene(), out, networks=networks, device="cpu", workers=1
    )
