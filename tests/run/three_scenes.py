"""Three small scenes of one sensor, and a run on them."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hytas.run import RunConfig
from hytas.train import Recipe
from tiny import SPACE

CONFIG = RunConfig(
    budget="6K-params",
    data=["a.npz", "b.npz"],
    test_data=["c.npz"],
    space=SPACE,
    population=4,
    generations=1,
    finalists=1,
    recipe=Recipe(epochs=3),
    patch_size=3,
    split="random",
    train_per_class=10,
)


def saved(path: Path, seed: int, gain: float, width: int) -> None:
    generator = np.random.default_rng(seed)
    labels = np.zeros((18, width), np.int16)
    for number in range(3):
        labels[6 * number : 6 * number + 5] = number + 1
    spectra = np.random.default_rng(9).uniform(500, 3000, (4, 12))
    cube = gain * spectra[labels] + generator.normal(0, 60, (18, width, 12))
    np.savez(path, cube=cube.astype(np.int16), labels=labels)


def config(folder: Path, **changed: object) -> RunConfig:
    data = [str(folder / name) for name in CONFIG.data]
    tested = [str(folder / name) for name in CONFIG.test_data]
    return replace(CONFIG, **{"data": data, "test_data": tested, **changed})  # type: ignore[arg-type]
