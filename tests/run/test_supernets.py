"""A supernet for a scene, its family of models, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from hytas._engine import SearchSpace, builtin_space_text
from hytas.data import Scene, scene_from_arrays
from hytas.errors import InputError
from hytas.job import run_pipeline
from hytas.run import (
    Member,
    Rank,
    RunConfig,
    RunFolder,
    export_family,
    rank_subnets,
    train_supernet,
)
from hytas.run.context import RunContext
from hytas.run.folder import read_json
from hytas.run.prepared import prepare_scene
from hytas.run.supernet import inherited_score
from hytas.run.supernets.family import folder_names
from hytas.run.supernets.subnet_ranks import RIVALS
from hytas.search import EvaluationStore
from hytas.search.ranks import spearman
from hytas.spaces import open_space
from hytas.supernet import InheritedScore, Supernet, SupernetSettings
from hytas.train import Recipe
from refusals import refuses

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


def test_the_same_export_again_does_nothing_twice(
    config: RunConfig, scene: Scene, trained: Path, family: list[Member]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*.onnx")}
    assert len(before) == 2
    (again,) = export_family(config, scene, trained, ["20K-params"], alone=True, device="cpu")
    alone = read_json(again.folder / "alone" / "metrics.json")
    assert alone["test"]["OA"] == again.alone
    assert read_json(again.folder / "alone" / "architecture.json") == again.architecture
    assert replace(again, alone=None) == family[0]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    # The files of the family keep the subnet that was not asked for again.
    table = (trained / "family.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table[1:]] == ["20K-params", "60K-params"]


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


def test_architectures_of_a_space_file_are_scored_by_its_supernet(
    config: RunConfig, scene: Scene, trained: Path, family: list[Member]
) -> None:
    """As `hytas score --space FILE --supernet` does."""
    data = prepare_scene(config, scene)

    def inherited(space: str) -> InheritedScore:
        opened, _ = open_space(space, offered=data.shape.variables())
        context = RunContext(config, data, opened, None, torch.device("cpu"))
        return inherited_score(context, trained / "supernet.safetensors")

    found = inherited(config.space)
    assert found.figures(family[0].architecture)["probability"] == family[0].probability
    with pytest.raises(InputError, match="was trained in another space"):
        inherited(family[0].architecture["space"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"budget": "5K..60K-params"}, "trained inside 10K..120K-params; the budget 5K..60K"),
        ({"budget": "20K..900K-params"}, "the budget 20K..900K-params reaches beyond it"),
        ({"seed": 1}, "was trained with another split"),
        ({"scaling": "minmax"}, "was trained with another scaling"),
        ({"patch_size": 5}, "with bands 6, classes 3, patch_size 3, .* patch_size 5"),
        ({"space": "hytas"}, "is of space hytas-wide with .*; the run's is hytas with"),
        ({"space": "hytas-wide"}, "was trained in another space: tokens had not all of"),
    ],
)
def test_a_supernet_of_something_else_is_refused(
    changed: dict[str, Any],
    message: str,
    config: RunConfig,
    scene: Scene,
    trained: Path,
    tmp_path: Path,
) -> None:
    file = str(trained / "supernet.safetensors")
    usual = {"budget": "20K..60K-params", "supernet": file, "supernet_settings": None}
    other = replace(config, **{**usual, **changed})
    with refuses("supernet", file, message):
        run_pipeline(other, scene, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_supernet_of_another_scene_is_refused(
    config: RunConfig, scene: Scene, trained: Path, tmp_path: Path
) -> None:
    file = str(trained / "supernet.safetensors")
    other = scene_from_arrays(scene.cube[:] + 1.0, scene.labels, name="stripes")
    searching = replace(config, supernet=file, supernet_settings=None)
    with pytest.raises(InputError, match="was trained with another scene"):
        run_pipeline(searching, other, tmp_path / "run", device="cpu")


def test_folders_of_subnets_name_latency_tables_without_their_place() -> None:
    assert folder_names(["3ms-latency@/tmp/a/t.json", "50K-params,2M-macs"]) == [
        "3ms-latency@t.json",
        "50K-params-2M-macs",
    ]
    same = folder_names(["3ms-latency@/a/t.json", "3ms-latency@/b/t.json"])
    assert same == ["3ms-latency@-a-t.json", "3ms-latency@-b-t.json"]


def test_what_no_subnet_meets_and_what_is_damaged_is_refused(
    config: RunConfig, scene: Scene, trained: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"budget='5K-params': inside 10K\.\.120K-params of the"):
        export_family(config, scene, trained, ["5K-params"], device="cpu")
    with pytest.raises(InputError, match=r"10-macs.*the smallest"):
        export_family(config, scene, trained, ["10-macs"], device="cpu")
    copy = tmp_path / "sup"
    copy.mkdir()
    for name in ("config.json", "manifest.json", "split.npz", "supernet.safetensors"):
        (copy / name).write_bytes((trained / name).read_bytes())
    content = (copy / "supernet.safetensors").read_bytes()
    (copy / "supernet.safetensors").write_bytes(content[:-7])
    with pytest.raises(InputError, match=r"damaged \(.* bytes; .* were written\); `hytas supernet"):
        export_family(config, scene, copy, ["20K-params"], device="cpu")
    train_supernet(config, scene, copy, device="cpu")
    assert (copy / "supernet.safetensors").read_bytes() == content  # to the last bit


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"supernet_settings": None}, "proxy='inherited': scores with the weights of a super"),
        ({"proxy": "dss", "supernet": "a.st"}, "supernet='a.st': only the proxy inherited scores"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changed: dict[str, Any], message) -> None:
    with pytest.raises(InputError, match=message):
        replace(CONFIG, **changed)


def test_without_validation_pixels_nothing_is_trained(
    config: RunConfig, scene: Scene, tmp_path: Path
) -> None:
    none = replace(config, validation_fraction=0.0)
    with refuses("validation_fraction", 0.0, "subnets are chosen on validation pixels"):
        train_supernet(none, scene, tmp_path / "sup", device="cpu")
    assert not (tmp_path / "sup").exists()


def test_a_folder_of_another_training_is_refused(
    config: RunConfig, scene: Scene, trained: Path
) -> None:
    other = replace(config, supernet_settings=SupernetSettings("sandwich"))
    with pytest.raises(InputError, match=r"supernet method sandwich \(there uniform\)"):
        train_supernet(other, scene, trained, device="cpu")
    again = RunFolder(trained).read_config()[0]
    assert again == config
    space = SearchSpace.parse(Path(config.space).read_text(), {"bands": 6})
    assert space.name == "hytas-wide"


def test_rankers_stand_beside_each_other(config: RunConfig, scene: Scene, trained: Path) -> None:
    def ranked() -> tuple[list[dict[str, Any]], list[Rank]]:
        return rank_subnets(config, scene, trained, "20K..100K-params", 4, device="cpu")

    rows, ranks = ranked()
    assert len({str(row["architecture"]) for row in rows}) >= 3
    assert all(20_000 <= row["params"] <= 100_000 for row in rows)
    assert all(0 <= row[name] <= 1 for row in rows for name in ("inherited_test", "alone_test"))
    assert [each.ranker for each in ranks] == list(RIVALS)
    (size,) = (each for each in ranks if each.ranker == "params")
    truth = [row["alone_test"] for row in rows]
    assert size.spearman == spearman([row["params"] for row in rows], truth)
    assert all(each.low <= each.high for each in ranks if each.low is not None)
    written = (trained / "ranks.json").stat().st_mtime_ns
    assert ranked() == (rows, ranks)
    assert (trained / "ranks.json").stat().st_mtime_ns == written
    with pytest.raises(InputError, match="count=2: must be 3 or more"):
        rank_subnets(config, scene, trained, "20K..100K-params", 2, device="cpu")
