"""Bad input at the command line: one clear line, exit status 2, no traceback, nothing touched."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from small_model import wide_architecture
from small_run import TINY_SEARCH, small_scene

from commands import Run
from hytas.cli import main
from tiny import SPACE


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
        (("--race-steps", "5", "--race-epochs", "2"), ["--race-epochs 2", "--race-steps"]),
        (("--bands", "400-900nm"), ["--bands 400-900nm: ", "are not known; give numbers"]),
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


def test_a_score_that_no_architecture_has(scene: Path, tmp_path: Path, here: Run) -> None:
    options = ("--space", SPACE, "--proxy", "logsynflow", "--population", "3")
    given = ("search", "--data", scene, "--budget", "6K-params", "--out", tmp_path / "run")
    refused(here(*given, *options), "no architecture of 21", "logsynflow: ")


def test_missing_file(tmp_path: Path, here: Run) -> None:
    done = here("search", "--data", tmp_path / "none.mat", "--budget", "6K-params")
    refused(done, "none.mat")


def test_truncated_file(scene: Path, tmp_path: Path, here: Run) -> None:
    broken = tmp_path / "broken.mat"
    broken.write_bytes(scene.read_bytes()[:5000])
    refused(here("search", "--data", broken, "--budget", "6K-params"), "broken.mat")


def test_labels_of_another_size(tmp_path: Path, here: Run) -> None:
    cube, labels = small_scene()
    scipy.io.savemat(tmp_path / "cube.mat", {"cube": cube})
    scipy.io.savemat(tmp_path / "gt.mat", {"gt": labels[:-1]})
    done = here(
        "search",
        "--data",
        tmp_path / "cube.mat",
        "--labels",
        tmp_path / "gt.mat",
        "--budget",
        "6K-params",
    )
    refused(done, "24", "23")


def test_labelled_nan(tmp_path: Path, here: Run) -> None:
    cube, labels = small_scene()
    values = cube.astype(np.float32)
    values[2, 2, 3] = np.nan
    scipy.io.savemat(tmp_path / "field.mat", {"cube": values, "gt": labels})
    done = here("search", "--data", tmp_path / "field.mat", "--budget", "6K-params")
    refused(done, "NaN")


def test_folder_of_another_configuration(finished: Path, scene: Path, here: Run) -> None:
    before = (finished / "config.json").read_bytes()
    done = here("search", "--data", scene, "--budget", "7K-params", "--out", finished, *TINY_SEARCH)
    refused(done, "another configuration", "7K-params", "6K-params")
    assert (finished / "config.json").read_bytes() == before


def test_recipe_of_another_race(finished: Path, scene: Path, tmp_path: Path, here: Run) -> None:
    """While the architecture is not chosen, finalists may wait that trained by the old recipe."""
    out = tmp_path / "run"
    shutil.copytree(finished, out)
    for name in ("architecture.json", "weights.safetensors", "model.onnx"):
        (out / name).unlink()
    arguments = ["search", "--data", scene, "--budget", "6K-params", "--out", out, *TINY_SEARCH]
    refused(here(*arguments, "--recipe", "mixup=0.9"), "another configuration", "recipe mixup 0.9")
    assert not (out / "model.onnx").exists()


def test_training_of_no_epoch(finished: Path, tmp_path: Path, here: Run) -> None:
    out = tmp_path / "run"
    shutil.copytree(finished, out)
    refused(here("train", out, "--recipe", "epochs=0"), "epochs 0", "1 or more")
    refused(here("train", out, "--epochs", "0"), "epochs 0", "1 or more")


def test_folder_of_another_scene(finished: Path, tmp_path: Path, here: Run) -> None:
    cube, labels = small_scene(seed=1)
    scipy.io.savemat(tmp_path / "other.mat", {"cube": cube, "gt": labels})
    done = here(
        "search",
        "--data",
        tmp_path / "other.mat",
        "--budget",
        "6K-params",
        "--out",
        finished,
        *TINY_SEARCH,
    )
    refused(done, "another scene")


def test_folder_with_files_of_ones_own(scene: Path, tmp_path: Path, here: Run) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    done = here("search", "--data", scene, "--budget", "6K-params", "--out", tmp_path, *TINY_SEARCH)
    refused(done, str(tmp_path), "empty folder")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(scene: Path, tmp_path: Path, here: Run) -> None:
    tmp_path.chmod(0o500)
    done = here(
        "search", "--data", scene, "--budget", "6K-params", "--out", tmp_path / "run", *TINY_SEARCH
    )
    refused(done, str(tmp_path))


def test_folder_that_cannot_be_made(scene: Path, here: Run) -> None:
    done = here(
        "search",
        "--data",
        scene,
        "--budget",
        "6K-params",
        "--out",
        "/proc/nowhere/run",
        *TINY_SEARCH,
    )
    refused(done, "/proc/nowhere")


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


def test_train_needs_an_architecture(tmp_path: Path, here: Run) -> None:
    refused(here("train", "--out", tmp_path / "run"), "--arch")


def test_train_refuses_genes_that_the_space_lacks(scene: Path, tmp_path: Path, here: Run) -> None:
    chosen = tmp_path / "arch.json"
    chosen.write_text(
        '{"space": "hytas", "depth": 4, "embed_dim": 33, "num_heads": [3, 3, 3, 3],'
        ' "mlp_ratio": [1, 1, 1, 1]}'
    )
    done = here("train", "--arch", chosen, "--data", scene, "--out", tmp_path / "run")
    refused(done, "embed_dim", "33")
    assert not (tmp_path / "run").exists()
    chosen.write_text('{"depth": 4}')
    done = here("train", "--arch", chosen, "--data", scene, "--out", tmp_path / "run")
    refused(done, 'has no "space"')
    assert not (tmp_path / "run").exists()


def test_export_of_an_untrained_run(tmp_path: Path, here: Run) -> None:
    refused(here("export", tmp_path), "config.json")


def test_a_scene_keeps_its_name_beside_a_folder_called_so(tmp_path: Path, here: Run) -> None:
    (tmp_path / "salinas").mkdir()
    command = ("references", "--data", "salinas", "--data-dir", "salinas", "--methods", "svm")
    refused(here(*command, cwd=tmp_path), "does not hold salinas", "Salinas_gt.mat")


class OutOfMemoryError(RuntimeError):
    """As torch names it."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OutOfMemoryError("CUDA: 2 GiB\nmore"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        RuntimeError("could not create a primitive"),
    ],
)
def test_memory_that_runs_out_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(main.hytas, "main", fail)
    with pytest.raises(SystemExit) as stopped:
        main.run(["doctor"])
    assert stopped.value.code == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("error: out of memory (")


def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

    monkeypatch.setattr(main.hytas, "main", fail)
    with pytest.raises(SystemExit) as stopped:
        main.run(["doctor"])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said == "error: this command needs the Python module pandas, which is not installed\n"


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug"), ModuleNotFoundError("a bug", name="hytas.none")]
)
def test_other_errors_of_ours_are_not_hidden(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(main.hytas, "main", fail)
    with pytest.raises(type(error), match="a bug"):
        main.run(["doctor"])


def test_train_tells_which_rule_an_architecture_breaks(
    scene: Path, tmp_path: Path, here: Run
) -> None:
    chosen = tmp_path / "arch.json"
    chosen.write_text(json.dumps(wide_architecture("pixel", "class")))
    command = ("train", "--arch", chosen, "--data", scene, "--patch-size", "3")
    refused(
        here(*command, "--out", tmp_path / "run"),
        "architecture: patch 5, patch_size 3: must satisfy 'patch <= patch_size or patch == 1'",
    )
