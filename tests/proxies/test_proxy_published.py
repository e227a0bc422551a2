"""Scores against the published columns, where the published score follows its formula.

A few dozen rows each, to be quick; docs/measured.md has the figures of larger samples.
"""

import csv
import json

import numpy as np
import pytest
import torch
from released import score
from scipy.stats import spearmanr

from hytas.models import InputShape
from hytas.proxies import Evaluator

pytestmark = pytest.mark.slow

SHAPES = {"indian": InputShape(200, 16), "pavia": InputShape(103, 9, band_group=7)}


def smooth_patches(shape: InputShape) -> tuple[torch.Tensor, torch.Tensor]:
    """A patch a class of smooth spectra, standardised a band."""
    random = np.random.default_rng(0)
    band = np.linspace(0.0, 1.0, shape.bands)
    patches = np.empty((shape.classes, 7, 7, shape.bands))
    for label in range(shape.classes):
        spectrum = sum(
            random.uniform(0.2, 1.0)
            * np.exp(-(((band - random.uniform()) / random.uniform(0.1, 0.4)) ** 2))
            for _ in range(4)
        )
        patches[label] = spectrum * random.uniform(0.9, 1.1, (7, 7, 1))
    patches += random.normal(0.0, 0.01, patches.shape)
    patches = (patches - patches.mean((0, 1, 2))) / patches.std((0, 1, 2))
    return torch.tensor(patches, dtype=torch.float32), torch.arange(shape.classes)


def correlations(shared, scene: str, rows: int, columns: dict[str, str]) -> dict[str, float]:
    """Spearman of each proxy with its published column, over `rows` random rows."""
    with (shared / "hytas2000" / f"{scene}.csv").open() as file:
        table = [row for row in csv.DictReader(file) if row["suspect"] == "0"]
    chosen = np.random.default_rng(1).choice(len(table), rows, replace=False)
    table = [table[place] for place in chosen]
    names = ("depth", "embed_dim", "num_heads", "mlp_ratio")
    architectures = [{name: json.loads(row[name]) for name in names} for row in table]
    shape = SHAPES[scene]
    scorer = Evaluator(list(columns), shape, batch=smooth_patches(shape))
    results = score(architectures, scorer)
    return {
        proxy: float(
            spearmanr(
                [result[proxy] for result in results], [float(row[column]) for row in table]
            ).statistic
        )
        for proxy, column in columns.items()
    }


@pytest.mark.slow
def test_dss_with_and_without_the_released_sign_step(shared) -> None:
    released = "dss:layers=all:sign=released"
    columns = {"dss:layers=all": "dss_nosign", released: "dss"}
    found = correlations(shared, "indian", 40, columns)
    assert found["dss:layers=all"] > 0.97
    assert found[released] > 0.98


@pytest.mark.slow
def test_data_proxies_against_their_columns(shared) -> None:
    columns = {name: name for name in ("snip", "naswot", "zico", "zico_pp")}
    found = correlations(shared, "pavia", 25, columns)
    assert all(value > 0.95 for value in found.values()), found
