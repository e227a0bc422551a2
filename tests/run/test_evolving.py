"""A space evolves on a scene: an ordinary space file, the same after an interruption."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hytas.data import Scene
from hytas.errors import InputError
from hytas.run import RunConfig, evolve_space
from hytas.spaces import open_space
from hytas.spaces.opening import with_values
from hytas.supernet import EvolutionSettings, SupernetSettings
from hytas.train import Epoch, Recipe

# So low that something always changes.
THRESHOLDS = EvolutionSettings(subnets=12, extend=1e-7, shift=2e-7, prune=1e-3)
SMALL: dict[str, list[Any]] = {
    "tokens": ["pixel"],
    "patch": [1, 3],
    "band_width": [3],
    "band_stride": [2],
    "embed_dim": [32, 48, 64],
    "band_depth": [0],
    "pixel_depth": [1, 2],
}


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    (tmp_path / "small.json").write_text(with_values("hytas-wide", SMALL))
    return RunConfig(
        space=str(tmp_path / "small.json"),
        budget="5K..90K-params",
        proxy="inherited",
        supernet_settings=SupernetSettings(),
        presets="full",
        patch_size=3,
        split="random",
        train_per_class=20,
        recipe=Recipe(epochs=2, batch_size=16),
    )


class KillError(Exception):
    """Stands for the end of the process."""


def test_a_space_evolves_the_same_after_an_interruption(
    config: RunConfig, scene: Scene, tmp_path: Path
) -> None:
    from hytas.run.progress import Report

    class Killer(Report):
        left = 3

        def epoch(self, epoch: Epoch) -> None:
            self.left -= 1  # in the second epoch of the second round
            if not self.left:
                raise KillError

    def evolve(name: str, report: Report) -> Any:
        return evolve_space(
            config,
            scene,
            tmp_path / name,
            rounds=1,
            settings=THRESHOLDS,
            device="cpu",
            report=report,
        )

    with pytest.raises(KillError):
        evolve("killed.json", Killer())
    assert not (tmp_path / "killed.json").exists()
    resumed, whole = evolve("killed.json", Report()), evolve("whole.json", Report())
    text = (tmp_path / "whole.json").read_text()
    assert (tmp_path / "killed.json").read_text() == text
    assert (resumed.before, resumed.after) == (whole.before, whole.after)
    (steps,) = whole.steps
    assert steps
    genes = {gene["name"]: gene["values"] for gene in json.loads(text)["genes"]}
    for step in steps:
        assert genes[step.gene] == step.values
    unchanged = SMALL.keys() - {step.gene for step in steps}
    assert all(genes[name] == SMALL[name] for name in unchanged)
    about = json.loads(text)["about"]
    assert about.startswith("Evolved from small.json for scene stripes and budget 5K..90K-params")
    assert f'"E": {whole.before.E}' in about
    assert "round 1: " in about
    opened, _ = open_space(str(tmp_path / "whole.json"), "5K..90K-params")
    assert opened.name == "hytas-wide"
    other = replace(THRESHOLDS, subnets=11)
    with pytest.raises(InputError, match="belongs to other thresholds"):
        evolve_space(config, scene, tmp_path / "whole.json", rounds=1, settings=other, device="cpu")
