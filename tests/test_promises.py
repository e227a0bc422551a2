"""What SECURITY.md promises of files that others made, where no other test does."""

import ast
import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hytas
from hytas.data import Grid, Split, labels_on_grid, open_cube, open_file
from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.report import ReportPixels
from hytas.run import RunFolder
from hytas.run.folder import read_json
from hytas.run.weights import load_weights
from hytas.search import EvaluationStore
from hytas.spaces import open_space
from hytas.tensors import read_tensors

PACKAGE = Path(hytas.__file__).parent
RUNS_CODE = {"eval", "exec", "compile", "pickle.load", "pickle.loads", "torch.load", "os.system"}


class Payload:
    """Unpickled, it leaves a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def written(path: Path, payload: Payload) -> Path:
    """A file of one object, in the format of its name; other formats get the bare pickle."""
    held = np.array([payload], object)
    if path.suffix == ".npy":
        np.save(path, held, allow_pickle=True)
    elif path.suffix == ".npz":
        np.savez(path, train=held, found=held, cube=held, allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(payload))
    return path


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("scene.npy", lambda path: open_cube(path).whole()),
        ("scene.npz", lambda path: open_cube(path).whole()),
        ("scene.npz", lambda path: labels_on_grid(path, Grid(None, None, 1, 1))),
        ("scene.mat", open_file),
        ("split.npz", Split.load),
        ("pixels.npz", ReportPixels.load),
        ("weights.safetensors", load_weights),
        ("KEY.safetensors", read_tensors),
        ("model.onnx", DeployedModel.load),
        ("evaluations.sqlite", EvaluationStore),
        ("architecture.json", read_json),
        ("config.json", lambda path: RunFolder(path.parent).read_config()),
        ("space.json", lambda path: open_space(str(path))),
        ("space.toml", lambda path: open_space(str(path))),
    ],
)
def test_no_pickle_runs(tmp_path: Path, name: str, read: Callable[[Path], object]) -> None:
    mark = tmp_path / "it ran"
    path = written(tmp_path / name, Payload(mark))
    with pytest.raises(InputError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert not mark.exists()


def test_nothing_in_the_package_runs_code_from_a_file() -> None:
    """`numpy.load` refuses objects unless it is told otherwise, `torch.load` if it is told so.

    Worker processes read what their own parent pickled for them, and a plug-in is code that the
    user named.
    """
    allowed = {PACKAGE / "workers" / "local.py", PACKAGE / "plugins.py"}
    found = []
    for path in sorted({*PACKAGE.rglob("*.py")} - allowed):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            told = [word.arg for word in node.keywords if isinstance(word.value, ast.Constant)]
            allows = "allow_pickle" in told and "allow_pickle=True" in ast.unparse(node)
            safe = ast.unparse(node).startswith("torch.load(") and "weights_only" in told
            safe = safe and "weights_only=True" in ast.unparse(node)
            if (ast.unparse(node.func) in RUNS_CODE and not safe) or allows:
                found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert found == []


WATCHED = """
import json, os, sys

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
seen = set()


def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)) and arguments[2] & WRITES:
        seen.add(os.fsdecode(arguments[0]))
    elif event == "sqlite3.connect" and "mode=ro" not in str(arguments[0]):
        seen.add(os.fsdecode(arguments[0]))
    elif event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"):
        seen.update(os.fsdecode(each) for each in arguments[:2] if isinstance(each, (str, bytes)))


sys.addaudithook(watch)
from hytas.cli.main import hytas

for command in json.loads(sys.argv[1]):
    hytas.main(command, standalone_mode=False, obj="hytas")
print("wrote:" + json.dumps(sorted(os.path.abspath(path) for path in seen)))
"""


@pytest.mark.slow
def test_commands_write_only_where_they_are_told(tmp_path: Path) -> None:
    here, out = tmp_path / "here", tmp_path / "out"
    here.mkdir()
    out.mkdir()
    run, cube = out / "run", np.arange(24 * 20 * 8, dtype=np.int16).reshape(24, 20, 8)
    labels = np.repeat(np.uint8([1, 2, 3]), 8)[:, None] * np.ones((1, 20), np.uint8)
    np.savez(here / "scene.npz", cube=cube % 97 + 50 * labels[:, :, None], labels=labels)
    search = ["search", "--data", "scene.npz", "--space", "hytas", "--budget", "60K-params"]
    search += ["--population", "6", "--generations", "2", "--finalists", "1", "--epochs", "1"]
    commands = [
        [*search, "--workers", "1", "--out", str(run)],
        ["export", str(run), "--formats", "torchscript,onnx-scene"],
        ["classify", str(run / "model.onnx"), "scene.npz", "--out", str(out / "map.png")],
        ["report", str(run), "--out", str(out / "report.html")],
    ]
    arguments = [sys.executable, "-c", WATCHED, json.dumps(commands)]
    done = subprocess.run(arguments, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    paths = json.loads(done.stdout.rpartition("wrote:")[2])
    home = Path.home()
    caches = (tempfile.gettempdir(), f"{home}/.cache", f"{home}/.config/matplotlib", "/dev")
    elsewhere = [
        path
        for path in paths
        if not path.startswith(str(out))
        and (path.startswith(str(tmp_path)) or not path.startswith(caches))
    ]
    assert elsewhere == []
    assert any(path.endswith("model.onnx") for path in paths)
    assert [item.name for item in here.iterdir()] == ["scene.npz"]
