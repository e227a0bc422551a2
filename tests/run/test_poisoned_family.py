"""Labels of test pixels change neither a supernet nor what is chosen from it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hytas.data import Scene, scene_from_arrays
from hytas.run import Member, RunConfig, export_family, train_supernet
from hytas.run.context import Run
from hytas.run.folder import write_json
from hytas.run.weights import load_weights
from hytas.spaces.opening import with_values
from hytas.supernet import Supernet, SupernetSettings
from hytas.train import Recipe

GENES = {"tokens": ["pixel"], "patch": [1, 3], "embed_dim": [32, 48], "pixel_depth": [1, 2]}


@pytest.fixture
def no_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stages behind the choice, which take longest, only write what a family reads."""

    def export(run: Run) -> None:
        write_json(run.folder.tested, {"test": {"OA": 0.5}})

    place = "hytas.run.supernets.family"
    monkeypatch.setattr(f"{place}.export_stage", export)
    monkeypatch.setattr(f"{place}.map_stage", lambda _: None)


@pytest.mark.usefixtures("no_export")
def test_poisoned_test_labels_change_no_choice(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "space.json").write_text(with_values("hytas-wide", GENES))
    config = RunConfig(
        space=str(tmp_path / "space.json"),
        budget="5K..60K-params",
        proxy="inherited",
        supernet_settings=SupernetSettings(),
        presets="full",
        population=4,
        generations=2,
        patch_size=3,
        recipe=Recipe(epochs=3, batch_size=16, patience=1.0),
    )
    rows = np.arange(scene.labels.shape[0])[:, None]
    learnt = np.where(rows < 6, scene.labels, 0)
    test = np.where(rows < 6, 0, scene.labels)
    poisoned = np.where(test > 0, test % 3 + 1, 0)
    assert np.all(poisoned[test > 0] != test[test > 0])

    def family(name: str, labels: np.ndarray) -> tuple[Supernet, Member]:
        given = scene_from_arrays(scene.cube, train=learnt, test=labels, name="stripes")
        out = tmp_path / name
        file = train_supernet(config, given, out, device="cpu")
        (member,) = export_family(config, given, out, ["30K-params"], device="cpu")
        return Supernet.load(file), member

    (supernet, member), (other, found) = family("plain", test), family("poisoned", poisoned)
    assert supernet.weights.keys() == other.weights.keys()
    assert all(torch.equal(supernet.weights[name], other.weights[name]) for name in other.weights)
    assert replace(member, folder=found.folder) == found
    weights, others = (
        load_weights(each.folder / "weights.safetensors").network.state_dict()
        for each in (member, found)
    )
    assert all(torch.equal(weights[name], others[name]) for name in weights)
