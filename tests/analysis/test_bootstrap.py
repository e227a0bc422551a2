"""Rank statistics and their intervals."""

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from hytas.lab.analysis.bootstrap import (
    among_first,
    cell,
    in_resamples,
    kendall,
    mean_with_interval,
    precision,
    resamples,
    with_interval,
)
from hytas.search.ranks import spearman


def test_rank_correlations_are_those_of_scipy_in_each_resample() -> None:
    generator = np.random.default_rng(3)
    one = generator.integers(0, 12, 80).astype(float)  # with many ties
    other = (one + generator.normal(0, 6, 80)).round()
    copies = resamples(len(one), 40, 1)
    rho, tau = (in_resamples(of, one, other, copies) for of in (spearman, kendall))
    for row, own_rho, own_tau in zip(copies, rho, tau, strict=True):
        chosen = np.repeat(np.arange(len(one)), row)
        assert own_rho == pytest.approx(spearmanr(one[chosen], other[chosen]).statistic)
        assert own_tau == pytest.approx(kendalltau(one[chosen], other[chosen]).statistic)


def test_precision_counts_those_that_both_put_first() -> None:
    generator = np.random.default_rng(0)
    one, other = (
        generator.permutation(200.0 * np.arange(200)),
        generator.permutation(np.arange(200.0)),
    )
    for share in (0.01, 0.05, 0.1, 0.5):
        count = round(share * 200)
        first = set(np.argsort(one)[-count:]) & set(np.argsort(other)[-count:])
        assert precision(one, other, share) == pytest.approx(len(first) / count)


def test_equal_values_share_the_last_places() -> None:
    assert among_first(np.array([1.0, 1.0, 1.0, 2.0]), 2).tolist() == [1 / 3, 1 / 3, 1 / 3, 1.0]


def test_a_failed_score_is_the_lowest_and_a_constant_one_has_no_rho() -> None:
    ones = np.ones((1, 3), np.int64)
    failed = np.array([5.0, np.nan, 1.0])
    assert in_resamples(spearman, failed, np.array([3.0, 1.0, 2.0]), ones).tolist() == [1]
    for statistic in (spearman, kendall):
        assert with_interval(in_resamples(statistic, np.zeros(3), np.arange(3.0), ones)) is None
    assert cell(None) == "-"


def test_an_interval_holds_the_mean_nineteen_times_in_twenty() -> None:
    generator = np.random.default_rng(1)
    held = 0
    for seed in range(200):
        found = mean_with_interval(generator.normal(0, 1, 60), resamples(60, 100, seed))
        assert found is not None
        held += found[1] <= 0 <= found[2]
    assert 178 <= held <= 198
