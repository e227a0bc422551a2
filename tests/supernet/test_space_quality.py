"""Searching the search space: E and T, what choices are worth, and the steps that follow."""

from typing import Any

import numpy as np
import pytest

from hytas.supernet import EvolutionSettings
from hytas.supernet.space_quality import choice_errors, propose, slope, space_quality

SETTINGS = EvolutionSettings()


def always(gene: str, values: list[Any]) -> bool:
    return True


def test_mean_error_and_that_of_the_best() -> None:
    errors = np.array([0.5, 0.1, 0.3, 0.2, 0.4] * 4)
    found = space_quality(errors, 0.1)
    assert tuple(found) == pytest.approx((0.3, 0.1))
    assert space_quality(errors[:3], 0.05).T == 0.1  # one at least


def test_a_choice_counts_by_its_share_of_the_layers() -> None:
    drawn = [{"mlp": [1, 1]}, {"mlp": [1, 2]}, {"mlp": [4]}]
    found = choice_errors("mlp", [1, 2, 3, 4], drawn, [0.1, 0.4, 0.7])
    assert found[0] == (pytest.approx((0.1 + 0.4 / 2) / 1.5), 1.5)
    assert found[1] == (pytest.approx(0.4), 0.5)
    assert found[3] == (0.7, 1.0)
    assert np.isnan(found[2][0])
    assert found[2][1] == 0.0


def test_the_slope_is_that_of_a_weighted_line() -> None:
    generator = np.random.default_rng(0)
    weight, place = generator.uniform(1, 5, 6), np.arange(6.0)
    mean = 0.4 - 0.02 * place + generator.normal(0, 0.01, 6)
    expected = np.polyfit(place, mean, 1, w=np.sqrt(weight))[0]
    pairs = list(zip(mean.tolist(), weight.tolist(), strict=True))
    assert slope(pairs) == pytest.approx(expected)
    # Without weight a choice says nothing, whatever its place.
    pairs[2] = (float("nan"), 0.0)
    used = place != 2
    expected = np.polyfit(place[used], mean[used], 1, w=np.sqrt(weight[used]))[0]
    assert slope(pairs) == pytest.approx(expected)
    assert slope(pairs[:1]) == 0.0


@pytest.mark.parametrize(
    ("worth", "what", "values"),
    [
        (-0.002, None, None),
        (-0.004, "extend", [32, 48, 64, 80]),
        (-0.008, "shift", [48, 64, 80]),
        (0.004, "extend", [16, 32, 48, 64]),
        (0.008, "shift", [16, 32, 48]),
    ],
)
def test_numbers_move_to_where_errors_are_smaller(worth, what, values) -> None:
    found = [(0.3 + worth * place, 10.0) for place in range(3)]
    step = propose("embed_dim", [32, 48, 64], found, SETTINGS, always)
    assert (step and step.what, step and step.values) == (what, values)
    if step is not None:
        assert step.worth == pytest.approx(worth)


def test_a_gene_that_cannot_grow_only_loses_its_worst_choice() -> None:
    steep = [(0.3 - 0.01 * place, 10.0) for place in range(3)]

    def inside(gene: str, values: list[Any]) -> bool:
        return max(values) <= 64 and min(values) >= 32

    step = propose("embed_dim", [32, 48, 64], steep, SETTINGS, inside)
    assert step is not None
    assert (step.what, step.values) == ("narrow", [48, 64])
    assert propose("embed_dim", [48, 64], steep[:2], SETTINGS, inside) is None  # two stay
    down = [(0.3 + 0.01 * place, 10.0) for place in range(3)]
    step = propose("depth", [0, 1, 2], down, SETTINGS, always)
    assert step is not None
    assert (step.what, step.values) == ("narrow", [0, 1])  # no depth below 0


def test_labels_that_are_clearly_worse_go() -> None:
    found = [(0.30, 5.0), (0.31, 5.0), (0.35, 5.0), (float("nan"), 0.0)]
    labels = ["class", "mean", "centre", "never drawn"]
    step = propose("pooling", labels, found, SETTINGS, always)
    assert step is not None
    assert (step.what, step.values) == ("prune", ["class", "mean", "never drawn"])
    assert propose("pooling", labels, found[:2] + found[:2], SETTINGS, always) is None
