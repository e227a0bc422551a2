"""What SECURITY.md promises of files that others made, where no other test does."""

import ast
import pickle
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
