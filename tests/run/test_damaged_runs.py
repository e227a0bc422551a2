"""Finished runs whose files were damaged: made again and said, or named and refused."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hytas.data import Scene
from hytas.errors import InputError
from hytas.job import export_run, run_pipeline
from hytas.manifest import Manifest
from hytas.models import InputShape, build_network
from hytas.run import Outcome, RunConfig, weights
from hytas.run.artefacts import AGAIN
from hytas.run.delivering.findings import run_facts
from hytas.run.folder import ARTEFACTS, RunFolder
from hytas.run.weights import load_weights
from hytas.tensors import read_tensors, write_tensors
from hytas.train import Recipe
from small import strips
from tiny import SPACE
from told import Told

CONFIG = RunConfig(
    budget="2K..8K-params",
    space=SPACE,
    proxy="params",
    population=4,
    generations=2,
    finalists=1,
    pareto="params,score",
    recipe=Recipe(epochs=1),
    validation_fraction=0.3,
)
Damage = Callable[[bytes], bytes]


def emptied(content: bytes) -> bytes:
    return b""


def truncated(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def flipped(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.fixture(scope="module")
def scene() -> Scene:
    return strips()


@pytest.fixture(scope="module")
def whole(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    run_pipeline(CONFIG, scene, folder, device="cpu")
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def again(scene: Scene, folder: Path, **changed: Any) -> tuple[Outcome, list[str]]:
    """The same command once more: its outcome, and what it said of damage."""
    told = Told()
    config = replace(CONFIG, **changed)
    outcome = run_pipeline(config, scene, folder, device="cpu", report=told)
    lines = [line for line in told.lines if not line.startswith("goes on in ")]
    return outcome, [line for line in lines if "damaged" in line or "missing" in line]


def change(path: Path, damage: Damage) -> None:
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert path.read_bytes() != content


def test_a_manifest_names_every_file(whole: Path) -> None:
    names = {path.name for path in whole.iterdir() if path.is_file()}
    names -= {".lock", "manifest.json", "run.log"}
    manifest = Manifest(whole)
    assert set(manifest.names()) == names
    assert manifest.faults() == {}
    entry = json.loads((whole / "manifest.json").read_text())["files"]["model.onnx"]
    assert entry["bytes"] == (whole / "model.onnx").stat().st_size


def test_a_whole_run_is_left_as_it_is(scene: Scene, run: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    _, said = again(scene, run)
    assert said == []
    after = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    moved = {name for name, time in after.items() if before.get(name) != time}
    copied = {"report.html"}  # it names the folder
    assert moved <= copied | {
        *(".lock", "manifest.json", "evaluations.sqlite", "metrics.json", "run.log")
    }


@pytest.mark.parametrize(
    "damaged", [{"model.onnx": emptied}, {"model.pt": flipped, "metrics.json": truncated}]
)
def test_exported_files_are_made_again(
    scene: Scene, run: Path, whole: Path, damaged: dict[str, Damage]
) -> None:
    for name, damage in damaged.items():
        change(run / name, damage)
    outcome, said = again(scene, run)
    assert sorted(line.split(":")[0] for line in said) == sorted(damaged)
    assert all(line.endswith("made again") for line in said)
    for file in ("model.onnx", "weights.safetensors"):
        assert (run / file).read_bytes() == (whole / file).read_bytes()
    torch.jit.load(str(run / "model.pt"))  # whose bytes are others in each process
    assert outcome.metrics == json.loads((whole / "metrics.json").read_text())
    assert Manifest(run).faults() == {}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("references.json", flipped),
        ("map.png", emptied),
        ("pareto.csv", emptied),
        ("pareto.svg", flipped),
        ("pixels.npz", flipped),
        ("report.html", truncated),
        ("split.npz", truncated),
        ("architecture.json", emptied),
        ("architecture.json", flipped),
    ],
)
def test_what_is_cheap_is_made_again_to_the_byte(
    scene: Scene, run: Path, whole: Path, name: str, damage: Damage
) -> None:
    change(run / name, damage)
    _, said = again(scene, run)
    assert len(said) == 1
    assert said[0].startswith(f"{name}: damaged (")
    assert "made again" in said[0]
    made, before = (
        (folder / name).read_bytes().replace(str(folder).encode(), b"") for folder in (run, whole)
    )
    assert made == before
    for file in ("weights.safetensors", "model.onnx"):
        assert (run / file).read_bytes() == (whole / file).read_bytes()


def test_damaged_weights_are_trained_again_with_all_that_came_of_them(
    scene: Scene, run: Path, whole: Path
) -> None:
    change(run / "weights.safetensors", flipped)
    with pytest.raises(InputError, match="its SHA-256 is not that of what was written"):
        export_run(CONFIG, scene, run)
    assert again(scene, run)[1] == [
        "weights.safetensors: damaged (its SHA-256 is not that of what was written): made again"
    ]
    trained, before = (load_weights(path / "weights.safetensors") for path in (run, whole))
    for name, tensor in before.network.state_dict().items():
        assert np.array_equal(tensor, trained.network.state_dict()[name])
    assert (run / "model.onnx").read_bytes() == (whole / "model.onnx").read_bytes()


@pytest.mark.parametrize("name", ["config.json", "evaluations.sqlite"])
@pytest.mark.parametrize("damage", [emptied, truncated, flipped])
def test_what_cannot_be_made_again_is_named(
    scene: Scene, run: Path, name: str, damage: Damage
) -> None:
    change(run / name, damage)
    left = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    with pytest.raises(InputError, match="it cannot be made again from other files") as caught:
        again(scene, run)
    assert str(caught.value).startswith(f"{run / name}: damaged (")
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == left | {
        name: (run / name).read_bytes() for name in (".lock", "run.log")
    }


def test_a_store_that_was_deleted_is_said(scene: Scene, run: Path) -> None:
    (run / "evaluations.sqlite").unlink()
    _, said = again(scene, run)
    assert said == ["evaluations.sqlite: missing: the scores of the search are lost"]
    assert again(scene, run)[1] == []


def test_times_that_are_damaged_are_forgotten(scene: Scene, run: Path) -> None:
    change(run / "times.json", truncated)
    _, said = again(scene, run)
    assert len(said) == 1
    assert said[0].endswith("how long the stages took is not known any more")
    assert again(scene, run)[1] == []
    assert Manifest(run).faults() == {}


def test_a_damaged_manifest_is_made_again(scene: Scene, run: Path, whole: Path) -> None:
    for damage in (emptied, truncated, flipped):
        change(run / "manifest.json", damage)
        _, said = again(scene, run)
        assert said == ["manifest.json: damaged: made again from the files as they are"]
    assert set(Manifest(run).names()) == set(Manifest(whole).names())
    assert Manifest(run).faults() == {}


def test_files_of_further_formats_are_made_again(scene: Scene, run: Path) -> None:
    export_run(CONFIG, scene, run, formats=["onnx-fp16"], force=True)
    content = (run / "model.fp16.onnx").read_bytes()
    change(run / "model.fp16.onnx", truncated)
    _, said = again(scene, run)
    assert len(said) == 1
    assert said[0].startswith("model.fp16.onnx: damaged (")
    made = said[0].endswith(": made again")
    assert not made or (run / "model.fp16.onnx").read_bytes() == content


def test_no_flipped_bit_of_the_weights_goes_unnoticed(whole: Path, tmp_path: Path) -> None:
    content = (whole / "weights.safetensors").read_bytes()
    head = 8 + int.from_bytes(content[:8], "little")
    rng, path = np.random.default_rng(2), tmp_path / "weights.safetensors"
    for place in (*rng.integers(0, len(content), 60), *rng.integers(0, head, 60), *range(8)):
        damaged = bytearray(content)
        damaged[int(place)] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(InputError) as caught:
            load_weights(path)
        assert "\n" not in str(caught.value)
    path.write_bytes(content)
    assert read_tensors(path)[0]["hytas.format"] == "2"


@pytest.mark.parametrize("preset", [[], {}, None, "fuller"])
def test_a_forged_preset_is_named(scene: Scene, run: Path, preset: object) -> None:
    (run / "recipe.json").write_text(json.dumps({"preset": preset}))
    Manifest(run).record([run / "recipe.json"])
    with pytest.raises(InputError, match=r"recipe\.json: preset .*: must be one of"):
        again(scene, run)


def test_forged_times_are_one_line(scene: Scene, run: Path) -> None:
    times = json.loads((run / "times.json").read_text())
    times["search"]["seconds"] = []
    (run / "times.json").write_text(json.dumps(times))
    Manifest(run).record([run / "times.json"])
    with pytest.raises(InputError, match="files with values that no run has") as caught:
        again(scene, run)
    assert "\n" not in str(caught.value)


def test_a_forged_architecture_beside_weights_takes_no_memory(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*positional: Any, **named: Any) -> torch.nn.Module:
        assert torch.get_default_device().type == "meta"
        return build_network(*positional, **named)

    monkeypatch.setattr(weights, "build_network", build)
    facts, tensors = read_tensors(whole / "weights.safetensors")
    genes = json.loads(facts["hytas.architecture"])
    for change in ({"embed_dim": 2**20}, {"embed_dim": -1}, {"mlp_ratio": [4] * 2**20}):
        facts["hytas.architecture"] = json.dumps({**genes, **change})
        write_tensors(tmp_path / "weights.safetensors", tensors, facts)
        with pytest.raises(InputError, match="its weights are not those of its architecture"):
            load_weights(tmp_path / "weights.safetensors")


@pytest.mark.parametrize(
    "change",
    [{"embed_dim": -1}, {"mlp_ratio": [-1]}, {"num_heads": [0]}, {"embed_dim": 0}, {"space": []}],
)
def test_genes_that_no_network_has_are_a_note_of_the_report(
    whole: Path, change: dict[str, Any], tmp_path: Path
) -> None:
    genes = {**json.loads((whole / "architecture.json").read_text()), **change}
    shutil.copy(whole / "config.json", tmp_path)
    (tmp_path / "architecture.json").write_text(json.dumps(genes))
    facts = run_facts(RunFolder(tmp_path), shape=InputShape(14, 5, 5, 3))
    assert facts.layers == []
    assert any(note.startswith("The layers are not shown: ") for note in facts.notes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"space": "hytas", "depth": 3, "colour": 7}', "architecture.json: "),
        ('{"depth": 3}', 'architecture.json: has no "space"'),
        ("[" * 100_000, "nested more than 100 deep"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested more than 100 deep"),
        ("[1]", "must hold a JSON object"),
        (b"\xff\xfe", "not JSON"),
        ("1" * 5000, "not JSON"),
    ],
)
def test_an_architecture_that_is_none(
    scene: Scene, run: Path, content: str | bytes, message: str
) -> None:
    """In a folder without weights and manifest nothing else knows the architecture."""
    shutil.rmtree(run / "fits")
    for path in run.iterdir():
        if path.name not in ("config.json", "split.npz", "evaluations.sqlite", "recipe.json"):
            path.unlink()
    data = content if isinstance(content, bytes) else content.encode()
    (run / "architecture.json").write_bytes(data)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        run_pipeline(CONFIG.with_epochs(0), scene, run, device="cpu")
    assert "\n" not in str(caught.value)


def test_a_store_of_a_stopped_run_is_checked_by_sqlite(scene: Scene, run: Path) -> None:
    """The manifest does not know a store that is written to."""
    manifest = Manifest(run)
    manifest.forget([run / "evaluations.sqlite"])
    content = bytearray((run / "evaluations.sqlite").read_bytes())
    content[4096:4196] = b"\xff" * 100
    (run / "evaluations.sqlite").write_bytes(content)
    with pytest.raises(InputError, match="it cannot be made again from other files"):
        again(scene, run)


def test_every_file_of_a_run_is_in_the_table(whole: Path) -> None:
    declared = [artefact.file for artefact in ARTEFACTS.values()]
    names = {path.name for path in whole.iterdir()} - {".lock", "manifest.json", "fits"}
    assert all(any(fnmatchcase(name, file) for file in declared) for name in names)
    stages = {artefact.stage for artefact in ARTEFACTS.values()}
    assert {each.stage for each in ARTEFACTS.values() if each.repair == AGAIN} <= stages
    for artefact in ARTEFACTS.values():
        assert set(artefact.made_from) <= set(ARTEFACTS)
        assert artefact.holds


def test_sqlite_pages_that_are_damaged(whole: Path, tmp_path: Path) -> None:
    from hytas.search import EvaluationStore

    path = tmp_path / "evaluations.sqlite"
    shutil.copy(whole / "evaluations.sqlite", path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE evaluations SET seconds = 'soon' WHERE id = 1")
    connection.close()
    with EvaluationStore(path) as store, pytest.raises(InputError, match="damaged, in eval"):
        store.evaluations()
