"""Bad input at the command line: one clear line, exit status 2, no traceback, nothing touched."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from small_model import wide_architecture
from small_run import TINY_SEARCH, small_scene

from commands import Run


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """The form that every refusal has."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(("error:", "Error:"))]
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


@pytest.fixture
def refused_search(scene: Path, tmp_path: Path, here: Run) -> Callable[..., None]:
    """Expect that a search with more options is refused, before it makes its folder."""

    def refuse(options: tuple[object, ...], *words: str, budget: str = "6K-params") -> None:
        out = tmp_path / "run"
        given = ("search", "--data", scene, f"--budget={budget}", "--out", out)
        refused(here(*given, *options), *words)
        assert not out.exists()

    return refuse


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("2M", ["2M", "params"]),
        ("-1-params", ["-1"]),
        ("10-params", ["10-params", "smallest"]),
        ("2M..1M-params", ["2M"]),
        ("2M-parsecs", ["parsecs"]),
        ("", ["budget"]),
    ],
)
def test_budgets(budget: str, words: list[str], refused_search: Callable[..., None]) -> None:
    refused_search((), *words, budget=budget)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--population", 10**20), ["population 1" + 20 * "0", "at most"]),
        (("--generations", 10**20), ["generations 1" + 20 * "0", "at most"]),
        (("--unlabelled", 10**20), ["unlabelled 1" + 20 * "0", "64 bits"]),
        (("--proxy", "dds"), ["dds", "dss"]),
        (("--space", "hytass"), ["hytass", "hytas"]),
        (("--bands", "400-900nm"), ["--bands 400-900nm: ", "unknown wavelengths: give numbers"]),
        (("--band-group", "41"), ["--band-group 41: must be odd and at most"]),
        (("--recipe", "mixin=1"), ["--recipe mixin", "did you mean 'mixup'"]),
        (("--epochs", "10", "--recipe", "steps=300"), ["epochs 10", "--recipe steps="]),
        (("--epochs", "-1"), ["epochs -1: must be 0 or more"]),
        *(((f"--patch-size={size}",), ["patch", size]) for size in ("4", "0", "-3", "25")),
        *(
            ((option,), [option.split("=")[1]])
            for option in (
                "--population=0",
                "--generations=-1",
                "--seed=-1",
                "--validation-fraction=1.5",
                "--train-per-class=0",
                "--block=0",
                "--nodata=inf",
                "--band-group=2",
                "--bands=0-3",
            )
        ),
    ],
)
def test_settings(
    options: tuple[object, ...], words: list[str], refused_search: Callable[..., None]
) -> None:
    refused_search(options, *words)


GENES = {"depth": 4, "num_heads": [3] * 4, "mlp_ratio": [1] * 4}
ARCHITECTURES = {
    "wide": {"space": "hytas", "embed_dim": 33, **GENES},
    "no-space": {"depth": 4},
    "patch": wide_architecture("pixel", "class"),
}


@pytest.fixture
def files(scene: Path, tmp_path: Path) -> Path:
    """A folder of scenes and architectures with a fault each."""
    folder = tmp_path / "files"
    folder.mkdir()
    cube, labels = small_scene()
    (folder / "broken.mat").write_bytes(scene.read_bytes()[:5000])
    scipy.io.savemat(folder / "cube.mat", {"cube": cube})
    scipy.io.savemat(folder / "gt.mat", {"gt": labels[:-1]})
    values = cube.astype(np.float32)
    values[2, 2, 3] = np.nan
    scipy.io.savemat(folder / "nan.mat", {"cube": values, "gt": labels})
    cube, labels = small_scene(seed=1)
    scipy.io.savemat(folder / "other.mat", {"cube": cube, "gt": labels})
    for name, architecture in ARCHITECTURES.items():
        (folder / f"{name}.json").write_text(json.dumps(architecture))
    (folder / "salinas").mkdir()
    return folder


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("search --data none.mat --budget 6K-params", ["none.mat"]),
        ("search --data broken.mat --budget 6K-params", ["broken.mat"]),
        ("search --data cube.mat --labels gt.mat --budget 6K-params", ["24", "23"]),
        ("search --data nan.mat --budget 6K-params", ["NaN"]),
        ("search --data other.mat --budget 6K-params --out .", [".", "empty folder"]),
        ("search --data other.mat --budget 6K-params --out /proc/nowhere/run", ["/proc/nowhere"]),
        ("train --out run", ["--arch"]),
        ("train --arch wide.json --data other.mat --out run", ["embed_dim", "33"]),
        ("train --arch no-space.json --data other.mat --out run", ['has no "space"']),
        (
            "train --arch patch.json --data other.mat --patch-size 3 --out run",
            ["patch 5, patch_size 3: must satisfy 'patch <= patch_size or patch == 1'"],
        ),
        ("export .", ["config.json"]),
        (  # a scene keeps its name next to a folder called so
            "references --data salinas --data-dir salinas --methods svm",
            ["does not hold salinas", "Salinas_gt.mat"],
        ),
    ],
)
def test_commands(command: str, words: list[str], files: Path, here: Run) -> None:
    before = sorted(files.rglob("*"))
    refused(here(*command.split(), cwd=files), *words)
    assert sorted(files.rglob("*")) == before


def test_a_full_disk_leaves_no_half_file_and_the_run_resumes(
    finished: Path, scene: Path, tmp_path: Path, hytas: Run
) -> None:
    """A limit on file size stands for a full disk: the write of each file fails in its midst."""
    out = tmp_path / "run"
    arguments = ["search", "--data", scene, "--budget", "6K-params", "--out", out, *TINY_SEARCH]
    # In the order in which a run writes them, each larger than those before it.
    for name in ("evaluations.sqlite", "weights.safetensors", "model.onnx"):
        refused(hytas(*arguments, largest_file=(finished / name).stat().st_size - 5000))
        assert name == "evaluations.sqlite" or not (out / name).exists()
        assert [path for path in out.iterdir() if ".tmp" in path.name or path.is_dir()] == []
    done = hytas(*arguments)
    assert done.returncode == 0, done.stderr
    for file in ("weights.safetensors", "model.onnx"):
        assert (out / file).read_bytes() == (finished / file).read_bytes()
