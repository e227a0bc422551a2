"""Networks without a hidden layer, the linear skip, and the mean of several networks."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from hytas.data import Preprocessing, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.smoothing import Smoothing
from hytas.export import describe, export_formats
from hytas.metrics import log_mean
from hytas.models import InputShape, SensorModel, build_network, count_parameters
from hytas.models.counting import counted_layers
from hytas.models.linear import FUNCTIONS, begin_skip, lda, softmax_regression
from hytas.models.table import closed_form
from hytas.run.config import RunConfig
from hytas.run.context import open_feasible
from hytas.spaces import open_space
from hytas.spaces.costs import budget_of_network, shipped_costs
from hytas.spaces.names import FITS, MEAN_WITH, linear_architecture
from hytas.train import LabelledPixels, Recipe, train
from hytas.train.loop import Watch
from small import GATED

BANDS, CLASSES, SIDE = 24, 3, 5
WIDE: dict[str, Any] = GATED | {"patch": SIDE, "embed_dim": 16, "skip": "none"}
MEAN = {**WIDE, MEAN_WITH: list(FITS)}
SKIP = {**WIDE, "skip": "linear"}
SHAPE = InputShape(BANDS, CLASSES, SIDE)


def spectra(
    classes: int, count: int = 12, bands: int = BANDS
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return correlated spectra (classes * count, bands) and their classes."""
    generator = np.random.default_rng(classes)
    targets = np.repeat(np.arange(classes), count)
    means = generator.standard_normal((classes, bands)).cumsum(1)
    return means[targets] + generator.standard_normal((len(targets), bands)).cumsum(1), targets


def pixels(classes: int = CLASSES) -> LabelledPixels:
    values, targets = spectra(classes)
    generator = np.random.default_rng(1)
    patches = generator.standard_normal((len(values), SIDE, SIDE, BANDS)).astype(np.float32)
    patches[:, SIDE // 2, SIDE // 2] = values
    return LabelledPixels(lambda chosen: patches[chosen], np.arange(len(values)), targets, CLASSES)


@pytest.mark.parametrize("bands", [5, 80])
@pytest.mark.parametrize("classes", [2, 4])
def test_lda_is_that_of_scikit_learn(classes: int, bands: int) -> None:
    values, targets = spectra(classes, bands=bands)
    values[:, 1] = 3.0  # a dead band
    expected = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(values, targets)
    weight, bias = lda(values, targets, classes)
    if classes == 2:  # scikit-learn keeps the difference of the two
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    np.testing.assert_allclose(weight, expected.coef_, atol=1e-6)
    np.testing.assert_allclose(bias, expected.intercept_, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 4])
def test_softmax_regression_is_that_of_scikit_learn_at_its_ridge(classes: int) -> None:
    values, targets = spectra(classes, bands=50)
    values = (values - values.mean(0)) / values.std(0)
    weight, bias = softmax_regression(values, targets, classes)
    machines = [
        LogisticRegression(C=10.0**power, max_iter=5000).fit(values, targets)
        for power in range(-3, 4)
    ]
    chances = np.exp(values @ weight.T + bias)
    chances /= chances.sum(1, keepdims=True)
    gaps = [np.abs(machine.predict_proba(values) - chances).max() for machine in machines]
    assert min(gaps) < 0.02


def test_kernel_regression_sees_faint_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    targets = np.arange(160) % 2
    angle = generator.uniform(0, 2 * np.pi, len(targets))
    ring = np.where(targets, 0.08, 0.02)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    brightness = generator.standard_normal((len(targets), 1))
    values = np.hstack([brightness, ring]) @ generator.standard_normal((3, BANDS))
    patches = torch.from_numpy(values).float()[:, None, None]

    def accuracy() -> float:
        network = closed_form("rbf", InputShape(BANDS, 2, 1))
        network.solve(patches[:100], torch.from_numpy(targets[:100]))
        with torch.no_grad():
            return float((network(patches[100:]).argmax(1).numpy() == targets[100:]).mean())

    chosen = accuracy()
    monkeypatch.setattr("hytas.models.kernel.WHITENINGS", (0.0,))
    assert chosen > 0.9 > accuracy()


