"""A supernet for a scene, its family of models, and what it refuses."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hytas._engine import builtin_space_text
from hytas.data import Scene
from hytas.data.images.load import textures
from hytas.errors import InputError
from hytas.job import run_pipeline
from hytas.run import (
    Member,
    RankCorrelation,
    RunConfig,
    export_family,
    rank_subnets,
    train_supernet,
)
from hytas.run.folder import read_json
from hytas.run.supernets.subnet_ranks import RIVALS
from hytas.search import EvaluationStore
from hytas.search.ranks import spearman
from hytas.supernet import Supernet, SupernetSettings
from hytas.train import Recipe

SMALL = {"embed_dim": [32, 48, 64], "band_depth": [0], "pixel_depth": [1, 2, 3]}
KIND = {"tokens": ["pixel"], "band_width": [3], "band_stride": [2], "patch": [1, 3]}
CONFIG = RunConfig(
    budget="10K..120K-params",
    proxy="inherited",
    supernet_settings=SupernetSettings(),
    presets="full",
    population=6,
    generations=2,
    patch_size=3,
    split="random",
    train_per_class=20,
    recipe=Recipe(epochs=6, batch_size=16, patience=1.0),
)


def space_file(folder: Path, **genes: list[Any]) -> str:
    space = json.loads(builtin_space_text("hytas-wide"))
    for gene in space["genes"]:
        if gene["name"] in genes:
            gene["values"] = genes[gene["name"]]
            gene.pop("weights", None)
    path = folder / "space.json"
    path.write_text(json.dumps(space))
    return str(path)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    return replace(CONFIG, space=space_file(tmp_path_factory.mktemp("space"), **SMALL, **KIND))


@pytest.fixture(scope="module")
def trained(config: RunConfig, scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("supernets") / "sup"
    return train_supernet(config, scene, out, device="cpu").parent


@pytest.fixture(scope="module")
def family(config: RunConfig, scene: Scene, trained: Path) -> list[Member]:
    return export_family(config, scene, trained, ["20K-params", "60K-params"], device="cpu")


def test_each_budget_gets_an_ordinary_model(family: list[Member], trained: Path) -> None:
    for member, most in zip(family, (20_000, 60_000), strict=True):
        assert 10_000 <= member.costs["params"] <= most
        metrics = read_json(member.folder / "metrics.json")
        assert metrics["test"]["OA"] == member.test
        assert metrics["costs"] == member.costs
        assert all(item["max_difference"] < 1e-3 for item in metrics["parity"]["formats"].values())
        digest = Supernet.load(trained / "supernet.safetensors").digest
        assert metrics["training"]["supernet"] == digest
        assert member.alone is None
        with EvaluationStore(member.folder / "evaluations.sqlite", read_only=True) as store:
            scores = {str(i.architecture): i.scores["inherited"] for i in store.evaluations()}
        assert scores[str(member.architecture)] == max(scores.values()) == member.probability
    assert family[1].costs["params"] > 20_000
    table = (trained / "family.csv").read_text().splitlines()
    assert table[0].startswith("budget,params,probability,validation_OA,test_OA,alone_test_OA")
    assert [line.split(",")[0] for line in table[1:]] == ["20K-params", "60K-params"]
    assert (trained / "family.svg").read_text().rstrip().endswith("</svg>")


def test_a_family_of_images(tmp_path: Path) -> None:
    images = textures(each=14, side=8)
    config = replace(CONFIG, space="autoformer-mini", budget="5K..30K-params", split="auto")
    config = replace(config, train_per_class=None, presets="images-light", recipe=Recipe(steps=4))
    train_supernet(config, images, tmp_path / "sup", device="cpu")
    (member,) = export_family(config, images, tmp_path / "sup", ["20K-params"], device="cpu")
    assert (member.folder / "predictions.csv").is_file()
    stages = re.findall("stage: (.*)", (tmp_path / "sup" / "run.log").read_text())
    assert stages[-5:] == ["search", "best subnet", "inherited weights", "export", "predictions"]


def test_a_search_scores_by_inherited_weights(
    config: RunConfig, scene: Scene, trained: Path, tmp_path: Path
) -> None:
    file = str(trained / "supernet.safetensors")
    searching = replace(
        config,
        budget="10K..60K-params",
        supernet=file,
        supernet_settings=None,
        proxy="rank-mean(inherited,params)",
        finalists=1,
        recipe=Recipe(epochs=0),
    )
    run_pipeline(searching, scene, tmp_path / "run", device="cpu")
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        items = store.evaluations()
    assert len(items) == 12
    assert all(0 < item.scores["inherited"] < 1 for item in items)
    copied = tmp_path / "supernet.safetensors"
    copied.write_bytes(Path(file).read_bytes())
    run_pipeline(replace(searching, supernet=str(copied)), scene, tmp_path / "run", device="cpu")
    Supernet.load(copied).save(copied)  # the facts within facts: other bytes
    content = bytearray(copied.read_bytes())
    content[-1] ^= 1
    copied.write_bytes(content)
    with pytest.raises(InputError, match=r"supernet\.safetensors: damaged or changed: its check"):
        run_pipeline(replace(searching, supernet=str(copied)), scene, tmp_path / "b", device="cpu")
    assert not (tmp_path / "b").exists()


def test_rankers_stand_beside_each_other(config: RunConfig, scene: Scene, trained: Path) -> None:
    def ranked() -> tuple[list[dict[str, Any]], list[RankCorrelation]]:
        return rank_subnets(config, scene, trained, "20K..100K-params", 4, device="cpu")

    rows, ranks = ranked()
    assert len({str(row["architecture"]) for row in rows}) >= 3
    assert all(20_000 <= row["params"] <= 100_000 for row in rows)
    assert all(0 <= row[name] <= 1 for row in rows for name in ("inherited_test", "alone_test"))
    assert [each.ranker for each in ranks] == list(RIVALS)
    truth = [row["alone_test"] for row in rows]
    for column in ("inherited", "race", "params"):  # the command prints them next to `truth`
        (rank,) = (each for each in ranks if each.ranker == column)
        assert rank.spearman == spearman([row[column] for row in rows], truth)
    assert all(each.low <= each.high for each in ranks if each.low is not None)
    written = {path: path.stat().st_mtime_ns for path in (trained / "fits").iterdir()}
    assert ranked() == (rows, ranks)  # and no training is done again
    assert {path: path.stat().st_mtime_ns for path in (trained / "fits").iterdir()} == written
    with pytest.raises(InputError, match="count=2: must be 3 or more"):
        rank_subnets(config, scene, trained, "20K..100K-params", 2, device="cpu")
