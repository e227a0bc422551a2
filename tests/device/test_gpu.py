"""What only a GPU can show; HYTAS_TEST_DEVICE=cpu rehearses it on the CPU."""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from device_road import road, scores
from small_networks import SMALL

from hytas.deploy import DeployedModel, working_providers
from hytas.deploy.bench import example
from hytas.models import InputShape, build_network
from hytas.train import Epoch, LabelledPixels, Recipe, Watch, captured, loop, train

DEVICE = os.environ.get("HYTAS_TEST_DEVICE", "cuda")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run."""
    folder = tmp_path_factory.mktemp("gpu") / "run"
    assert road(DEVICE, str(folder)) > 0.5
    return folder


def test_scores_are_those_of_the_cpu() -> None:
    found = scores(DEVICE)
    for space, expected in scores("cpu").items():
        for one, other in zip(expected, found[space], strict=True):
            for name, value in one.items():
                assert other[name] == pytest.approx(value, rel=1e-3, abs=1e-6), (space, name)


def test_a_run_ends_with_files_that_agree(run: Path) -> None:
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["device"] == DEVICE
    for name, figures in metrics["parity"]["formats"].items():
        assert figures["max_difference"] < 1e-3, name
    assert (run / "map.png").stat().st_size > 1000


def test_the_same_seed_gives_the_same_weights() -> None:
    shape = InputShape(bands=9, classes=4, patch_size=3, band_group=3)
    generator = np.random.default_rng(0)
    values = generator.normal(size=(96, 3, 3, 9)).astype(np.float32)
    pixels = np.arange(96)
    training = LabelledPixels(lambda chosen: values[chosen], pixels, pixels % 4, 4)
    nothing = LabelledPixels(lambda chosen: values[chosen], pixels[:0], pixels[:0], 4)
    trained = []
    for _ in range(2):
        network = build_network(SMALL[0], shape, drop_path=0.1, seed=0)
        train(network, training, nothing, Recipe(epochs=3), seed=0, device=DEVICE)
        trained.append(network.cpu().state_dict())
    for name, first in trained[0].items():
        assert torch.equal(first, trained[1][name]), name


@pytest.mark.parametrize("architecture", SMALL[:3], ids=str)
def test_a_captured_step_trains_as_its_operations_do(
    architecture: dict[str, object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shape = InputShape(bands=9, classes=4, patch_size=3, band_group=3)
    values = np.random.default_rng(0).normal(size=(90, 3, 3, 9)).astype(np.float32)
    pixels = np.arange(90)
    training = LabelledPixels(lambda chosen: values[chosen], pixels, pixels % 4, 4)
    watched = LabelledPixels(lambda chosen: values[chosen], pixels[::5], pixels[::5] % 4, 4)

    def trained(**options: object) -> tuple[dict[str, torch.Tensor], list[float]]:
        network = build_network(architecture, shape, drop_path=0.1, seed=0)
        recipe = Recipe(epochs=4, batch_size=16)  # the last batch of an epoch has 10 pixels
        given = {"seed": 0, "device": DEVICE, **options}
        result = train(network, training, watched, recipe, **given)  # type: ignore[arg-type]
        return network.cpu().state_dict(), [epoch.loss for epoch in result.history]

    def kill(epoch: Epoch) -> None:
        if epoch.epoch == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(captured, "LEAST_STEPS", 1)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of a failed capture
        whole, losses = trained()
    checkpoint = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        trained(watch=Watch(kill, checkpoint=checkpoint))
    resumed, again = trained(watch=Watch(checkpoint=checkpoint))
    monkeypatch.setattr(loop, "captured_steps", captured.ResidentSteps)
    assert trained()[1] == pytest.approx(losses, rel=1e-3)
    assert again == losses
    for name, value in whole.items():
        assert torch.equal(resumed[name], value), name


def test_onnxruntime_gives_the_probabilities_of_the_cpu(run: Path) -> None:
    if DEVICE not in working_providers():
        pytest.skip(f"onnxruntime has no provider for {DEVICE} here")
    expected = DeployedModel.load(run / "model.onnx", "cpu")
    deployed = DeployedModel.load(run / "model.onnx", DEVICE)
    card = deployed.card
    patches = example(deployed, (64, card.patch_size, card.patch_size, card.bands))
    np.testing.assert_allclose(deployed.run(patches), expected.run(patches), atol=1e-4)