@pytest.mark.parametrize("fit", FUNCTIONS)
def test_linear_networks_read_a_derivative_where_it_tells_classes_apart(fit: str) -> None:
    """Classes differ in a narrow slope; brightness and tilt differ from pixel to pixel."""
    generator = np.random.default_rng(0)
    targets, at = np.repeat([0, 1], 60), np.linspace(-1, 1, 60)
    light, tilt = generator.normal(0, 30, (2, 120, 1))
    values = light + tilt * at + targets[:, None] * np.tanh(at / 0.1)
    values += 0.05 * generator.standard_normal(values.shape)
    values = (values - values.mean(0)) / values.std(0)
    patches, halves = torch.from_numpy(values).float()[:, None, None], np.arange(120) % 2 == 0
    network = closed_form(fit, InputShape(60, 2, 1))
    network.solve(patches[halves], torch.from_numpy(targets[halves]))
    predicted = network(patches[~halves]).argmax(1).numpy()
    assert (predicted == targets[~halves]).mean() > 0.95


@pytest.mark.parametrize("scale", [1.0, 1e-5])  # logits of tens of thousands
@pytest.mark.parametrize("fit", FITS)
def test_a_class_without_a_pixel_is_never_predicted(fit: str, scale: float) -> None:
    network = closed_form(fit, SHAPE)
    values, targets = spectra(2)
    centre = 100 * np.arange(BANDS)  # far from the origin, where a logit of a constant is not low
    noise = np.random.default_rng(2).standard_normal(values.shape)
    seen = centre + scale * noise + targets[:, None]
    network.solve(torch.from_numpy(seen)[:, None, None], torch.from_numpy(targets))
    others = torch.from_numpy(centre + 3 * np.random.default_rng(1).standard_normal((50, BANDS)))
    assert set(network(others.float()[:, None, None]).argmax(1).tolist()) <= {0, 1}


def test_a_skip_begins_with_spectra_of_large_distances() -> None:
    network = build_network(SKIP, SHAPE)
    generator = np.random.default_rng(4)
    targets = np.repeat([0, 2], 30)  # and none of class 1
    near = (1e-4 * generator.standard_normal((60, BANDS)) + targets[:, None]).astype(np.float32)
    begin_skip(network.skip, network.head, torch.from_numpy(near), torch.from_numpy(targets))
    assert all(bool(torch.isfinite(one).all()) for one in network.skip.parameters())
    logits = network.skip(torch.from_numpy(near))
    assert (logits.argmax(1).numpy() == targets).all()


@pytest.mark.parametrize("fit", FITS)
def test_training_fits_a_linear_network_once_and_goes_on_from_a_models_weights(
    fit: str, tmp_path: Path
) -> None:
    network = build_network(linear_architecture(fit), SHAPE)
    result = train(
        network, pixels(), pixels(), Recipe(), seed=0, watch=Watch(checkpoint=tmp_path / "c")
    )
    assert len(result.history) == 1
    assert result.history[0].validation_oa is not None
    assert result.history[0].validation_oa > 0.9
    again = build_network(linear_architecture(fit), SHAPE, seed=9)
    train(again, pixels(), pixels(), Recipe(), seed=5)
    assert torch.equal(again.head.weight, network.head.weight)
    network.fresh = False
    before = network.head.weight.clone()
    assert len(train(network, pixels(), pixels(), Recipe(epochs=2), seed=0).history) == 2
    change = (network.head.weight - before).abs().max()
    assert 0 < change < 0.1


def test_a_skip_learns_at_a_tenth_of_the_rate() -> None:
    """A step of AdamW changes a weight by the learning rate."""
    network = build_network(SKIP, SHAPE)
    network.fresh = False
    before = (0.1 * network.skip.weight).clone(), network.pixel_embed.project.weight.clone()
    recipe = Recipe(
        steps=1, most_epochs=None, whitened=False, weight_decay=0.0, warmup=0.0,
        learning_rate=1e-3, batch_size=64, ema_decay=0.0,
    )  # fmt: skip
    train(network, pixels(), pixels(), recipe, seed=0)
    after = 0.1 * network.skip.weight, network.pixel_embed.project.weight
    changes = [float((b - a).detach().abs().median()) for a, b in zip(before, after, strict=True)]
    assert changes[0] == pytest.approx(changes[1] / 10, rel=0.05)


