"""Pretreatments of spectra inside a network: what they compute, cost, and export."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.signal import savgol_filter

from hytas._engine import Feasible
from hytas.data import Preprocessing, scene_from_arrays
from hytas.data.targets import checked_targets
from hytas.deploy import DeployedModel
from hytas.export import describe, export_formats
from hytas.export.c_source import export_c, open_c, sizes_of
from hytas.models import InputShape, SensorModel, build_network, count_parameters
from hytas.models.counting import counted_layers
from hytas.models.pretreatment import Pretreatment
from hytas.proxies import Evaluator
from hytas.spaces import open_space
from hytas.spaces.genes import describe_kind
from hytas.spaces.names import PRETREATMENTS
from hytas.tasks import task_of
from hytas.train import LabelledPixels, Recipe, train
from small import GATED

BANDS, TARGETS = 60, 2
SHAPE = InputShape(BANDS, TARGETS, 1, values=1)
WIDE: dict[str, Any] = GATED | {
    "patch": 1,
    "embed_dim": 16,
    "pixel_mixer": "none",
    "skip": "linear",
}
KINDS = tuple(PRETREATMENTS)


def spectra(count: int = 90) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return smooth spectra (count, BANDS) with peaks on a steep and bright slope, and targets."""
    generator, at = np.random.default_rng(0), np.linspace(0, 1, BANDS)
    targets = generator.uniform(0, 1, (count, TARGETS))
    peaks = np.exp(-(((at - np.array([[0.3], [0.7]])) / 0.08) ** 2))
    light = generator.uniform(0.8, 1.2, (count, 1))
    values = light * (20 + 30 * at + 3 * targets @ peaks)
    return (values + 1e-2 * generator.standard_normal(values.shape)).astype(np.float32), targets


def test_they_are_those_of_scipy_and_of_the_literature() -> None:
    values, _ = spectra()
    rows = torch.from_numpy(values).double()
    for kind, order in (("first", 1), ("second", 2)):
        found = Pretreatment(kind, BANDS)(rows).numpy()
        expected = savgol_filter(values.astype(np.float64), 11, 2, order, mode="nearest")
        weights = savgol_filter(np.eye(1, 41, 20)[0], 11, 2, order, mode="constant")
        np.testing.assert_allclose(found, expected / np.sqrt((weights**2).sum()), atol=1e-9)
    variate = Pretreatment("snv", BANDS)(rows).numpy()
    np.testing.assert_allclose(variate.mean(1), 0, atol=1e-9)
    np.testing.assert_allclose(variate.std(1), 1, atol=1e-9)


def test_tables_of_values_alone_have_the_gene() -> None:
    for shape in (InputShape(BANDS, TARGETS, 1), InputShape(BANDS, TARGETS, 5, values=1)):
        space, _ = open_space("hytas-wide", offered=shape.variables())
        assert "pretreatment" not in {gene["name"] for gene in space.genes}
        assert space.cost({**WIDE, "pretreatment": "none"}) == space.cost(WIDE)
        with pytest.raises(ValueError, match="pretreatment 'snv': must be one of none"):
            space.cost({**WIDE, "pretreatment": "snv"})
    space, _ = open_space("hytas-wide", offered=SHAPE.variables())
    drawn = space.unpack(Feasible(space).sample(40, 0, "choices"))
    assert {one["pretreatment"] for one in drawn} == {"none", *KINDS}
    assert "first derivative, linear skip" in describe_kind({**WIDE, "pretreatment": "first"})


def test_costs_are_those_of_the_network() -> None:
    space, _ = open_space("hytas-wide", offered=SHAPE.variables())
    for architecture in space.unpack(Feasible(space).sample(12, 1, "choices")):
        costs, layers = space.cost(architecture), counted_layers(architecture, SHAPE)
        assert costs["params"] == count_parameters(build_network(architecture, SHAPE))
        assert costs["bytes_fp32"] == 4 * costs["params"]
        assert sum(one.params for one in layers) == costs["params"]
        assert sum(one.macs for one in layers) == costs["macs"]


@pytest.fixture(scope="module", params=KINDS)
def trained(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Any, Any, SensorModel]:
    """A trained network with the pretreatment and a linear skip, and its scene."""
    values, targets = spectra()
    known, labelled = checked_targets("labels", ("fat", "water"), targets, ("%", "%"))
    labels, cube = labelled.reshape(9, 10).astype(np.int32), values.reshape(9, 10, BANDS)
    scene = scene_from_arrays(cube, labels, targets=known)
    task = task_of(scene).fitted(targets)
    scaling = Preprocessing.fit(values, method=task.scaling or "standard")
    rows = scaling.apply(values)[:, None, None]
    samples = LabelledPixels(
        lambda chosen: rows[chosen], np.arange(90), task.coded(targets), TARGETS, of=task
    )
    architecture = {**WIDE, "pretreatment": request.param}
    network = build_network(architecture, SHAPE)
    train(network, samples, samples, Recipe(steps=20, most_epochs=None, band_noise=0.0), seed=0)
    seen = network.pretreated(torch.from_numpy(rows)).squeeze().numpy()
    np.testing.assert_allclose(seen.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(seen.std(0), 1, atol=1e-3)
    model = SensorModel(network, scaling, read_out=task.read_out()).eval()
    return architecture, scene, scaling, model


def test_files_give_what_torch_gives(trained: tuple[Any, ...], tmp_path: Path) -> None:
    architecture, scene, scaling, model = trained
    task = task_of(scene).fitted(scene.targets(np.arange(90)))
    card = task.described(describe(scene, scaling, architecture, SHAPE))
    formats = {"onnx": 1e-5, "torchscript": 1e-5, "onnx-int8": 0.05, "onnx-fp16": 0.01}
    files = export_formats(model, tmp_path, card, list(formats))
    patches = scene.reader(1)(np.arange(90))
    with torch.no_grad():
        expected = model(torch.from_numpy(patches)).numpy()
    for name, most in formats.items():
        if name == "torchscript":
            found = torch.jit.load(files[name])(torch.from_numpy(patches)).detach().numpy()
        else:
            found = DeployedModel.load(files[name], "cpu").predict_patches(patches)
        assert np.abs((found - expected) / task.scale).max() < most, name


@pytest.mark.slow
def test_c_source_gives_what_torch_gives_and_needs_what_the_costs_say(
    trained: tuple[Any, ...], tmp_path: Path
) -> None:
    pytest.importorskip("emx_onnx_cgen", reason="needs emx-onnx-cgen")
    architecture, scene, scaling, model = trained
    task = task_of(scene).fitted(scene.targets(np.arange(90)))
    card = task.described(describe(scene, scaling, architecture, SHAPE))
    path, patches = export_c(model, tmp_path / "model.c", card), scene.reader(1)(np.arange(90))
    with torch.no_grad():
        expected = model(torch.from_numpy(patches)).numpy()
    assert np.abs((open_c(path)(patches) - expected) / task.scale).max() < 1e-5
    costs = open_space("hytas-wide", offered=SHAPE.variables())[0].cost(architecture)
    found = sizes_of(path)
    assert (found["ram_bytes"], found["constant_bytes"]) == (costs["ram"], costs["flash"])


def test_scores_are_those_of_the_layers_after_it() -> None:
    scores = [
        Evaluator("dss,params", SHAPE).score([{**WIDE, "pretreatment": kind}])[0]["scores"]
        for kind in ("none", *KINDS)
    ]
    assert len({one["dss"] for one in scores}) == 1
    assert scores[1]["params"] == scores[0]["params"] + 2 * BANDS
