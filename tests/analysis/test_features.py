"""Features of architectures of any space, and rank correlations."""

import math
from typing import Any

import numpy as np
import pytest

from hytas.errors import InputError
from hytas.lab.analysis.predictors import make_regressor
from hytas.search.ranks import kendall, spearman
from hytas.spaces.features import MOST, feature_rows, gene_features


def random_architectures(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Of a space with numbers, lists, labels and a flag."""
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        depth = int(generator.integers(2, 7))
        made.append(
            {
                "space": "wide",
                "depth": depth,
                "embed_dim": int(generator.choice([32, 64, 96])),
                "num_heads": generator.integers(3, 7, depth).tolist(),
                "mlp_ratio": generator.integers(1, 7, depth).tolist(),
                "tokens": str(generator.choice(["pixel", "band", "both"])),
                "fusion": bool(generator.integers(2)),
            }
        )
    return made


def test_features_of_numbers_lists_labels_and_flags() -> None:
    features = gene_features(
        {"depth": 3, "embed_dim": 48, "mlp_ratio": [1, 4, 2.5], "tokens": "pixel", "caf": True}
    )
    assert features == {
        "depth": 3.0,
        "embed_dim": 48.0,
        "mlp_ratio:count": 3.0,
        "mlp_ratio:sum": 7.5,
        "mlp_ratio:mean": 2.5,
        "mlp_ratio:min": 1.0,
        "mlp_ratio:max": 4.0,
        "mlp_ratio:first": 1.0,
        "mlp_ratio:last": 2.5,
        "tokens=pixel": 1.0,
        "caf": 1.0,
        "depth-embed": 144.0,
    }
    wide = gene_features({"embed_dim": 64, "band_depth": 1, "pixel_depth": 2, "pixel_mlp": [1, 3]})
    assert wide["depth-embed"] == 192.0  # both streams
    assert gene_features({"embed_dim": 64, "num_heads": [3, 4, 4]})["depth-embed"] == 192.0
    assert gene_features({"kinds": ["a", "b", "a"]})["kinds=a"] == pytest.approx(2 / 3)
    assert gene_features({"depth": 0, "num_heads": []})["num_heads:count"] == 0.0


def test_missing_genes_are_zero_and_failed_scores_the_median() -> None:
    scores = {"t": [math.nan, 4.0, 2.0], "s": [1.0, math.inf, 3.0], "u": [math.nan] * 3}
    rows = feature_rows(
        [{"a": 5}, {"b": "x"}, {"a": 7, "b": "y"}],
        {name: np.array(values) for name, values in scores.items()},
    )
    # a, b=x, b=y, s, t, u
    expected = [[5, 0, 0, 1, 3, 0], [0, 1, 0, 2, 4, 0], [7, 0, 1, 3, 2, 0]]
    np.testing.assert_array_equal(rows, expected)


def test_scores_beyond_float32_are_large_ones() -> None:
    powers = np.array([*(10.0**power for power in range(20, 80, 2)), 1e300, math.nan])
    rows = feature_rows(random_architectures(32), {"s": powers})
    trees = make_regressor("extra-trees", seed=0, trees=20)
    trees.fit(rows[:30], np.arange(30.0))
    compared = rows[[0, 30]]
    compared[:, :-1] = rows[0, :-1]
    low, high = trees.predict(compared)
    assert low < high
    assert rows[31, -1] == MOST  # the median


def test_refusals_name_the_gene() -> None:
    with pytest.raises(InputError, match="gene tokens"):
        gene_features({"tokens": {"a": 1}})


def test_correlations_against_scipy_and_by_hand() -> None:
    from scipy import stats

    generator = np.random.default_rng(2)
    a, b = generator.integers(0, 9, 60), generator.integers(0, 9, 60)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)
    assert spearman([1, 2, math.nan, 3], [1, 2, 9, 3]) == 1.0
    assert spearman([1, 1, 1], [1, 2, 3]) is None
    assert kendall([1], [2]) is None