def test_the_mean_is_that_of_the_probabilities() -> None:
    network = build_network(MEAN, SHAPE).eval()
    patches = torch.randn(7, SIDE, SIDE, BANDS)
    with torch.no_grad():
        parts = [network.network(patches), *(one(patches) for one in network.linear.values())]
        found = network(patches)
    expected = torch.stack([part.softmax(1) for part in parts]).mean(0)
    torch.testing.assert_close(found.softmax(1), expected)
    np.testing.assert_allclose(log_mean([part.numpy() for part in parts]), found, atol=1e-5)


@pytest.mark.parametrize("architecture", [SKIP, MEAN, *map(linear_architecture, ("lda", "rbf"))])
def test_costs_are_those_of_the_network(architecture: dict[str, Any]) -> None:
    space, _ = open_space("hytas-wide", offered=SHAPE.variables())
    costs = shipped_costs(architecture, space, SHAPE)
    assert costs["params"] == count_parameters(build_network(architecture, SHAPE))
    assert costs["bytes_fp32"] == 4 * costs["params"]
    layers = counted_layers(architecture, SHAPE)
    assert sum(one.params for one in layers) == costs["params"]
    assert sum(one.macs for one in layers) == costs["macs"]


def test_a_budget_leaves_room_for_the_mean() -> None:
    space, budget = open_space(
        "hytas-wide", "2K..20K-params,100KB-int8,1MB-activations", offered=SHAPE.variables()
    )
    left = {name: (low, high) for name, low, high in budget_of_network(budget, space, SHAPE).bounds}
    kernel = count_parameters(closed_form("rbf", SHAPE))
    linear = 2 * (CLASSES * BANDS + CLASSES) + CLASSES + kernel
    assert left["params"] == (2000, 20_000 - linear)
    assert left["activations"] == (0, 1_000_000)


def test_a_small_budget_leaves_room_for_some_members_of_the_mean() -> None:
    one = CLASSES * BANDS + CLASSES
    _, feasible = open_feasible(RunConfig(budget="1500-params"), SHAPE, FITS)
    assert feasible is not None
    assert feasible.budget.bounds == [("params", 0, 1500 - 2 * one - CLASSES)]


@pytest.mark.parametrize(
    "architecture", [SKIP, MEAN, *map(linear_architecture, FITS)], ids=["skip", "mean", *FITS]
)
def test_exported_files_give_what_torch_gives(architecture: dict[str, Any], tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    cube = generator.integers(0, 4000, (9, 21, BANDS)).astype(np.int16)
    scene = scene_from_arrays(cube, np.arange(9 * 21).reshape(9, 21) % 4)
    scaling = Preprocessing.fit(cube.reshape(-1, BANDS))
    network = build_network(architecture, SHAPE).eval()
    card = describe(
        scene, scaling, architecture, SHAPE, 1.3, Smoothing.fit(cube, scaling, None).to_dict()
    )
    model = SensorModel(network, scaling, 1.3).eval()
    files = export_formats(model, tmp_path, card, ["onnx", "onnx-scene", "torchscript"])
    side = card.patch_size
    pad = ((side // 2,) * 2, (side // 2,) * 2, (0, 0))
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(cube, pad, "reflect"), (side, side), (0, 1)
    )
    patches = np.array(windows.reshape(-1, BANDS, side, side).transpose(0, 2, 3, 1))
    with torch.no_grad():
        expected = model(torch.from_numpy(patches)).numpy()
    session = onnxruntime.InferenceSession(files["onnx"])
    found = session.run(None, {session.get_inputs()[0].name: patches})
    chances = next(values for values in found if values.ndim == 2)
    np.testing.assert_allclose(chances, expected, atol=1e-5)
    mapped = classify_scene(DeployedModel.load(files["onnx-scene"], "cpu"), cube)
    np.testing.assert_allclose(mapped.confidence.ravel(), expected.max(1), atol=1e-5)
