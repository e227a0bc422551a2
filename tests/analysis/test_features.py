"""Genes and scores as columns of numbers, and Spearman's rank correlation."""

import math

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from hytas.lab.analysis.factors import MOST, Factors
from hytas.search.ranks import spearman


def test_numbers_lists_labels_and_flags_are_columns() -> None:
    drawn = [
        {"depth": 3, "mlp_ratio": [1, 4, 2.5], "tokens": "pixel", "caf": True},
        {"depth": 1, "mlp_ratio": [2], "tokens": "band", "caf": False},
    ]
    factors = Factors.of(drawn)
    assert factors.genes == ["depth", "mlp_ratio", "tokens", "caf"]
    # depth, the mean of mlp_ratio, tokens=band, tokens=pixel, caf
    np.testing.assert_array_equal(factors.rows(drawn), [[3, 2.5, 0, 1, 1], [1, 2, 1, 0, 0]])


def test_missing_genes_are_zero_and_failed_scores_the_median() -> None:
    scores = {"t": [math.nan, 4.0, 2.0], "s": [1.0, math.inf, 3.0], "u": [math.nan] * 3}
    drawn = [{"a": 5}, {"b": "x"}, {"a": 7, "b": "y"}]
    rows = Factors.of(drawn).with_scores(
        drawn, {name: np.array(values) for name, values in scores.items()}
    )
    # a, b=x, b=y, s, t, u
    expected = [[5, 0, 0, 1, 3, 0], [0, 1, 0, 2, 4, 0], [7, 0, 1, 3, 2, 0]]
    np.testing.assert_array_equal(rows, expected)


def test_scores_beyond_float32_are_large_ones() -> None:
    powers = np.array([*(10.0**power for power in range(20, 80, 2)), 1e300, math.nan])
    drawn = [{"depth": 1 + number % 3} for number in range(32)]
    rows = Factors.of(drawn).with_scores(drawn, {"s": powers})
    trees = ExtraTreesRegressor(20, random_state=0)
    trees.fit(rows[:30], np.arange(30.0))
    compared = rows[[0, 30]]
    compared[:, :-1] = rows[0, :-1]
    low, high = trees.predict(compared)
    assert low < high
    assert rows[31, -1] == MOST  # the median


def test_spearman_against_scipy_and_by_hand() -> None:
    from scipy import stats

    generator = np.random.default_rng(2)
    a, b = generator.integers(0, 9, 60), generator.integers(0, 9, 60)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert spearman([1, 2, math.nan, 3], [1, 2, 9, 3]) == 1.0
    assert spearman([1, 1, 1], [1, 2, 3]) is None
