"""Self-training: what it trains on, a kill, and that it helps."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from one_candidate import CONFIG, records_of, trained
from three_scenes import config as of_three

from hytas.data import Scene
from hytas.decide import decisions
from hytas.job import run_pipeline
from hytas.models import build_network
from hytas.results import SelfTraining
from hytas.run import RunFolder
from hytas.run.context import RunContext, prepare
from hytas.run.delivering.reporting import run_facts
from hytas.run.prepared import PreparedScene, prepare_scene
from hytas.run.soft_labels import round_recipe, with_soft_labels
from hytas.run.start import StartingModel
from hytas.run.weights import load_weights
from hytas.temperature import fit_temperature
from hytas.train import Recipe

CPU = torch.device("cpu")
MOST = 10**6


def prepared(scene: Scene, **changed: object) -> tuple[PreparedScene, torch.nn.Module]:
    """The scene, and a network that knows nothing of it."""
    data = prepare_scene(replace(CONFIG, **changed), scene).as_scene  # type: ignore[arg-type]
    context = prepare(replace(CONFIG, **changed), scene, CPU)  # type: ignore[arg-type]
    assert context.feasible is not None
    return data, build_network(context.feasible.unrank(0), data.shape, seed=0).eval()


def test_labelled_pixels_keep_their_labels_and_others_get_soft_ones(scene: Scene) -> None:
    data, network = prepared(scene)
    learnt = data.split.train
    pixels = with_soft_labels(network, data, learnt, MOST, 0, CPU)
    assert pixels.soft_labels is not None
    own = np.isin(pixels.pixels, learnt)
    assert own.sum() == len(learnt)
    assert (~own).sum() == 3 * len(learnt)
    assert np.array_equal(pixels.soft_labels[own], np.eye(3)[data.targets(pixels.pixels[own])])
    assert pixels.soft_labels.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert 0 < pixels.soft_labels[~own].min() < pixels.soft_labels[~own].max() < 1
    assert np.array_equal(pixels.targets, pixels.soft_labels.argmax(axis=1))
    again = with_soft_labels(network, data, learnt[::-1].copy(), MOST, 0, CPU)
    assert np.array_equal(again.soft_labels, pixels.soft_labels)
    assert not np.array_equal(
        with_soft_labels(network, data, learnt, MOST, 1, CPU).pixels, pixels.pixels
    )


def test_no_other_label_is_read(scene: Scene) -> None:
    data, network = prepared(scene)
    learnt = data.split.train
    poisoned = scene.labels.copy()
    others = np.setdiff1d(np.arange(scene.labels.size), learnt)
    poisoned.flat[others] = 1 + poisoned.flat[others] % 3
    other = prepare_scene(CONFIG, replace(scene, labels=poisoned), data.split).as_scene
    found, same = (with_soft_labels(network, one, learnt, MOST, 0, CPU) for one in (data, other))
    assert np.array_equal(found.pixels, same.pixels)
    assert np.array_equal(found.soft_labels, same.soft_labels)


def test_pixels_without_data_are_left_out(scene: Scene) -> None:
    cube = scene.cube.copy()
    cube[:, 20:] = -9
    labels = scene.labels.copy()
    labels[:, 20:] = 0
    data, network = prepared(replace(scene, cube=cube, labels=labels, nodata=-9.0))
    pixels = with_soft_labels(network, data, data.split.train, MOST, 0, CPU)
    assert (pixels.pixels % 24 < 20).all()


def test_scenes_that_only_test_are_not_learnt_from(three_scenes: Path) -> None:
    settings = replace(of_three(three_scenes), train_per_class=30)
    context = prepare(settings, settings.load_scene(), CPU)
    assert context.feasible is not None
    data = context.data.as_scene
    network = build_network(context.feasible.unrank(0), data.shape, seed=0).eval()
    pixels = with_soft_labels(network, data, data.split.train, MOST, 0, CPU)
    assert np.isin(pixels.pixels, data.scene.training_area).all()
    assert len(pixels) > len(data.split.train)


def test_a_round_is_a_quarter_as_long_and_keeps_the_embedding() -> None:
    first = Recipe(batch_size=8, epochs=16)
    second = round_recipe(first, 20)
    assert second.epochs_for(80) * second.steps_per_epoch(80) == 20  # 12 of 48, in whole epochs
    assert not second.whitened
    assert round_recipe(Recipe(), 6400).epochs_for(4 * 6400) == 1  # of 1500 steps, 375 are .94


def always(*_: object) -> SelfTraining:
    return SelfTraining(True, 15, 0.5, 0.8)


def lie_apart(patch: pytest.MonkeyPatch) -> None:
    """Let nothing forbid self-training, as if the test pixels lay apart."""

    def reason(context: RunContext) -> str:
        return "self_training none was asked for" if context.config.self_training == "none" else ""

    patch.setattr(RunContext, "no_self_training", property(reason))


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing forbids self-training."""
    lie_apart(monkeypatch)


