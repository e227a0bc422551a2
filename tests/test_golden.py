"""Files of each release since 0.2.0, which this version must read (CONTRIBUTING, Stability).

A folder holds what `hytas search --budget 3K..6K-params --population 6 --generations 2
--finalists 1 --epochs 2 --self-training none --smooth guided` wrote for the synthetic scene, and
the classes of its map.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from hytas.data import Split, synthetic_scene
from hytas.deploy import DeployedModel, classify_scene
from hytas.results import RunResults
from hytas.run import RunFolder
from hytas.run.weights import load_weights

RELEASES = sorted(Path(__file__).with_name("golden").iterdir())


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the files of a release."""
    return Path(shutil.copytree(request.param, tmp_path / "run"))


def test_a_run_is_read(release: Path) -> None:
    config, fingerprint = RunFolder(release).read_config()
    assert (config.budget, config.space) == ("3K..6K-params", "hytas-wide")
    assert (config.recipe.epochs, config.split.kind, config.smooth) == (2, "auto", "guided")
    scene = synthetic_scene()
    assert fingerprint == scene.fingerprint
    split = Split.load(release / "split.npz")
    assert 0 < len(split.train) < np.count_nonzero(scene.labels)
    results = RunResults.of(json.loads((release / "metrics.json").read_text()))
    assert 0 < results.test["OA"] <= 1


def test_a_model_makes_the_same_map(release: Path) -> None:
    scene, model = synthetic_scene(), DeployedModel.load(release / "model.onnx")
    expected = np.load(release / "classes.npy")
    found = classify_scene(model, scene.cube).labels
    assert (found == expected).mean() > 0.999  # other versions of ONNX Runtime round differently


def test_weights_are_those_of_the_model(release: Path) -> None:
    trained = load_weights(release / "weights.safetensors")
    model = DeployedModel.load(release / "model.onnx")
    patches = synthetic_scene().reader(trained.card.patch_size)(np.arange(0, 900, 31))
    with torch.no_grad():
        expected = trained.sensor_model().eval()(torch.from_numpy(patches)).numpy()
    np.testing.assert_allclose(model.predict_patches(patches), expected, atol=1e-4)
