"""Figures of all resamples at once equal those of each resample, made one by one."""

import math

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from hytas.lab.analysis.bootstrap import (
    Column,
    cell,
    kendall_of,
    mean_with_interval,
    precision_of,
    resamples,
    spearman_of,
    with_interval,
)


def columns(networks: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Two related columns with many ties."""
    generator = np.random.default_rng(3)
    one = generator.integers(0, 12, networks).astype(float)
    return one, (one + generator.normal(0, 6, networks)).round()


def test_rank_correlations_are_those_of_scipy_in_each_resample() -> None:
    one, other = columns()
    copies = resamples(len(one), 40, 1)
    rho = spearman_of(Column.of(one, copies), Column.of(other, copies))
    tau = kendall_of(Column.of(one, copies), Column.of(other, copies))
    for row, own_rho, own_tau in zip(copies, rho, tau, strict=True):
        chosen = np.repeat(np.arange(len(one)), row.astype(int))
        assert own_rho == pytest.approx(spearmanr(one[chosen], other[chosen]).statistic)
        assert own_tau == pytest.approx(kendalltau(one[chosen], other[chosen]).statistic)


def test_precision_counts_those_that_both_put_first() -> None:
    generator = np.random.default_rng(0)
    one, other = generator.permutation(200.0 * np.arange(200)), generator.permutation(200)
    copies = resamples(200, 20, 0)
    for share in (0.01, 0.05, 0.1, 0.5):
        found = precision_of(Column.of(one, copies), Column.of(other.astype(float), copies), share)
        count = math.ceil(share * 200)
        first = set(np.argsort(one)[-count:]) & set(np.argsort(other)[-count:])
        assert found[0] == pytest.approx(len(first) / count)
        for row, value in zip(copies[1:], found[1:], strict=True):
            chosen = np.repeat(np.arange(200), row.astype(int))
            tops = [
                chosen[np.argsort(column[chosen], kind="stable")[-count:]]
                for column in (one, other)
            ]
            counts = [np.bincount(top, minlength=200) for top in tops]
            assert abs(np.minimum(*counts).sum() / count - value) <= 2 / count


def test_equal_values_share_the_last_places() -> None:
    ones = np.ones((1, 4))
    order = Column.of(np.array([1.0, 1.0, 1.0, 2.0]), ones)
    assert order.among_first(2).tolist() == [[1 / 3, 1 / 3, 1 / 3, 1.0]]


def test_a_failed_score_is_the_lowest_and_a_constant_one_has_no_rho() -> None:
    ones = np.ones((1, 3))
    assert Column.of(np.array([5.0, np.nan, 1.0]), ones).ranks.tolist() == [[1, -1, 0]]
    flat, rising = Column.of(np.zeros(3), ones), Column.of(np.arange(3.0), ones)
    assert with_interval(spearman_of(flat, rising)) is None
    assert cell(None) == "-"


def test_an_interval_holds_the_mean_nineteen_times_in_twenty() -> None:
    generator = np.random.default_rng(1)
    held = 0
    for seed in range(200):
        found = mean_with_interval(generator.normal(0, 1, 60), resamples(60, 100, seed))
        assert found is not None
        held += found[1] <= 0 <= found[2]
    assert 178 <= held <= 198
