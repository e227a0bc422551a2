"""A benchmark is drawn exactly, trained by one recipe, and goes on after a kill."""

import csv
import json
from pathlib import Path

import pytest
from small_benchmark import PROXIES, make, small_scene

from hytas._engine import Budget, Feasible, SearchSpace
from hytas.data.images.load import textures
from hytas.errors import InputError
from hytas.lab.benchmark.make import draw_architectures
from hytas.search import EvaluationStore
from hytas.train import Recipe


def rows(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def without_seconds(table: Path) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in rows(table)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("made") / "field")


def test_a_line_has_genes_costs_scores_and_what_each_seed_reached(table: Path) -> None:
    found = rows(table)
    assert len(found) == 4
    assert len({row["embed_dim"] + row["pixel_mlp"] + row["band_mlp"] for row in found}) > 1
    for row in found:
        assert 0 < float(row["params"]) <= 30_000
        assert float(row["OA"]) == pytest.approx(
            (float(row["OA:seed=0"]) + float(row["OA:seed=1"])) / 2
        )
        for name in (*PROXIES.split(","), "AA", "kappa", "validation", "train_seconds:seed=1"):
            assert row[name] != "", name


def test_the_card_says_how_it_was_made(table: Path) -> None:
    card = json.loads((table.parent / "benchmark.json").read_text())
    assert card["fingerprint"] == small_scene().fingerprint
    assert (card["networks"], card["trainings"], card["failed"]) == (4, 8, 0)
    assert (card["preset"], card["seeds"]) == ("plain", [0, 1])
    assert card["recipe"]["epochs"] == 3
    assert card["split"]["kind"] == "fixed"


def test_images_have_benchmarks_too(tmp_path: Path) -> None:
    made = make(
        tmp_path / "b",
        networks=2,
        scene=textures(each=5, side=8),
        space="autoformer-mini",
        seeds=1,
        presets="images-light",
        recipe=Recipe(epochs=1),
    )
    assert [row["space"] for row in rows(made)] == ["autoformer-mini"] * 2
    assert all(0 <= float(row["OA"]) <= 1 for row in rows(made))
    assert all(row["snip"] for row in rows(made))


def test_more_networks_and_seeds_extend_a_table(tmp_path: Path, table: Path) -> None:
    small = without_seconds(make(tmp_path / "b", networks=2, seeds=1))
    extended = without_seconds(make(tmp_path / "b"))
    assert extended == without_seconds(table)
    assert [row["OA:seed=0"] for row in small] == [row["OA:seed=0"] for row in extended[:2]]


def test_a_class_without_test_pixels_counts_in_no_mean(tmp_path: Path) -> None:
    table = make(tmp_path / "b", networks=1, seeds=1, scene=small_scene(missing=True))
    (row,) = rows(table)
    assert 0 <= float(row["AA"]) <= 1


def test_draws_are_distinct_and_a_beginning_of_more() -> None:
    feasible = Feasible(SearchSpace.builtin("hytas-wide", {}), Budget.parse("30K-params"))
    few, many = (
        draw_architectures(feasible, 20, 3),
        draw_architectures(feasible, 60, 3),
    )
    assert many[:20] == few
    assert len({json.dumps(item, sort_keys=True) for item in many}) == 60
    assert feasible.contains(feasible.space.pack(many)).all()


def times(out: Path) -> dict[tuple[int, str], float]:
    with EvaluationStore(out / "evaluations.sqlite", read_only=True) as store:
        return {(item.id, item.recipe): item.seconds for item in store.trainings()}


def trained(out: Path) -> int:
    try:
        return len(times(out))
    except (InputError, OSError):
        return 0


def test_a_training_that_fails_leaves_its_reason(tmp_path: Path) -> None:
    import hytas

    table = make(
        tmp_path / "b", networks=1, seeds=1, recipe=hytas.Recipe(epochs=3, learning_rate=1e20)
    )
    (row,) = rows(table)
    assert row["OA"] == ""
    assert "plain:seed=0" in json.loads(row["reasons"])
