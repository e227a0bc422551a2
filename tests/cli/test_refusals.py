"""Bad input at the command line: one clear line, exit status 2, no traceback, nothing touched."""

import json
import os
import shutil
import subprocess
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
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `hytas ARGUMENTS` in this process, for a command that is refused."""

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        with pytest.raises(SystemExit) as left:
            main.run(list(map(str, arguments)))
        output = capsys.readouterr()
        status = left.value.code if isinstance(left.value.code, int) else 1
        return subprocess.CompletedProcess(["hytas", *arguments], status, output.out, output.err)

    return run


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
def test_budgets(budget: str, words: list[str], scene: Path, tmp_path: Path, here: Run) -> None:
    out = tmp_path / "run"
    refused(here("search", "--data", scene, f"--budget={budget}", "--out", out), *words)
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--population", ["population 1" + 20 * "0", "at most"]),
        ("--generations", ["generations 1" + 20 * "0", "at most"]),
        ("--unlabelled", ["unlabelled 1" + 20 * "0", "64 bits"]),
    ],
)
def test_numbers_beyond_all_measure(
    option: str, words: list[str], scene: Path, tmp_path: Path, here: Run
) -> None:
    arguments = ["search", "--data", scene, "--budget", "6K-params", "--out", tmp_path / "run"]
    refused(here(*arguments, option, 10**20), *words)
    assert not (tmp_path / "run").exists()


def test_unknown_proxy_names_the_nearest(scene: Path, tmp_path: Path, here: Run) -> None:
    done = here(
        "search",
        "--data",
        scene,
        "--budget",
        "6K-params",
        "--proxy",
        "dds",
        "--out",
        tmp_path / "run",
    )
    refused(done, "dds", "dss")


def test_unknown_space(scene: Path, tmp_path: Path, here: Run) -> None:
    done = here(
        "search",
        "--data",
        scene,
        "--budget",
        "6K-params",
        "--space",
        "hytass",
        "--out",
        tmp_path / "run",
    )
    refused(done, "hytass", "hytas")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--race-steps", "5", "--race-epochs", "2"), ("--race-epochs 2", "--race-steps")),
        (("--band-group", "41"), ("--band-group 41: must be odd and at most",)),
        (
            ("--space", SPACE, "--proxy", "logsynflow", "--population", "3"),
            ("no architecture of 21", "logsynflow: "),
        ),
    ],
)
def test_settings_that_cannot_work(options, words, scene: Path, tmp_path: Path, here: Run) -> None:
    out = tmp_path / "run"
    done = here("search", "--data", scene, "--budget", "6K-params", "--out", out, *options)
    refused(done, *words)


@pytest.mark.parametrize("size", ["4", "0", "-3", "25"])
def test_patch_sizes(size: str, scene: Path, tmp_path: Path, here: Run) -> None:
    done = here(
        "search",
        "--data",
        scene,
        "--budget",
        "6K-params",
        f"--patch-size={size}",
        "--out",
        tmp_path / "run",
    )
    refused(done, "patch", size)


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


def test_recipe_without_such_a_setting(scene: Path, tmp_path: Path, here: Run) -> None:
    arguments = ["search", "--data", scene, "--budget", "6K-params", "--out", tmp_path / "run"]
    refused(here(*arguments, "--recipe", "mixin=1"), "--recipe mixin", "did you mean 'mixup'")
    assert not (tmp_path / "run").exists()


def test_length_of_the_final_training_said_twice(scene: Path, tmp_path: Path, here: Run) -> None:
    arguments = ["search", "--data", scene, "--budget", "6K-params", "--out", tmp_path / "run"]
    both = ["--epochs", "10", "--recipe", "steps=300"]
    refused(here(*arguments, *both), "epochs 10", "--recipe steps=")
    refused(here(*arguments, "--epochs", "-1"), "epochs -1: must be 0 or more")
    assert not (tmp_path / "run").exists()


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


def test_folder_that_cannot_be_made(scene: Path, tmp_path: Path, here: Run) -> None:
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
    # In the order in which a run writes them, each larger than those before it. A TorchScript file
    # also holds the stack of its caller, so its size varies a little.
    for name in ("evaluations.sqlite", "weights.safetensors", "model.onnx", "model.pt"):
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


@pytest.mark.parametrize(
    "option",
    [
        "--population=0",
        "--generations=-1",
        "--seed=-1",
        "--epochs=-1",
        "--validation-fraction=1.5",
        "--train-per-class=0",
        "--patch-size=0",
        "--block=0",
        "--nodata=inf",
        "--band-group=2",
        "--bands=0-3",
    ],
)
def test_numbers_out_of_range(option: str, scene: Path, tmp_path: Path, here: Run) -> None:
    out = tmp_path / "run"
    done = here("search", "--data", scene, "--budget", "6K-params", "--out", out, option)
    refused(done, option.split("=")[1])
    assert not out.exists()


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


def test_other_errors_of_ours_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(main.hytas, "main", fail)
    with pytest.raises(RuntimeError, match="a bug"):
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
