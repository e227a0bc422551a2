"""Runs inside one process: what their settings change, and what their folders refuse."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hytas.data import Scene, scene_from_arrays
from hytas.errors import InputError
from hytas.run import RunConfig, RunFolder, run_mission
from hytas.search import EvaluationStore
from hytas.train import Recipe

SEARCH_ONLY = RunConfig(
    budget="40K..70K-params",
    space="hytas",
    population=6,
    generations=2,
    finalists=1,
    recipe=Recipe(epochs=0),
)


@pytest.fixture(scope="module")
def scene() -> Scene:
    """A float32 cube (18, 26, 14), five classes, band 5 dead."""
    generator = np.random.default_rng(1)
    labels = np.zeros((18, 26), np.int16)
    for number in range(5):
        labels[1:17, 1 + 5 * number : 5 + 5 * number] = number + 1
    spectra = generator.uniform(0, 1, (6, 14))
    cube = (spectra[labels] + generator.normal(0, 0.02, (18, 26, 14))).astype(np.float32)
    cube[:, :, 5] = 0
    return scene_from_arrays(cube, labels, name="strips")


def test_every_proxy_asked_for_is_recorded(scene: Scene, tmp_path: Path) -> None:
    config = replace(SEARCH_ONLY, proxy="snip,dss,params,random")
    outcome = run_mission(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        items = store.evaluations()
    assert all(set(item.scores) == {"snip", "dss", "params", "random"} for item in items)
    best = max(items, key=lambda item: item.scores["snip"])
    assert outcome.architecture == best.architecture
    assert all(item.scores["params"] == item.costs["params"] for item in items)


def test_rank_mean_leads_by_the_mean_rank(scene: Scene, tmp_path: Path) -> None:
    config = replace(SEARCH_ONLY, proxy="rank-mean(snip,depth-embed)")
    outcome = run_mission(config, scene, tmp_path / "run", device="cpu")
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
    run_mission(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        assert len({str(item.architecture) for item in store.evaluations()}) == 12


def test_front_holds_exactly_what_nothing_dominates(scene: Scene, tmp_path: Path) -> None:
    config = replace(SEARCH_ONLY, proxy="dss", pareto="params,score")
    run_mission(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        points = {(item.costs["params"], item.scores["dss"]) for item in store.evaluations()}
    expected = {
        a for a in points if not any(b != a and b[0] <= a[0] and b[1] >= a[1] for b in points)
    }
    with (tmp_path / "run" / "pareto.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(int(row["params"]), float(row["score"])) for row in rows} == expected
    assert all(len(json.loads(row["num_heads"])) == int(row["depth"]) for row in rows)
    assert (tmp_path / "run" / "pareto.png").stat().st_size > 1000


@pytest.mark.parametrize("pareto", ["params", "score,kilograms"])
def test_bad_fronts_are_refused(pareto: str, scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=pareto):
        run_mission(replace(SEARCH_ONLY, pareto=pareto), scene, tmp_path / "run", device="cpu")


def test_recipe_may_change_until_training_begins(scene: Scene, tmp_path: Path) -> None:
    run_mission(SEARCH_ONLY, scene, tmp_path / "run", device="cpu")
    trained = SEARCH_ONLY.with_epochs(1)
    assert run_mission(trained, scene, tmp_path / "run", device="cpu").metrics is not None
    with pytest.raises(InputError, match="another configuration: recipe"):
        run_mission(SEARCH_ONLY.with_epochs(2), scene, tmp_path / "run", device="cpu")


def test_dead_band_is_left_out_and_budgeted_so(scene: Scene, tmp_path: Path) -> None:
    outcome = run_mission(SEARCH_ONLY, scene, tmp_path / "run", device="cpu")
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    assert stored["scene"] == scene.fingerprint
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        items = store.evaluations()
    assert outcome.costs in [item.costs for item in items]
    assert all(40_000 <= item.costs["params"] <= 70_000 for item in items)


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
    with pytest.raises(InputError, match="no network is built for"):
        run_mission(
            replace(SEARCH_ONLY, space="autoformer-tiny", budget=None),
            scene,
            tmp_path / "run",
            device="cpu",
        )
    assert not (tmp_path / "run").exists()


def test_space_file_narrows_the_search(scene: Scene, tmp_path: Path) -> None:
    from hytas._engine import builtin_space_text

    values = json.loads(builtin_space_text("hytas"))
    for gene in values["genes"]:
        if gene["name"] == "depth":
            gene["values"] = [5]
    path = tmp_path / "five.json"
    path.write_text(json.dumps(values))
    config = replace(SEARCH_ONLY, space=str(path), proxy="params")
    run_mission(config, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        assert {item.architecture["depth"] for item in store.evaluations()} == {5}
