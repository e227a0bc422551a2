"""The model of a run teaches another training, and reads none of its held-out labels."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hytas.data import Scene, load_scene, scene_from_arrays
from hytas.job import export_run, train_architecture
from hytas.run import SILENT, RunConfig
from hytas.run.context import RunContext, open_run, prepare
from hytas.run.explaining import explain_run
from hytas.run.final.fits import folds_of, winner_fit
from hytas.run.folder import RunFolder
from hytas.run.start import further_config
from hytas.run.teacher import open_teacher
from hytas.run.weights import load_weights
from hytas.train import Recipe
from refusals import refuses
from tiny import SPACE

GENES = {"space": "hytas", "depth": 1, "embed_dim": 8, "num_heads": [1], "mlp_ratio": [1]}
CPU = torch.device("cpu")


def config(**changed: object) -> RunConfig:
    usual = {
        "data": "stripes",
        "space": SPACE,
        "recipe": Recipe(epochs=1),
        "presets": "plain",
        "patch_size": 3,
        "split": "random",
        "train_per_class": 20,
    }
    return RunConfig(**{**usual, **changed})


@pytest.fixture(scope="module")
def large(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("teacher") / "run"
    train_architecture(GENES, config(), scene, out, device="cpu")
    return out


def taught(large: Path, scene: Scene, **changed: object) -> RunContext:
    return prepare(config(teacher=str(large), **changed), scene, CPU)


def test_a_teacher_of_the_same_split_saw_no_test_pixel(large: Path, scene: Scene) -> None:
    for path in (large, large / "model.onnx"):
        context = taught(path, scene)
        teacher = context.teacher
        assert teacher is not None
        assert np.array_equal(teacher.seen, context.data.split.train_and_validation)


def test_a_teacher_of_another_split_is_refused(large: Path, scene: Scene) -> None:
    for changed in ({"seed": 1}, {"split": "blocks", "block": 4}):
        with refuses("teacher", rule="was trained on test pixels of stripes.*another split"):
            assert taught(large, scene, **changed).teacher
    other = scene_from_arrays(scene.cube + 1, scene.labels, name="brighter")
    assert taught(large, other, seed=1).teacher.seen.size == 0  # type: ignore[union-attr]
    RunFolder(large).split.rename(large / "away.npz")
    try:
        with refuses("teacher", rule="was trained on test pixels"):
            assert taught(large, scene).teacher
    finally:
        (large / "away.npz").rename(RunFolder(large).split)


def test_a_model_of_a_table_is_known_again_by_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spectra = np.random.default_rng(0).normal(size=(90, 6)) + np.arange(90)[:, None] % 3
    rows = [f"{'abc'[at % 3]},{','.join(map(str, row))}" for at, row in enumerate(spectra)]
    path, out = tmp_path / "t.csv", tmp_path / "run"
    path.write_text("\n".join(["species,400,500,600,700,800,900", *rows]))
    table = load_scene(path, label_column="species")
    train_architecture(GENES, config(), table, out, device="cpu")
    model = load_weights(RunFolder(out).weights)
    (source,) = model.card.learnt_from
    for print_ in (source["fingerprint"], table.fingerprint):  # of an earlier card
        card = replace(model.card, learnt_from=({**source, "fingerprint": print_},))
        monkeypatch.setattr(
            "hytas.run.start.load_weights", lambda _, card=card: replace(model, card=card)
        )
        assert taught(out, table).teacher is not None
        with refuses("teacher", rule="was trained on test samples of t"):
            assert taught(out, table, seed=1).teacher
        with refuses("data", "t", "is a table that the model of .* was trained on"):
            prepare(replace(further_config(out)[0], split="random", seed=1), table, CPU)


def test_validation_pixels_that_decide_are_held_out(large: Path, scene: Scene) -> None:
    with refuses("teacher", rule="validation pixels.*leave `final_training_on`"):
        assert taught(large, scene, final_training_on="train").teacher


def test_a_fold_is_trained_without_a_teacher_that_saw_it(
    large: Path, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.run.context.ENOUGH_PIXELS", 30)
    settings = config(teacher=str(large), self_training="none")
    train_architecture(GENES, settings, scene, tmp_path / "run", device="cpu")
    with open_run(tmp_path / "run", settings, scene, "cpu", SILENT) as run:
        folds, _ = folds_of(run)
        assert folds
        assert not any(fold.first.taught for fold in folds)
        winner = winner_fit(run, False)
        assert winner.taught
        assert run.context.source.training(winner, None).teacher is run.context.teacher
    sources = load_weights(RunFolder(tmp_path / "run").weights).card.learnt_from
    assert [one["name"] for one in sources] == ["stripes", "stripes"]


def test_a_teacher_that_reads_other_values_is_refused(large: Path, scene: Scene) -> None:
    with refuses("teacher", rule="other scaling"):
        assert taught(large, scene, scale_by="scene").teacher
    waves = np.linspace(400, 900, scene.bands)
    folder, near = RunFolder(large), replace(scene, wavelengths=waves)
    model = load_weights(folder.weights)
    card = replace(model.card, wavelengths=tuple(waves + 300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hytas.run.start.load_weights", lambda _: replace(model, card=card))
        with refuses("teacher", rule="other wavelengths"):
            open_teacher(str(large), prepare(config(), near, CPU).data, "training")
    with refuses("teacher", rule="other no-data values"):
        assert taught(large, replace(scene, nodata=-5.0)).teacher


def test_a_teacher_reads_the_centre_of_larger_patches(large: Path, scene: Scene) -> None:
    context = taught(large, scene, patch_size=5)
    teacher, data = context.teacher, context.data
    assert teacher is not None
    wide, near = (
        prepare(config(patch_size=side), scene, CPU).data.labelled(data.split.test)
        for side in (5, 3)
    )
    order = np.arange(30)
    assert torch.equal(teacher(wide.batch(order, CPU)[0]), teacher(near.batch(order, CPU)[0]))
    with refuses("teacher", rule="other sides of patches"):
        assert taught(large, scene, patch_size=1).teacher


def test_a_wrong_teacher_is_found_before_anything_is_written(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "untrained").mkdir()
    for path in ("/nonexist", str(tmp_path / "untrained")):
        settings, out = config(teacher=path), tmp_path / "run"
        with refuses("teacher", rule="must be a run"):
            train_architecture(GENES, settings, scene, out, device="cpu")
        assert not out.exists()


def test_a_taught_run_is_exported_without_its_teacher(
    large: Path, scene: Scene, tmp_path: Path
) -> None:
    teacher, out = tmp_path / "teacher", tmp_path / "run"
    shutil.copytree(large, teacher)
    settings = config(teacher=str(teacher))
    train_architecture(GENES, settings, scene, out, device="cpu")
    before = (out / "config.json").read_bytes()
    shutil.rmtree(teacher)
    export_run(settings, scene, out)
    assert (out / "config.json").read_bytes() == before


def test_a_run_that_began_with_a_model_is_explained_without_it(
    large: Path, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, genes = further_config(large)
    cube = np.asarray(scene.cube) * np.float32(1.1)
    new = scene_from_arrays(cube, scene.labels, name="new")
    changed = {"data": "new", "recipe": replace(usual.recipe, epochs=1)}
    settings = replace(usual, **changed, split="random", train_per_class=20)
    out = tmp_path / "further"
    train_architecture(genes, settings, new, out, device="cpu")
    monkeypatch.setattr(RunConfig, "load_scene", lambda self: new)
    gone = replace(settings, start=str(tmp_path / "gone"))
    found = explain_run(out, gone, groups=2, samples=20, repeats=1)
    assert found["samples"] == 20


def test_settings_of_a_teacher_need_one() -> None:
    with refuses("recipe", "distillation=0.3", "name one with `teacher`"):
        config(recipe=Recipe(distillation=0.3))
    with refuses("recipe", "distillation=0.5", "name one with `teacher`"):
        config(presets="plain,distillation=0.5")
    with refuses("recipe", "distillation=0.0", "leaves `teacher` without effect"):
        config(recipe=Recipe(distillation=0.0), teacher="runs/large")
    assert config(recipe=Recipe(distillation=0.3), teacher="runs/large").teacher == "runs/large"
