"""A small scene on disk, and the commands run as a user runs them."""

import sys
from pathlib import Path

import pytest
import scipy.io
from small_run import TINY_SEARCH, small_scene

from commands import Run

sys.path.append(str(Path(__file__).parents[1] / "export"))


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One .mat file with the cube and its labels."""
    path = tmp_path_factory.mktemp("scene") / "field.mat"
    cube, labels = small_scene()
    scipy.io.savemat(path, {"cube": cube, "gt": labels})
    return path


@pytest.fixture(scope="session")
def finished(hytas: Run, scene: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was never interrupted."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    done = hytas("search", "--data", scene, "--budget", "6K-params", "--out", out, *TINY_SEARCH)
    assert done.returncode == 0, done.stderr
    (out / "stdout.log").write_text(done.stdout)
    return out
