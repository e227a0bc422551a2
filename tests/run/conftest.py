"""A small scene; three scenes of one sensor, and a run on two of them."""

from pathlib import Path

import numpy as np
import pytest
from three_scenes import config, saved

from hytas.data import Scene, scene_from_arrays
from hytas.job import run_pipeline


@pytest.fixture(scope="session")
def scene() -> Scene:
    """Three stripes of ground that spectra tell apart, (12, 24, 6)."""
    generator = np.random.default_rng(1)
    labels = np.repeat(np.arange(1, 4), 8)[None].repeat(12, 0)
    cube = generator.normal(labels[..., None], 0.5, (12, 24, 6)).astype(np.float32)
    return scene_from_arrays(cube, labels, name="stripes")


@pytest.fixture(scope="session")
def three_scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three scene files of one sensor; the third is brighter."""
    found = tmp_path_factory.mktemp("scenes")
    for seed, (name, gain, width) in enumerate((("a", 1.0, 20), ("b", 1.1, 14), ("c", 1.6, 16))):
        saved(found / f"{name}.npz", seed, gain, width)
    return found


@pytest.fixture(scope="session")
def run_of_three(three_scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that learnt from two of them."""
    out = tmp_path_factory.mktemp("runs") / "run"
    settings = config(three_scenes)
    run_pipeline(settings, settings.load_scene(), out, device="cpu")
    return out
