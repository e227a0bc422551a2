"""The strategy that trains a supernet in the kind of network that wins a short race."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from one_candidate import trained

from hytas._engine import builtin_space_text
from hytas.data import Scene
from hytas.errors import InputError
from hytas.models import count_parameters
from hytas.run import RunConfig, run_pipeline
from hytas.run.folder import read_json
from hytas.run.progress import Report
from hytas.run.supernets.strategy import kind_of
from hytas.run.weights import load_weights
from hytas.search import EvaluationStore
from hytas.spaces import open_space
from hytas.spaces.opening import with_values
from hytas.supernet import InheritedScore
from hytas.train import Epoch, Recipe

CONFIG = RunConfig(
    budget="3K..12K-params",
    proxy="params",
    strategy="supernet",
    population=4,
    generations=2,
    finalists=2,
    presets="full,plain",
    race_steps=2,
    patch_size=3,
    split="random",
    train_per_class=20,
    self_training="none",
    recipe=Recipe(epochs=2, batch_size=16),
)


DECIDED = ("architecture.json", "supernet/supernet.safetensors", "weights.safetensors")


@pytest.fixture(scope="module")
def whole(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """The folder of a run up to its final training, and the files that the run decides."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    trained(CONFIG, scene, folder)
    return folder, [(folder / name).read_bytes() for name in DECIDED]


@pytest.mark.parametrize("worth", [2.0, -1.0])
def test_the_better_weights_ship(
    worth: float, scene: Scene, whole: tuple[Path, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = whole
    for path in (folder / "weights.safetensors", *folder.glob("held-out-*.npz")):
        path.unlink(missing_ok=True)
    monkeypatch.setattr(InheritedScore, "__call__", lambda self, architecture: worth)
    weights = load_weights(trained(CONFIG, scene, folder).weights)
    inner = folder / "supernet"
    assert weights.card.architecture == read_json(inner / "architecture.json")
    assert 3_000 <= count_parameters(weights.network) <= 12_000
    with EvaluationStore(folder / "evaluations.sqlite") as store:
        assert len({item.steps for item in store.trainings()}) == 1
        kinds = [kind_of(item.architecture) for item in store.evaluations()]
    chosen = kind_of(weights.card.architecture)
    assert chosen in kinds
    with EvaluationStore(inner / "evaluations.sqlite") as store:
        assert all(kind_of(item.architecture) == chosen for item in store.evaluations())
    assert ("supernet" in weights.training) == (worth > 0)
    assert len(weights.training["history"]) == (4 if worth > 0 else 2)


@pytest.mark.slow
def test_a_whole_run(scene: Scene, tmp_path: Path) -> None:
    outcome = run_pipeline(CONFIG, scene, tmp_path / "run", device="cpu", references=False)
    assert outcome.metrics is not None
    assert {"model.onnx", "map.png", "report.html"} <= outcome.files.keys()


class KillError(Exception):
    """Stands for the end of the process."""


def test_interrupted_equals_uninterrupted(
    scene: Scene, whole: tuple[Path, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.train.loop.CHECKPOINT_SECONDS", 0.0)

    class Killer(Report):
        def epoch(self, epoch: Epoch) -> None:
            if epoch.epoch == 3:  # of the supernet alone
                raise KillError

    with pytest.raises(KillError):
        trained(CONFIG, scene, tmp_path / "run", Killer())
    assert not (tmp_path / "run" / "architecture.json").exists()
    trained(CONFIG, scene, tmp_path / "run")
    for name, content in zip(DECIDED, whole[1], strict=True):
        assert (tmp_path / "run" / name).read_bytes() == content, name


def test_a_race_of_one_has_no_kinds(scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="races the kinds of two finalists"):
        run_pipeline(
            replace(CONFIG, finalists=1), scene, tmp_path / "run", device="cpu", references=False
        )
    assert not (tmp_path / "run").exists()


def test_a_narrowed_space_has_the_values_that_were_asked_for(tmp_path: Path) -> None:
    text = with_values("hytas-wide", {"tokens": ["pixel", "band"], "patch": [3]}, "mine")
    (tmp_path / "space.json").write_text(text)
    found = json.loads(text)
    genes = {gene["name"]: gene for gene in found["genes"]}
    assert (genes["tokens"]["values"], genes["tokens"]["weights"]) == (["pixel", "band"], [950, 90])
    assert genes["patch"]["values"] == [3]
    assert found["about"] == "mine"
    rest = {gene["name"]: gene for gene in json.loads(builtin_space_text("hytas-wide"))["genes"]}
    assert {n: g for n, g in genes.items() if n not in ("tokens", "patch")} == {
        n: g for n, g in rest.items() if n not in ("tokens", "patch")
    }
    assert open_space(str(tmp_path / "space.json"))[0].size() > 0
    wider = json.loads(with_values("hytas-wide", {"tokens": ["pixel", "other"]}))
    assert "weights" not in {gene["name"]: gene for gene in wider["genes"]}["tokens"]
    with pytest.raises(InputError, match="has no gene 'colour'"):
        with_values("hytas", {"colour": ["red"]})
