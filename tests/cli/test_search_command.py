"""The main command, end to end, on a scene that it has to read, search, learn and map."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors import safe_open
from small_run import TINY_SEARCH, small_scene

from commands import Run
from hytas._engine import builtin_space_text

FILES = [
    "architecture.json",
    "config.json",
    "evaluations.sqlite",
    "manifest.json",
    "map.png",
    "metrics.json",
    "model.onnx",
    "model.pt",
    "pixels.npz",
    "recipe.json",
    "references.json",
    "report.html",
    "run.log",
    "split.npz",
    "test.json",
    "times.json",
    "weights.safetensors",
]


def evaluations(folder: Path) -> list[tuple[Any, ...]]:
    """All evaluations but their seconds."""
    with sqlite3.connect(folder / "evaluations.sqlite") as connection:
        return connection.execute(
            "SELECT id, generation, architecture, costs, scores, reasons FROM evaluations"
            " ORDER BY id"
        ).fetchall()


def test_folder_holds_everything(finished: Path) -> None:
    assert [name for name in FILES if not (finished / name).is_file()] == []
    left = {path.name for path in finished.iterdir()} - {*FILES, ".lock", "stdout.log"}
    assert left == {"fits"}


def test_the_embedded_scene_without_validation_pixels(tmp_path: Path, hytas: Run) -> None:
    """What was not asked for, its race, is not missed."""
    few = ["--train-per-class", 2, "--population", 2, "--generations", 1, "--epochs", 0]
    done = hytas("search", "--budget", "6K-params", *few, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "no race: the split has no validation pixels" in done.stderr
    assert (tmp_path / "run" / "architecture.json").exists()


def test_winner_and_all_evaluated_fit_the_budget(finished: Path) -> None:
    rows = evaluations(finished)
    assert len(rows) == 12
    assert len({row[2] for row in rows}) == len(rows)
    assert max(json.loads(row[3])["params"] for row in rows) <= 6_000
    with safe_open(finished / "weights.safetensors", "np") as file:
        shipped = sum(int(np.prod(file.get_slice(name).get_shape())) for name in file.keys())  # noqa: SIM118
    assert (
        shipped == json.loads((finished / "metrics.json").read_text())["costs"]["params"] <= 6_000
    )


def test_accuracy_is_that_of_the_onnx_file(finished: Path) -> None:
    cube, labels = small_scene()
    session = onnxruntime.InferenceSession(finished / "model.onnx")
    script = torch.jit.load(str(finished / "model.pt"))
    split = np.load(finished / "split.npz")
    padded = np.pad(cube, ((3, 3), (3, 3), (0, 0)), mode="reflect")
    rows, columns = np.divmod(split["test"], labels.shape[1])
    pairs = zip(rows, columns, strict=True)
    patches = np.stack([padded[row : row + 7, column : column + 7] for row, column in pairs])
    (probabilities,) = session.run(None, {"patches": patches})
    assert np.allclose(probabilities.sum(1), 1, atol=1e-5)
    other = script(torch.from_numpy(patches)).numpy()
    assert np.abs(probabilities - other).max() < 1e-4
    ids = np.array([2, 5, 9])
    hits = np.mean(ids[probabilities.argmax(1)] == labels.ravel()[split["test"]])
    metrics = json.loads((finished / "metrics.json").read_text())
    assert metrics["test"]["OA"] == pytest.approx(hits)
    assert metrics["parity"]["formats"]["onnx"]["max_difference"] < 1e-4


def test_same_command_again_shows_the_finished_run(finished: Path, scene: Path, hytas: Run) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in finished.glob("model.*")}
    again = hytas(
        "search", "--data", scene, "--budget", "6K-params", "--out", finished, *TINY_SEARCH
    )
    assert again.returncode == 0, again.stderr
    assert again.stdout == (finished / "stdout.log").read_text()
    assert {path.name: path.stat().st_mtime_ns for path in finished.glob("model.*")} == before


@pytest.mark.slow
def test_stop_after_the_search_then_train(scene: Path, tmp_path: Path, hytas: Run) -> None:
    out = tmp_path / "two-steps"
    settings = ["--population", "4", "--generations", "1"]
    done = hytas(
        "search",
        "--data",
        scene,
        "--budget",
        "6K-params",
        "--out",
        out,
        *settings,
        "--epochs",
        "0",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["test"] is None
    assert not (out / "weights.safetensors").exists()
    done = hytas("train", out, "--epochs", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["test"]["pixels"] > 100
    first = (out / "model.onnx").read_bytes()
    (out / "model.onnx").unlink()
    several = ("--formats", "onnx-scene", "--formats", "onnx-fp16,onnx-w8")
    done = hytas("export", out, *several, "--json")
    assert done.returncode == 0, done.stderr
    assert (out / "model.onnx").read_bytes() == first
    further = json.loads(done.stdout)["further"]
    assert further["onnx-scene"]["labels_changed"] == 0
    assert further["onnx-fp16"]["agreement"] >= 0.99
    assert "onnx-w8" in further
    assert all(Path(figures["file"]).is_file() for figures in further.values())


def test_train_takes_an_architecture_of_ones_own(scene: Path, tmp_path: Path, hytas: Run) -> None:
    genes = {
        "space": "hytas",
        "depth": 4,
        "embed_dim": 30,
        "num_heads": [3, 3, 4, 6],
        "mlp_ratio": [1, 2, 1, 1],
    }
    chosen = tmp_path / "mine.json"
    chosen.write_text(json.dumps(genes | {"costs": {"params": 1}}))  # as `space sample` prints it
    out, space = tmp_path / "mine", tmp_path / "space.json"
    # A space of one's own, too: it keeps its name, and has a width that the built-in one lacks.
    space.write_text(builtin_space_text("hytas").replace("[32, 48,", "[30, 48,"))
    command = ("train", "--arch", chosen, "--data", scene, "--out", out, "--epochs", "1", "--json")
    refused = hytas(*command)
    assert "embed_dim" in refused.stderr, refused.stderr
    done = hytas(*command, "--space", space)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["architecture"] == genes
    assert json.loads(done.stdout)["budget"] is None
