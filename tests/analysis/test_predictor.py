"""The predictor: any space in, ranks out, nothing learnt from what it is tested on."""

import math
from typing import Any

import numpy as np
import pytest

from hytas.analysis.predictor import ArchitecturePredictor, cross_validated_rank_correlation
from hytas.errors import InputError
from hytas.search.ranks import kendall, spearman
from hytas.spaces.features import MOST, FeatureTable, gene_features
from refusals import refuses


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


def scores_of(architectures: list[dict[str, Any]], seed: int = 1) -> list[dict[str, float]]:
    generator = np.random.default_rng(seed)
    return [
        {"params": item["depth"] * item["embed_dim"] ** 2.0, "noise": generator.normal()}
        for item in architectures
    ]


def quality(architectures: list[dict[str, Any]]) -> np.ndarray:
    """Pixel tokens matter most, then the sum of the MLP ratios; size does not."""
    return np.array(
        [
            2.0 * (item["tokens"] == "pixel") + 0.05 * sum(item["mlp_ratio"])
            for item in architectures
        ]
    )


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
    table = FeatureTable.fit([{"a": 5}, {"b": "x"}], [{"s": 1.0, "t": math.nan}, {"s": 3.0}])
    assert table.names == ("a", "b=x", "s", "t")
    rows = table.rows([{"a": 7, "new": 1}, {"b": "y"}], [{"s": math.inf}, {"t": 4.0}])
    np.testing.assert_array_equal(rows, [[7, 0, 2, 0], [0, 0, 2, 4]])


def test_scores_beyond_float32_are_large_ones() -> None:
    architectures = random_architectures(30)
    scores: list[dict[str, float]] = [{"s": 10.0**power} for power in range(20, 80, 2)]
    predictor = ArchitecturePredictor(trees=20).fit(architectures, scores, np.arange(30.0))
    low, high = predictor.predict(architectures[:1] * 2, [{"s": 1e20}, {"s": 1e300}]).mean
    assert low < high
    assert FeatureTable.fit(architectures, scores).medians == (MOST,)


def test_it_finds_what_size_hides() -> None:
    architectures = random_architectures(120)
    found = cross_validated_rank_correlation(
        architectures, scores_of(architectures), quality(architectures), trees=50
    )
    assert set(found) == {"predictor", "params", "depth-embed", "random"}
    assert found["predictor"] > 0.9
    assert found["predictor"] > found["params"]
    assert abs(found["random"]) < 0.25


def test_cross_validation_sees_no_held_out_target() -> None:
    """Targets without any pattern cannot be predicted; a leak would show as a high correlation."""
    architectures = random_architectures(80)
    noise = np.random.default_rng(5).normal(size=80)
    found = cross_validated_rank_correlation(
        architectures, scores_of(architectures), noise, trees=50
    )
    assert found["predictor"] < 0.35


def test_another_training_of_an_architecture_is_held_out_with_it() -> None:
    architectures = random_architectures(30)
    noise = np.random.default_rng(5).normal(size=30)
    found = cross_validated_rank_correlation(
        architectures * 3, scores_of(architectures * 3), np.tile(noise, 3), trees=50
    )
    assert found["predictor"] < 0.35
    same = cross_validated_rank_correlation(architectures[:1] * 4, [{}] * 4, [1, 2, 3, 4], trees=5)
    assert same["predictor"] is None


def test_a_predictor_of_noise_is_neither_right_nor_wrong() -> None:
    # Predictions pooled over folds as they are would follow the means of what was left in, which
    # are low where what was left out is high: -.17 with eight trained networks.
    generator, found = np.random.default_rng(0), []
    for repeat in range(40):
        architectures = random_architectures(8, seed=repeat)
        found.append(
            cross_validated_rank_correlation(
                architectures, [{}] * 8, generator.normal(size=8), trees=10, repeats=1, seed=repeat
            )
        )
    mean = np.mean([each["predictor"] for each in found])
    error = np.std([each["predictor"] for each in found]) / np.sqrt(len(found))
    assert abs(mean) < 2.5 * error
    assert max(abs(each["random"]) for each in found) < 0.15


@pytest.mark.parametrize("model", ["extra-trees", "random-forest"])
def test_same_seed_same_prediction(model: str) -> None:
    architectures, others = random_architectures(30), random_architectures(20, seed=9)

    def predict(seed: int) -> np.ndarray:
        predictor = ArchitecturePredictor(model=model, seed=seed, trees=20)
        predictor.fit(architectures, scores_of(architectures), quality(architectures))
        mean, spread = predictor.predict(others, scores_of(others))
        assert mean.shape == spread.shape == (20,)
        assert (spread >= 0).all()
        assert (spread > 0).any()
        return mean

    np.testing.assert_array_equal(predict(3), predict(3))
    assert not np.array_equal(predict(3), predict(4))


def test_the_mean_is_the_regressors_own() -> None:
    architectures = random_architectures(30)
    predictor = ArchitecturePredictor(trees=20)
    predictor.fit(architectures, scores_of(architectures), quality(architectures))
    rows = predictor._table.rows(architectures, scores_of(architectures))
    np.testing.assert_allclose(
        predictor.predict(architectures, scores_of(architectures)).mean,
        predictor._regressor.predict(rows),
    )


def test_few_and_constant_rows() -> None:
    architectures = random_architectures(2)
    found = cross_validated_rank_correlation(architectures, [{}, {}], [0.1, 0.9], trees=5)
    assert found["params"] is None  # no such score
    constant = cross_validated_rank_correlation(
        random_architectures(6), [{}] * 6, [0.5] * 6, trees=5
    )
    assert constant["predictor"] is None


def test_refusals_name_the_argument_and_the_rule() -> None:
    architectures = random_architectures(3)
    predictor = ArchitecturePredictor()
    with refuses("predictor", rule="must be fitted before it predicts"):
        predictor.predict(architectures, [{}] * 3)
    with refuses("targets", rule="2 for 3 architectures"):
        predictor.fit(architectures, [{}] * 3, [1, 2])
    with refuses("proxy_scores", rule="1 rows for 3 architectures"):
        predictor.fit(architectures, [{}], [1, 2, 3])
    with refuses("targets", rule="must all be finite"):
        predictor.fit(architectures, [{}] * 3, [1, 2, math.nan])
    with pytest.raises(InputError, match="at least 2"):
        predictor.fit(architectures[:1], [{}], [1])
    with refuses("predictor", "svm", "must be one of"):
        ArchitecturePredictor(model="svm")
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
