"""Weights of a gene's values: how likely each is when choices are drawn."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from hytas._engine import Budget, Feasible, SearchSpace


def space(**gene: Any) -> SearchSpace:
    """Label a leaves one choice, b leaves 3 x 2 of them."""
    return SearchSpace.parse(
        json.dumps(
            {
                "format": "hytas-space",
                "version": 1,
                "name": "weighted",
                "about": "A gene whose values have weights",
                "genes": [
                    {"name": "kind", "values": ["a", "b"], **gene},
                    {"name": "width", "values": [1, 2, 3]},
                    {"name": "depth", "values": [1, 2]},
                ],
                "require": ["kind == 'b' or (width == 1 and depth == 1)"],
                "costs": {"params": {"about": "size", "unit": "params", "global": "width * depth"}},
            }
        ),
        {},
    )


@pytest.mark.parametrize(("weights", "share"), [(None, 1 / 7), ([1, 1], 1 / 7), ([6, 1], 6 / 12)])
def test_choices_are_drawn_by_weight(weights: list[int] | None, share: float) -> None:
    opened = space() if weights is None else space(weights=weights)
    feasible = Feasible(opened, Budget.parse("1..6-params"))
    draws = opened.unpack(feasible.sample(6000, seed=3, uniform="choices"))
    seen = Counter((item["kind"], item["width"], item["depth"]) for item in draws)
    rest = [(1 - share) / 6] * 6
    cells = [("a", 1, 1), *(("b", width, depth) for width in (1, 2, 3) for depth in (1, 2))]
    expected = 6000 * np.array([share, *rest])
    assert chisquare([seen[cell] for cell in cells], expected).pvalue > 1e-4


def test_architectures_are_drawn_alike_whatever_the_weights() -> None:
    opened = space(weights=[900, 1])
    feasible = Feasible(opened, Budget.parse("1..6-params"))
    draws = opened.unpack(feasible.sample(6000, seed=3, uniform="architectures"))
    first = sum(item["kind"] == "a" for item in draws)
    assert chisquare([first, 6000 - first], [6000 / 7, 6000 * 6 / 7]).pvalue > 1e-4


@pytest.mark.parametrize("budget", ["100K-params", "500K-params", "2M-params"])
def test_a_first_generation_has_all_kinds_of_tokens_and_most_of_pixels(budget: str) -> None:
    shape = {"bands": 200, "classes": 16, "patch_size": 7, "band_group": 3}
    opened = SearchSpace.builtin("hytas-wide", shape)
    feasible = Feasible(opened, Budget.parse(budget))
    draws = opened.unpack(feasible.sample(1000, seed=5, uniform="choices"))
    kinds = Counter(item["tokens"] for item in draws)
    assert set(kinds) == {"band", "pixel", "series", "parallel"}
    assert all(count > 50 for count in kinds.values()), kinds
    assert 600 < kinds["pixel"] < 800
    mixers = Counter(item["pixel_mixer"] for item in draws if item["tokens"] == "pixel")
    assert all(count > 50 for count in mixers.values()), mixers


@pytest.mark.parametrize(
    ("gene", "words"),
    [
        ({"weights": [1]}, "as many as its values"),
        ({"weights": [0, 1]}, "1 to 1000"),
        ({"weights": [1, 1.5]}, "1 to 1000"),
        ({"weights": [1, "2"]}, "1 to 1000"),
        ({"weights": [1, 1], "length": 2}, "one value"),
    ],
)
def test_bad_weights_are_refused(gene: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        space(**gene)