@pytest.fixture(scope="module")
def whole(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run up to its final training, which self-trains and was not stopped."""
    with pytest.MonkeyPatch.context() as patch:
        lie_apart(patch)
        patch.setattr(decisions, "choose_self_training", always)
        return trained(CONFIG, scene, tmp_path_factory.mktemp("runs") / "whole")


def test_of_many_labelled_pixels_a_round_takes_some(scene: Scene) -> None:
    data, network = prepared(scene)
    pixels = with_soft_labels(network, data, data.split.train, 16, 0, CPU)
    assert len(pixels) == 16
    assert np.isin(pixels.pixels, data.split.train).sum() == 4
    recipe = round_recipe(Recipe(epochs=1, batch_size=8), 24)
    assert recipe.epochs_for(recipe.steps * 8) == 1


def test_what_forbids_it(scene: Scene, run_of_three: Path) -> None:
    context = prepare(CONFIG, scene, CPU)
    assert context.no_self_training == "the split is not spatially disjoint"
    # Without test pixels of its own, the model may be for pixels that lie apart.
    own = replace(context.data.split, test=context.data.split.train)
    assert replace(context, data=replace(context.data, split=own)).no_self_training == ""
    blocks = replace(context.data.split, kind="blocks")
    apart = replace(context, data=replace(context.data, split=blocks))
    assert apart.no_self_training == ""
    asked = replace(context, config=replace(CONFIG, self_training="none"))
    assert asked.no_self_training == "self_training none was asked for"
    further = replace(context, origin=StartingModel.open(run_of_three))
    assert further.no_self_training == "the run begins with a trained model"
    everything = replace(context.data.split, train=np.arange(scene.labels.size))
    labelled = replace(context, data=replace(context.data, split=everything))
    assert labelled.no_self_training == "every pixel of the scene is a training pixel"


@pytest.mark.usefixtures("apart")
def test_what_is_decided_is_done_and_written(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = trained(replace(CONFIG, self_training="none"), scene, tmp_path / "none")
    monkeypatch.setattr(decisions, "choose_self_training", always)
    outcome = run_pipeline(replace(CONFIG, seeds=2), scene, tmp_path / "run", device="cpu")
    without = load_weights(plain.weights)
    assert without.training["self_training"]["reason"] == "self_training none was asked for"
    asked = replace(CONFIG, self_training="none")
    assert not records_of(asked, scene, plain.path)[0].self_trained
    assert outcome.metrics is not None
    found = outcome.metrics["self_training"]
    assert (found["used"], found["OA_after"]) == (True, 0.8)
    rounds = outcome.metrics["training"]["self_training_rounds"]
    assert [len(one["history"]) for one in rounds] == [1, 1]
    assert len(outcome.metrics["training"]["history"]) == 2
    weights = load_weights(tmp_path / "run" / "weights.safetensors").network.state_dict()
    assert any(not torch.equal(weights[k], v) for k, v in without.network.state_dict().items())
    # Temperature, and the accuracy beside reference methods, are of networks trained further.
    members = outcome.metrics["mean"]["members"]
    done = records_of(replace(CONFIG, seeds=2), scene, tmp_path / "run")
    records = [record.mean(members) for record in done]
    truth = np.concatenate([record.targets for record in records])
    before, after = (
        np.concatenate([record.final_logits(used)[0] for record in records])
        for used in (False, True)
    )
    assert outcome.metrics["calibration"]["temperature"] == fit_temperature(after, truth)
    assert fit_temperature(before, truth) != fit_temperature(after, truth)
    further = json.loads((tmp_path / "run" / "seed-1" / "metrics.json").read_text())
    assert further["self_training"]["used"]
    assert further["calibration"] == outcome.metrics["calibration"]
    told = outcome.metrics["references"]["validation"]
    assert told["OA"]["winner"] == pytest.approx((after.argmax(axis=1) == truth).mean())
    # A run is only read for its page: another process may be writing.
    unfinished = tmp_path / "run" / "seed-1" / ".weights.safetensors.1234.abcd"
    unfinished.touch()
    run_facts(RunFolder(tmp_path / "run"))
    assert unfinished.exists()
    page = (tmp_path / "run" / "report.html").read_text()
    assert "self-training is used: OA on" in page
