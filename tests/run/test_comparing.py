"""The winner beside an SVM and a forest: on which pixels, what is said, and what a run keeps."""

import json
import shutil
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import one_candidate
import pytest

from hytas.cli.inspect_run import describe_run, lines_of_run
from hytas.cli.summary import print_outcome
from hytas.data import Scene, make_split, scene_from_arrays
from hytas.errors import InputError
from hytas.job import export_run, run_pipeline
from hytas.references import (
    METHODS,
    ReferenceResults,
    ReferenceSettings,
    bounded_split,
    run_references,
)
from hytas.run import fits
from hytas.run.context import open_run
from hytas.run.delivering import comparing
from hytas.run.progress import SILENT
from hytas.train import Recipe
from told import Told

NAMES = ("svm", "rf", "lda", "logistic")
# Without self-training and with one epoch the winner stays below the SVM.
CONFIG = replace(one_candidate.CONFIG, self_training="none", recipe=Recipe(epochs=1, batch_size=8))


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Three classes of two kinds of ground each, which no matrix tells apart, but an SVM does."""
    generator = np.random.default_rng(1)
    kinds = np.repeat(np.arange(6), 4)[None].repeat(12, 0)
    truth = kinds % 3 + 1
    cube = generator.normal(2 * kinds[..., None], 0.5, (12, 24, 6)).astype(np.float32)
    return scene_from_arrays(cube, truth, name="stripes")


@pytest.fixture(scope="module")
def told() -> Told:
    return Told()


@pytest.fixture(scope="module")
def finished(scene: Scene, told: Told, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    run_pipeline(CONFIG, scene, out, device="cpu", report=told)
    return out


def held(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "references.json").read_text())
    return found


def uncompared(finished: Path, into: Path) -> Path:
    """Return a copy of the run that has yet to fit the reference methods and to be exported."""
    out = Path(shutil.copytree(finished, into / "run"))
    for name in ("references.json", "metrics.json"):
        (out / name).unlink()
    return out


def test_all_are_compared_on_the_pixels_that_calibrate(scene: Scene, finished: Path) -> None:
    records = one_candidate.records_of(CONFIG, scene, finished)
    members = json.loads((finished / "metrics.json").read_text())["mean"]["members"]
    records = [record.mean(members) for record in records]
    right = sum(int((one.logits.argmax(axis=1) == one.targets).sum()) for one in records)
    found = held(finished)["validation"]
    assert found["pixels"] == sum(len(record.pixels) for record in records)
    assert found["folds"] == len(records)
    assert found["OA"]["winner"] == pytest.approx(right / found["pixels"])
    assert set(found["OA"]) == set(found["smoothed"]) == {"winner", *NAMES}
    metrics = json.loads((finished / "metrics.json").read_text())
    assert found["smoothed"]["winner"] == pytest.approx(metrics["smoothing"]["OA_smoothed"])


def test_no_method_is_fitted_on_pixels_that_it_is_compared_on(
    scene: Scene, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watching(given: Any, split: Any, *others: Any, **named: Any) -> Any:
        seen.append((set(split.train_and_validation), set(split.test)))
        return fit(given, split, *others, **named)

    fit, out = fits.fit_method, uncompared(finished, tmp_path)
    monkeypatch.setattr(fits, "fit_method", watching)
    run_pipeline(CONFIG, scene, out, device="cpu")
    records = one_candidate.records_of(CONFIG, scene, finished)
    count = len(NAMES)
    assert len(seen) == count * len(records) + count
    for number, (learnt, asked) in enumerate(seen[:-count]):
        assert not learnt & asked
        assert asked == set(records[number // count].pixels)
    assert held(out) == held(finished)  # and a seed repeats all figures


def test_fits_ahead_of_their_stage_give_the_same(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = make_split(scene, CONFIG.split, patch_size=3)
    wanted = [fits.Wanted(name, split, to) for name in ("svm", "rf") for to in (None, split.test)]
    settings = ReferenceSettings.of(CONFIG)
    with fits.ReferenceFits(scene, settings, 2, True) as later:
        expected = list(later.results(wanted))
    with fits.ReferenceFits(scene, settings, 2, True) as ahead:
        ahead.begin(wanted[:3])
        ahead.begin(wanted[:3])  # not twice
        with monkeypatch.context() as patch:
            patch.setattr(fits, "open_workers", None)  # no fit is begun now
            begun = list(ahead.results(wanted[:3]))
        assert not active_children()  # no one waits for them any more
        for one, other in zip([*begun, *ahead.results(wanted[3:])], expected, strict=True):
            assert np.array_equal(one.predicted, other.predicted)
            assert (one.smoothed is None) == (other.smoothed is None)
            assert one.smoothed is None or np.array_equal(one.smoothed, other.smoothed)


def test_fits_of_a_process_that_is_killed_are_done_again(scene: Scene) -> None:
    split = make_split(scene, CONFIG.split, patch_size=3)
    wanted = [fits.Wanted(name, split) for name in ("svm", "rf")]
    with fits.ReferenceFits(scene, ReferenceSettings.of(CONFIG), 2, True) as ahead:
        assert ahead.begin(wanted)
        (process,) = active_children()
        process.kill()
        assert [len(fit.predicted) for fit in ahead.results(wanted, here=True)] == [
            len(split.test)
        ] * 2


def test_a_run_fits_ahead_what_its_stages_need(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    needed: list[object] = []

    def noting(self: fits.ReferenceFits, wanted: list[fits.Wanted]) -> bool:
        begun.extend(each.key for each in wanted)
        return True

    results = fits.ReferenceFits.results

    def reading(self: fits.ReferenceFits, wanted: list[fits.Wanted], **named: bool) -> object:
        needed.extend(each.key for each in wanted)
        return results(self, wanted, **named)

    monkeypatch.setattr(fits.ReferenceFits, "begin", noting)
    monkeypatch.setattr(fits.ReferenceFits, "results", reading)
    config = replace(CONFIG, population=4, finalists=2, race_steps=2)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    held_out = len(one_candidate.records_of(config, scene, tmp_path / "run"))
    assert len(begun) > 2 < held_out
    assert set(begun) <= set(needed)
    assert begun[-len(NAMES) :] == needed[-len(NAMES) :]  # of the test


def test_the_winner_below_is_said_before_the_test(finished: Path, told: Told) -> None:
    found = held(finished)["validation"]
    assert found["below"] == ["svm", "rf"]  # one epoch is no training, and no matrix helps
    (warning,) = (line for line in told.lines if line.startswith("warning: the winner is below"))
    assert warning == found["verdict"]
    assert warning in told.notices  # which a terminal shows at once
    assert warning.endswith("try again in another folder, with finalists 24")
    assert told.lines.index(warning) > max(
        number for number, line in enumerate(told.lines) if "confidence" in line
    )


@pytest.mark.parametrize(
    ("changed", "side", "tried"),
    [
        ({"finalists": 1}, 3, "finalists 24"),
        ({"finalists": None}, 3, "patch size 1"),
        ({"finalists": 8}, 1, "finalists 16"),
        ({"budget": None}, 3, "try a search under a budget"),
    ],
)
def test_what_to_try_depends_on_the_run(changed: dict[str, Any], side: int, tried: str) -> None:
    facts = {"pixels": 40, "OA": {"winner": 0.5, "svm": 0.75, "rf": 0.5}, "below": ["svm"]}
    titles = {name: METHODS[name].title for name in ("svm", "rf")}
    line = comparing.verdict_of(facts, replace(CONFIG, **changed), side, titles)
    assert line.startswith("warning: the winner is below SVM (RBF) on spectra: OA on 40 held-out")
    assert tried in line
    line = comparing.verdict_of({**facts, "below": []}, CONFIG, side, titles)
    assert line.startswith("OA on 40 held-out pixels (each is 2.5 points): winner 0.5000")
    assert line.endswith("none is ahead of the winner by more than chance")
    line = comparing.verdict_of({**facts, "pixels": 1000}, CONFIG, side, titles)
    assert "held-out pixels: winner" in line


@pytest.mark.parametrize(("lead", "below"), [(1, []), (2, ["svm"])])
def test_a_lead_by_chance_is_no_lead(lead: int, below: list[str]) -> None:
    svm = np.arange(86) < 80
    winner = svm.copy()
    winner[:lead] = False
    found = comparing.accuracies_of({"winner": [winner], "svm": [svm], "rf": [winner]})
    assert found["below"] == below
    assert found["OA"]["winner"] == (80 - lead) / 86
    assert "smoothed" not in found


def test_the_map_of_the_winner_is_compared_with_smoothed_references() -> None:
    raw, better, best = (np.arange(100) < right for right in (60, 80, 90))
    right = {"winner": [better, better], "svm": [raw, best], "rf": [raw, better]}
    assert comparing.accuracies_of(right)["below"] == ["svm"]
    closed = {**right, "winner": [better, best]}
    assert comparing.accuracies_of(closed, is_smoothed=True)["below"] == []
    facts = {"pixels": 100, **comparing.accuracies_of(closed)}
    assert facts["below"] == ["svm"]
    titles = {"svm": "SVM", "rf": "forest"}
    for smooth, tried in (("none", "with smooth auto"), ("auto", "with patch size 1")):
        line = comparing.verdict_of(
            facts, replace(CONFIG, smooth=smooth, finalists=None), 3, titles
        )
        assert "raw and smoothed: winner 0.8000 and 0.9000, SVM 0.6000 and 0.9000" in line
        assert tried in line


def test_a_run_and_the_command_give_the_same_figures(scene: Scene, finished: Path) -> None:
    settings = ReferenceSettings(split=CONFIG.split, patch_size=3)
    found = run_references(scene, settings, list(NAMES), [0], ReferenceResults(None, {}))["methods"]
    for name, method in held(finished)["methods"].items():
        assert method["test"] == found[name]["runs"][0]["test"]
        assert method["details"] == found[name]["runs"][0]["details"]


def test_labels_of_test_pixels_change_only_their_figures(
    scene: Scene, finished: Path, tmp_path: Path
) -> None:
    split = np.load(finished / "split.npz")
    labels = scene.labels.copy()
    labels.flat[split["test"]] = labels.flat[split["test"]] % 3 + 1
    maps = {
        name: np.where(np.isin(np.arange(labels.size), pixels).reshape(labels.shape), labels, 0)
        for name, pixels in (
            ("train", np.union1d(split["train"], split["validation"])),
            ("test", split["test"]),
        )
    }
    true = {name: np.where(one > 0, scene.labels, 0) for name, one in maps.items()}
    config, found = replace(CONFIG, split="fixed"), []
    for number, one in enumerate((true, maps)):
        told, out = Told(), tmp_path / str(number)
        poisoned = replace(scene, labels=one["train"] + one["test"], **one)
        run_pipeline(config, poisoned, out, device="cpu", report=told)
        found.append((held(out), [line for line in told.lines if "winner" in line]))
    (clean, said), (other, said_too) = found
    assert clean["validation"] == other["validation"]
    assert said == said_too
    for name in ("svm", "rf"):
        assert clean["methods"][name]["details"] == other["methods"][name]["details"]
        assert clean["methods"][name]["test"]["OA"] != other["methods"][name]["test"]["OA"]


def test_metrics_keep_the_figures(
    scene: Scene, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def in_metrics() -> Any:
        return json.loads((finished / "metrics.json").read_text())["references"]

    assert in_metrics() == held(finished)
    outcome, _ = export_run(CONFIG, scene, finished)
    assert in_metrics() == held(finished)
    print_outcome(outcome, "stripes.mat")
    shown = capsys.readouterr().out
    assert held(finished)["validation"]["below"]  # so the end of the run has the warning
    assert held(finished)["validation"]["verdict"] in shown
    inspected = lines_of_run(describe_run(finished))
    assert any(held(finished)["validation"]["verdict"] in line for line in inspected)
    before = (finished / "references.json").read_bytes()
    (finished / "references.json").unlink()
    run_pipeline(CONFIG, scene, finished, device="cpu")
    assert (finished / "references.json").read_bytes() == before
    assert in_metrics() == held(finished)


def test_a_stop_in_a_fit_leaves_nothing_and_the_fit_is_done_again(
    scene: Scene, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    out = uncompared(finished, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(comparing, "figures_of_test", stopping)
        with pytest.raises(KeyboardInterrupt):
            run_pipeline(CONFIG, scene, out, device="cpu")
    assert not (out / "references.json").exists()
    run_pipeline(CONFIG, scene, out, device="cpu")
    assert (out / "references.json").read_bytes() == (finished / "references.json").read_bytes()


@pytest.mark.parametrize("content", [None, b"PK"])
def test_without_all_records_of_the_winner_only_the_test_compares(
    content: bytes | None, scene: Scene, finished: Path, tmp_path: Path
) -> None:
    out = uncompared(finished, tmp_path)
    for path in (out / "fits").glob("*.npz"):
        path.unlink() if content is None else path.write_bytes(content)
    with open_run(out, CONFIG, scene, "cpu", SILENT) as run:
        comparing.references_stage(run)
    assert held(out)["validation"]["pixels"] == 0
    assert held(out)["methods"] == held(finished)["methods"]


def test_without_validation_pixels_only_the_test_compares(scene: Scene, tmp_path: Path) -> None:
    run_pipeline(replace(CONFIG, validation_fraction=0), scene, tmp_path / "run", device="cpu")
    found = held(tmp_path / "run")
    assert found["validation"]["pixels"] == 0
    assert found["validation"]["verdict"].startswith("no held-out pixels")
    assert found["methods"]["svm"]["test"]["OA"] > 0.5


def test_validation_pixels_kept_apart_compare_the_network_itself(
    scene: Scene, tmp_path: Path
) -> None:
    config = replace(CONFIG, final_training_on="train", train_per_class=24)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    found = held(tmp_path / "run")["validation"]
    assert (found["pixels"], found["folds"]) == (15, 1)


def test_a_refused_fit_does_not_end_a_run(
    scene: Scene, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: Any, **__: Any) -> Any:
        raise InputError("training pixels: of one class only")

    monkeypatch.setattr(fits, "fit_method", refusing)
    outcome = run_pipeline(CONFIG, scene, uncompared(finished, tmp_path), device="cpu")
    assert outcome.metrics is not None
    assert outcome.metrics["references"] == {
        "reason": "training pixels: of one class only",
        "validation": None,
        "methods": {},
    }


def test_large_splits_are_bounded_and_keep_small_classes(scene: Scene) -> None:
    split = make_split(scene, kind="random", train_per_class=40, seed=0, patch_size=3)
    found = bounded_split(scene, split, 24, 50)
    assert (len(found.train_and_validation), len(found.test)) == (24, 50)
    assert np.bincount(scene.targets(found.train_and_validation)).tolist() == [8, 8, 8]
    assert set(found.train) <= set(split.train_and_validation)
    assert set(found.test) <= set(split.test)
    least = bounded_split(scene, split, 3, 50)
    assert np.bincount(scene.targets(least.train)).tolist() == [5, 5, 5]
    same = bounded_split(scene, split, 1000, 1000)
    assert np.array_equal(same.train, split.train_and_validation)
    assert np.array_equal(same.test, split.test)
