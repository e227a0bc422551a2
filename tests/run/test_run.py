"""Runs inside one process: what their settings change, and what their folders refuse."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from without_references import run_pipeline

from hytas.data import Scene, Split, overlap_fraction, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from hytas.models import count_parameters
from hytas.run import RunConfig
from hytas.run.context import prepare
from hytas.search import EvaluationStore
from hytas.train import Recipe
from refusals import refuses
from small import strips
from tiny import SPACE
from told import Told

SEARCH_ONLY = RunConfig(
    budget="2K..8K-params",
    space=SPACE,
    population=6,
    generations=2,
    finalists=1,
    recipe=Recipe(epochs=0),
)


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


def test_ground_without_data_has_no_class_on_the_map(scene: Scene, tmp_path: Path) -> None:
    cube = np.array(scene.cube)
    cube[:3] = -1.0
    labels = scene.labels.copy()
    marked = scene_from_arrays(cube, labels, name="strips", nodata=-1.0)
    assert [(one.code, one.facts["count"]) for one in marked.findings] == [("left-out", 40)]
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
