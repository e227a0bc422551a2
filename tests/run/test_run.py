"""Runs inside one process: what their settings change, and what their folders refuse."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from without_references import run_pipeline

from hytas._engine import builtin_space_text
from hytas.data import Scene, Split, SplitSettings, overlap_fraction, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from hytas.export import FORMATS
from hytas.job import export_run
from hytas.manifest import Manifest
from hytas.models import count_parameters
from hytas.proxies import PROXIES
from hytas.run import RunConfig, RunFolder
from hytas.run.context import prepare
from hytas.run.folder import LEFTOVER
from hytas.run.progress import Report
from hytas.search import EvaluationStore
from hytas.train import DivergedError, Recipe
from hytas.train import fit as fitting
from refusals import refuses
from small import strips
from tiny import GENES, SPACE
from told import Told

SEARCH_ONLY = RunConfig(
    budget="2K..8K-params",
    space=SPACE,
    population=6,
    generations=2,
    finalists=1,
    recipe=Recipe(epochs=0),
)
WIDER = replace(SEARCH_ONLY, space="hytas", budget="40K..70K-params")


@pytest.fixture(scope="module")
def scene() -> Scene:
    return strips(dead_band=5)


def test_every_proxy_asked_for_is_recorded(scene: Scene, tmp_path: Path) -> None:
    config = replace(SEARCH_ONLY, proxy="snip,dss,params,random")
    outcome = run_pipeline(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        items = store.evaluations()
    assert all(set(item.scores) == {"snip", "dss", "params", "random"} for item in items)
    best = max(items, key=lambda item: item.scores["snip"])
    assert outcome.architecture == best.architecture
    assert all(item.scores["params"] == item.costs["params"] for item in items)


def test_a_search_says_why_candidates_got_no_score(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_one_layer(architecture: dict[str, Any], *_: object) -> float:
        if architecture["depth"] > 1:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return float(architecture["embed_dim"])

    monkeypatch.setitem(PROXIES, "random", replace(PROXIES["random"], function=of_one_layer))
    lines: list[str] = []
    monkeypatch.setattr(Report, "line", lambda _, text: lines.append(text))
    config = replace(SEARCH_ONLY, proxy="random")
    outcome = run_pipeline(config, scene, tmp_path / "run", device="cpu", report=Report())
    assert outcome.architecture["depth"] == 1
    (line,) = (line for line in lines if "architectures got no score" in line)
    assert line.endswith(
        "the first reason: RuntimeError: DefaultCPUAllocator: can't allocate memory"
    )


def test_rank_mean_leads_by_the_mean_rank(scene: Scene, tmp_path: Path) -> None:
    config = replace(SEARCH_ONLY, proxy="rank-mean(snip,depth-embed)")
    outcome = run_pipeline(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        items = store.evaluations()
    ranks = []
    for name in ("snip", "depth-embed"):
        column = np.array([item.scores[name] for item in items])
        below = (column[None, :] < column[:, None]).sum(1)
        equal = (column[None, :] == column[:, None]).sum(1)
        ranks.append(below + (equal - 1) / 2)
    mean = np.mean(ranks, axis=0)
    (winner,) = [i for i, item in enumerate(items) if item.architecture == outcome.architecture]
    assert mean[winner] == mean.max()


@pytest.mark.parametrize("strategy", ["ageing", "random", "local"])
def test_strategies_score_as_many(strategy: str, scene: Scene, tmp_path: Path) -> None:
    config = replace(SEARCH_ONLY, proxy="params", strategy=strategy)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        assert len({str(item.architecture) for item in store.evaluations()}) == 12


def test_front_holds_exactly_what_nothing_dominates(scene: Scene, tmp_path: Path) -> None:
    config = replace(SEARCH_ONLY, proxy="dss", pareto="params,score")
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        points = {(item.costs["params"], item.scores["dss"]) for item in store.evaluations()}
    expected = {
        a for a in points if not any(b != a and b[0] <= a[0] and b[1] >= a[1] for b in points)
    }
    with (tmp_path / "run" / "pareto.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(int(row["params"]), float(row["score"])) for row in rows} == expected
    assert all(len(json.loads(row["num_heads"])) == int(row["depth"]) for row in rows)
    assert (tmp_path / "run" / "pareto.svg").stat().st_size > 1000


def test_a_front_is_no_other_strategys() -> None:
    with refuses("pareto", "params,score", "does not go with `strategy` random; .*nsga2"):
        replace(SEARCH_ONLY, pareto="params,score", strategy="random")
    with refuses("strategy", "nsga2", "name its axes with `pareto`"):
        replace(SEARCH_ONLY, strategy="nsga2")
    assert replace(SEARCH_ONLY, pareto="params,score").selection == "nsga2"


@pytest.mark.parametrize(
    "pareto", ["params", "score,kilograms", "params,score,params", "params,score,accuracy"]
)
def test_bad_fronts_are_refused(pareto: str, scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=pareto):
        run_pipeline(replace(SEARCH_ONLY, pareto=pareto), scene, tmp_path / "run", device="cpu")


def test_recipe_may_change_until_training_begins(scene: Scene, tmp_path: Path) -> None:
    run_pipeline(SEARCH_ONLY, scene, tmp_path / "run", device="cpu")
    other = replace(SEARCH_ONLY, recipe=Recipe(epochs=1, mixup=0.0))
    assert run_pipeline(other, scene, tmp_path / "run", device="cpu").metrics is not None
    assert RunFolder(tmp_path / "run").read_config()[0].recipe.mixup == 0.0
    with pytest.raises(InputError, match="another configuration: recipe"):
        run_pipeline(other.with_epochs(2), scene, tmp_path / "run", device="cpu")


def test_only_the_length_may_change_before_the_choice(scene: Scene, tmp_path: Path) -> None:
    run_pipeline(SEARCH_ONLY, scene, tmp_path / "run", device="cpu")
    (tmp_path / "run" / "architecture.json").unlink()
    other = replace(SEARCH_ONLY, recipe=Recipe(epochs=0, mixup=0.0))
    with pytest.raises(InputError, match=r"another configuration: recipe mixup 0 \(there"):
        run_pipeline(other, scene, tmp_path / "run", device="cpu")
    longer = replace(SEARCH_ONLY, recipe=Recipe(epochs=0, steps=7))
    run_pipeline(longer, scene, tmp_path / "run", device="cpu")


def test_a_configuration_holds_its_split_in_one_place() -> None:
    config = RunConfig(split="blocks", block=8, train_per_class=30)
    assert config.split == SplitSettings("blocks", block=8, train_per_class=30)
    stored = json.loads(json.dumps(config.to_dict()))
    assert stored["split"]["block"] == 8
    assert RunConfig.from_dict(stored) == config
    other = replace(config, split=replace(config.split, kind="folds", fold=1))
    assert other.differences(config, ()) == ["split folds (there blocks)", "fold 1 (there 0)"]
    known = replace(config, start_with=("a.json",), bands="1-9")
    assert known.differences(config, ()) == [
        *("bands 1-9 (there not set)", "start with a.json (there none)")
    ]
    with pytest.raises(InputError, match="is not a configuration of this hytas"):
        RunConfig.from_dict({**stored, "split": {"sort": "blocks"}})


def test_a_run_goes_on_with_the_split_that_it_began_with(scene: Scene, tmp_path: Path) -> None:
    """Another version may draw another one for the same seed."""
    config = replace(SEARCH_ONLY, split="random", train_per_class=12)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    drawn = Split.load(tmp_path / "run" / "split.npz")
    other = replace(drawn, train=drawn.validation, validation=drawn.train)
    other.save(tmp_path / "run" / "split.npz")
    (tmp_path / "run" / "manifest.json").unlink()  # which would call it damaged
    run_pipeline(config.with_epochs(1), scene, tmp_path / "run", device="cpu")
    card = DeployedModel.load(tmp_path / "run" / "model.onnx").card
    spectra = scene.cube.reshape(-1, 14)[other.train][:, card.preprocessing["bands"]]
    np.testing.assert_allclose(card.preprocessing["offset"], spectra.mean(axis=0), rtol=1e-5)


def test_ground_without_data_has_no_class_on_the_map(scene: Scene, tmp_path: Path) -> None:
    cube = np.array(scene.cube)
    cube[:3] = -1.0
    labels = scene.labels.copy()
    marked = scene_from_arrays(cube, labels, name="strips", nodata=-1.0)
    assert marked.notes == ("40 labelled pixels hold no data: left unlabelled",)
    config = replace(SEARCH_ONLY, split="random", train_per_class=12, recipe=Recipe(epochs=1))
    run_pipeline(config, marked, tmp_path / "run", device="cpu")
    model = DeployedModel.load(tmp_path / "run" / "model.onnx")
    found = classify_scene(model, cube).labels
    assert (found[:3] == 0).all()
    assert (found[3:] > 0).all()


def test_dead_band_is_left_out_and_budgeted_so(scene: Scene, tmp_path: Path) -> None:
    outcome = run_pipeline(SEARCH_ONLY, scene, tmp_path / "run", device="cpu")
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    assert stored["scene"] == scene.fingerprint
    context = prepare(SEARCH_ONLY, scene, torch.device("cpu"))
    assert context.data.preprocessing.bands.tolist() == [band for band in range(14) if band != 5]
    assert outcome.costs["params"] == count_parameters(
        context.source.begun(outcome.architecture, Recipe(), 0)
    )
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        assert all(2_000 <= item.costs["params"] <= 8_000 for item in store.evaluations())


def test_two_processes_cannot_share_a_folder(tmp_path: Path) -> None:
    with (
        RunFolder(tmp_path / "run"),
        pytest.raises(InputError, match="another hytas"),
        RunFolder(tmp_path / "run"),
    ):
        pass


def test_leftovers_of_a_kill_go_and_files_of_ones_own_stay(tmp_path: Path) -> None:
    names = [".weights.4711.safetensors", ".map.12.png", ".env", ".weights.safetensors"]
    for name in names:
        (tmp_path / name).write_text("half")
    with RunFolder(tmp_path):
        left = {path.name for path in tmp_path.iterdir()}
    assert left == {".env", ".weights.safetensors", ".lock"}


def test_space_without_a_network_is_refused_at_once(scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="image_size 7: must be 8 to 4096 in space s3"):
        run_pipeline(
            replace(SEARCH_ONLY, space="s3", budget=None), scene, tmp_path / "run", device="cpu"
        )
    assert not (tmp_path / "run").exists()


def test_space_file_narrows_the_search(scene: Scene, tmp_path: Path) -> None:
    values = json.loads(builtin_space_text("hytas"))
    for gene in values["genes"]:
        if gene["name"] == "depth":
            gene["values"] = [5]
    path = tmp_path / "five.json"
    path.write_text(json.dumps(values))
    config = replace(WIDER, space=str(path), proxy="params")
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        assert {item.architecture["depth"] for item in store.evaluations()} == {5}


TRAINED = replace(SEARCH_ONLY, proxy="params", recipe=Recipe(epochs=2), validation_fraction=0.3)


def test_seeds_report_the_spread_and_the_first_ships(scene: Scene, tmp_path: Path) -> None:
    alone = run_pipeline(TRAINED, scene, tmp_path / "run", device="cpu")
    assert alone.metrics is not None
    assert "seeds" not in alone.metrics
    before = (tmp_path / "run" / "weights.safetensors").read_bytes()
    outcome = run_pipeline(replace(TRAINED, seeds=3), scene, tmp_path / "run", device="cpu")
    assert outcome.metrics is not None
    assert (tmp_path / "run" / "weights.safetensors").read_bytes() == before
    assert outcome.metrics["test"] == alone.metrics["test"]
    found = outcome.metrics["seeds"]
    assert found["of"] == [0, 1, 2]
    assert outcome.to_dict()["seeds"] == found
    each = [outcome.metrics["test"]["OA"]]
    for seed in (1, 2):
        inner = tmp_path / "run" / f"seed-{seed}"
        each.append(json.loads((inner / "metrics.json").read_text())["test"]["OA"])
        assert (inner / "model.onnx").exists()
    assert found["OA"]["values"] == each
    assert found["OA"]["mean"] == pytest.approx(np.mean(each))
    assert found["OA"]["std"] == pytest.approx(np.std(each, ddof=1))
    assert set(found["per_class"]) == set(outcome.metrics["test"]["per_class"])
    # Fewer seeds later take those there are.
    two = run_pipeline(replace(TRAINED, seeds=2), scene, tmp_path / "run", device="cpu")
    assert two.metrics is not None
    assert two.metrics["seeds"]["OA"]["values"] == each[:2]
    fewer = run_pipeline(TRAINED, scene, tmp_path / "run", device="cpu")
    assert fewer.metrics is not None
    assert "seeds" not in fewer.metrics


def test_further_seeds_train_the_same_on_any_workers(scene: Scene, tmp_path: Path) -> None:
    run_pipeline(TRAINED, scene, tmp_path / "1", device="cpu")
    shutil.copytree(tmp_path / "1", tmp_path / "2")
    report, weights = Told(), []
    for workers in ("1", "2"):
        run = tmp_path / workers
        run_pipeline(
            replace(TRAINED, seeds=2), scene, run, device="cpu", report=report, workers=workers
        )
        weights.append((run / "seed-1" / "weights.safetensors").read_bytes())
    assert weights[0] == weights[1]
    assert "final training with seeds 1 in parallel: processes of this machine" in report.lines


def test_a_further_seed_that_diverges_costs_nothing_of_the_first(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = fitting.train

    def diverging(*arguments: Any, seed: int, **others: Any) -> Any:
        if seed == 1:
            raise DivergedError("too wild")
        return train(*arguments, seed=seed, **others)

    monkeypatch.setattr(fitting, "train", diverging)
    with pytest.raises(InputError, match="too wild"):
        run_pipeline(replace(TRAINED, seeds=2), scene, tmp_path / "run", device="cpu")
    names = {file.name for file in (tmp_path / "run").iterdir()}
    assert {"model.onnx", "test.json", "map.png"} <= names
    assert run_pipeline(TRAINED, scene, tmp_path / "run", device="cpu").metrics is not None


def test_validation_pixels_are_trained_on_unless_kept_apart(scene: Scene, tmp_path: Path) -> None:
    histories = {}
    for which in ("all", "train"):
        outcome = run_pipeline(
            replace(TRAINED, final_training_on=which), scene, tmp_path / which, device="cpu"
        )
        assert outcome.metrics is not None
        assert 0 <= outcome.metrics["test"]["ECE"] <= 1
        histories[which] = outcome.metrics["training"]["history"]
    assert all(epoch["validation_oa"] is None for epoch in histories["all"])
    assert all(epoch["validation_oa"] is not None for epoch in histories["train"])
    split = Split.load(tmp_path / "train" / "split.npz")
    side = outcome.architecture.get("patch", TRAINED.patch_size)
    told = outcome.metrics["split"]["overlap_of_model"]
    assert told == overlap_fraction(scene.labels.shape, split.train, split.test, side)
    with refuses("final_training_on", "test", "must be one of all, train"):
        replace(TRAINED, final_training_on="test")


def test_a_space_file_that_changes_is_another_run(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "space.json"
    file.write_text(builtin_space_text("hytas"))
    config = replace(WIDER, space=str(file), proxy="params")
    named = run_pipeline(config, scene, tmp_path / "run", device="cpu")
    built_in = run_pipeline(replace(WIDER, proxy="params"), scene, tmp_path / "b", device="cpu")
    assert named.architecture == built_in.architecture
    moved = tmp_path / "elsewhere" / "space.json"
    moved.parent.mkdir()
    moved.write_text(file.read_text())
    there = replace(config, space=str(moved))
    again = run_pipeline(there, scene, tmp_path / "run", device="cpu")
    assert again.architecture == named.architecture
    file.write_text(file.read_text() + "\n")
    with pytest.raises(InputError, match=r"space\.json: has changed since the run in .* began"):
        run_pipeline(config, scene, tmp_path / "run", device="cpu")


def test_latency_tables_of_one_name_are_told_apart(scene: Scene, tmp_path: Path) -> None:
    def write(folder: str, cost: float) -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        rows = [{"when": {"embed_dim": width}, "cost": cost} for width in GENES["embed_dim"]]
        table = {"format": "hytas-latency", "version": 1, "space": "hytas", "unit": "us"}
        (tmp_path / folder / "t.json").write_text(json.dumps({**table, "global": rows}))
        return tmp_path / folder / "t.json"

    first, second = write("a", 5), write("b", 7)
    budget = f"1ms-latency@{first},1ms-latency@{second}"
    config = replace(SEARCH_ONLY, proxy="params", budget=budget)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    for folder in ("a", "b"):
        before = (tmp_path / folder / "t.json").read_text()
        write(folder, 6)
        with pytest.raises(InputError, match=rf"{folder}/t\.json: has changed since the run"):
            run_pipeline(config, scene, tmp_path / "run", device="cpu")
        (tmp_path / folder / "t.json").write_text(before)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")


@pytest.mark.parametrize(
    ("gene", "values", "message"),
    [
        ("pooling", ["max"], "pooling='max': must be one of class, mean, centre"),
        ("patch", [2], "patch=2: must be odd"),
        ("fusion", ["maybe"], "fusion='maybe': must be yes or no"),
    ],
)
def test_values_that_no_network_knows_end_a_search(
    gene: str, values: list[Any], message: str, scene: Scene, tmp_path: Path
) -> None:
    space = json.loads(builtin_space_text("hytas-wide"))
    (found,) = [each for each in space["genes"] if each["name"] == gene]
    found["values"] = values
    found.pop("weights", None)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(space))
    config = replace(WIDER, space=str(path), proxy="dss")
    with pytest.raises(InputError, match=f"got a score; the first reason: dss: {message}"):
        run_pipeline(config, scene, tmp_path / "run", device="cpu")


@pytest.mark.parametrize(
    "settings",
    [
        {"patch_size": np.int64(5), "population": np.int32(6), "seed": np.uint8(3)},
        {"validation_fraction": np.float32(0.25), "nodata": np.float64(-9.0)},
    ],
)
def test_numbers_of_numpys_are_numbers(
    settings: dict[str, Any], scene: Scene, tmp_path: Path
) -> None:
    recipe = replace(SEARCH_ONLY.recipe, batch_size=np.int64(32), mixup=np.float32(0.5))
    config = replace(SEARCH_ONLY, proxy="params", recipe=recipe, **settings)
    run_pipeline(config, scene, tmp_path / "run", device="cpu")
    assert RunFolder(tmp_path / "run").read_config()[0] == config


def test_leftovers_of_every_format_are_known() -> None:
    for entry in FORMATS.values():
        stem, _, suffix = entry.file.rpartition(".")
        assert LEFTOVER.fullmatch(f".{stem}.123.{suffix}")
        assert not LEFTOVER.fullmatch(entry.file)
    assert not LEFTOVER.fullmatch(".lock")


def test_without_validation_pixels_the_proxy_chooses(scene: Scene, tmp_path: Path) -> None:
    config = replace(SEARCH_ONLY, proxy="params", finalists=None, validation_fraction=0.0)
    report = Told()
    outcome = run_pipeline(config, scene, tmp_path / "run", device="cpu", report=report)
    assert any("no race: the split has no validation pixels" in line for line in report.lines)
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        assert store.trainings() == []
        best = max(item.scores["params"] for item in store.evaluations())
    assert outcome.costs["params"] == best
    with pytest.raises(InputError, match="finalists=4: a race ranks on validation pixels"):
        run_pipeline(replace(config, finalists=4), scene, tmp_path / "other", device="cpu")


def test_exporting_again_keeps_what_the_other_seeds_reached(scene: Scene, tmp_path: Path) -> None:
    config = replace(TRAINED, seeds=2)
    first = run_pipeline(config, scene, tmp_path / "run", device="cpu", references=True)
    trained_elsewhere = {**first.metrics, "device": "cuda"}
    metrics = tmp_path / "run" / "metrics.json"
    metrics.write_text(json.dumps(trained_elsewhere))
    Manifest(tmp_path / "run").record([metrics])
    again, _ = export_run(config, scene, tmp_path / "run")
    assert first.metrics is not None
    assert again.metrics == trained_elsewhere
    assert "seeds" in first.metrics
