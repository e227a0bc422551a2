"""A network as a target computes it, next to the file that ships."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small_model import Exported

from hytas.deploy import DeployedModel
from hytas.export import export_formats
from hytas.export.target import converted, target_format
from hytas.models import InputShape
from hytas.settings import TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_a_converted_network_is_that_of_the_file(
    exported: Exported, tmp_path: Path, target: str
) -> None:
    """From scaled patches as from raw ones in the sensor's type."""
    model, card, raw = exported.model, exported.card, exported.patches(200)
    name = target_format(target)
    file = export_formats(model, tmp_path, card, [name])[name]
    expected = DeployedModel.load(file, "cpu").predict_patches(raw)
    with torch.no_grad():
        scaled = model.scaling(torch.from_numpy(raw.astype(np.float32)))
    shape = InputShape(scaled.shape[-1], expected.shape[1], card.patch_size, card.band_group)
    with converted(model.network, card.architecture, shape, target) as network:
        given = network(scaled).softmax(1).numpy()
    assert np.abs(given - expected).max() < 1e-4
    assert np.abs(exported.probabilities(raw) - expected).max() > 1e-4  # the conversion is there
